"""What a bounding promises: a person's records are chosen by nothing but secret tags."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from dpcore.domain.domain import People
from dpcore.private.bounding import Bounding
from dpcore.randomness import SecretRandomness
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge

AT_MOST = Law("persons.at-most", "Of each person k records are used, or all if there are fewer.")
ONLY = Law(
    "persons.alone", "Which of a person's records are used depends on no other person's records."
)
CUT = Law("persons.cut", "However records are cut into blocks, the same records are used.")
VALUE_FREE = Law("persons.value-free", "Which records are used depends on no value in them.")
ONCE = Law("persons.once", "A run uses the same records in every query.")
EVEN = Law("persons.even", "Each of a person's records is used equally often.")

LAWS = (AT_MOST, ONLY, CUT, VALUE_FREE, ONCE, EVEN)

Block = Mapping[str, Sequence[Any]]
Choose = Callable[[People, Sequence[Block], SecretRandomness], NDArray[np.intp]]
"""Places of the used records of some blocks, ascending, at a run's secret randomness."""

VALUE = "value"
_TRIALS = 20
_DRAWS = 400
_RARE = 1e-9  # chance that a right choice is called uneven


def by_bounding(
    people: People, blocks: Sequence[Block], secret: SecretRandomness
) -> NDArray[np.intp]:
    """Return the choice of every run."""
    bounding = Bounding(people.records, secret.runtime("people").by_place)
    for block in blocks:
        bounding.add(block[people.column])
    return bounding.person_codes(bounding.places).rows


def person_verdicts(
    people: People, choose: Choose = by_bounding, seed: int = 0
) -> tuple[Verdict, ...]:
    """Return the laws of one choice."""
    checks = {
        AT_MOST: _at_most, ONLY: _only, CUT: _cut,
        VALUE_FREE: _value_free, ONCE: _once, EVEN: _even,
    }  # fmt: skip
    subject = f"at most {people.records} records a person"
    return tuple(
        judge(law, subject, partial(check, people, choose, np.random.default_rng(seed)))
        for law, check in checks.items()
    )


Check = Callable[[People, Choose, np.random.Generator], str]


def _table(people: People, rng: np.random.Generator) -> Block:
    """Persons with 1 to 3k records, mixed."""
    sizes = rng.integers(1, 3 * people.records + 1, 8)
    ids = np.repeat([f"p{number}" for number in range(8)], sizes)
    rng.shuffle(ids)
    return {people.column: ids.tolist(), VALUE: rng.uniform(-1, 1, ids.size).tolist()}


def _randomness(rng: np.random.Generator) -> SecretRandomness:
    return SecretRandomness.rehearsal(int(rng.integers(1 << 31)))


def _rows_of(person: str, ids: Sequence[Any], rows: NDArray[np.intp]) -> list[int]:
    return [int(row) for row in rows if ids[row] == person]


def _at_most(people: People, choose: Choose, rng: np.random.Generator) -> str:
    for _ in range(_TRIALS):
        table = _table(people, rng)
        ids = table[people.column]
        use_counts = Counter(ids[row] for row in choose(people, [table], _randomness(rng)))
        for person, size in Counter(ids).items():
            fail_if(
                use_counts[person] != min(size, people.records),
                f"{use_counts[person]} of a person's {size} records are used",
            )
    return f"{_TRIALS} tables"


def _only(people: People, choose: Choose, rng: np.random.Generator) -> str:
    """Every other record becomes a stranger's, or one of a few persons'; places stay."""
    for _ in range(_TRIALS):
        table, randomness = _table(people, rng), _randomness(rng)
        ids = table[people.column]
        before = choose(people, [table], randomness)
        # The fate of one person's records must not depend on who else is in the table.
        strangers = [f"o{number % int(rng.integers(1, 9))}" for number in range(len(ids))]
        ids_after = [
            person if person == "p0" else stranger
            for person, stranger in zip(ids, strangers, strict=True)
        ]
        after = choose(people, [{**table, people.column: ids_after}], randomness)
        fail_if(
            _rows_of("p0", ids, before) != _rows_of("p0", ids_after, after),
            "other persons' records change which of a person's are used",
        )
    return f"{_TRIALS} tables"


def _cut(people: People, choose: Choose, rng: np.random.Generator) -> str:
    for _ in range(_TRIALS):
        table, randomness = _table(people, rng), _randomness(rng)
        count = len(table[people.column])
        rows = choose(people, [table], randomness)
        cuts = [0, *sorted(rng.integers(0, count, int(rng.integers(1, 5))).tolist()), count]
        blocks = [
            {name: column[first:last] for name, column in table.items()}
            for first, last in pairwise(cuts)
        ]
        fail_if(
            not np.array_equal(rows, choose(people, blocks, randomness)),
            "records that are cut into blocks are chosen otherwise",
        )
    return f"{_TRIALS} tables"


def _value_free(people: People, choose: Choose, rng: np.random.Generator) -> str:
    for _ in range(_TRIALS):
        table, randomness = _table(people, rng), _randomness(rng)
        changed_table = {**table, VALUE: rng.uniform(-1, 1, len(table[VALUE])).tolist()}
        fail_if(
            not np.array_equal(
                choose(people, [table], randomness), choose(people, [changed_table], randomness)
            ),
            "with other values other records are used",
        )
    return f"{_TRIALS} tables"


def _once(people: People, choose: Choose, rng: np.random.Generator) -> str:
    for _ in range(_TRIALS):
        table, randomness = _table(people, rng), _randomness(rng)
        fail_if(
            not np.array_equal(
                choose(people, [table], randomness), choose(people, [table], randomness)
            ),
            "a second query of the same run sees other records",
        )
    return f"{_TRIALS} tables"


def _even(people: People, choose: Choose, rng: np.random.Generator) -> str:
    """Return one person with 2k records; each is used with chance 1/2."""
    size = 2 * people.records
    table: Block = {people.column: ["p0"] * size, VALUE: list(range(size))}
    uses = np.zeros(size, dtype=int)
    for _ in range(_DRAWS):
        uses[choose(people, [table], _randomness(rng))] += 1
    # A union bound over the records, at the rare level of a right choice.
    worst = min(scipy.stats.binomtest(int(hits), _DRAWS, 0.5).pvalue for hits in uses)
    fail_if(
        worst < _RARE / size,
        f"of equal chances, records are used {uses.min()} to {uses.max()} times in {_DRAWS}",
    )
    return f"{_DRAWS} choices"
