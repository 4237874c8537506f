"""Compare every function of two states of the tree: which bodies changed, came or went.

`python tests/published/compare_functions.py OLD [NEW]` reads the syntax trees of all Python files
below `dpcore/` and `plugins/*/dpcore_*` at two commits (the working tree if NEW is left out).
Docstrings and annotations of imports do not count: a function that was moved, whose imports were
rewritten, is the same function. Exit code 1 if a body changed, came or went.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = re.compile(r"(dpcore|plugins/[^/]+/dpcore_[^/]+)/.*\.py")
DOTTED = re.compile(r"dpcore[a-z_]*(\.[a-z_0-9]+)+")


class Normal(ast.NodeTransformer):
    """Without docstrings and imports; dotted paths of modules in strings are one word."""

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """Where a name comes from is a matter of files."""
        return ast.Import(sorted((ast.alias("module") for _ in node.names), key=str))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """The names only, each under the name that the body uses."""
        names = sorted(alias.asname or alias.name for alias in node.names)
        return ast.ImportFrom("module", [ast.alias(name) for name in names], 0)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Dotted paths are a matter of files, too."""
        if isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            return ast.Constant("dotted path")
        return node


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements after the docstring; `...` where there are none."""
    first = body[0]
    described = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (body[1:] if described else body) or [ast.Expr(ast.Constant(...))]


def functions(source: str) -> Iterator[tuple[str, str]]:
    """(qualified name, normal form) of every function, and of every class's and module's rest."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                yield from walk(child, f"{name}.")
                child.body = without_docstring(child.body)
                if isinstance(child, ast.ClassDef):
                    inner = [s for s in child.body if not isinstance(s, ast.FunctionDef)]
                    child.body = inner or [ast.Pass()]
                yield name, ast.dump(Normal().visit(child))
            else:
                yield from walk(child, prefix)

    yield from walk(ast.parse(source), "")


def files(revision: str | None) -> Iterator[str]:
    """The text of every file that counts, at a commit or in the working tree."""
    command = ["git", "ls-files"]
    if revision is not None:
        command = ["git", "ls-tree", "-r", "--name-only", revision]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if not PACKAGES.fullmatch(name) or "/tests/" in name:
            continue
        if revision is None:
            if (ROOT / name).exists():
                yield (ROOT / name).read_text("utf-8")
        else:
            show = ["git", "show", f"{revision}:{name}"]
            yield subprocess.run(show, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def difference(old: Counter[tuple[str, str]], new: Counter[tuple[str, str]]) -> list[str]:
    """A line for every function that changed, came or went, by name."""
    gone, come = old - new, new - old
    before, after = (
        Counter(name for name, _ in gone.elements()),
        Counter(name for name, _ in come.elements()),
    )
    lines = []
    for name in sorted({*before, *after}):
        changed = min(before[name], after[name])
        lines += [f"changed {name}"] * changed
        lines += [f"gone    {name}"] * (before[name] - changed)
        lines += [f"new     {name}"] * (after[name] - changed)
    return lines


def main(old: str, new: str | None = None) -> int:
    """Print the difference and how many functions are the same."""
    before = Counter(pair for text in files(old) for pair in functions(text))
    after = Counter(pair for text in files(new) for pair in functions(text))
    lines = difference(before, after)
    for line in lines:
        print(line)
    print(f"{(before & after).total()} of {before.total()} functions and classes are the same")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
