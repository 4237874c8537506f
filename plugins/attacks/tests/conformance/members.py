"""Every member that pricing or a release reads, and what makes a wrong one impossible to miss.

`MEMBERS` has a row for each public method and field of a mechanism, a bound, a sensitivity, an
event, a query and a sampling scheme (`test_members.py` collects them from the source). A row is

* `Attacked`: a law of the suite breaks, by its id. A wrong component that breaks it is in
  `gallery/wrong_members.py` under the member's name, or in the test that the row names.
* `Refused`: the core refuses a wrong value, or never reads a right one from the author: the test.
* `Computed`: it follows from the other members by code of the core, in a class that is not
  extended: the test of that code.
* `Harmless`: no guarantee becomes smaller, and no more is released, whatever it is: why, and the
  test.

A member that overrides one of a class above it has that row, unless it has its own.
"""

import attrs


@attrs.frozen
class Attacked:
    """Args: law: its id. test: of a wrong component, where `wrong_members.py` has none."""

    law: str
    test: str = ""


@attrs.frozen
class Refused:
    """Args: test: that a wrong value is refused."""

    test: str


@attrs.frozen
class Computed:
    """Args: test: that the core computes it rightly."""

    test: str


@attrs.frozen
class Harmless:
    """Args: why. test: that no number of a guarantee depends on it, or only a larger one."""

    why: str
    test: str


Row = Attacked | Refused | Computed | Harmless

HERE = "plugins/attacks/tests/conformance/"
LEARNING = "tests/whole/learning/"
PRICING = "tests/whole/pricing/"
SAMPLING = "tests/whole/sampling/test_sampling.py::"
PERSONS = "plugins/statistics/tests/test_statistics_first_of_persons.py::"
FUNCTIONS = HERE + "test_function_conformance.py::test_every_wrong_oracle_is_caught"
MEMBER = HERE + "test_members.py::"
FORMULAS = MEMBER + "test_what_the_core_computes_of_a_sensitivity_is_the_formula"
VERDICT = "plugins/verify/tests/test_verdict.py::"
PUBLISHED = Harmless(
    "it is published for `dpcore-verify`, which derives the same number anew or refuses the run",
    VERDICT + "test_what_follows_is_confirmed_and_derived",
)
WORDS = MEMBER + "test_no_number_of_a_guarantee_depends_on_words_or_shares"

MEMBERS: dict[str, Row] = {
    # --- mechanisms
    "Needs.distance": Attacked("mechanism.event-of-all-coordinates"),
    "Needs.query": Refused(
        "plugins/kernel-ridge/tests/test_interactive.py::test_functions_and_mechanisms_must_fit"
    ),
    "Needs.sensitivities": Attacked("mechanism.event-of-orders"),
    "Needs.integers": Attacked("mechanism.takes-what-it-states"),
    "Needs.additive": Harmless(
        "pricing converts a claim to the mechanism's norm whatever it says; it chooses the words "
        "of a guarantee, and which laws of the suite apply",
        PRICING + "test_norms.py::test_a_claim_converts_all_its_lengths_and_keeps_its_range",
    ),
    "Needs.persons": Attacked("mechanism.event-of-all-coordinates"),
    "Needs.bands": Attacked("mechanism.takes-what-it-states"),
    "Needs.stream": Attacked("mechanism.noise-only"),
    "AnyMechanism.needs": Attacked(
        "mechanism.event-of-all-coordinates", MEMBER + "test_a_wrong_member_breaks_its_law"
    ),
    "AnyMechanism.source": Harmless("it is printed", WORDS),
    "AnyMechanism.rule": PUBLISHED,
    "AnyMechanism.has_rule": PUBLISHED,
    "AnyMechanism.arithmetic": Attacked("mechanism.exact-outputs"),
    "AnyMechanism.refusal": Attacked("mechanism.takes-what-it-states"),
    "AnyMechanism.noise_distribution": Attacked("mechanism.noise-as-stated"),
    "AnyMechanism.at": Attacked("mechanism.loss-falls-in-scale"),
    "AnyMechanism.event": Attacked("mechanism.event-matches-noise"),
    "Mechanism.release": Attacked("mechanism.shape"),
    "Mechanism.prepared": Attacked("mechanism.prepared-agrees"),
    "Mechanism.noiseless": Attacked("mechanism.noise-as-stated"),
    "Interactive.needs": Refused(
        "plugins/kernel-ridge/tests/test_interactive.py::test_functions_and_mechanisms_must_fit"
    ),
    "Interactive.query_count": Attacked("interactive.event-matches-answers", FUNCTIONS),
    "Interactive.most_points": Attacked("interactive.limit", FUNCTIONS),
    "Interactive.open": Attacked("interactive.noise-keyed", FUNCTIONS),
    "Interactive.opener": Attacked(
        "interactive.noise-keyed",
        HERE + "test_oracle_laws.py::test_an_opener_must_do_what_open_does",
    ),
    # --- bounds
    "SensitivityBound.learner": Attacked("bound.fits-query"),
    "SensitivityBound.is_about": Refused(
        PRICING
        + "test_held_bounds.py::test_a_bound_without_a_learner_serves_nobody_who_does_not_hold_it"
    ),
    "SensitivityBound.withholds_count": Attacked("bound.holds"),
    "SensitivityBound.about": Attacked(
        "bound.holds", MEMBER + "test_a_bound_about_another_is_attacked"
    ),
    "SensitivityBound.sensitivity": Attacked(
        "bound.holds", HERE + "test_gallery.py::test_every_wrong_learner_and_bound_is_caught"
    ),
    # --- sensitivities
    "AnySensitivity.distance": Attacked("bound.fits-query"),
    "AnySensitivity.adjacency": Attacked(
        "bound.holds", HERE + "test_gallery.py::test_every_wrong_learner_and_bound_is_caught"
    ),
    "AnySensitivity.source": Attacked("bound.fits-query"),
    "AnySensitivity.validity": Attacked("bound.holds"),
    "AnySensitivity.solver_error": Attacked("bound.holds"),
    "AnySensitivity.premises": Harmless("they are printed", WORDS),
    **{f"AnySensitivity.{name}": PUBLISHED for name in ("facts", "derivation", "derived", "tree")},
    "AnySensitivity.taken": PUBLISHED,
    "AnySensitivity.covers_fallback": Attacked(
        "bound.covers-fallback",
        HERE + "test_gallery.py::test_every_wrong_learner_and_bound_is_caught",
    ),
    "AnySensitivity.smallest": Computed(FORMULAS),
    "AnySensitivity.largest": Computed(FORMULAS),
    "AnySensitivity.plain": Computed(FORMULAS),
    "AnySensitivity.in_norm": Computed(
        PRICING + "test_norms.py::test_a_claim_converts_all_its_lengths_and_keeps_its_range"
    ),
    "Sensitivity.value": Attacked("bound.holds"),
    "Sensitivity.covers_fallback": Attacked("bound.covers-fallback"),
    "Sensitivity.range": Attacked("bound.holds"),
    "Sensitivity.diameter": Attacked("bound.diameter"),
    "Sensitivity.unit": Computed(FORMULAS),
    "Sensitivity.range_sensitivity": Computed(FORMULAS),
    "HitDistribution.atoms": Attacked(
        "bound.law-covers-orders",
        SAMPLING + "test_a_law_is_attacked_path_by_path_and_against_the_orders_drawn",
    ),
    "HitDistribution.weights": Attacked(
        "bound.law-covers-orders",
        SAMPLING + "test_a_law_is_attacked_path_by_path_and_against_the_orders_drawn",
    ),
    "HitDistribution.uncovered": Attacked(
        "bound.law-covers-orders",
        SAMPLING + "test_a_law_is_attacked_path_by_path_and_against_the_orders_drawn",
    ),
    "HitDistribution.smallest": Computed(FORMULAS),
    "HitDistribution.largest": Computed(FORMULAS),
    "HitDistribution.shifted": Computed(FORMULAS),
    "HitDistribution.beyond": Computed(FORMULAS),
    "SensitivityDistribution.distribution": Attacked(
        "bound.law-covers-orders",
        SAMPLING + "test_a_law_is_attacked_path_by_path_and_against_the_orders_drawn",
    ),
    "SensitivityDistribution.covers_fallback": Computed(SAMPLING + "test_a_law_covers_no_fallback"),
    "SensitivityDistribution.moved": Computed(FORMULAS),
    "StepSensitivity.moved": Attacked(
        "bound.holds",
        "plugins/shifted-interpolation/tests/test_descent.py::test_a_smaller_movement_would_be_broken",
    ),
    "StepSensitivity.contraction": Attacked(
        "process.contracts",
        "plugins/shifted-interpolation/tests/test_descent.py"
        "::test_each_law_of_processes_is_broken_by_what_breaks_it",
    ),
    "StepSensitivity.covers_fallback": Computed(FORMULAS),
    # --- events
    "Claims.pure": Attacked("event.pure-epsilon"),
    "Claims.mu": Attacked("event.gaussian-mu"),
    "Claims.rho": Attacked("event.zcdp-rho"),
    "Claims.approximate": Attacked("event.approximate-claim"),
    "Claims.renyi": Attacked("event.renyi"),
    "PrivacyCurve.is_costly": Harmless(
        "it chooses how a crossing is searched for, of which either end is certified",
        "tests/events/test_events_curves.py"
        "::test_an_epsilon_of_a_mixture_of_hits_takes_few_values_of_its_curve",
    ),
    "PrivacyCurve.upper_at": Attacked("event.nonincreasing"),
    "PrivacyCurve.lower_at": Attacked("event.stated-of-curve"),
    "PrivacyCurve.upper": Attacked("event.stated-of-curve"),
    "PrivacyCurve.lower": Attacked("event.stated-of-curve"),
    "PrivacyCurve.error": Attacked("event.stated-of-curve"),
    "PrivacyCurve.symmetric": Attacked("event.stated-of-curve"),
    "PrivacyCurve.attained": Attacked("event.zcdp-rho"),
    "PrivacyCurve.atoms": Harmless(
        "it estimates the time of a price",
        MEMBER + "test_what_steers_an_accountant_moves_no_certified_end_below_the_truth",
    ),
    "PrivacyCurve.largest_loss": Harmless(
        "it places the grid of a composition, whose ends are certified on any grid",
        MEMBER + "test_what_steers_an_accountant_moves_no_certified_end_below_the_truth",
    ),
    "PrivacyCurve.infinite_mass": Attacked("event.stated-of-curve"),
    "TwoEnds.ends": Attacked(
        "event.stated-of-curve", HERE + "test_gallery.py::test_every_wrong_event_is_caught"
    ),
    "Event.adjacency": Attacked("mechanism.event-adjacency"),
    "Event.inverses": Computed(
        "tests/events/test_catalogue.py::test_a_file_names_every_event_with_its_fields"
    ),
    "Event.curve": Refused(
        "tests/events/test_events_curves.py::test_an_event_without_a_curve_says_how_to_state_one"
    ),
    "Event.parts": Attacked("event.parts"),
    "Event.claims": Attacked(
        "event.zcdp-rho", HERE + "test_gallery.py::test_every_wrong_event_is_caught"
    ),
    "Event.formula": PUBLISHED,
    "CompoundEvent.event": Attacked(
        "bound.amplified-holds",
        HERE + "test_joint_laws.py"
        "::test_a_batch_that_is_priced_as_another_sample_is_told_by_its_outputs",
    ),
    # --- queries
    "Sum.clip": Attacked("sum.clipped"),
    "Sum.sign": Attacked("sum.small-universe"),
    "Sum.exponent": Refused(
        LEARNING + "test_summing.py::test_declarations_that_make_no_sense_are_refused"
    ),
    "Sum.person": Attacked(
        "sum.person-clipped", LEARNING + "test_by_person.py::test_wrong_clippings_are_caught"
    ),
    "Sum.each": Computed(
        "plugins/statistics/tests/test_statistics_of_persons.py"
        "::test_a_person_moves_counts_by_what_is_claimed_and_no_more"
    ),
    "Sum.diameter": Attacked(
        "sum.person-apart",
        PERSONS + "test_the_law_of_two_persons_reaches_the_claim_and_sees_a_smaller_one",
    ),
    "Sum.unit": Computed(
        LEARNING + "test_summing.py::test_no_row_is_longer_than_the_clip_whatever_comes"
    ),
    "Query.name": Attacked("learner.asks-as-planned"),
    "Query.shape": Attacked("learner.total"),
    "Query.distance": Attacked("bound.holds"),
    "Query.norms": Attacked("bound.holds"),
    "Query.field": Attacked("learner.total"),
    "Query.values": Attacked("learner.total"),
    "Query.within": Attacked("learner.total"),
    "Query.at_most": Attacked("learner.asks-as-planned"),
    "Query.share": Harmless(
        "shares divide one budget, which all queries together meet whatever they are", WORDS
    ),
    "Query.sampling": Attacked("learner.asks-as-planned"),
    "Query.reads": Harmless(
        "it chooses where records are read; a statistic that reads more fails on large data",
        "tests/whole/engines/test_reads.py::test_a_query_says_how_it_is_read_by_what_it_is",
    ),
    "Query.mechanism": Harmless(
        "it is priced like any mechanism that a release names, and its noise is left out",
        "tests/pricing/test_pricing.py"
        "::test_a_query_has_a_mechanism_of_its_own_where_the_release_names_none",
    ),
    "Query.args": Attacked(
        "bound.any-args", HERE + "test_gallery.py::test_every_wrong_learner_and_bound_is_caught"
    ),
    "Query.moved": Computed(PRICING + "test_bands.py::test_the_norm_of_bands_is_rounded_up"),
    "Query.real_size": Computed(MEMBER + "test_what_the_core_computes_of_a_query"),
    "Query.with_args": Computed(MEMBER + "test_what_the_core_computes_of_a_query"),
    "Query.unfit": Computed(MEMBER + "test_what_the_core_computes_of_a_query"),
    "Query.aligned": Computed(
        "plugins/statistics/tests/test_statistics_keys.py"
        "::test_the_claim_is_the_largest_movement_of_all_records"
    ),
    "Query.nothing": Computed(MEMBER + "test_what_the_core_computes_of_a_query"),
    "Query.dtype": Computed(MEMBER + "test_what_the_core_computes_of_a_query"),
    "SumQuery.sum": Attacked("sum.clipped", MEMBER + "test_a_wrong_member_breaks_its_law"),
    "SumQuery.bands": Refused(PRICING + "test_bands.py::test_what_no_theorem_covers_is_refused"),
    "SumQuery.clip_norm": Computed(
        PRICING + "test_norms.py::test_a_sum_is_clipped_in_every_norm_that_its_query_lists"
    ),
    "SumQuery.longest": Computed(
        PRICING
        + "test_norms.py::test_what_an_absent_record_moves_is_stated_in_the_norm_of_the_mechanism"
    ),
    # --- sampling schemes
    "Sampling.by_person": Attacked("bound.sampled-as-charged"),
    "Sampling.replaces_in_sums": Attacked("bound.amplified-holds"),
    "Sampling.source": Harmless("it is printed", WORDS),
    "Sampling.refusal": Attacked(
        "bound.amplified-holds",
        HERE + "test_joint_laws.py"
        "::test_a_batch_that_is_priced_as_another_sample_is_told_by_its_outputs",
    ),
    "Sampling.charged": Attacked("bound.sampled-as-charged"),
    "Poisson.probability": Attacked("bound.amplified-holds"),
    "Cyclic.groups": Computed(
        "tests/whole/running/test_past_sums.py"
        "::test_nobody_is_seen_twice_within_as_many_asks_as_there_are_groups"
    ),
    "Cyclic.probability": Computed(
        PRICING + "test_bands.py::test_three_adaptive_steps_cost_at_most_what_is_charged"
    ),
    "WithoutReplacement.size": Computed(
        SAMPLING + "test_a_poisson_sample_has_the_stated_share_and_a_subset_the_stated_size"
    ),
    "WithoutReplacement.records": Refused(SAMPLING + "test_wrong_numbers_are_refused"),
    "Order.kind": Computed(
        SAMPLING + "test_the_price_of_a_law_covers_the_enumeration_of_all_orders"
    ),
    "Order.steps": Computed(
        SAMPLING + "test_the_price_of_a_law_covers_the_enumeration_of_all_orders"
    ),
}
