"""Counterexample: the worst pair found, in a file that anyone can replay, made simple."""

import itertools
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Records, Refused
from dpcore.shown import Shown
from dpcore.views.markup import Summary, facts
from dpcore_attacks.attacks.branches import lines_apart
from dpcore_attacks.attacks.claim import Shot, Target
from dpcore_attacks.attacks.neighbours import Configuration, Pair, pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.source_constants import written

_SHOWN = 6  # entries of a row
_KEPT = 50


@attrs.frozen(kw_only=True, eq=False)
class Counterexample(Shown):
    """Two synthetic neighbouring datasets, and the query that moved too far between them.

    Args:
        query: Name of the query. arguments: The query's `args`.
        records: The part's count or limit in the domain. randomness: The public key.
        claimed: What the bound allows. moved: What the statistic did.
        draw: Of the sample or order of the records, if the query has one.
        norm: Of the claim, where it is a further one of the query's; else empty.
    """

    query: str
    arguments: dict[str, Any] | None
    pair: Pair
    records: int | None
    randomness: int | None
    claimed: float
    moved: float
    origin: str
    draw: int = 0
    norm: str = ""

    def shown_summary(self) -> Summary:
        """Return what was claimed, what the statistic did, and the synthetic record that
        changed.
        """
        table = facts(
            ("query", self.query), ("claimed", self.claimed), ("moved", self.moved),
            ("found by", self.origin),
        )  # fmt: skip
        return Summary(title="Counterexample", tables=(table,), sentences=(self.describe(),))

    def describe(self) -> str:
        """Which synthetic record changed, and from what to what."""
        before, after, changed = self.pair.before, self.pair.after, self.pair.changed
        rows = np.column_stack([after.features, after.labels])
        kinds = len(np.unique(rows, axis=0)) if len(rows) else 0
        subject = f"record {changed + 1} of {len(after)} ({kinds} different)"
        row, label = _short(after.features[changed]), f"{after.labels[changed]:.4g}"
        if len(before) < len(after):
            return f"{subject} comes, with label {label} and row {row}"
        changes = []
        if before.labels[changed] != after.labels[changed]:
            changes.append(f"label {before.labels[changed]:.4g} becomes {label}")
        if not np.array_equal(before.features[changed], after.features[changed]):
            changes.append(f"row {_short(before.features[changed])} becomes {row}")
        return f"{subject}: {', '.join(changes) or 'nothing changes'}"

    def replay(self, case: Case) -> Shot:
        """Return the same pair against the same claim, computed anew; see `target`."""
        return self.target(case).fire(self.pair)

    def branch(self, case: Case) -> str:
        """Lines of the learner's own code that run for one neighbour only, in words, or empty."""
        target = self.target(case)
        before, after = target.drawn_pair(self.pair)
        files = written(case.learner, case.domain.label_bound).files
        return lines_apart((lambda: target.value(before), lambda: target.value(after)), files)

    def target(self, case: Case) -> Target:
        """Return the claim that was broken, at the ask and the randomness that broke it.

        Args:
            case: Learner, bound and adjacency; its size and randomness is taken from here.

        Raises:
            ValueError: the case has no such claim.
        """
        # features may be drawn from the public key: at another key the claim is another one
        case = attrs.evolve(case, randomness=attrs.evolve(case.randomness, key=self.randomness))
        if self.records is not None:
            case = case.at_size(self.records)
        claims = case.claims()
        if isinstance(claims, Refused):
            raise ValueError(f"there is no claim: {claims.reason}")
        planned_queries = {query.name: query for query in case.learner.queries(case.public)}
        for query, claim in claims:
            if query.name == self.query and claim.distance == (self.norm or query.distance):
                # the learner is asked as planned: the norm is the claim's only
                planned_query = attrs.evolve(planned_queries[query.name], args=self.arguments)
                return Target(case=case, query=planned_query, claim=claim, draw=self.draw)
        raise ValueError(f"there is no query {self.query!r}")

    def save(self, path: Path) -> None:
        """Write one .npz: both datasets, array arguments, and a JSON text of the rest.

        Raises:
            ValueError: an argument is neither an array nor plain data.
        """
        arrays: dict[str, Any] = {
            "before_features": self.pair.before.features,
            "before_labels": self.pair.before.labels,
            "after_features": self.pair.after.features,
            "after_labels": self.pair.after.labels,
        }
        # arrays are stored bit for bit: a ratio near 1 hangs on their last digits
        plain = {}
        for name, value in (self.arguments or {}).items():
            if isinstance(value, np.ndarray):
                arrays[f"argument_{name}"] = value
            elif isinstance(value, bool | int | float | str | None):
                plain[name] = value
            else:
                raise ValueError(f"argument {name!r} is neither an array nor plain data")
        facts = {
            "query": self.query,
            "arguments": None if self.arguments is None else plain,
            "changed": self.pair.changed,
            **({"count": self.pair.count} if self.pair.count > 1 else {}),
            "records": self.records,
            "coins": self.randomness,
            "claimed": self.claimed,
            "moved": self.moved,
            "origin": self.origin,
            "draw": self.draw,
            **({"norm": self.norm} if self.norm else {}),
        }
        with path.open("wb") as file:
            np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)


def _short(row: NDArray[np.float64]) -> str:
    entries = ", ".join(f"{entry:.4g}" for entry in row[:_SHOWN])
    return f"({entries}{', ...' if len(row) > _SHOWN else ''})"


def saved(folder: Path) -> list[Counterexample]:
    """Counterexamples in a folder, by file name, at most fifty; other files are passed over."""
    counterexamples: list[Counterexample] = []
    for path in sorted(folder.glob("*.npz"))[:_KEPT] if folder.is_dir() else ():
        with suppress(OSError, ValueError, KeyError, TypeError, BadZipFile):
            counterexamples.append(load(path))
    return counterexamples


def load(path: Path) -> Counterexample:
    """Read what `save` wrote; nothing in the file is executed."""
    # a stranger's file holds numbers and text: unpickling would run its code
    with np.load(path, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        stored: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    arguments = facts["arguments"]
    if arguments is not None:
        prefix = "argument_"
        arguments |= {
            name.removeprefix(prefix): value
            for name, value in stored.items()
            if name.startswith(prefix)
        }
    pair = Pair(
        Records(features=stored["before_features"], labels=stored["before_labels"]),
        Records(features=stored["after_features"], labels=stored["after_labels"]),
        facts["changed"],
        facts.get("count", 1),
    )
    return Counterexample(
        query=facts["query"],
        arguments=arguments,
        pair=pair,
        records=facts["records"],
        randomness=facts["coins"],
        claimed=facts["claimed"],
        moved=facts["moved"],
        origin=facts["origin"],
        draw=facts["draw"],
        norm=facts.get("norm", ""),
    )


def minimised(
    violation: Configuration, target: Target, rows: Rows, least: float, tries: float = math.inf
) -> Configuration:
    """Make a configuration simpler as long as its ratio stays at least `least`.

    In turn: one base row fewer, fewer records where their number is private, base rows set to zero,
    labels to 0, numbers to few digits; nothing more once so many `tries` are used up.
    """
    budget = tries

    def keeps(candidate: Configuration) -> bool:
        nonlocal budget
        if budget <= 0:
            return False
        budget -= 1
        # a simpler pair must break the claim by as much, and inside its assumptions
        shot = target.fire(pair_of(candidate, rows, target.case.adjacency))
        return shot.ratio is not None and shot.inside is not False and shot.ratio >= least

    def simplify(configuration: Configuration, **fields: Any) -> Configuration:
        candidate = attrs.evolve(configuration, **fields)
        return candidate if keeps(candidate) else configuration

    # fewer different rows first: every later phase then has less to try
    index = 0
    while index < len(violation.counts) and len(violation.counts) > 1:
        candidate = _merge(violation, index)
        if keeps(candidate):
            violation = candidate
        else:
            index += 1
    # a public count is part of the claim and may not change
    if target.case.domain.exact is None:
        for index, fraction in itertools.product(
            range(len(violation.counts)), (0.02, 0.25, 0.5, 0.8)
        ):
            counts = violation.counts.copy()
            counts[index] = max(1, int(fraction * counts[index]))
            if counts[index] < violation.counts[index]:
                violation = simplify(violation, counts=counts)
    if violation.position < 1:
        violation = simplify(violation, position=1.0)
    # what cannot be set to 0 is what the violation needs
    for row in range(len(violation.labels)):
        raw, labels = violation.raw.copy(), violation.labels.copy()
        raw[row], labels[row] = 0.0, 0.0
        violation = simplify(violation, raw=raw)
        violation = simplify(violation, labels=labels)
    # rounded rows go through the domain again, so they are still records of it
    for digits in (0, 1, 2, 3, 5):
        candidate = attrs.evolve(
            violation,
            raw=np.round(violation.raw, digits),
            labels=np.round(violation.labels, digits),
        )
        if keeps(candidate):
            return candidate
    return violation


def _merge(configuration: Configuration, index: int) -> Configuration:
    """Return the configuration without base row `index`: its records become copies of the next
    one.
    """
    counts = configuration.counts.copy()
    counts[(index + 1) % len(counts)] += counts[index]
    keep = np.arange(len(configuration.labels)) != index
    return attrs.evolve(
        configuration,
        raw=configuration.raw[keep],
        labels=configuration.labels[keep],
        counts=np.delete(counts, index),
    )
