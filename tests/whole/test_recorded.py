"""Recorded runs come out as they were recorded: the numbers outlive every change of the modules.

Bit for bit where the same BLAS with the same number of threads runs on the same kind of processor.
Another one may add in another order, so that elsewhere only answers on a grid keep every bit
(rounding to the grid swallows the difference), while models, numbers and answers whose noise is
drawn in floating point are compared to a relative 1e-9: other kernels of OpenBLAS moved them by
at most 3e-14.
"""

import attrs
import numpy as np
import pytest

from dpcore import SecretRandomness
from dpcore.specs.spec import load_spec

from recorded.renew import (
    HERE,
    NAMES,
    SEED,
    Recording,
    lay_out,
    machine,
    people,
    points,
    replay,
    stored,
)

# (recording, query) whose noise is proved in real arithmetic and drawn in floating point
REAL = {("function", "function"), ("ntk", "kernel"), ("pure", "coefficients")}
CLOSE = 1e-9


def same(found, expected):
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and found.tobytes() == expected.tobytes()
    )


def close(found, expected):
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and np.allclose(found, expected, rtol=CLOSE, atol=CLOSE * np.abs(expected).max(initial=0))
    )


def on_grid(name, path):
    return (name, path.split(".", 2)[-1]) not in REAL


def leaves(data, path=""):
    """(dotted path, value) of everything in JSON data."""
    if isinstance(data, dict):
        for key, inner in data.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, data


def differing(name, found, expected):
    """Names of whatever did not come out as it was recorded."""
    exact = found.machine != {} and found.machine == expected.machine
    pairs = [
        (path, found.answers.get(path), array, exact or on_grid(name, path))
        for path, array in expected.answers.items()
    ]
    pairs += [
        (path, found.models.get(path), array, exact) for path, array in expected.models.items()
    ]
    wrong = [
        path
        for path, ours, theirs, bits in pairs
        if ours is None or not (same if bits else close)(ours, theirs)
    ]
    ours, theirs = dict(leaves(found.numbers)), dict(leaves(expected.numbers))
    for path, value in theirs.items():
        loose = isinstance(value, float) and not exact
        if ours.get(path) != (pytest.approx(value, rel=CLOSE, abs=0) if loose else value):
            wrong.append(path)
    known = {*expected.answers, *expected.models, *theirs}
    return [*wrong, *sorted({*found.answers, *found.models, *ours} - known)]


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_repeats_what_was_recorded(name, tmp_path):
    expected = stored(name)
    found = replay(name, tmp_path)
    assert differing(name, found, expected) == []
    assert list(found.answers) == list(expected.answers)


def run_in_python(name, folder):
    """The same run without the command line; of the price, what a plan guarantees."""
    spec = lay_out(name, folder)
    plan = load_spec(spec).price()
    asked = {"release": points()} if "predictions_at" in spec.read_text() else {}
    outcome = plan.run(people(), secret=SecretRandomness.rehearsal(SEED), points=asked)
    return Recording(
        answers={
            f"{release}.{order:06d}.{answer.query.name}": np.asarray(answer.value)
            for release, answers in outcome.answers.items()
            for order, answer in enumerate(answers)
        },
        models={
            f"{release}.{key}": np.asarray(array)
            for release, model in outcome.models.items()
            for key, array in model.arrays().items()
        },
        numbers={"epsilon": plan.guarantee.epsilon, "delta": plan.guarantee.delta},
        machine=machine(),
    )


@pytest.mark.parametrize("name", NAMES)
def test_python_repeats_what_was_recorded(name, tmp_path):
    expected = stored(name)
    stated = {key: expected.numbers[key] for key in ("epsilon", "delta")}
    found = run_in_python(name, tmp_path)
    assert differing(name, found, attrs.evolve(expected, numbers=stated)) == []


def test_a_bit_of_an_answer_and_a_digit_of_a_model_are_seen():
    for name in NAMES:
        expected = stored(name)
        elsewhere = attrs.evolve(expected, machine={})
        assert differing(name, elsewhere, expected) == []
        path = next(iter(expected.answers))
        changed = {**expected.answers, path: np.nextafter(expected.answers[path], np.inf)}
        report = differing(name, attrs.evolve(elsewhere, answers=changed), expected)
        assert report == ([path] if on_grid(name, path) else [])
        path = next(iter(expected.models))
        distance = expected.models[path] + 1e-7 * (1 + np.abs(expected.models[path]))
        changed = {**expected.models, path: distance.astype(expected.models[path].dtype)}
        if expected.models[path].dtype.kind == "f":
            assert differing(name, attrs.evolve(elsewhere, models=changed), expected) == [path]
        numbers = {**expected.numbers, "epsilon": expected.numbers["epsilon"] * (1 + 1e-8)}
        report = differing(name, attrs.evolve(elsewhere, numbers=numbers), expected)
        assert report == ["epsilon"]


def test_recordings_are_small():
    sizes = {path: path.stat().st_size for name in NAMES for path in (HERE / name).iterdir()}
    assert {path.name for path in sizes} == {"spec.yaml", "arrays.npz", "numbers.json"}
    assert max(sizes.values()) < 30_000
