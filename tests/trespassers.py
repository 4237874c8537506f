"""Learners that carry private values past the release boundary, each by another way; and one that
means well.

A module of its own, which another process can import; and a plugin, so that a spec can name them.
"""

import os
import sys
from typing import ClassVar

import attrs
import numpy as np

from dpcore import REPLACE_ONE, Learner, OneShot, Query, Sensitivity, SensitivityBound, hookimpl
from dpcore.models import Described, Description, Figures, IntervalPicture
from dpcore.models.figures import Statistics

from doubles import Numbers

STORE = []


@attrs.frozen(kw_only=True)
class Mean(OneShot):
    """The mean label, honestly. Total: clipped labels have a mean."""

    bounds: ClassVar[tuple[str, ...]] = ("trespassers.mean",)
    total: ClassVar[bool] = True

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        return np.array([records.labels.mean()])

    def assemble(self, answers, public):
        return Numbers(self.shown(public))

    def shown(self, public):
        return np.zeros(3)


class Talking(Mean):
    """Writes below Python, and in the other process reads what may be there to be read."""

    def shown(self, public):
        os.write(1, b"talks\n")
        if "pytest" not in sys.modules:
            sys.stdin.read()
        return np.zeros(3)


class Box:
    """An object that a plan, a question and a model may share."""

    labels = None


@attrs.frozen
class Boxed(Numbers):
    """A model with more than its arrays."""

    box: Box


@attrs.frozen(kw_only=True)
class ByBox(Mean):
    """Writes labels into a part of the question, which the public part gives to its model."""

    box: Box = attrs.field(factory=Box, eq=False)

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l2", mechanism=self.box),)

    def statistic(self, query, records, public, secret):
        query.mechanism.labels = records.labels[:3].copy()
        return super().statistic(query, records, public, secret)

    def assemble(self, answers, public):
        return Boxed(np.zeros(3), self.box)


class Unsendable(Numbers):
    """A model that no other process can hand back."""

    def __reduce__(self):
        raise TypeError("it stays where it is")


class ByUnsendable(Mean):
    """Publishes such a model, honestly."""

    def assemble(self, answers, public):
        return Unsendable(np.zeros(3))


class HonestCache(Mean):
    """Sorts the labels once, and keeps them where everything else is kept."""

    def statistic(self, query, records, public, secret):
        kept = public.randomness.once(("sorted",), lambda: np.sort(records.labels))
        return np.array([kept.mean()])


class Smuggler(Mean):
    """Hands labels to its public part, in the randomness that both sides used to share."""

    def statistic(self, query, records, public, secret):
        public.randomness.once(("labels",), lambda: records.labels[:3].copy())
        return super().statistic(query, records, public, secret)

    def shown(self, public):
        return public.randomness.once(("labels",), lambda: np.zeros(3))


class ByDomain(Mean):
    """Writes them into the declared facts."""

    def statistic(self, query, records, public, secret):
        public.domain.columns["a"] = records.labels[:3].copy()
        return super().statistic(query, records, public, secret)

    def shown(self, public):
        found = public.domain.columns["a"]
        return found if isinstance(found, np.ndarray) else np.zeros(3)


@attrs.frozen(kw_only=True)
class ByField(Mean):
    """Writes them into a list among its own fields."""

    kept: list = attrs.field(factory=list)

    def statistic(self, query, records, public, secret):
        self.kept.extend(records.labels[:3])
        return super().statistic(query, records, public, secret)

    def shown(self, public):
        return np.array(self.kept[:3] or np.zeros(3))


class ByGlobal(Mean):
    """Leaves them in a global variable."""

    def statistic(self, query, records, public, secret):
        STORE[:] = records.labels[:3]
        return super().statistic(query, records, public, secret)

    def shown(self, public):
        return np.array(STORE or np.zeros(3))


class ByClass(Mean):
    """Leaves them in an attribute of its class."""

    seen = np.zeros(3)

    def statistic(self, query, records, public, secret):
        type(self).seen = records.labels[:3].copy()
        return super().statistic(query, records, public, secret)

    def shown(self, public):
        return type(self).seen


class Labelled(Numbers, Described):
    """Hands over a picture whose title holds what a global does; its arrays say nothing."""

    def description(self):
        return Description(
            pictures=(IntervalPicture(title=f"Labels {STORE}", at=("a",), values=[0]),)
        )


class ByTitle(ByGlobal):
    """Writes labels into the title of a picture."""

    def assemble(self, answers, public):
        return Labelled(np.zeros(3))


class Reworder(Numbers, Described):
    """Describes itself honestly first, and afterwards by what a global holds."""

    asked = 0

    def description(self):
        Reworder.asked += 1
        label = "labels" if Reworder.asked == 1 or not STORE else f"labels {STORE}"
        ends = np.array([0.0])
        table = Figures(about={label: ("x",)}, estimate=ends, low=ends, high=ends, level=0.95)
        return Description(
            tables={"": table}, pictures=(IntervalPicture(title=label, at=("a",), values=[0]),)
        )


class ByRewording(ByGlobal):
    """Publishes an object that describes itself in other words when it is asked again."""

    def assemble(self, answers, public):
        Reworder.asked = 0
        return Reworder(np.zeros(3))


def _figures(cells, names=("a", "b")):
    about = dict.fromkeys(names, ("x",))
    numbers = np.zeros(1)
    return Figures(about=about, estimate=numbers, low=numbers, high=np.array([cells]), level=0.95)


@attrs.frozen(kw_only=True)
class Tabulated(Described):
    """Hands over tables that differ by what a global holds, in one way of three."""

    way: str

    def arrays(self):
        return {}

    def description(self):
        end = float("inf") if self.way == "cell" and STORE else float("nan")
        columns = ("b", "a") if self.way == "columns" and STORE else ("a", "b")
        tables = ("v", "u") if self.way == "tables" and STORE else ("u", "v")
        return Description(tables=dict.fromkeys(tables, _figures(end, columns)))


@attrs.frozen(kw_only=True)
class ByTable(ByGlobal):
    """Says a label by an infinite cell, or by the order of columns or of tables."""

    way: str = "cell"

    def assemble(self, answers, public):
        if self.way != "statistics":
            return Tabulated(way=self.way)
        return Statistics.of(_figures(0.0, ("b", "a") if STORE else ("a", "b")))


class Unsettled(Figures):
    """Stays what it is when it is settled, and names its column anew at every look."""

    evaluations = 0

    def settled(self):
        return self

    @property
    def columns(self):
        Unsettled.evaluations += 1
        return {
            **super().columns,
            **({f"labels {STORE}": (0,)} if Unsettled.evaluations > 40 else {}),
        }


class ByUnsettled(ByGlobal):
    """Publishes a table that says labels once it has been compared."""

    def assemble(self, answers, public):
        zeros = np.zeros(1)
        return Statistics.of(Unsettled(about={}, estimate=zeros, low=zeros, high=zeros, level=0.9))


class Turncoat(Numbers):
    """Says an honest array first, and afterwards what a global holds."""

    asked = 0

    def arrays(self):
        Turncoat.asked += 1
        return super().arrays() if Turncoat.asked == 1 or not STORE else {"values": STORE[0]}


class BySensitive(Mean):
    """Publishes a model that says another thing when it is asked again."""

    def statistic(self, query, records, public, secret):
        STORE[:] = [records.labels[:3].copy()]
        Turncoat.asked = 0
        return super().statistic(query, records, public, secret)

    def assemble(self, answers, public):
        return Turncoat(np.zeros(3))


class Remembers(Numbers):
    """Predicts from the row before."""

    before = 0.0

    def predict(self, table):
        (report, Remembers.before) = (Remembers.before, float(np.sum(table["a"])))
        return np.full(len(table["a"]), report)


class ByRows(Mean):
    """Publishes a model whose prediction for one record depends on another."""

    def assemble(self, answers, public):
        return Remembers(np.zeros(3))


class Keeping(Mean):
    """Sorts the labels once for each number of them, in a global: the next run gets these."""

    def statistic(self, query, records, public, secret):
        if not STORE:
            STORE.append(np.sort(records.labels))
        return np.array([STORE[0].mean()])


class ByRecords(Mean):
    """Writes to the records, which the next release reads."""

    def statistic(self, query, records, public, secret):
        base = records.labels
        base.flags.writeable = True
        base[:] = base[0]
        return super().statistic(query, records, public, secret)


@attrs.frozen(kw_only=True)
class Mutating(Learner):
    """Two queries that carry weights; the private part subtracts a private mean from them."""

    bounds: ClassVar[tuple[str, ...]] = ("trespassers.mutating",)
    total: ClassVar[bool] = True

    def queries(self, public):
        return (Query(name="step", shape=(1,), distance="l2", at_most=2),)

    def start(self, public):
        kept = public.randomness.once(("start",), lambda: np.zeros(1))
        return (0, kept, self.queries(public)[0])

    def ask(self, state):
        asked, weights, query = state
        return attrs.evolve(query, args={"w": weights}) if asked < 2 else None

    def statistic(self, query, records, public, secret):
        weights, mean = query.args["w"], np.array([records.labels.mean()])
        weights -= mean
        return mean

    def update(self, state, answer):
        asked, weights, query = state
        return asked + 1, weights, query

    def model(self, state):
        return Numbers(state[1])


class ByAsking(Mutating):
    """Carries a private value to the next query's args by a global, and publishes nothing of it."""

    def ask(self, state):
        asked, _, query = state
        return attrs.evolve(query, args={"w": np.array(STORE[:1])}) if asked < 2 else None

    def statistic(self, query, records, public, secret):
        STORE[:] = records.labels[:1]
        return np.array([records.labels.mean()])


class _Bound(SensitivityBound):
    def is_about(self, learner):
        return isinstance(learner, self.learner)

    def sensitivity(self, query, learner, public, adjacency):
        value = 2 * public.domain.label_bound / public.domain.records
        source = "two labels of a mean"
        return Sensitivity(value=value, distance="l2", adjacency=REPLACE_ONE, source=source)


@attrs.frozen(kw_only=True)
class MeanBound(_Bound):
    learner: ClassVar[type] = Mean


@attrs.frozen(kw_only=True)
class MutatingBound(_Bound):
    learner: ClassVar[type] = Mutating


LEARNERS = {
    "trespassers.honest_cache": HonestCache,
    "trespassers.smuggler": Smuggler,
    "trespassers.mutating": Mutating,
    "trespassers.by_global": ByGlobal,
    "trespassers.by_class": ByClass,
    "trespassers.by_asking": ByAsking,
    "trespassers.by_rewording": ByRewording,
    "trespassers.by_telling": BySensitive,
    "trespassers.mean": Mean,
}


@hookimpl
def dpcore_learners():
    return LEARNERS


@hookimpl
def dpcore_bounds():
    return {"trespassers.mean": MeanBound, "trespassers.mutating": MutatingBound}
