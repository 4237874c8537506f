"""Small run folders of format 4, written by hand."""

import copy
import io
import json

import numpy as np
import pytest
from flint import arb, ctx

from dpcore_verify.balls import allow
from dpcore_verify.composition import Composition
from dpcore_verify.query import built, parsed


def text(value):
    return float(value).hex()


RELATION = {"membership": True, "radius": text(0), "label": False}
PERSONS = RELATION | {"unit": "person", "records": 5}
SUM = {"rule": "sum", "clip": text(1), "sign": "any", "size": 1, "exponent": None}
CLIPPED = {
    "rule": "clipped",
    "clip": text(1.5),
    "contribution": text(1),
    "records": 5,
    "sign": "any",
    "size": 1,
    "each": None,
}
THEOREM = {
    "rule": "theorem",
    "of": "dpcore-linear 0.1.0",
    "name": "T9",
    "value": text(1.9211),
    "facts": {"records": 442},
}


def event(kind, **fields):
    return {"version": 1, "kind": kind, **fields}


def query(release, name, derivation, mechanism, cost, **changes):
    """Return a claim; the stated sensitivity is 1 unless it is changed."""
    return {
        "release": release,
        "query": name,
        "shape": [1],
        "at_most": 1,
        "charged": 1,
        "distance": "l2",
        "sensitivity": text(1),
        "derivation": derivation,
        "mechanism": mechanism,
        "event": cost,
    } | changes


def grid(multiplier, exponent=-10):
    return {
        "rule": "gaussian_on_grid",
        "noise_multiplier": text(multiplier),
        "exponent": exponent,
    }


COUNT = query(
    "patients",
    "count",
    SUM,
    {"rule": "discrete_gaussian", "noise_width": text(8)},
    event("discrete_gaussian", noise_width=text(8), shift=1),
)
MEAN = query(
    "pressure",
    "mean",
    {"rule": "norm", "from": "linf", "to": "l2", "size": 4, "of": SUM | {"size": 4}},
    grid(10),
    event("gaussian", mu=text(0.1)),
    shape=[4],
    sensitivity=text(2),
)
CHOICE = query(
    "costs",
    "quantile",
    SUM,
    {"rule": "exponential", "epsilon": text(0.125)},
    event("exponential_mechanism", epsilon=text(0.125)),
    distance="linf",
    shape=[41],
)
STEPS = query(
    "model",
    "gradient",
    THEOREM,
    grid(4, -10),
    event(
        "poisson_sampled",
        event={"kind": "gaussian", "mu": text(0.25)},
        sampling_probability=text(0.125),
    ),
    at_most=6,
    charged=6,
    sensitivity=text(1.9211),
)
SAMPLED = {("model", "gradient"): {"class": "Poisson", "probability": 0.125}}


class Run:
    """The files of a run folder as plain data, to be changed and written."""

    def __init__(self, queries, relation=RELATION, name="add_remove", delta=1e-6, sampled=None):
        self.claims = {"version": 1, "relation": relation, "gamma": [], "queries": queries}
        self.claims = copy.deepcopy(self.claims)
        self.guarantee = {
            "status": "proved",
            "epsilon": 1.0,
            "delta": delta,
            "adjacency": name,
            "release": "statistics",
            "assumptions": {},
            "premises": [],
        }
        names = list(
            dict.fromkeys(q["release"] for q in queries if q["release"] != "paid_evaluation")
        )
        releases = {release: [] for release in names}
        entries = {"paid_evaluation": [], **releases}
        for q in queries:
            entries[q["release"]].append(
                {
                    "query": q["query"],
                    "shape": q["shape"],
                    "at_most": q["at_most"],
                    "distance": q["distance"],
                    "sensitivity": float.fromhex(q["sensitivity"]),
                    "bound": {"class": "Sensitivity", "validity": {"worst_case": True}},
                    "mechanism": {"class": "Any"},
                }
            )
            if (q["release"], q["query"]) in (sampled or {}):
                entries[q["release"]][-1]["sampling"] = sampled[q["release"], q["query"]]
        paid = entries.pop("paid_evaluation")
        self.spec = {
            "budget": {"epsilon": 2.0, "delta": delta},
            "releases": [{"name": release} for release in names],
        }
        self.lock = {
            "spec": self.spec,
            "plan": {
                "guarantee": None,
                "paid_evaluation": paid,
                "releases": entries,
                "claims": self.claims,
            },
            "format": 4,
        }
        self.answers = {
            f"{q['release']}.{i:06d}"
            + (f"x{q['at_most']}" if q["at_most"] > 1 else "")
            + f".{q['query']}": np.zeros(
                [q["at_most"], *q["shape"]] if q["at_most"] > 1 else q["shape"]
            )
            for i, q in enumerate(queries)
            if q["release"] != "paid_evaluation"
        }
        self.twice = True
        self.guarantee["epsilon"] = self.cost()

    def cost(self):
        """Return what the events cost together, a little more than the checker finds."""
        with ctx.workprec(256):
            allow(10**8)
            events = [(built(parsed(q["event"])), q["charged"]) for q in self.claims["queries"]]
            together, low, high = Composition(events), 0.0, 20.0
            delta = arb(self.guarantee["delta"])
            if not delta > 0:
                return float(arb(together.largest))
            for _ in range(18):
                middle = (low + high) / 2
                fits = together.upper(arb(middle), delta) <= delta
                low, high = (low, middle) if fits else (middle, high)
            return high

    def write(self, folder):
        public = folder / "public"
        public.mkdir(parents=True, exist_ok=True)
        if self.twice:
            self.lock["plan"]["guarantee"] = self.guarantee
        (public / "guarantee.json").write_text(json.dumps(self.guarantee))
        (public / "spec.lock.json").write_text(json.dumps(self.lock))
        content = io.BytesIO()
        np.savez(content, **self.answers)
        (public / "answers.npz").write_bytes(content.getvalue())
        return folder


@pytest.fixture(scope="session")
def statistics():
    """A run of a count, a mean and a choice."""
    return Run([COUNT, MEAN, CHOICE])


@pytest.fixture(scope="session")
def sampled():
    """A run of sampled steps that rest on a theorem."""
    return Run([STEPS], sampled=SAMPLED)


@pytest.fixture(scope="session")
def persons():
    """A run about persons."""
    mean = query(
        "costs",
        "sum",
        CLIPPED,
        grid(8),
        event("gaussian", mu=text(0.125)),
        sensitivity=text(1.5),
    )
    return Run([mean], PERSONS, "add_remove of a person (5 records at most)")
