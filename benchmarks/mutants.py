"""What the conformance conformance suite catches: the gallery, bugs reported elsewhere, mutants,
others.

    python benchmarks/mutants.py                    every wrong component, the conformance suite at
    its defaults python benchmarks/mutants.py --effort 0.03      a quick pass
    python benchmarks/mutants.py --right            alarms on the right siblings instead
    python benchmarks/mutants.py --only laplace     those with a name that contains it
    python benchmarks/mutants.py --sets unusual     right ones that look wrong

Every component is examined in a process of its own, which ends at `--cap` seconds of wall-clock
time: neither a hang nor a crash stops the rest, and neither counts as caught. A wrong one is
examined until its first broken law. Prints the rate and the processor time by set and kind, and
those that stand. Components live in tests/, so that it
needs a checkout.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import attrs

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from gallery.core import examined  # noqa: E402  # found once the path is there
from gallery.entry import Entry  # noqa: E402
from gallery.everyday import EVERYDAY  # noqa: E402
from gallery.mutants import MUTANTS  # noqa: E402
from gallery.plugins import PLUGINS  # noqa: E402
from gallery.reported import REPORTED  # noqa: E402
from gallery.strangers import STRANGERS, UNUSUAL  # noqa: E402
from gallery.unlike import UNLIKE  # noqa: E402

DEFAULT = ["gallery", "reported", "mutants", "unlike", "strangers"]
HOOKS = ("learners", "mechanisms", "accountants", "features")


def gallery() -> Iterator[Entry]:
    """Yield the gallery's own wrong plugins; what they get wrong is where they are made."""
    for name, (make, laws) in PLUGINS.items():
        with tempfile.TemporaryDirectory() as folder:
            module = make(Path(folder))
        kind = next(hook for hook in HOOKS if hasattr(module, f"dpcore_{hook}"))
        mistake = f"It breaks {', '.join(sorted(laws))}."
        yield Entry(name=name, kind=kind.removesuffix("s"), mistake=mistake, wrong=make)


def sets() -> dict[str, tuple[Entry, ...]]:
    """Return every set by name."""
    return {
        "gallery": tuple(gallery()),
        "reported": REPORTED,
        "mutants": MUTANTS,
        "unlike": UNLIKE,
        "strangers": STRANGERS,
        "everyday": EVERYDAY,
        "unusual": UNUSUAL,
    }


@attrs.frozen
class Outcome:
    """What became of one component.

    Args:
        broken: Ids of laws that were broken.
        ended: Why there is no report, or empty.
        seconds: Processor time.
    """

    entry: Entry
    group: str
    broken: tuple[str, ...]
    ended: str
    seconds: float


def examine_here(name: str, right: bool, effort: float, seed: int) -> None:
    """One component in this process; the last line of its output is what was found."""
    found = {entry.name: entry for group in sets().values() for entry in group}[name]
    with tempfile.TemporaryDirectory() as folder:
        module = (found.right if right else found.wrong)(Path(folder))
        report = examined(module, effort, seed, until_broken=not right)
    broken = sorted({v.law.id for v in report.verdicts if v.failed or v.untested})
    print(json.dumps({"broken": broken, "seconds": time.process_time()}))


def outcome(given: argparse.Namespace, group: str, entry: Entry) -> Outcome:
    """Return the same in a process of its own."""
    command = [sys.executable, __file__, "--one", entry.name]
    command += ["--effort", str(given.effort), "--seed", str(given.seed)]
    command += ["--right"] if given.right else []
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **threads},
    )
    try:
        output, errors = child.communicate(timeout=given.cap)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return Outcome(entry, group, (), f"stopped at {given.cap:g} s", given.cap)
    try:
        found = json.loads(output.strip().splitlines()[-1])
        return Outcome(entry, group, tuple(found["broken"]), "", found["seconds"])
    except (IndexError, ValueError, KeyError, TypeError):
        last = (errors.strip().splitlines() or ["no output"])[-1]
        return Outcome(entry, group, (), f"exit {child.returncode}: {last[:200]}", 0.0)


def table(found: list[Outcome], word: str) -> None:
    """A line for each kind of each set."""
    print(f"\n| set | kind | {word} | of | rate | median s | longest s |")
    print("|---|---|---|---|---|---|---|")
    rows = sorted({(one.group, one.entry.kind) for one in found})
    for group, kind in [*rows, *((group, "all") for group in sorted({g for g, _ in rows}))]:
        those = [o for o in found if o.group == group and kind in (o.entry.kind, "all")]
        caught, times = sum(bool(o.broken) for o in those), [o.seconds for o in those]
        print(
            f"| {group} | {kind} | {caught} | {len(those)} | {caught / len(those):.0%} | "
            f"{statistics.median(times):.1f} | {max(times):.1f} |"
        )


def chosen(given: argparse.Namespace) -> Iterator[tuple[str, Entry]]:
    """Yield what was asked for; right siblings once each."""
    seen = set()
    for group, entries in sets().items():
        for entry in entries[given.start if group == "mutants" else 0 :]:
            sibling = entry.parent or entry.name
            if given.right and (entry.right is None or sibling in seen):
                continue
            seen.add(sibling)
            wanted = any(word in entry.name for word in given.only)
            if group in given.sets and (wanted or not given.only):
                yield group, entry


def main() -> None:
    """Print outcomes as they come, a table, and what is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=DEFAULT)
    parser.add_argument("--only", nargs="+", default=[], help="Parts of names.")
    parser.add_argument("--start", type=int, default=0, help="Leave out so many mutants.")
    parser.add_argument(
        "--effort", type=float, default=1.0, help="1: the conformance suite's defaults."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cap", type=float, default=300.0, help="Seconds for one component.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--right", action="store_true", help="Right siblings: nothing may break.")
    parser.add_argument("--json", type=Path, help="Keep every outcome in this file.")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        examine_here(given.one, given.right, given.effort, given.seed)
        return
    found: list[Outcome] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for one in pool.map(lambda pair: partial(outcome, given)(*pair), chosen(given)):
            found.append(one)
            verdict = one.ended or ", ".join(one.broken) or "stands"
            print(f"{one.seconds:6.1f} s  {one.entry.name}: {verdict}", flush=True)
    table(found, "alarms" if given.right else "caught")
    print("\nEnded without a report:")
    for one in (o for o in found if o.ended):
        print(f"* {one.entry.name}: {one.ended}")
    if not given.right:
        print("\nStand:")
        for one in (o for o in found if not o.broken and not o.ended):
            print(f"* {one.entry.name} ({one.entry.kind}): {one.entry.mistake}")
    if given.json:
        plain = [
            {
                "name": o.entry.name,
                "set": o.group,
                "kind": o.entry.kind,
                "broken": o.broken,
                "ended": o.ended,
                "seconds": o.seconds,
            }
            for o in found
        ]
        given.json.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
