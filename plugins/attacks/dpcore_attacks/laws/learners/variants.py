"""Variants: a case with one number changed, where a bound that copies a number goes wrong."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from dpcore import Categories, Domain, Range
from dpcore.errors import ParameterError
from dpcore.functions import Kernel
from dpcore.models import FeatureMap
from dpcore_attacks.attacks.setting import Case

Map = TypeVar("Map", FeatureMap, Kernel)

_MORE = "one_more_column_"
_SMALL, _LARGE = 60, 300  # records: statistics of many cost the cube of their number


def variants(case: Case) -> Iterator[tuple[str, Case]]:
    """Yield the case with one number changed: of the learner or its kernel, the size, the labels,
    the columns.
    """
    for change, learner in _one_number_changed(case.learner):
        yield change, attrs.evolve(case, learner=learner)
    size = case.domain.at_most or 100
    larger = 10 * size if size < _SMALL else 2 * size if size < _LARGE else size // 3
    for other_size in (max(1, size // 10), larger):
        yield f"n={other_size}", case.at_size(other_size)
    # Wider labels: a bound that assumed [-1, 1] becomes three times too small.
    if case.domain.labelled and case.domain.classes < 3:
        labels = case.domain.labels
        wide = Range(labels.centre - 3 * labels.half_width, labels.centre + 3 * labels.half_width)
        yield "labels=3x", attrs.evolve(case, domain=attrs.evolve(case.domain, labels=wide))
    if case.domain.norm is not None:
        longer = attrs.evolve(case.domain, norm=3 * case.domain.norm)
        yield "norm=3x", attrs.evolve(case, domain=longer)
    yield from _other_columns(case)


def other_domains(domain: Domain) -> Iterator[Domain]:
    """Yield one column, eight columns, a column of categories more, no norm or one: for what is
    tested on a domain only.
    """
    ranges = {name: c for name, c in domain.columns.items() if type(c) is Range}
    if ranges != dict(domain.columns) or not ranges:
        return
    first_column = dict(list(ranges.items())[:1])
    eight = first_column | {f"{_MORE}{k}": Range(-1, 1) for k in range(7)}
    mixed = ranges | {f"{_MORE}group": Categories(("a", "b", "c"))}
    for columns in (first_column, eight, mixed):
        if columns != ranges:
            with suppress(ParameterError, ValueError):
                yield attrs.evolve(domain, columns=columns)
    with suppress(ParameterError, ValueError):
        yield attrs.evolve(domain, norm=None if domain.norm is not None else 1.0)


def accepted(part: FeatureMap | Kernel, domain: Domain) -> Iterator[Domain]:
    """Yield the domain, and the others that a feature map or a kernel accepts."""
    yield domain
    for candidate in other_domains(domain):
        try:
            part.norm(candidate)
        except Exception:  # it is about other columns
            continue
        yield candidate


def forms(part: Map, domain: Domain) -> Iterator[tuple[str, Map, Domain]]:
    """Yield a feature map or a kernel on every domain that it accepts; then on its own domain with
    one number of its fields at a tenth and at ten times. With what was changed, or nothing.
    """
    for where in accepted(part, domain):
        yield "", part, where
    # A norm, an error or a cache that is right for one number may have copied it.
    for change, changed in _one_number_changed(part) if attrs.has(type(part)) else ():
        try:
            changed.norm(domain)
        except Exception:  # it takes no such number, or not on this domain
            continue
        yield change, changed, domain


def _other_columns(case: Case) -> Iterator[tuple[str, Case]]:
    """Three columns more, and the first column only, where all are plain ranges: what counts
    categories is about one column of them.
    """
    ranges = dict(case.domain.columns)
    if not ranges or any(type(column) is not Range for column in ranges.values()):
        return
    extra = {f"{_MORE}{k}": Range(-1, 1) for k in range(3)}
    changes = {"three columns more": ranges | extra}
    if len(ranges) > 1:
        changes["one column"] = dict(list(ranges.items())[:1])
    for change, columns in changes.items():
        with suppress(ParameterError, ValueError):
            yield change, attrs.evolve(case, domain=attrs.evolve(case.domain, columns=columns))


def _one_number_changed(component: Any) -> Iterator[tuple[str, Any]]:
    """Copies with one numeric field at a tenth and at ten times, those of a kernel included."""
    for field in attrs.fields(type(component)):
        value = getattr(component, field.name)
        changes: list[tuple[str, Any]] = []
        if isinstance(value, Kernel) and attrs.has(type(value)):
            changes = [(f"{field.name}.{change}", k) for change, k in _one_number_changed(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            # Both directions, since a copied number may be too large or too small.
            for factor in (0.1, 10.0):
                number = max(1, int(value * factor)) if isinstance(value, int) else value * factor
                changes += [(f"{field.name}={number:g}", number)] if number != value else []
        for change, changed in changes if field.init else []:
            try:
                yield change, attrs.evolve(component, **{field.alias: changed})
            except (ParameterError, ValueError):
                continue
