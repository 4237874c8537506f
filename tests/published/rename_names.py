"""Rename names inside functions, and prove that two trees differ in names only.

`rename_names.py apply FILE...` reads lines `PATH QUALNAME OLD NEW` (QUALNAME of the outermost
function or class, or `-` for the whole file) and renames every variable, parameter and function of
that spelling inside; attributes where OLD and NEW start with a dot, keywords of calls where they
start with `=`.
`rename_names.py compare OLD [NEW]` walks the syntax trees of two commits (the working tree if NEW
is left out) side by side: it prints every name that does not belong to one function only, and
exits with 1 where anything but names, docstrings and comments differs, where two names became one,
or where one name became two. Python 3.12 or newer: earlier ones misplace names in f-strings.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = re.compile(r"(dpcore|plugins/[^/]+/dpcore_[^/]+)/.*\.py")
Position = tuple[int, int, int]
"""Line, column in bytes, length in bytes."""


def owner(tree: ast.Module, qualname: str) -> ast.AST:
    """The function or class of that dotted name; the module for `-`."""
    node: ast.AST = tree
    for part in [] if qualname == "-" else qualname.split("."):
        inner = [child for child in ast.walk(node) if getattr(child, "name", None) == part]
        if not inner:
            raise SystemExit(f"no {qualname} here")
        node = inner[0]
    return node


def places(node: ast.AST, name: str, lines: list[bytes]) -> Iterator[Position]:
    """Where `name` is spelled: a variable, parameter or function; `.name` and `=name` only."""
    size = len(name.lstrip(".="))
    for child in ast.walk(node):
        if name.startswith("."):
            if isinstance(child, ast.Attribute) and child.attr == name[1:]:
                yield child.end_lineno, child.end_col_offset - size, size  # type: ignore[misc]
        elif name.startswith("="):
            if isinstance(child, ast.keyword) and child.arg == name[1:]:
                yield child.lineno, child.col_offset, size
        elif (isinstance(child, ast.Name) and child.id == name) or (
            isinstance(child, ast.arg) and child.arg == name
        ):
            yield child.lineno, child.col_offset, size
        elif isinstance(child, ast.Nonlocal | ast.Global) and name in child.names:
            start = lines[child.lineno - 1].index(name.encode(), child.col_offset + 6)
            yield child.lineno, start, size
        elif isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == name:
            start = lines[child.lineno - 1].index(name.encode(), child.col_offset)
            yield child.lineno, start, size
        elif isinstance(child, ast.ExceptHandler | ast.MatchAs) and child.name == name:
            line = lines[child.lineno - 1]
            yield child.lineno, line.index(b" as " + name.encode(), child.col_offset) + 4, size


def apply(renames: list[tuple[str, str, str, str]]) -> None:
    """Rename, file by file.

    Raises:
        SystemExit: a new name is already used there, or an old one is not.
    """
    by_path = defaultdict(list)
    for path, qualname, old, new in renames:
        by_path[path].append((qualname, old, new))
    for path, wishes in by_path.items():
        for qualname, old, new in wishes:  # one after another: positions move
            source = (ROOT / path).read_bytes()
            lines = source.split(b"\n")
            node = owner(ast.parse(source), qualname)
            if [*places(node, new, lines)] and new[0] not in ".=":
                raise SystemExit(f"{path} {qualname}: {new} is used there already")
            positions = sorted({*places(node, old, lines)}, reverse=True)
            if not positions:
                raise SystemExit(f"{path} {qualname}: no {old} there")
            for number, column, size in positions:
                line = lines[number - 1]
                renamed = new.lstrip(".=").encode()
                lines[number - 1] = line[:column] + renamed + line[column + size :]
            (ROOT / path).write_bytes(b"\n".join(lines))


def sources(commit: str | None) -> dict[str, str]:
    """The packages' files at a commit, or in the working tree."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    if commit is None:
        paths = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        wanted = [path for path in paths if PACKAGES.fullmatch(path) and (ROOT / path).exists()]
        return {path: (ROOT / path).read_text() for path in wanted}
    paths = git("ls-tree", "-r", "--name-only", commit).splitlines()
    return {path: git("show", f"{commit}:{path}") for path in paths if PACKAGES.fullmatch(path)}


class Bijection:
    """Names of one function, before and after; each is renamed in one way."""

    def __init__(self) -> None:
        self.forward: dict[str, str] = {}
        self.backward: dict[str, str] = {}

    def takes(self, old: str, new: str) -> bool:
        """Whether the pair agrees with those before it."""
        return (
            self.forward.setdefault(old, new) == new and self.backward.setdefault(new, old) == old
        )


def described(node: ast.AST) -> bool:
    """Whether a body opens with a docstring."""
    body = getattr(node, "body", None)
    return bool(
        isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        and body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )


def attribute_docs(body: list[ast.stmt]) -> list[ast.stmt]:
    """Without the strings that describe constants and fields."""
    return [
        s
        for s in body
        if not (
            isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Constant)
            and isinstance(s.value.value, str)
        )
    ]


NAMES = {"id", "arg", "name", "attr", "asname"}  # and the lists of `nonlocal` and `global`


def differences(old: ast.AST, new: ast.AST, names: Bijection) -> Iterator[str]:
    """What differs next to names; the names of outermost functions are bijections of their own."""
    if type(old) is not type(new):
        line = getattr(new, "lineno", "?")
        yield f"line {line}: {type(old).__name__} became {type(new).__name__}"
        return
    for field in old._fields:
        before, after = getattr(old, field, None), getattr(new, field, None)
        if field == "body" and isinstance(before, list):
            before, after = attribute_docs(before), attribute_docs(after)
            if not before and not after:
                continue
        if isinstance(before, list):
            if len(before) != len(after):
                yield f"line {getattr(new, 'lineno', '?')}: {field} of other length"
                continue
            for x, y in zip(before, after, strict=True):
                if isinstance(x, ast.AST):
                    yield from differences(x, y, names)
                elif x != y and not names.takes(x, y):
                    yield f"{x} became {y}"
        elif isinstance(before, ast.AST):
            if not isinstance(after, ast.AST):
                yield f"line {getattr(new, 'lineno', '?')}: {field} is gone"
            else:
                yield from differences(before, after, names)
        elif field in NAMES and isinstance(before, str) and isinstance(after, str):
            scoped = f".{before}" if field == "attr" else before
            if not names.takes(scoped, f".{after}" if field == "attr" else after):
                line = getattr(new, "lineno", "?")
                yield f"line {line}: {before} became {after}, elsewhere it did not"
        elif before != after:
            yield f"line {getattr(new, 'lineno', '?')}: {before!r} became {after!r}"


def outermost(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Functions and methods by position, then the module without them."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        for child in inner:
            if isinstance(child, ast.FunctionDef):
                yield f"{getattr(node, 'name', '')}.{child.name}", child


def bound(node: ast.AST) -> set[str]:
    """Names that a function itself binds."""
    names = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    names |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return names | {
        n.name for n in ast.walk(node) if n is not node and isinstance(n, ast.FunctionDef)
    }


def compare(old: dict[str, str], new: dict[str, str]) -> int:
    """Print what differs; the number of differences that are no names."""
    faults = 0
    for path in sorted({*old, *new}):
        if path not in old or path not in new:
            print(f"{path}: {'gone' if path in old else 'new'}")
            faults += 1
            continue
        if old[path] == new[path]:
            continue
        before, after = ast.parse(old[path]), ast.parse(new[path])
        pairs = [*zip(outermost(before), outermost(after), strict=False)]
        for (_, x), (name, y) in pairs:
            names = Bijection()
            for text in differences(x, y, names):
                print(f"{path} {name}: {text}")
                faults += 1
            local = bound(x)
            parameters = {a.arg for a in ast.walk(x.args) if isinstance(a, ast.arg)}  # type: ignore[attr-defined]
            for was, now in names.forward.items():
                if was != now and (was not in local or was in parameters):
                    kind = "parameter" if was in parameters else "outer name"
                    print(f"{path} {name}: {kind} {was} -> {now}")
        whole = Bijection()
        for _, node in [*outermost(before), *outermost(after)]:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
            node.args = ast.arguments([], [], None, [], [], None, [])  # type: ignore[attr-defined]
        for text in differences(before, after, whole):
            print(f"{path}: {text}")
            faults += 1
        for was, now in whole.forward.items():
            if was != now:
                print(f"{path}: {was} -> {now}")
    return faults


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        sys.exit(bool(compare(sources(sys.argv[2]), sources(next(iter(sys.argv[3:]), None)))))
    apply(
        [
            tuple(line.split())  # type: ignore[misc]
            for file in sys.argv[2:]
            for line in Path(file).read_text().splitlines()
            if line.strip()
        ]
    )
