"""Seeded mutants of every shipped spec and of a data file, and a child in which each is tried."""

import copy
import json
import os
import random
import resource
import sys
import time
from pathlib import Path

import attrs

from dpcore.yaml.located import parse

from whole.cli.hostile_specs import FULL

ROOT = Path(__file__).parents[3]
SHIPPED = sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("plugins/*/dpcore_*/examples/*.yaml")])

NUMBERS = [0, -1, 1, 2, 7, 63, 1000, 10**6, 10**9, 10**12, 2**62, 0.5, 1e-3, 1e-9, 1e-300, 1e300,
           -0.0, 3.5, 1e9, 1e-17]  # fmt: skip
WORDS = [
    "", "x", "gaussian", "laplace", "gaussian_sampling", "gaussian_process", "per_query",
    "permute_and_flip", "randomized_response", "truncated_laplace", "discrete_gaussian",
    "discrete_laplace", "l2_gamma", "identity", "cosines", "cos_sin", "replace_one", "add_remove",
    "replace_label", "exact", "private", "auto", "basic", "gdp", "renyi", "pld", "zcdp",
    "homogeneous", "mse", "rmse", "project", "best_of", "sum", "twice_add_remove", "hamming",
    "\u202e", "\U0001f600", "a" * 5000, "a.b.c", "../../x", "/dev/zero", "sklearn:iris",
]  # fmt: skip
SHAPES = [None, True, False, [], {}, [[]], [1, 2, 3], [[1, 2], [3, 4]], {"x": 1}, {"name": "x"},
          {"name": "gaussian"}, {"at_most": 10**9}, {"categories": [1, 2]}]  # fmt: skip


_MARKS = b"[]{}:,-\"'#&*!|>%@`\t\n \\?"


def paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(one, (*prefix, key))


def reached(value, path):
    for step in path:
        value = value[step]
    return value


def _value(chosen, old):
    if isinstance(old, int | float) and not isinstance(old, bool) and chosen.random() < 0.6:
        scaled = old * 10.0 ** chosen.randint(-12, 12)
        return chosen.choice([scaled, -old, round(min(scaled, 1e18)), chosen.choice(NUMBERS)])
    pool = chosen.choice([NUMBERS, WORDS, WORDS, SHAPES])
    return copy.deepcopy(chosen.choice(pool))


def _grown(chosen, old, most):
    """Many of what there was one of; not many times what had grown before."""
    count = min(chosen.choice([2, 30, 1000, 20_000]), most)
    if isinstance(old, dict) and old:
        key, one = chosen.choice(list(old.items()))
        return {**old, **{f"{key}{i}": one for i in range(count)}}
    if isinstance(old, list) and old:
        return old * min(count, 2000)
    return [old] * count


def _changed(chosen, spec, others):
    """One structural change."""
    places = [path for path in paths(spec) if path]
    path = chosen.choice(places)
    inner, last = reached(spec, path[:-1]), path[-1]
    old = inner[last]
    how = chosen.random()
    if how < 0.45:
        inner[last] = _value(chosen, old)
    elif how < 0.6:
        del inner[last]
    elif how < 0.85:
        other = chosen.choice(others)
        there = chosen.choice([p for p in paths(other) if p and p[-1] == last] or [*paths(other)])
        inner[last] = copy.deepcopy(reached(other, there))
    elif how < 0.92:
        inner[last] = _grown(chosen, old, max(2, 2_000_000 // len(places)))
    elif isinstance(inner, dict):
        inner[chosen.choice([*WORDS, "share", "default", "name"])] = inner.pop(last)
    return spec


def _bytes(chosen, raw):
    """A few changes of the text itself."""
    for _ in range(chosen.randint(1, 6)):
        at = chosen.randrange(len(raw) + 1)
        how = chosen.random()
        if how < 0.3:
            raw = raw[:at] + bytes([chosen.randrange(256)]) + raw[at + 1 :]
        elif how < 0.5:
            raw = raw[:at] + raw[at + chosen.randint(1, 40) :]
        elif how < 0.7:
            raw = raw[:at] + bytes([chosen.choice(_MARKS)]) + raw[at:]
        elif how < 0.85:
            other = chosen.randrange(len(raw) + 1)
            raw = raw[:at] + raw[other : other + chosen.randint(1, 200)] + raw[at:]
        elif how < 0.95:
            raw = raw[:at] + str(chosen.choice(NUMBERS)).encode() + raw[at:]
        else:
            raw = raw[:at]
    return raw


def specs(seed):
    """Mutants without end."""
    chosen = random.Random(seed)
    texts = [path.read_bytes() for path in SHIPPED]
    plain = [FULL, *(parse(text.decode(), "s.yaml").plain() for text in texts)]
    while True:
        if chosen.random() < 0.25:
            yield _bytes(chosen, chosen.choice(texts))
            continue
        spec = copy.deepcopy(chosen.choice(plain))
        for _ in range(chosen.choice([1, 1, 2, 3])):
            spec = _changed(chosen, spec, plain) if spec else spec
        yield json.dumps(spec, indent=chosen.choice([None, 1])).encode()


CELLS = ["", "x", "nan", "inf", "-0", "1e400", "0x1", "1_0", "\u0661", "1,5", "12.345", '"', '""',
         "\x00", "\x1b[31m", "é", "yes", " 1", "1 ", "=1+1", "9" * 400, "1e-320"]  # fmt: skip


def tables(seed, good):
    """Mutants of a data file without end."""
    chosen = random.Random(seed)
    while True:
        if chosen.random() < 0.4:
            yield _bytes(chosen, good)
            continue
        rows = [line.split(",") for line in good.decode().splitlines()]
        for _ in range(chosen.choice([1, 1, 2, 5])):
            row = chosen.randrange(len(rows))
            how = chosen.random()
            if how < 0.5 and rows[row]:
                rows[row][chosen.randrange(len(rows[row]))] = chosen.choice(CELLS)
            elif how < 0.6:
                rows.pop(row)
            elif how < 0.7:
                rows.insert(row, list(rows[chosen.randrange(len(rows))]))
            elif how < 0.8:
                rows[row] = rows[row][: chosen.randint(0, 9)]
            elif how < 0.9:
                rows[row] = rows[row] * chosen.choice([2, 1000])
            else:
                rows[0], rows[row] = rows[row], rows[0]
            if not rows:
                rows = [["a"]]
        yield chosen.choice(["\n", "\n", "\r\n"]).join(map(",".join, rows)).encode()


@attrs.frozen(kw_only=True)
class Tried:
    """What one command did.

    Args:
        seconds: Of the processor, on a machine that counts to ten million in 1.2 of them.
        memory: Bytes at the peak, beyond those of its parent.
    """

    code: int
    out: str
    err: str
    seconds: float
    memory: int


def yardstick():
    """Seconds of this processor for one of a processor that counts to ten million in 1.2."""
    began = time.process_time()
    exec("s = 0\nfor i in range(10_000_000):\n    s += i", {})  # a module's loop
    return (time.process_time() - began) / 1.2


def tried(work, folder, scale, longest=60):
    """`work` in a forked child, with its output in `folder`; a negative code is a signal's."""
    sys.stdout.flush()
    sys.stderr.flush()
    inherited = resident()
    child = os.fork()
    if not child:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number, name in ((1, "out"), (2, "err")):
                handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(handle, number)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            code = work()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return Tried(
        code=os.waitstatus_to_exitcode(status),
        out=(folder / "out").read_text(errors="replace"),
        err=(folder / "err").read_text(errors="replace"),
        seconds=(used.ru_utime + used.ru_stime) / scale,
        memory=used.ru_maxrss * 1024 - inherited,
    )


def resident():
    """The bytes of this process in memory, which a child starts with."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def command(*arguments):
    """A command line, in this process."""
    from dpcore.console.app import app

    def work():
        try:
            app([*map(str, arguments)], prog_name="dpcore")
        except SystemExit as end:
            return end.code or 0
        return 0

    return work
