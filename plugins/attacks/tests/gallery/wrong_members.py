"""Components with one member wrong, the same with it right, and how the suite judges them.

`WRONG` is in the order of the table in `conformance/members.py`, which names the law for each.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Distance,
    OneShot,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.sampling import amplify_sum
from dpcore.event import Claims, Direction
from dpcore.learners.bounds.sum import SumBound
from dpcore.private.sampling import draw, draw_with
from dpcore.sampling import Poisson, WithoutReplacement
from dpcore.sensitivity import OverRandomness, SensitivityDistribution
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.accountants.events import event_verdicts
from dpcore_attacks.laws.bounds.amplified import amplified_verdict, sampled_verdicts
from dpcore_attacks.laws.bounds.bounds import bound_verdicts
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_attacks.laws.mechanisms.laboratory import laboratory_verdicts
from dpcore_attacks.laws.mechanisms.mechanisms import (
    event_matches_verdict,
    mechanism_cases,
    release_verdicts,
)
from dpcore_attacks.laws.mechanisms.stated import stated_verdicts

from doubles import LabelMean, LabelMeanBound, Numbers, domain
from gallery.core import (
    DiscreteGaussian,
    Gaussian,
    GaussianEvent,
    Laplace,
)
from gallery.entry import subclass
from gallery.reported.accounting import AsPoisson


@attrs.frozen(kw_only=True)
class Wrong:
    """One wrong member: `judge` is given the wrong component, and the right one."""

    judge: Callable[[Any], Any]
    wrong: Any
    right: Any


# --- events

EVENT = GaussianEvent(mu=1.0, adjacency=REPLACE_ONE)


def of_event(event):
    return event_verdicts(event, "it")


def event(**members):
    """A Gaussian's event with members replaced."""
    return Wrong(
        judge=of_event,
        wrong=subclass(GaussianEvent, **members)(mu=1.0, adjacency=REPLACE_ONE),
        right=EVENT,
    )


def claiming(**claims):
    return event(claims=property(lambda self: Claims(**claims)))


def _hundredth(self, epsilons, direction):
    return 0.01 * GaussianEvent.upper(self, epsilons, direction)


def _cheap_tail(self, epsilon, direction):
    curve = GaussianEvent.upper_at(self, epsilon, direction)
    return curve if direction is Direction.REMOVE else min(1.0, 3 * curve) if epsilon else curve


TWICE = ComposedEvent(events=((EVENT, 2),))
ONCE = subclass(ComposedEvent, parts=lambda self: ((EVENT, 1),))(events=((EVENT, 2),))


@attrs.frozen(kw_only=True)
class Rising(GaussianEvent):
    """Rises with epsilon, from a curve that is right at 0."""

    def upper_at(self, epsilon, direction):
        return min(1.0, super().upper_at(0.0, direction) * (1 + epsilon))

    def upper(self, epsilons, direction):
        return np.array([self.upper_at(float(epsilon), direction) for epsilon in epsilons])


@attrs.frozen(kw_only=True)
class Loose(GaussianEvent):
    """A Gaussian's divergences, and a curve above its own that no pair attains."""

    attained = False
    claims = Claims(rho=0.5)

    def upper(self, epsilons, direction):
        return np.minimum(1.0, 1.3 * super().upper(epsilons, direction))

    def upper_at(self, epsilon, direction):
        return float(self.upper(np.array([epsilon]), direction)[0])

    def lower_at(self, epsilon, direction):
        return self.upper_at(epsilon, direction) if self.attained else 0.0

    def lower(self, epsilons, direction):
        return self.upper(epsilons, direction) * self.attained


EVENTS = {
    "PrivacyCurve.upper_at": Wrong(
        judge=of_event, wrong=Rising(mu=1.0, adjacency=REPLACE_ONE), right=EVENT
    ),
    "PrivacyCurve.upper": event(upper=_hundredth),
    "PrivacyCurve.lower_at": event(
        lower_at=lambda self, epsilon, direction: 1.01 * self.upper_at(epsilon, direction)
    ),
    "PrivacyCurve.lower": event(
        lower=lambda self, epsilons, direction: 1.01 * self.upper(epsilons, direction)
    ),
    "PrivacyCurve.error": event(upper=_hundredth, error=1.0),
    "PrivacyCurve.symmetric": event(
        upper_at=_cheap_tail,
        upper=lambda self, epsilons, d: np.array([self.upper_at(float(e), d) for e in epsilons]),
    ),
    "PrivacyCurve.infinite_mass": event(infinite_mass=lambda self, direction: 1e-3),
    "PrivacyCurve.attained": Wrong(
        judge=of_event,
        wrong=subclass(Loose, attained=True)(mu=1.0, adjacency=REPLACE_ONE),
        right=Loose(mu=1.0, adjacency=REPLACE_ONE),
    ),
    "Claims.pure": claiming(pure=0.5),
    "Claims.mu": claiming(mu=0.5),
    "Claims.rho": claiming(rho=0.25),
    "Claims.approximate": claiming(approximate=(0.1, 1e-6)),
    "Claims.renyi": claiming(renyi=lambda orders: 0.4 * orders),
    "Event.parts": Wrong(judge=of_event, wrong=ONCE, right=TWICE),
}


# --- mechanisms


def of_releases(mechanism):
    for case in islice(mechanism_cases(mechanism), 2):
        yield from [*release_verdicts(case), *stated_verdicts(case)]


def of_draws(mechanism):
    for case in mechanism_cases(mechanism):
        yield event_matches_verdict(case, draws=4000)


def of_laboratory(mechanism):
    return laboratory_verdicts(mechanism, next(mechanism_cases(mechanism)))


def mechanism(judge, base, **members):
    return Wrong(judge=judge, wrong=subclass(base, **members)(), right=base())


def needs(judge, base, **needs):
    return mechanism(judge, base, needs=attrs.evolve(base.needs, **needs))


def _other_generator(self, value, query, sensitivity, noise):
    return value + np.random.default_rng().normal(size=query.shape)


class Floats(Gaussian):
    """Float noise, whatever its field says."""

    def prepared(self, query, sensitivity):
        return Gaussian(noise_multiplier=self.noise_multiplier, noise="float").prepared(
            query, sensitivity
        )


class AsFloats(Gaussian):
    """Takes an exact sum, and reads its integers as the numbers."""

    def prepared(self, query, sensitivity):
        release = super().prepared(query, sensitivity)

        def released(value, query, noise):
            is_sum = hasattr(value, "exponent")
            return release(np.array(value.high, dtype=float) if is_sum else value, query, noise)

        return released


class Smallest(Gaussian):
    """Prices a law over orders by its smallest atom."""

    def event(self, query, sensitivity, moved=None):
        if isinstance(sensitivity, SensitivityDistribution):
            smallest = sensitivity.smallest
            sensitivity = Sensitivity(
                value=smallest, distance="l2", adjacency=sensitivity.adjacency, source="smallest"
            )
        return super().event(query, sensitivity, moved)


class Narrow(Gaussian):
    """States a third of its noise."""

    def noise_distribution(self, query, sensitivity):
        return super().noise_distribution(query, sensitivity).over(3)


class Elsewhere(Gaussian):
    """States that releases spread around something else."""

    def noiseless(self, value, query):
        return value + 5.0


class Unscaled(Gaussian):
    """Calibrates the wrong way round."""

    def at(self, scale, query, sensitivity):
        return super().at(1 / scale, query, sensitivity)


class HalfEvent(Gaussian):
    """States half of the cost."""

    def event(self, query, sensitivity, moved=None):
        right = super().event(query, sensitivity, moved)
        return attrs.evolve(right, mu=0.5 * right.mu)


class Flat(Gaussian):
    """Releases all numbers in a row."""

    def release(self, value, query, sensitivity, noise):
        return super().release(value, query, sensitivity, noise).ravel()


class Quiet(Gaussian):
    """Prepares half of the noise that `release` has."""

    def prepared(self, query, sensitivity):
        release = super().prepared(query, sensitivity)
        return lambda value, query, noise: 0.5 * (value + release(value, query, noise))

    def release(self, value, query, sensitivity, noise):
        return super().prepared(query, sensitivity)(value, query, noise)


MECHANISMS = {
    "Needs.distance": needs(of_laboratory, Laplace, distance=Distance.L2),
    "Needs.sensitivities": Wrong(judge=of_releases, wrong=Smallest(), right=Gaussian()),
    "Needs.integers": Wrong(judge=of_releases, wrong=AsFloats(), right=Gaussian()),
    "Needs.persons": needs(of_laboratory, Gaussian, distance=Distance.LINF),
    "Needs.bands": needs(of_releases, Laplace, bands=True),
    "Needs.stream": mechanism(of_releases, Gaussian, release=_other_generator),
    "AnyMechanism.arithmetic": Wrong(judge=of_laboratory, wrong=Floats(), right=Gaussian()),
    "AnyMechanism.refusal": mechanism(
        of_releases, DiscreteGaussian, refusal=lambda self, query: ""
    ),
    "AnyMechanism.noise_distribution": Wrong(judge=of_releases, wrong=Narrow(), right=Gaussian()),
    "AnyMechanism.at": Wrong(judge=of_releases, wrong=Unscaled(), right=Gaussian()),
    "AnyMechanism.event": Wrong(judge=of_draws, wrong=HalfEvent(), right=Gaussian()),
    "Mechanism.release": Wrong(judge=of_releases, wrong=Flat(), right=Gaussian()),
    "Mechanism.prepared": Wrong(judge=of_releases, wrong=Quiet(), right=Gaussian()),
    "Mechanism.noiseless": Wrong(judge=of_releases, wrong=Elsewhere(), right=Gaussian()),
    "Event.adjacency": mechanism(
        of_releases,
        Gaussian,
        event=lambda self, query, sensitivity, moved=None: attrs.evolve(
            EVENT, adjacency=REPLACE_LABEL
        ),
    ),
}


# --- bounds and sensitivities


@attrs.frozen(kw_only=True)
class Claimed(SensitivityBound):
    """About `LabelMean` or what extends it, with what `claim` says of it."""

    learner: ClassVar[Any] = None
    claim: Any

    def is_about(self, learner):
        return True

    def sensitivity(self, query, learner, public, adjacency):
        if not REPLACE_ONE.covers(adjacency):
            return Refused("it is about replace_one")
        value = 2 * public.domain.label_bound / public.domain.records
        right = {"value": value, "distance": "l2", "adjacency": REPLACE_ONE}
        return Sensitivity(**(right | {"source": "as claimed"} | self.claim(public)))


def of_bound(case):
    return bound_verdicts(case, Effort(pairs=1000))[0]


def claim(learner=None, records=20, **members):
    """A claim about a mean of labels with members replaced."""

    def case(of):
        bound = Claimed(claim=of)
        where = {"domain": domain(records), "adjacency": REPLACE_ONE}
        return Case(learner=learner or LabelMean(), bound=bound, **where)

    return Wrong(judge=of_bound, wrong=case(lambda public: members), right=case(lambda public: {}))


@attrs.frozen(kw_only=True)
class TenTimesWhereKnown(LabelMean):
    """A mean whose weight depends on whether the number of records is public."""

    def statistic(self, query, records, public, secret):
        factor = 10.0 if public.domain.exact else 1.0
        return factor * np.array([records.labels.mean() if len(records) else 0.0])

    def queries(self, public):
        return super().queries(public)


@attrs.frozen(kw_only=True)
class Withheld(SensitivityBound):
    """Right where the learner sees no exact number of records."""

    learner: ClassVar[Any] = TenTimesWhereKnown
    withholds_count: ClassVar[bool] = True

    def sensitivity(self, query, learner, public, adjacency):
        if not REPLACE_ONE.covers(adjacency):
            return Refused("it is about replace_one")
        return Sensitivity(
            value=2 * public.domain.label_bound,
            distance="l2",
            adjacency=REPLACE_ONE,
            source="two means",
        )


def withheld(bound):
    where = {"domain": domain(20), "adjacency": REPLACE_ONE}
    case = Case(learner=TenTimesWhereKnown(), bound=bound(), **where)
    return case.under(REPLACE_ONE)


@attrs.frozen(kw_only=True)
class Scores(LabelMean):
    """Two scores that move in opposite directions."""

    def queries(self, public):
        return (Query(name="mean", shape=(2,), distance="linf"),)

    def statistic(self, query, records, public, secret):
        return np.array([1.0, -1.0]) * records.labels.mean()


def scores(value):
    bound = Claimed(
        claim=lambda public: {
            "distance": "linf",
            "range": value * public.domain.label_bound / public.domain.records,
        }
    )
    where = {"domain": domain(20), "adjacency": REPLACE_ONE}
    return Case(learner=Scores(), bound=bound, **where)


@attrs.frozen(kw_only=True)
class Vectors(LabelMean):
    """Nine numbers that move together."""

    distance: str = "l2"
    norms: tuple[str, ...] = ()

    def queries(self, public):
        norms = {"norms": self.norms} if self.norms else {}
        return (Query(name="mean", shape=(9,), distance=self.distance, **norms),)

    def statistic(self, query, records, public, secret):
        return np.full(9, records.labels.mean() if len(records) else 0.0) / 3


@attrs.frozen(kw_only=True)
class OfVectors(SensitivityBound):
    """The l2 norm, times `in_l1` in l1, of which the truth is 3."""

    learner: ClassVar[Any] = Vectors
    in_l1: float

    def sensitivity(self, query, learner, public, adjacency):
        if not REPLACE_ONE.covers(adjacency):
            return Refused("it is about replace_one")
        value = 2 * public.domain.label_bound / public.domain.records
        value *= self.in_l1 if query.distance is Distance.L1 else 1.0
        return Sensitivity(
            value=value, distance=query.distance, adjacency=REPLACE_ONE, source="as claimed"
        )


def vectors(distance, in_l1, norms=()):
    learner = Vectors(distance=distance, norms=norms)
    where = {"domain": domain(20), "adjacency": REPLACE_ONE}
    return Case(learner=learner, bound=OfVectors(in_l1=in_l1), **where)


def other_learner(bound):
    where = {"domain": domain(20), "adjacency": REPLACE_ONE}
    return Case(learner=Scores(), bound=bound, **where)


def labelled(claim):
    return Case(
        learner=LabelMean(),
        bound=Claimed(claim=claim),
        domain=domain(20),
        adjacency=REPLACE_ONE,
    )


BOUNDS = {
    "SensitivityBound.learner": Wrong(
        judge=of_bound, wrong=other_learner(LabelMeanBound()), right=labelled(lambda public: {})
    ),
    "SensitivityBound.withholds_count": Wrong(
        judge=of_bound,
        wrong=withheld(subclass(Withheld, withholds_count=False)),
        right=withheld(Withheld),
    ),
    "AnySensitivity.distance": claim(distance="linf"),
    "AnySensitivity.source": claim(source=""),
    "AnySensitivity.validity": claim(value=0.05, validity=OverRandomness(1e-6)),
    "AnySensitivity.solver_error": claim(value=0.05, solver_error=0.01),
    "Sensitivity.value": claim(value=0.09),
    "Sensitivity.covers_fallback": claim(covers_fallback=True),
    "Sensitivity.range": Wrong(judge=of_bound, wrong=scores(2), right=scores(4)),
    "Sensitivity.diameter": Wrong(
        judge=of_bound,
        wrong=labelled(lambda public: {"diameter": 1.0}),
        right=labelled(lambda public: {"diameter": 2 * public.domain.label_bound}),
    ),
}


# --- sums and samples


def of_sum(case):
    return sum_verdicts(case)


@attrs.frozen(kw_only=True)
class Rows(SummingLearner, OneShot):
    """The sum of features."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = True
    clip: float = 1.0

    def queries(self, public):
        size = (public.domain.width,)
        return (SumQuery(name="c", shape=size, distance="l2", sum=Sum(clip=self.clip)),)

    def contributions(self, query, block, public):
        return block.features

    def assemble(self, answers, public):
        return Numbers(answers["c"])


class Longer(Rows):
    """Adds by itself, and does not clip."""

    def partial(self, query, block, public):
        found = super().partial(query, block, public)
        return found + found


@attrs.frozen(kw_only=True)
class Signed(Rows):
    """States the angle between two contributions."""

    sign: str = "any"

    def queries(self, public):
        (query,) = super().queries(public)
        return (attrs.evolve(query, sum=Sum(clip=self.clip, sign=self.sign)),)


def summing(learner, relation=ADD_REMOVE):
    where = domain(20) if relation.replaces else _private()
    return Case(learner=learner, bound=SumBound(), domain=where, adjacency=relation)


@attrs.frozen(kw_only=True)
class Planned(LabelMean):
    """A mean of labels whose query has members replaced."""

    members: dict[str, Any] = attrs.field(factory=dict)
    factor: complex = 1.0
    more: int = 0
    asked: dict[str, Any] = attrs.field(factory=dict)
    whole: bool = False

    def queries(self, public):
        return tuple(attrs.evolve(query, **self.members) for query in super().queries(public))

    def start(self, public):
        return (self.queries(public)[0], 0)

    def ask(self, state):
        query, asked = state
        if asked > self.more:
            return None
        return attrs.evolve(query, **self.asked, args={"asked": asked} if self.more else None)

    def update(self, state, answer):
        return (state[0], state[1] + 1)

    def model(self, state):
        return Numbers(np.zeros(1))

    def statistic(self, query, records, public, secret):
        found = self.factor * np.array([records.labels.mean() if len(records) else 0.0])
        return np.rint(found) if self.whole else found


def of_learner(learner):
    case = Case(learner=learner, bound=LabelMeanBound(), domain=domain(20), adjacency=REPLACE_ONE)
    return learner_verdicts(case)


def query(right, wrong, **more):
    return Wrong(
        judge=of_learner,
        wrong=Planned(members=wrong, **more),
        right=Planned(members=right, **more),
    )


@attrs.frozen(kw_only=True)
class HalfCharged(Poisson):
    """Poisson samples of all records, said to be in every second ask alone."""

    def charged(self, query_count):
        return -(-query_count // 2)


@attrs.frozen(kw_only=True)
class ByRecord(Poisson):
    """Draws records, and states that it draws persons."""


@draw.register(ByRecord)
def _(sampling, records, stream):
    return records.take(np.flatnonzero(stream.uniform(len(records)) < sampling.probability))


@attrs.frozen(kw_only=True)
class Everyone(Poisson):
    """Takes every record, and is priced as a sample."""


@draw.register(Everyone)
def _(sampling, records, stream):
    return records


@draw_with.register(Everyone)
def _(sampling, records, changed, stream):
    return records


@attrs.frozen(kw_only=True)
class AsRemoved(Poisson):
    """Prices the sample of a sum, one record of which is replaced, by half of its movement."""


@amplify_sum.register(AsRemoved)
def _(sampling, event, absent):
    half = attrs.evolve(event, adjacency=ADD_REMOVE, mu=event.claims.mu / 2)
    priced = PoissonSampledEvent(event=half, sampling_probability=sampling.probability)
    return AsPoisson(sampled=priced, adjacency=event.adjacency)


def of_samples(case):
    yield next(sampled_verdicts(case, "it", 0, 1))  # the others draw


def of_sampled_draws(case):
    yield amplified_verdict(case, "it", 0, 400)


def sampled(scheme, relation=ADD_REMOVE):
    return summing(Sampled(scheme=scheme), relation)


def _private():
    return attrs.evolve(domain(20), exact=None, limit=20)


@attrs.frozen(kw_only=True)
class Sampled(Rows):
    """The sum of features of a sample."""

    scheme: Any

    def queries(self, public):
        return tuple(attrs.evolve(q, sampling=self.scheme) for q in super().queries(public))


SUMS = {
    "Sum.clip": Wrong(judge=of_sum, wrong=summing(Longer()), right=summing(Rows())),
    "Sum.sign": Wrong(
        judge=of_sum,
        wrong=summing(Signed(sign="acute"), REPLACE_ONE),
        right=summing(Signed(), REPLACE_ONE),
    ),
    "Query.name": Wrong(judge=of_learner, wrong=Planned(asked={"name": "other"}), right=Planned()),
    "Query.shape": query({}, {"shape": (2,)}),
    "Query.distance": Wrong(judge=of_bound, wrong=vectors("l1", 1), right=vectors("l2", 1)),
    "Query.norms": Wrong(
        judge=of_bound, wrong=vectors("l2", 1, ("l1", "l2")), right=vectors("l2", 3, ("l1", "l2"))
    ),
    "Query.field": query({"field": "complex"}, {}, factor=1j),
    "Query.values": query({}, {"values": "integers"}),
    "Query.within": query(
        {"values": "integers", "within": (-20.0, 20.0)},
        {"values": "integers", "within": (0.0, 2.0)},
        factor=20.0,
        whole=True,
    ),
    "Query.sampling": Wrong(
        judge=of_learner,
        wrong=Planned(asked={"sampling": WithoutReplacement(size=3, records=20)}),
        right=Planned(members={"sampling": WithoutReplacement(size=3, records=20)}),
    ),
    "Query.at_most": query({"at_most": 3}, {}, more=2),
    "Sampling.charged": Wrong(
        judge=of_samples,
        wrong=sampled(HalfCharged(probability=1.0)),
        right=sampled(Poisson(probability=1.0)),
    ),
    "Sampling.by_person": Wrong(
        judge=of_samples,
        wrong=sampled(ByRecord(probability=0.5)),
        right=sampled(Poisson(probability=0.5)),
    ),
    "Sampling.replaces_in_sums": Wrong(
        judge=of_sampled_draws,
        wrong=sampled(AsRemoved(probability=0.5), REPLACE_ONE),
        right=sampled(Poisson(probability=0.5), REPLACE_ONE),
    ),
    "Poisson.probability": Wrong(
        judge=of_sampled_draws,
        wrong=sampled(Everyone(probability=0.1)),
        right=sampled(Poisson(probability=0.1)),
    ),
}

WRONG = EVENTS | MECHANISMS | BOUNDS | SUMS
