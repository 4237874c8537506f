"""What `dpcore check` says that a run needs of the machine, against what its process took.

Every shipped example runs in a process of its own. Memory is the largest process; seconds are those
of all processes, at the yardstick: ten million passes of `s += i` take 1.2 s.

    OPENBLAS_NUM_THREADS=1 python benchmarks/rooms.py [EXAMPLE ...]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dpcore.plan.cost_statement import YARDSTICK

ROOT = Path(__file__).parents[1]
LOOP = "import time\ns = 0\nb = time.process_time()\nfor i in range(10**7):\n    s += i\n"
MAIN = "from dpcore.cli import main; main()"
FACTOR = 1.5


def run(folder, *arguments):
    """Exit code, standard output, bytes at the peak and processor seconds of a command."""
    with tempfile.TemporaryFile() as out, open(os.devnull, "w") as nowhere:
        command = [sys.executable, "-c", MAIN, *arguments]
        child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        seconds = usage.ru_utime + usage.ru_stime
        return child.returncode, out.read().decode(), usage.ru_maxrss * 1024, seconds


def seconds_of_loop():
    """The yardstick on this machine: the median of five."""
    code = LOOP + "print(time.process_time() - b)"
    times = [subprocess.check_output([sys.executable, "-c", code]) for _ in range(5)]
    return sorted(map(float, times))[2]


def main(names):
    """Print a line for each example that runs here, and how many lie outside the factor."""
    scale = YARDSTICK / seconds_of_loop()
    print(f"ten million additions: {YARDSTICK / scale:.2f} s here, {YARDSTICK} s in what is stated")
    print(
        f"{'example':44} {'MB stated':>9} {'MB':>5} {'ratio':>5}   {'s stated':>8} {'s':>5} ratio"
    )
    paths = [*ROOT.glob("examples/*.yaml"), *ROOT.glob("plugins/*/*/examples/*.yaml")]
    outside = {"memory": 0, "seconds": 0}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        visits = [sys.executable, "-m", "dpcore_statistics.synthetic_visits", place]
        subprocess.run(visits, check=True)
        if data := os.environ.get("DPCORE_DATA"):
            shutil.copy(Path(data) / "insurance.csv", folder)
        for path in sorted(paths):
            if names and path.stem not in names:
                continue
            shutil.copy(path, folder)
            code, text, _, _ = run(folder, "check", path.name, "--json")
            ran, _, memory, seconds = run(folder, "run", path.name)
            # What is refused as printed, or has no file here, runs nowhere.
            if code or ran:
                continue
            stated = json.loads(text)["resources"]
            ratios = stated["memory"] / memory, stated["seconds"] / (seconds * scale)
            for key, ratio in zip(outside, ratios, strict=True):
                outside[key] += not 1 / FACTOR <= ratio <= FACTOR
            print(
                f"{path.relative_to(ROOT)!s:.44} {stated['memory'] / 1e6:9.0f} {memory / 1e6:5.0f} "
                f"{ratios[0]:5.2f}   {stated['seconds']:8.1f} {seconds * scale:5.1f} "
                f"{ratios[1]:5.2f}",
                flush=True,
            )
    print(f"outside a factor of {FACTOR}: {outside}")


if __name__ == "__main__":
    main(sys.argv[1:])
