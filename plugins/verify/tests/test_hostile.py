"""Hostile folders: within limits of time and memory, a verdict or a clear refusal."""

import ast
import copy
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpcore_verify import verify

PACKAGE = Path(__file__).parents[1] / "dpcore_verify"
STATUSES = {"confirmed", "refuted", "does not follow", "not checked", "nothing claimed"}


def text(value):
    return float(value).hex()


def places(data, path=()):
    yield path
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


def planted(data, path, value):
    if not path:
        return value
    data = copy.copy(data)
    data[path[0]] = planted(data[path[0]], path[1:], value)
    return data


VALUES = (
    None, True, -1, 0, 2**53, 10**30, 1e308, -0.0, 1e-320, "", "x" * 5000, "0x1.8p+3", "0x0.0p+0",
    text(1e300), text(-1), [], {}, [[]], [1] * 50, {"kind": "gaussian"}, {"rule": "sum"},
)  # fmt: skip


def judged(folder):
    start = time.process_time()
    verdict = verify(folder)
    assert verdict.status in STATUSES
    assert verdict.reason
    assert time.process_time() - start < 10
    return verdict


@pytest.mark.parametrize(
    "fraction", [0, *(pytest.param(fraction, marks=pytest.mark.slow) for fraction in range(1, 8))]
)
def test_fuzzed_locks_end_in_a_verdict(fraction, statistics, sampled, persons, tmp_path):
    draw = random.Random(fraction)
    confirmed = 0
    for _ in range(25):
        run = copy.deepcopy(draw.choice([sampled, persons]))
        paths = [p for p in places(run.lock) if p]
        for _ in range(draw.choice([1, 1, 1, 3])):
            path = draw.choice(paths)
            try:
                run.lock = planted(run.lock, path, draw.choice(VALUES))
            except (KeyError, IndexError, TypeError):
                continue
        run.twice = False
        if isinstance(run.lock.get("plan"), dict) and "guarantee" in run.lock["plan"]:
            run.lock["plan"]["guarantee"] = run.lock["plan"]["guarantee"] or run.guarantee
        confirmed += bool(judged(run.write(tmp_path)))
    assert confirmed < 13


def lock_of(run, tmp_path, change):
    run = copy.deepcopy(run)
    change(run)
    return run.write(tmp_path)


def nested(depth):
    tree = {"rule": "sum", "clip": text(1), "sign": "any", "size": 1, "exponent": None}
    for _ in range(depth):
        tree = {"rule": "error", "error": text(0), "of": tree}
    return tree


def test_a_deep_derivation_is_refused(persons, tmp_path):
    change = lambda run: run.claims["queries"][0].update(derivation=nested(40))  # noqa: E731
    assert judged(lock_of(persons, tmp_path, change)).reason.startswith("a derivation is nested")


@pytest.mark.parametrize(
    "lock",
    [
        "[" * 500_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"format": ' + "1" * 10**6 + "}",
        '{"format": 0.' + "1" * 10**6 + "}",
        '{"format": NaN}',
        '{"format": 3, "format": 3}',
        "{}",
        "[]",
        "",
        " " * 5_000_000,
        '{"plan": [' + "[]," * 1_000_000 + "[]]}",
    ],
)
def test_a_hostile_file_is_refused(lock, persons, tmp_path):
    folder = persons.write(tmp_path)
    (folder / "public" / "spec.lock.json").write_text(lock)
    assert judged(folder).status == "not checked"


def test_of_two_equal_keys_none_is_taken(persons, tmp_path):
    folder = persons.write(tmp_path)
    path = folder / "public" / "spec.lock.json"
    path.write_text(path.read_text().replace('"format": 4', '"format": 4, "format": 4'))
    assert verify(folder).reason == "a key occurs twice in a file"


FORMULA = {"version": 1, "kind": "formula", "name": "f", "lost": text(0), "constants": {}}


@pytest.mark.parametrize(
    "event",
    [
        FORMULA | {"curve": ["sum_over", "i", 0, 9999, ["sum_over", "j", 0, 9999, "x"]]},
        FORMULA | {"curve": ["/", 1, 0]},
        FORMULA | {"curve": ["log", ["neg", 1]]},
        FORMULA | {"curve": ["exp", ["exp", ["exp", ["exp", ["*", "x", 1000]]]]]},
        FORMULA | {"curve": "y"},
        FORMULA | {"curve": ["exp"] * 3},
        FORMULA | {"curve": ["sum_over", "i", 0, 10**12, "i"]},
        FORMULA | {"curve": [[]]},
        {"version": 1, "kind": "discrete_laplace", "noise_scale": text(1e-300), "shift": 10**15},
        {"version": 1, "kind": "discrete_laplace", "noise_scale": text(1e300), "shift": 99_999},
        {"version": 1, "kind": "discrete_gaussian", "noise_width": text(1e-300), "shift": 1},
        {"version": 1, "kind": "discrete_gaussian", "noise_width": text(1999), "shift": 2**53},
        {"version": 1, "kind": "discrete_gaussian", "noise_width": text(1e300), "shift": 2**53},
        {"version": 1, "kind": "gaussian", "mu": text(1e300)},
        {"version": 1, "kind": "gaussian", "mu": text(1e-300)},
        {"version": 1, "kind": "laplace", "shift": text(1e300)},
        {"version": 1, "kind": "laplace", "shift": text(1e-300)},
        {"version": 1, "kind": "zcdp", "rho": text(1e300)},
        {"version": 1, "kind": "zcdp", "rho": text(1e-300)},
        {"version": 1, "kind": "pure", "epsilon": text(1e300)},
        {"version": 1, "kind": "exponential_mechanism", "epsilon": text(1e-300)},
        {"version": 1, "kind": "exponential_mechanism", "epsilon": text(1e300)},
        {"version": 1, "kind": "gaussian_sampling", "theta": text(1e300), "samples": 10**14},
        {"version": 1, "kind": "gaussian_sampling", "theta": text(1e-9), "samples": 10**14},
        {"version": 1, "kind": "gaussian_sampling", "theta": text(1e-3), "samples": 1},
        {
            "version": 1,
            "kind": "gaussian_mixture",
            "shifts": [text(1e300), text(1e-300)],
            "weights": [text(0.5), text(0.5)],
        },
        {
            "version": 1,
            "kind": "hit_mixture",
            "mus": [text(1e-3)] * 10_000,
            "weights": [text(1e-5)] * 10_000,
            "uncovered": text(0),
        },
        {
            "version": 1,
            "kind": "truncated_laplace",
            "shift": text(1e-9),
            "truncation": text(1e-300),
            "dimension": 2**53,
        },
        {
            "version": 1,
            "kind": "renyi",
            "orders": [text(1 + k / 8) for k in range(1, 900)],
            "divergences": [text(1e-9)] * 899,
        },
    ],
)
@pytest.mark.parametrize(
    "copies", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 2**53))]
)
def test_a_hostile_event_ends_in_a_verdict(event, copies, sampled, tmp_path):
    def change(run):
        claim = run.claims["queries"][0]
        claim.update(event=event, at_most=copies, charged=copies)
        run.lock["plan"]["releases"]["model"][0]["at_most"] = copies

    judged(lock_of(sampled, tmp_path, change))


def test_a_million_events_end_in_a_verdict(persons, tmp_path):
    def change(run):
        run.claims["queries"][0].update(at_most=10**6, charged=10**6)
        run.lock["plan"]["releases"]["costs"][0]["at_most"] = 10**6

    assert judged(lock_of(persons, tmp_path, change)).status == "refuted"


def test_no_fuzzed_folder_needs_much_memory(persons, tmp_path):
    folder = persons.write(tmp_path)
    content = '{"plan": [' + "[]," * 1_300_000 + "[]]}"
    (folder / "public" / "spec.lock.json").write_text(content)
    # `ru_maxrss` of a child begins with what its parent has
    code = "import sys; from dpcore_verify import verify; verify(sys.argv[1]); "
    code += "print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", done.stdout)
    assert int(peak) < 500_000


def test_the_checker_imports_the_standard_library_and_flint_alone():
    allowed = sys.stdlib_module_names | {"flint", "dpcore_verify"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in allowed, (path, name)
                assert name.split(".")[0] not in {"pickle", "importlib", "ctypes"}
    code = "import sys, dpcore_verify; print([n for n in sys.modules if n.split('.')[0] in "
    code += "('dpcore', 'numpy', 'scipy', 'attrs', 'msgspec')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_checker_is_small():
    count = sum(
        isinstance(node, ast.stmt)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    )
    assert count <= 1283


def test_the_package_is_a_command(persons, tmp_path):
    folder = persons.write(tmp_path)
    done = subprocess.run([sys.executable, "-m", "dpcore_verify", folder], capture_output=True)
    assert done.returncode == 0
    assert done.stdout.startswith(b"confirmed: ")
