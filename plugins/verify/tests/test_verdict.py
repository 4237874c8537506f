"""Verdicts on the archive, on runs written by hand, and on forgeries of every field."""

import copy
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from dpcore_verify import verify

ARCHIVE = Path(__file__).parents[3] / "tests" / "published" / "archive" / "runs"


def text(value):
    return float(value).hex()


def test_no_archived_run_is_refuted_and_all_are_confirmed(capsys):
    start = time.process_time()
    verdicts = {path.name: verify(path) for path in sorted(ARCHIVE.iterdir())}
    spent = time.process_time() - start
    with capsys.disabled():
        counts = dict(Counter(verdict.status for verdict in verdicts.values()))
        print(f"\narchive: {counts} in {spent:.1f} processor seconds")
    assert {name for name, verdict in verdicts.items() if not verdict} == set()
    # before format 4 a lock says nothing of how its sensitivities follow
    earlier = [verdict for name, verdict in verdicts.items() if not name.endswith(".format-4")]
    assert all(query.kind == "taken" for verdict in earlier for query in verdict.queries)
    assert any(query.kind == "derived" for v in verdicts.values() for query in v.queries)


@pytest.mark.parametrize("name", ["quickstart", "statistics.odds", "best-of", "statistics.clinic"])
def test_an_archived_run_that_states_less_is_not_confirmed(name, tmp_path):
    for file in ("guarantee.json", "spec.lock.json", "answers.npz"):
        content = (ARCHIVE / name / "public" / file).read_bytes()
        (tmp_path / file).write_bytes(content)
    for file in ("guarantee.json", "spec.lock.json"):
        data = json.loads((tmp_path / file).read_text())
        stated = data if file == "guarantee.json" else data["plan"]["guarantee"]
        stated["epsilon"] *= 0.9
        (tmp_path / file).write_text(json.dumps(data))
    verdict = verify(tmp_path)
    assert verdict.status in ("refuted", "does not follow")
    assert verdict.status == "refuted" or verdict.epsilon > verdict.stated[0]


def test_what_follows_is_confirmed_and_derived(statistics, tmp_path):
    verdict = verify(statistics.write(tmp_path))
    assert verdict, verdict.reason
    assert [query.kind for query in verdict.queries] == ["derived"] * 3
    assert "an exact sum, each record at most 1 long" in verdict.queries[0].sentences
    assert verdict.epsilon <= verdict.stated[0] * (1 + 1e-6)


def test_a_theorem_is_taken_and_the_sampling_checked(sampled, tmp_path):
    verdict = verify(sampled.write(tmp_path))
    assert verdict, verdict.reason
    assert verdict.queries[0].kind == "taken"
    assert "from T9 of dpcore-linear 0.1.0: at most 1.9211 in l2" in verdict.lines()[1]


def test_persons_are_derived_from_their_clip(persons, tmp_path):
    verdict = verify(persons.write(tmp_path))
    assert verdict, verdict.reason
    assert verdict.queries[0].kind == "derived"


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"release": {"name": "costs"}}, "confirmed"),
        ({"release": {"name": "costs"}, "evaluate": {"score": 0.1}}, "confirmed"),
        ({"release": {"name": "other"}}, "refuted"),
        ({"release": {}}, "refuted"),
        ({"releases": [{"name": "costs"}, {"name": "costs"}]}, "refuted"),
        ({"releases": [{"name": "costs"}, {"name": "more"}]}, "refuted"),
        ({"releases": [{"name": "more"}], "evaluate": {"score": 0.1}}, "refuted"),
    ],
)
def test_the_releases_of_the_spec_are_those_that_are_priced(spec, status, persons, tmp_path):
    run = copy.deepcopy(persons)
    del run.spec["releases"]
    run.spec.update(spec)
    assert verify(run.write(tmp_path)).status == status


def claim(index, **changes):
    return lambda run: run.claims["queries"][index].update(changes)


def inside(index, key, **changes):
    return lambda run: run.claims["queries"][index][key].update(changes)


def deeper(index, key, inner, **changes):
    return lambda run: run.claims["queries"][index][key][inner].update(changes)


def entry(release, **changes):
    return lambda run: run.lock["plan"]["releases"][release][0].update(changes)


def guaranteed(twice=True, **changes):
    def change(run):
        stated = dict(run.guarantee)
        run.guarantee.update(changes)
        if not twice:
            run.twice, run.lock["plan"]["guarantee"] = False, stated

    return change


def both(*changes):
    return lambda run: [change(run) for change in changes]


def answers(change):
    def apply(run):
        run.answers = change(dict(run.answers))

    return apply


def renamed(old, new):
    return answers(lambda a: {new if key == old else key: value for key, value in a.items()})


# who lies, in what, and the verdict
FORGERIES = {
    # the guarantee
    "a smaller epsilon": ("statistics", guaranteed(epsilon=0.2), "refuted"),
    "an epsilon that is a little smaller": (
        "persons",
        lambda run: run.guarantee.update(epsilon=run.guarantee["epsilon"] * 0.999),
        "refuted",
    ),
    "a smaller epsilon in one file": ("statistics", guaranteed(False, epsilon=0.5), "refuted"),
    "another delta in one file": ("statistics", guaranteed(False, delta=1e-9), "refuted"),
    "a smaller delta": (
        "statistics",
        both(guaranteed(delta=1e-9), lambda run: run.spec["budget"].update(delta=1e-9)),
        "refuted",
    ),
    "a delta that is not the budget's": ("statistics", guaranteed(delta=1e-5), "refuted"),
    "a larger epsilon than the budget": (
        "statistics",
        lambda run: run.spec["budget"].update(epsilon=0.1),
        "refuted",
    ),
    "another relation by name": ("statistics", guaranteed(adjacency="replace_one"), "refuted"),
    "a relation of persons by name": (
        "statistics",
        guaranteed(adjacency="add_remove of a person (5 records at most)"),
        "refuted",
    ),
    "another number of records by name": (
        "persons",
        guaranteed(adjacency="add_remove of a person (9 records at most)"),
        "refuted",
    ),
    "another status in one file": (
        "statistics",
        guaranteed(False, status="conditional"),
        "refuted",
    ),
    "premises in one file": ("statistics", guaranteed(False, premises=["x"]), "refuted"),
    "delta 0 for Gaussians": (
        "statistics",
        both(guaranteed(delta=0.0), lambda run: run.spec["budget"].pop("delta")),
        "does not follow",
    ),
    "a negative epsilon": ("statistics", guaranteed(epsilon=-1.0), "not checked"),
    # the releases
    "a release that is not priced": (
        "statistics",
        lambda run: run.spec["releases"].append({"name": "extra"}),
        "refuted",
    ),
    "a release that the spec does not name": (
        "statistics",
        lambda run: run.spec["releases"].pop(),
        "refuted",
    ),
    "a query without a claim": (
        "statistics",
        lambda run: run.claims["queries"].pop(),
        "not checked",
    ),
    "a claim of no query": (
        "statistics",
        lambda run: run.claims["queries"].append(copy.deepcopy(run.claims["queries"][0])),
        "not checked",
    ),
    "a private evaluation that is not priced": (
        "statistics",
        lambda run: run.spec.update(evaluate={"private": {"metrics": ["mse"]}}),
        "refuted",
    ),
    # the answers
    "answers of no query": (
        "statistics",
        answers(lambda a: a | {"patients.000009.more": a["patients.000000.count"]}),
        "refuted",
    ),
    "answers of no release": (
        "statistics",
        answers(lambda a: a | {"others.000009.count": a["patients.000000.count"]}),
        "not checked",
    ),
    "more answers than are priced": (
        "statistics",
        answers(lambda a: a | {"patients.000009.count": a["patients.000000.count"]}),
        "refuted",
    ),
    "a shape that is not priced": (
        "statistics",
        answers(lambda a: a | {"patients.000000.count": a["pressure.000001.mean"]}),
        "refuted",
    ),
    "complex answers": (
        "statistics",
        answers(lambda a: a | {"patients.000000.count": a["patients.000000.count"] + 0j}),
        "not checked",
    ),
    "a name that counts fewer rows": (
        "sampled",
        renamed("model.000000x6.gradient", "model.000000x5.gradient"),
        "not checked",
    ),
    # the derivations
    "a smaller sensitivity": (
        "statistics",
        both(claim(0, sensitivity=text(0.5)), entry("patients", sensitivity=0.5)),
        "refuted",
    ),
    "a sensitivity a little smaller": (
        "statistics",
        both(claim(0, sensitivity=text(1 - 1e-9)), entry("patients", sensitivity=1 - 1e-9)),
        "refuted",
    ),
    "a sensitivity that the plan does not have": (
        "statistics",
        entry("patients", sensitivity=2.0),
        "refuted",
    ),
    "a larger clip": ("statistics", inside(0, "derivation", clip=text(2)), "refuted"),
    "a larger clip of a person": ("persons", inside(0, "derivation", clip=text(2)), "refuted"),
    "fewer records of a person": ("persons", inside(0, "derivation", records=4), "not checked"),
    "a person's sum by records": (
        "persons",
        claim(
            0,
            derivation={
                "rule": "sum",
                "clip": text(1.5),
                "sign": "any",
                "size": 1,
                "exponent": None,
            },
        ),
        "not checked",
    ),
    "a replaced record priced as one that comes": (
        "statistics",
        both(
            lambda run: run.claims.update(
                relation={"membership": False, "radius": None, "label": True}
            ),
            guaranteed(adjacency="replace_one"),
        ),
        "refuted",
    ),
    "more coordinates": ("statistics", inside(1, "derivation", size=9), "refuted"),
    "a norm that is not the claim's": (
        "statistics",
        inside(1, "derivation", **{"to": "l1"}),
        "not checked",
    ),
    "a larger inner clip": ("statistics", deeper(1, "derivation", "of", clip=text(3)), "refuted"),
    "a rule that is not known": (
        "statistics",
        inside(0, "derivation", rule="trust"),
        "not checked",
    ),
    "a rule with a field too many": ("statistics", inside(0, "derivation", more=1), "not checked"),
    "an error on both neighbours left out": (
        "statistics",
        lambda run: run.claims["queries"][0].update(
            derivation={
                "rule": "error",
                "error": text(1e-3),
                "of": run.claims["queries"][0]["derivation"],
            }
        ),
        "refuted",
    ),
    "bands left out": (
        "statistics",
        lambda run: run.claims["queries"][0].update(
            derivation={
                "rule": "bands",
                "weights": [text(1), text(0.5)],
                "of": run.claims["queries"][0]["derivation"],
            }
        ),
        "refuted",
    ),
    "a larger theorem": ("sampled", inside(0, "derivation", value=text(3)), "refuted"),
    "a law below another rule": (
        "statistics",
        lambda run: run.claims["queries"][1].update(
            derivation={
                "rule": "error",
                "error": text(0),
                "of": {
                    "rule": "law",
                    "atoms": [text(2), text(9)],
                    "weights": [text(0.5), text(0.5)],
                    "uncovered": text(0),
                    "theorem": "T15",
                },
            }
        ),
        "not checked",
    ),
    "a law next to noise that is not Gaussian": (
        "statistics",
        lambda run: run.claims["queries"][0].update(
            derivation={
                "rule": "law",
                "atoms": [text(1), text(9)],
                "weights": [text(0.5), text(0.5)],
                "uncovered": text(0),
                "theorem": "T15",
            }
        ),
        "not checked",
    ),
    "bands in the plan only": (
        "sampled",
        lambda run: run.lock["plan"]["releases"]["model"][0].update(bands=[1, 1]),
        "refuted",
    ),
    # the mechanisms
    "a distance that is not the mechanism's": (
        "statistics",
        lambda run: (
            run.claims["queries"][1].update(
                distance="linf",
                derivation=run.claims["queries"][1]["derivation"]["of"],
                sensitivity=text(1),
            ),
            run.lock["plan"]["releases"]["pressure"][0].update(distance="linf", sensitivity=1.0),
        ),
        "refuted",
    ),
    "more noise in the mechanism than in the event": (
        "statistics",
        inside(0, "mechanism", noise_width=text(80)),
        "refuted",
    ),
    "less noise in the mechanism": (
        "statistics",
        inside(0, "mechanism", noise_width=text(4)),
        "refuted",
    ),
    "a smaller multiplier in the mechanism": (
        "statistics",
        inside(1, "mechanism", noise_multiplier=text(5)),
        "refuted",
    ),
    "another grid": ("statistics", inside(1, "mechanism", exponent=-5), "refuted"),
    "another mechanism": (
        "statistics",
        claim(0, mechanism={"rule": "laplace", "noise_scale": text(8)}),
        "refuted",
    ),
    "a mechanism that is not known": (
        "statistics",
        inside(0, "mechanism", rule="magic"),
        "not checked",
    ),
    "a larger epsilon of a choice": (
        "statistics",
        inside(2, "mechanism", epsilon=text(0.25)),
        "refuted",
    ),
    # the events
    "a smaller mu": ("statistics", inside(1, "event", mu=text(0.0999999)), "refuted"),
    "a smaller shift": (
        "statistics",
        both(claim(0, sensitivity=text(2)), entry("patients", sensitivity=2.0)),
        "refuted",
    ),
    "a wider event": ("statistics", inside(0, "event", noise_width=text(9)), "refuted"),
    "a smaller choice": ("statistics", inside(2, "event", epsilon=text(0.1)), "refuted"),
    "an event of another kind": (
        "statistics",
        claim(2, event={"version": 1, "kind": "zcdp", "rho": text(1e-9)}),
        "refuted",
    ),
    "an event of no kind": ("statistics", inside(0, "event", kind="nothing"), "not checked"),
    "an event of another version": ("statistics", inside(0, "event", version=2), "not checked"),
    "a smaller event below sampling": (
        "sampled",
        deeper(0, "event", "event", mu=text(0.2)),
        "refuted",
    ),
    "a rarer sample": ("sampled", inside(0, "event", sampling_probability=text(0.01)), "refuted"),
    "a sample that the plan lacks": (
        "sampled",
        lambda run: run.lock["plan"]["releases"]["model"][0].pop("sampling"),
        "refuted",
    ),
    "a sample of presence where records are replaced": (
        "sampled",
        both(
            lambda run: run.claims.update(
                relation={"membership": False, "radius": None, "label": True}
            ),
            guaranteed(adjacency="replace_one"),
        ),
        "refuted",
    ),
    "a sample of a sample": (
        "sampled",
        lambda run: run.claims["queries"][0]["event"].update(
            event={
                "kind": "poisson_sampled",
                "event": {"kind": "gaussian", "mu": text(0.25)},
                "sampling_probability": text(0.125),
            }
        ),
        "refuted",
    ),
    "a number in decimals": ("statistics", inside(1, "event", mu=0.1), "not checked"),
    # the counts
    "fewer charges": ("sampled", claim(0, charged=2), "refuted"),
    "groups that are not there": (
        "sampled",
        both(
            claim(0, charged=2),
            lambda run: run.lock["plan"]["releases"]["model"][0]["sampling"].update(groups=2),
        ),
        "refuted",
    ),
    "fewer answers in the claims": ("sampled", claim(0, at_most=3, charged=3), "refuted"),
    "another shape in the claims": ("statistics", claim(0, shape=[2]), "refuted"),
    "another distance in the claims": ("statistics", claim(0, distance="linf"), "refuted"),
    # gammas and validities
    "a gamma left out": (
        "statistics",
        lambda run: run.lock["plan"]["releases"]["patients"][0]["bound"].update(
            validity={"over_randomness": 1e-7}
        ),
        "refuted",
    ),
    "a gamma that eats delta": (
        "statistics",
        lambda run: run.claims["gamma"].append(
            {"query": "count", "probability": text(1e-6), "theorem": "T1"}
        ),
        "does not follow",
    ),
    "a conditional bound that is proved": (
        "statistics",
        lambda run: run.lock["plan"]["releases"]["patients"][0]["bound"].update(
            validity={"conditional": [["a", "b"]]}
        ),
        "refuted",
    ),
    "a bound that is refuted": (
        "statistics",
        lambda run: run.lock["plan"]["releases"]["patients"][0]["bound"].update(
            validity={"refuted": "no"}
        ),
        "refuted",
    ),
    "claims of another version": (
        "statistics",
        lambda run: run.claims.update(version=2),
        "not checked",
    ),
    "no claims": ("statistics", lambda run: run.lock["plan"].pop("claims"), "not checked"),
    "another format": ("statistics", lambda run: run.lock.update(format=9), "not checked"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_not_confirmed(name, request, tmp_path):
    fixture, forge, status = FORGERIES[name]
    run = copy.deepcopy(request.getfixturevalue(fixture))
    forge(run)
    verdict = verify(run.write(tmp_path))
    assert not verdict
    assert verdict.status == status, verdict.reason


@pytest.mark.parametrize(
    "change",
    [
        claim(0, sensitivity=text(1 + 1e-9)),
        inside(1, "event", mu=text(0.1 * (1 + 1e-12))),
        inside(0, "derivation", clip=text(0.5)),
    ],
)
def test_what_is_stated_too_large_or_by_a_halved_clip_stays_confirmed(change, statistics, tmp_path):
    run = copy.deepcopy(statistics)
    change(run)
    run.lock["plan"]["releases"]["patients"][0]["sensitivity"] = float.fromhex(
        run.claims["queries"][0]["sensitivity"]
    )
    assert verify(run.write(tmp_path))


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "dpcore_verify", *arguments], capture_output=True, text=True
    )


def test_the_command_prints_what_is_not_said_and_ends_with_the_verdicts_code(
    statistics, sampled, tmp_path
):
    done = command(str(statistics.write(tmp_path / "a")), "--derived")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("confirmed: (")
    assert "- who made this folder." in done.stdout
    done = command(str(sampled.write(tmp_path / "b")), "--derived")
    assert done.returncode == 2
    forged = copy.deepcopy(statistics)
    forged.guarantee["epsilon"] = 0.1
    done = command(str(forged.write(tmp_path / "c")))
    assert done.returncode == 1
    assert "Not looked at:" in done.stdout
    assert command(str(tmp_path / "d")).returncode == 2


def test_a_run_that_claims_nothing_says_so(statistics, tmp_path):
    run = copy.deepcopy(statistics)
    run.guarantee.update(status="none", epsilon=None, delta=None)
    verdict = verify(run.write(tmp_path))
    assert verdict.status == "nothing claimed"
    assert verdict.code == 0
    assert not verdict


def test_a_sweep_names_its_releases_itself_and_a_budget_may_be_rho(statistics, tmp_path):
    run = copy.deepcopy(statistics)
    run.spec.update(sweep={"grid": {}}, releases=[{"name": "patients"}])
    run.spec["budget"].update(epsilon=run.guarantee["epsilon"] / 3)
    assert verify(run.write(tmp_path / "a"))
    run = copy.deepcopy(statistics)
    run.spec["budget"] = {"rho": 0.1, "delta": 1e-6}
    assert verify(run.write(tmp_path / "b"))


def test_a_link_or_a_pipe_is_refused_unopened(statistics, tmp_path):
    folder = statistics.write(tmp_path / "a")
    lock = folder / "public" / "spec.lock.json"
    lock.rename(tmp_path / "elsewhere")
    lock.symlink_to(tmp_path / "elsewhere")
    assert verify(folder).status == "not checked"
    lock.unlink()
    os.mkfifo(lock)
    assert verify(folder).status == "not checked"
