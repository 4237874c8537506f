"""Learners and bounds, mutated: the bound is computed of something else, or the statistic is."""

import attrs
import numpy as np

from dpcore import ADD_REMOVE, REPLACE_LABEL

from gallery.mutants.around import (
    cached_by_count,
    centred,
    centred_labels,
    corner,
    covering,
    few_positive,
    half_at_random,
    half_by_their_own_seed,
    more_records,
    narrower,
    of_domain,
    of_learner,
    of_relation,
    on_bound,
    on_records,
    on_value,
    pruned,
    rows,
    scaled,
    shorter,
    times,
    undefined_where_constant,
    until_enough,
    winsorised,
    with_fields,
    without_outliers,
    without_small_groups,
)
from gallery.mutants.change import Change, entries
from gallery.mutants.parents import CLAIMS

SUMS = ("label_sum", "sufficient_statistics", "clipped_gradient")
EXACT = ("label_sum", "label_mean", "counts", "moments", "layers", *SUMS[1:])
RIDGES = ("ridge", "output_perturbation", "ball_ridge")


def _change(name, mistake, apply, *parents):
    return Change(name=name, mistake=mistake, apply=apply, parents=parents)


BOUNDS = (
    _change("half", "The bound is half of what it is.", times(0.5), *CLAIMS),
    _change("tenth_less", "The bound is a tenth too small.", times(0.9), *EXACT),
    _change("bit_less", "The bound is 2 % too small.", times(0.98), *EXACT[:4], "clipped_gradient"),
    _change(
        "whole_file",
        "The bound takes the number of records of a file of which a fifth is in the hold-out.",
        of_domain(more_records(1.25)),
        "label_mean",
    ),
    _change(
        "one_more",
        "The bound divides by one record more than there are.",
        of_domain(more_records(1.001)),
        "label_mean",
    ),
    _change(
        "half_range",
        "The bound takes half of the label's range.",
        of_domain(narrower),
        "label_sum",
        "ridge",
    ),
    _change("shorter", "The bound is about rows a fifth shorter.", of_domain(shorter), RIDGES[1]),
    _change(
        "one_side",
        "The bound of a record that comes or goes is said of one that is replaced.",
        of_relation(ADD_REMOVE),
        "clipped_gradient",
        "sufficient_statistics",
        "output_perturbation",
    ),
    _change(
        "label_only",
        "The bound of a label that changes is said of a whole record.",
        of_relation(REPLACE_LABEL),
        "sufficient_statistics",
    ),
    _change(
        "other_regularization",
        "The bound takes twice the regularization.",
        of_learner(regularization=2),
        "ridge",
    ),
    _change(
        "other_total",
        "The bound takes twice the regularization.",
        of_learner(total_regularization=2),
        "output_perturbation",
    ),
    _change(
        "covers_zero",
        "A bound on movement is said to bound the distance from 0 too.",
        on_bound(lambda of, learner, domain: covering(of())),
        "label_mean",
        "sufficient_statistics",
    ),
)


STATISTICS = (
    _change(
        "unclipped",
        "The clip is left out.",
        with_fields(clip=1e9),
        "layers",
        "clipped_gradient",
        "output_perturbation",
    ),
    _change(
        "clip_too_large",
        "The clip is half again as large as the bound's.",
        with_fields(clip=1.5),
        "layers",
        "clipped_gradient",
    ),
    _change(
        "less_regularization",
        "The solver takes a third of the regularization.",
        with_fields(regularization=1 / 3),
        "ridge",
        "kernel_ridge",
    ),
    _change(
        "less_total",
        "The solver takes a third of the regularization.",
        with_fields(total_regularization=1 / 3),
        "output_perturbation",
    ),
    _change(
        "larger_ball",
        "The ball is a fifth larger than the bound's.",
        with_fields(radius=1.2),
        "projected_min_norm",
    ),
    _change(
        "outliers_cut",
        "Labels two deviations from their mean are cut, which is decided by all of them.",
        on_records(without_outliers),
        "label_mean",
        *SUMS,
    ),
    _change(
        "small_groups",
        "Groups of fewer than five records are left out.",
        on_records(without_small_groups),
        "label_mean",
        *SUMS,
    ),
    _change(
        "winsorised",
        "Labels are clipped to their own quantiles.",
        on_records(winsorised),
        "label_sum",
        "label_mean",
        "sufficient_statistics",
    ),
    _change(
        "rare_branch",
        "The value is six times larger where a record lies in one small place.",
        on_value(corner),
        "label_mean",
        "layers",
        "clipped_gradient",
    ),
    _change(
        "few_suppressed",
        "Nothing is released where fewer than ten labels are positive.",
        on_value(few_positive),
        "label_sum",
        "sufficient_statistics",
    ),
    _change(
        "stopped_early",
        "Records are used until the sizes of their labels add up to five.",
        on_records(until_enough),
        "sufficient_statistics",
        "moments",
    ),
    _change(
        "counted_twice",
        "Every record is used twice.",
        on_records(lambda records: records.take(np.repeat(np.arange(len(records)), 2))),
        "sufficient_statistics",
    ),
    _change(
        "centred",
        "Columns are centred by their own means.",
        on_records(centred),
        "sufficient_statistics",
        "clipped_gradient",
    ),
    _change(
        "scaled",
        "Rows are divided by the longest one.",
        on_records(scaled),
        "sufficient_statistics",
        "layers",
    ),
    _change(
        "labels_centred",
        "Labels are centred by their own mean.",
        on_records(centred_labels),
        "clipped_gradient",
    ),
    _change(
        "cached",
        "A cache takes two datasets for one where they have equally many records.",
        cached_by_count(),
        "label_mean",
        "clipped_gradient",
    ),
    _change(
        "own_seed",
        "A half of the records is picked by a seed made of the records.",
        on_records(half_by_their_own_seed),
        "label_sum",
        "clipped_gradient",
    ),
    _change(
        "own_generator",
        "A half of the records is picked by a generator that no one seeded.",
        on_records(half_at_random),
        "label_sum",
    ),
    _change(
        "undefined",
        "It divides by the dispersion of the labels, and says that it never fails.",
        on_value(undefined_where_constant),
        "label_mean",
    ),
    _change(
        "by_place",
        "A record weighs more the later it is.",
        on_records(
            lambda records: rows(records, labels=records.labels * np.linspace(0.5, 2, len(records)))
        ),
        "label_sum",
    ),
    _change(
        "outliers_cut",
        "Labels two deviations from their mean are cut, which is decided by all of them.",
        on_records(without_outliers),
        "kernel_ridge",
    ),
    _change(
        "labels_doubled",
        "Labels are taken twice as large.",
        on_records(lambda records: rows(records, labels=2 * records.labels)),
        "kernel_ridge",
        "ridge",
    ),
    _change(
        "pruned",
        "Coefficients below half of the largest are left out.",
        on_value(lambda function, records: pruned(function)),
        "kernel_ridge",
    ),
)


def _kinds():
    for entry in entries("learner", (*BOUNDS, *STATISTICS), CLAIMS):
        function = entry.parent == "kernel_ridge"
        yield attrs.evolve(entry, kind="function") if function else entry


MUTATED_CLAIMS = tuple(_kinds())
