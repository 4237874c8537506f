"""Processor seconds from start to verdict of `python -m dpcore_verify`, for each folder.

    python benchmarks/verdicts.py RUN [RUN ...]

The yardstick, ten million passes of `s += i`, is timed next to them; 1.2 s is what figures are for.
"""

import resource
import subprocess
import sys

LOOP = "s = 0\nfor i in range(10**7):\n    s += i\n"


def processor_seconds(*words):
    """What a process of its own takes, and its exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.returncode


if __name__ == "__main__":
    print(f"{processor_seconds('-c', LOOP)[0]:6.2f} s   the yardstick")
    for folder in sys.argv[1:]:
        spent, code = processor_seconds("-m", "dpcore_verify", folder)
        print(f"{spent:6.2f} s   exit code {code}   {folder}")
