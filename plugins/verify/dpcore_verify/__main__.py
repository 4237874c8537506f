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
    for line in verdict.lines():
        print(line.encode("unicode_escape").decode())
    is_taken = any(query.kind == "taken" for query in verdict.queries)
    if options.derived and verdict.code == 0 and is_taken:
        print("A query is taken from a theorem, and --derived lets nothing be taken.")
        return 2
    return verdict.code


if __name__ == "__main__":
    sys.exit(main())
