"""`python -m dpcore_verify RUN [--derived]`: print the verdict on a run folder."""

import argparse
import sys
from pathlib import Path

from dpcore_verify.verdict import Verdict, verify


def checked(folder: str | Path, *, derived: bool = False) -> tuple[Verdict, list[str], int]:
    """Return a verdict, the lines to print of it, escaped, and the exit code."""
    verdict = verify(folder)
    lines, code = verdict.lines(), verdict.code
    if derived and any(query.kind == "taken" for query in verdict.queries):
        lines.append("A query is taken from a theorem, and --derived lets nothing be taken.")
        code = code or 2
    return verdict, [line.encode("unicode_escape").decode() for line in lines], code


def main(arguments: list[str] | None = None) -> int:
    """Print a verdict; return 0 if it is confirmed, 1 if it is refuted, 2 otherwise."""
    parser = argparse.ArgumentParser(prog="dpcore_verify", description="Check a published run.")
    parser.add_argument("run", help="a run folder, or its folder public")
    parser.add_argument("--derived", action="store_true", help="let nothing be taken")
    options = parser.parse_args(arguments)
    _, lines, code = checked(options.run, derived=options.derived)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
