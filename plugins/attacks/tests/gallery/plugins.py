"""Wrong plugins: modules like any author's, each wrong in one realistic way.

`plugin` makes a module with the hooks that a plugin implements; `Registry.of(module)` loads it. A
wrong bound comes with an example spec, so that the conformance suite prices it as a user would.
"""

import types

import attrs
import numpy as np

from dpcore import REPLACE_ONE, hookimpl
from dpcore.models.features.base import FeatureMap

from gallery import wrong_bounds, wrong_parts
from gallery.right import Vector
from gallery.wrong_parts import gaussian_like

SPEC = """
dpcore: 1
data:
  source: nowhere.csv
  target: y
  domain: {{records: {records}, columns: {columns}, target: [{low}, {high}]{norm}}}
adjacency: {adjacency}
budget: {{epsilon: 1, delta: 1e-5}}
release:
  learner: {{name: {learner}{fields}}}
  bound: {bound}
  mechanism: gaussian
"""


def plugin(name, folder=None, example=None, **components):
    """A plugin module: `components` maps kinds to {name: class}."""
    module = types.ModuleType(name)
    hooks = {f"dpcore_{kind}": found for kind, found in components.items()}
    if example is not None:
        path = folder / f"{name}.yaml"
        path.write_text(example, encoding="utf-8")
        hooks["dpcore_examples"] = {name: path}
    for hook, found in hooks.items():
        setattr(module, hook, hookimpl(_returning(found), specname=hook))
    return module


def _returning(found):
    return lambda: found


def of_case(make, folder):
    """A wrong bound, or a learner that breaks a rule, as a plugin with an example at its domain."""
    name, case = make.__name__, make()
    learner = _named(type(case.learner), f"{name}.bound")
    bound = _about(type(case.bound), learner)
    where = case.domain
    records = where.exact if where.exact is not None else f"{{at_most: {where.limit}}}"
    ranges = {key: [column.low, column.high] for key, column in where.columns.items()}
    example = SPEC.format(
        records=records,
        columns=ranges,
        low=where.labels.low,
        high=where.labels.high,
        norm="" if where.norm is None else f", norm: {where.norm}",
        adjacency=_adjacency(case.adjacency),
        learner=f"{name}.learner",
        fields=_fields(case.learner),
        bound=f"{name}.bound",
    )
    return plugin(
        name,
        folder,
        example,
        learners={f"{name}.learner": learner},
        bounds={f"{name}.bound": bound},
    )


def _named(learner, bound):
    """The learner class, naming one bound."""
    made = attrs.make_class(learner.__name__, [], bases=(learner,), frozen=True, kw_only=True)
    made.bounds = (bound,)
    made.__module__ = learner.__module__
    return made


def _about(bound, learner):
    """The bound class, about another learner class."""
    made = attrs.make_class(bound.__name__, [], bases=(bound,), frozen=True, kw_only=True)
    made.learner = learner
    return made


def _adjacency(relation):
    if relation.membership:
        return "add_remove"
    if relation == REPLACE_ONE:
        return "replace_one"
    label = "free" if relation.label else "fixed"
    return f"{{replace_features: {{radius: {relation.feature_radius}, label: {label}}}}}"


def _fields(learner):
    """Numbers as they are, feature maps as the identity; the rest by default."""
    found = []
    for field in attrs.fields(type(learner)):
        value = getattr(learner, field.name)
        if isinstance(value, FeatureMap):
            found.append(f"{field.name}: identity")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append(f"{field.name}: {value}")
    return "".join(f", {one}" for one in found)


@attrs.frozen(kw_only=True)
class SumThenClip(Vector):
    """Publishes the noisy column sums, clipped: the noise comes before the clip."""

    clip: float = 1.0

    def statistic(self, query, records, public, secret):
        return records.features.sum(axis=0)

    def assemble(self, answers, public):
        return super().assemble({"c": np.clip(answers["c"], -self.clip, self.clip)}, public)


def noise_before_clipping():
    """2 clip would be right if every record were clipped before anything is added to it."""
    wrong = wrong_bounds.bound(SumThenClip, lambda q, a, p, r: 2 * a.clip / p.domain.records)
    return wrong_bounds.case(SumThenClip(), wrong, norm=1.0)


@attrs.frozen(kw_only=True)
class AsksTwice(wrong_bounds.LabelMean):
    """Plans one ask and makes two, to average the answers."""

    def start(self, public):
        return (self.queries(public)[0], ())

    def ask(self, state):
        query, answers = state
        return query if len(answers) < 2 else None

    def update(self, state, answer):
        query, answers = state
        return (query, (*answers, answer.value))

    def model(self, state):
        return wrong_bounds.Numbers(np.mean(state[1], axis=0))


def composition_counted_once():
    """The bound is right; the second query is nowhere in the price."""
    wrong = wrong_bounds.bound(
        AsksTwice, lambda q, a, p, r: 2 * p.domain.label_bound / p.domain.records
    )
    return wrong_bounds.case(AsksTwice(), wrong)


def mechanism(name, release=None, event=None):
    """A wrong Gaussian as a plugin."""
    return lambda folder: plugin(
        name, mechanisms={f"{name}.noise": type(gaussian_like(release, event))}
    )


def event(name, cls):
    """A Gaussian with a wrong event as a plugin."""
    return mechanism(name, event=lambda e: cls(mu=e.mu, adjacency=e.adjacency))


def from_case(make):
    return lambda folder: of_case(make, folder)


P = wrong_parts

PLUGINS = {
    # claims
    "scale_as_variance": (mechanism("scale_as_variance", P._variance_for_deviation), {P.MATCHES}),
    "classical_above_one": (event("classical_above_one", P.ClassicalAboveOne), {"event.convex"}),
    "noise_reused": (mechanism("noise_reused", P._reused), {"mechanism.asks-independent"}),
    "fixed_seed": (mechanism("fixed_seed", P._fixed_seed), {"mechanism.asks-independent"}),
    # what 3,000 draws of each value miss, many coordinates say
    "delta_ignored": (
        mechanism("delta_ignored", event=P._as_laplace),
        {P.MATCHES, "mechanism.event-at-any-value"},
    ),
    "one_sided_noise": (mechanism("one_sided_noise", P._one_sided, P._as_laplace), {P.MATCHES}),
    "one_sided_event": (event("one_sided_event", P.OneSided), {"event.directions-consistent"}),
    "subsampling_claimed": (event("subsampling_claimed", P.Subsampled), {P.MATCHES}),
    "coarse_grid": (
        lambda folder: plugin("coarse_grid", mechanisms={"coarse_grid.noise": P.CoarseGrid}),
        {P.MATCHES, P.AUDITED},
    ),
    "composition_counted_once": (from_case(composition_counted_once), {"learner.asks-as-planned"}),
    "accountant_forgets": (
        lambda folder: plugin(
            "accountant_forgets", accountants={"accountant_forgets.a": P.ForgetsCount}
        ),
        {"accountant.counting"},
    ),
    "noise_before_clipping": (from_case(noise_before_clipping), {"bound.holds"}),
    # mechanisms
    "real_part_only": (
        mechanism("real_part_only", P._real_part_only),
        {"mechanism.every-coordinate"},
    ),
    "one_draw": (mechanism("one_draw", P._one_draw), {P.MATCHES, P.AUDITED}),
    "own_generator": (mechanism("own_generator", P._own_generator), {"mechanism.noise-only"}),
    "half_the_noise": (mechanism("half_the_noise", P._half_the_noise), {P.MATCHES}),
    "cheap_rho": (event("cheap_rho", P.CheapEvent), {"event.zcdp-rho"}),
    "long_cosines": (
        lambda folder: plugin("long_cosines", features={"long_cosines.map": P.LongCosines}),
        {"features.norm"},
    ),
    # learners and bounds
    **{make.__name__: (from_case(make), {law}) for make, law in wrong_bounds.LEARNERS_AND_BOUNDS},
}
"""By name: what makes the module, given a folder for its example, and laws of which one at least
must be named as broken."""
