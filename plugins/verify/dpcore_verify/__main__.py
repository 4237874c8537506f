"""`python -m dpcore_verify RUN [--derived]`: print the verdict on a run folder."""

import argparse
import sys

from dpcore_verify.verdict import verify


def main(arguments: list[str] | None = None) -> int:
    """Print a verdict; return 0 if it is confirmed, 1 if it is refuted, 2 otherwise."""
    parser = argparse.ArgumentParser(prog="dpcore_verify", description="Check a published run.")
    parser.add_argument("run", help="a run folder, or its folder public")
    parser.add_argument("--derived", action="store_true", help="let nothing be taken")
    options = parser.parse_args(arguments)
    verdict = verify(options.run)
    lines = verdict.lines()
    is_taken = options.derived and any(query.kind == "taken" for query in verdict.queries)
    if is_taken:
        lines.append("A query is taken from a theorem, and --derived lets nothing be taken.")
    print("\n".join(lines).encode("ascii", "backslashreplace").decode())
    return max(verdict.code, 2) if is_taken and verdict.code != 1 else verdict.code


if __name__ == "__main__":
    sys.exit(main())
