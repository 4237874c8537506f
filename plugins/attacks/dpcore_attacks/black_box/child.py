"""Answers a function in another environment. Run as a file: the standard library is all it needs.

Reads records, one JSON value a line. Writes one a line: an answer, the class of an exception, or
why there is none.
"""

import importlib
import json
import os
import pathlib
import sys
from typing import Any


def tagged(part: Any) -> dict[str, Any]:
    """A value that JSON does not know, as one that it does."""
    if isinstance(part, set | frozenset):
        return {"set": sorted(map(repr, part))}
    if isinstance(part, bytes):
        return {"bytes": part.hex()}
    if hasattr(part, "tolist") and hasattr(part, "dtype"):
        return {"shape": str(part.shape), "dtype": str(part.dtype), "values": part.tolist()}
    raise TypeError(f"an answer holds a {type(part).__name__}")


def main() -> None:
    """Load the function that the arguments name, and answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What the function prints must not mix with its answers.
    os.dup2(2, 1)
    source, name = sys.argv[1:]
    sys.path.insert(0, str(pathlib.Path(source).parent) if source.endswith(".py") else "")
    try:
        module = importlib.import_module(
            pathlib.Path(source).stem if source.endswith(".py") else source
        )
        release = getattr(module, name)
        state: dict[str, Any] = {"ready": True}
    except Exception as error:
        state = {"error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(state) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            reply = {"answer": release(json.loads(line))}
        except Exception as error:
            reply = {"refused": type(error).__name__}
        try:
            text = json.dumps(reply, default=tagged)
        except (TypeError, ValueError) as error:
            text = json.dumps({"error": str(error)})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
