"""Rewrite a plugin after modules and names of dpcore moved, from the table `renames.tsv`.

    python tools/rename.py [--table FILE] [--check] [--texts] [--skip PATH] PATH...

Python files: imports wherever they stand, uses of what was imported, dotted paths in strings,
docstrings and comments, and a definition whose name only changed. Text files (Markdown, YAML,
TOML, JSON, notebooks, templates): dotted paths as whole words, and Python in fenced blocks.
`--texts` also rewrites paths of files, such as `dpcore/event.py`. All rows apply at once.
Nothing else changes: afterwards run `ruff check --select I --fix` and `ruff format` to sort, merge
and wrap the imports.

Every file that changes is printed, then each place that names a moved module and was left alone.
A folder is searched without what begins with a dot; `--check` writes nothing and exits 1 if
something would change.
"""

import argparse
import ast
import contextlib
import io
import re
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

TEXTS = {
    *(".cfg", ".ini", ".ipynb", ".json", ".md", ".rst", ".sh", ".tmpl", ".toml", ".txt"),
    *(".yaml", ".yml"),
}
ROW = re.compile(r"\|?\s*(module|name)\s*[|\t]\s*`?([\w.:]+)`?\s*[|\t]\s*`?([\w.:]+)`?\s*(?:\|.*)?")
START = r"(?:(?<![\w.\-/])|(?<=\\[nrt]))"  # of a word; `\n` in the source of a string ends one
FENCE = re.compile(r"^```(?:python|py)\b[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMES = r"[A-Za-z_]\w*(?:[ ]+as[ ]+\w+)?"


class TableError(Exception):
    """A table that does not say where everything goes."""


@dataclass(frozen=True)
class Match:
    """The longest row that a path begins with: how many parts it covers, and where they go."""

    length: int
    module: str
    name: str | None

    @property
    def path(self) -> str:
        """Where the matched parts go, dotted."""
        return self.module if self.name is None else f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Table:
    """Rows by their old dotted path; a new path stays where it is unless it is an old one too."""

    modules: dict[str, str]
    names: dict[str, tuple[str, str]]

    @classmethod
    def load(cls, path: Path) -> "Table":
        """Read a table from tabs, or from rows of a Markdown table that begin with the kind.

        Raises:
            TableError: a row cannot be read, or two rows are about the same path.
        """
        modules: dict[str, str] = {}
        names: dict[str, tuple[str, str]] = {}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            row = ROW.fullmatch(line.strip())
            if row is None:
                if path.suffix == ".tsv" and line.strip() and not line.startswith("#"):
                    raise TableError(f"{path}:{number}: no row: {line}")
                continue
            kind, old, new = row.groups()
            colons = 1 if kind == "name" else 0
            if old.count(":") != colons or new.count(":") != colons:
                raise TableError(f"{path}:{number}: a {kind} has {colons} colon in a path: {line}")
            if (modules if kind == "module" else names).get(old.replace(":", ".")):
                raise TableError(f"{path}:{number}: a second row for {old}")
            if kind == "module":
                modules[old] = new
            else:
                module, _, name = new.partition(":")
                names[old.replace(":", ".")] = (module, name)
        return cls(modules, names)

    @cached_property
    def roots(self) -> list[str]:
        """First parts of all old paths."""
        return sorted({old.partition(".")[0] for old in (*self.modules, *self.names)})

    @property
    def chained(self) -> list[str]:
        """New paths that a second run would move again."""
        moved = {new for old, new in self.modules.items() if new != old}
        named = {f"{m}.{n}" for old, (m, n) in self.names.items() if f"{m}.{n}" != old}
        hosts = {m for old, (m, n) in self.names.items() if self.modules.get(m, m) != m}
        again = {new for new in moved if self.modules.get(new, new) != new}
        return sorted(again | (named & self.names.keys()) | hosts)

    @cached_property
    def stays(self) -> set[str]:
        """All new paths: what a first run wrote, a second one leaves."""
        return {*self.modules.values(), *(f"{m}.{n}" for m, n in self.names.values())}

    def match(self, path: str) -> Match | None:
        """Find the longest row that a dotted path begins with; of two, the one about a name."""
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            prefix = ".".join(parts[:length])
            if prefix in self.names:
                match = Match(length, *self.names[prefix])
            elif prefix in self.modules:
                match = Match(length, self.modules[prefix], None)
            elif prefix in self.stays:
                return None
            else:
                continue
            return match if match.path != prefix else None
        return None

    def resolve(self, path: str) -> str:
        """Return where a dotted path leads now."""
        match = self.match(path)
        if match is None:
            return path
        return ".".join([match.path, *path.split(".")[match.length :]])

    def is_emptied(self, path: str) -> bool:
        """Whether rows move what is below a package, and none says where itself goes."""
        return (
            "." in path
            and path not in self.modules
            and path not in self.stays
            and self.match(path) is None
            and any(old.startswith(f"{path}.") for old in self.modules)
        )


@dataclass(eq=False)
class Binding:
    """A local name that an import makes: its statement, its alias, and what it represents."""

    statement: ast.Import | ast.ImportFrom
    alias: ast.alias
    target: str

    @property
    def is_plain(self) -> bool:
        """Whether the name is the root of `import a.b`, so that uses write the path out."""
        return isinstance(self.statement, ast.Import) and self.alias.asname is None


@dataclass(eq=False)
class Scope:
    """What one module, class, function or comprehension binds; None represents no import."""

    parent: "Scope | None" = None
    is_class: bool = False
    is_comprehension: bool = False
    bindings: dict[str, list[Binding | None]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def bind(self, name: str, binding: Binding | None = None) -> None:
        """Note one more binding of a name."""
        self.bindings.setdefault(name, []).append(binding)

    def owner(self, name: str) -> "Scope | None":
        """Return the scope in which a use here finds its name."""
        scope: Scope | None = self
        while scope is not None:
            visible = scope is self or not scope.is_class
            if visible and name in scope.bindings and name not in scope.elsewhere:
                return scope
            scope = scope.parent
        return None


@dataclass(frozen=True)
class Use:
    """A chain `name.attribute...` and the offsets at which its name begins and its parts end."""

    scope: Scope
    parts: tuple[str, ...]
    start: int
    ends: tuple[int, ...]


class Source:
    """A text with offsets for the lines and columns of syntax trees and of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def offset(self, line: int, column: int, is_utf8: bool = True) -> int:
        """Return the offset of a column, which trees count in bytes and tokens in letters."""
        start = self.starts[line - 1]
        if not is_utf8:
            return start + column
        row = self.text[start : start + column]
        if row.isascii():
            return start + column
        return start + len(row.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends."""
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def line(self, offset: int) -> int:
        """Return the number of the line that an offset is in."""
        return bisect_right(self.starts, offset)


class Scopes(ast.NodeVisitor):
    """Read which names a file binds where, and all chains that begin with a name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scope = Scope()
        self.module = self.scope
        self.uses: list[Use] = []
        self.stores: dict[str, list[int]] = {}  # where the module itself binds a name
        self.calls: list[tuple[Scope, ast.expr, str]] = []
        self.imports: list[tuple[Scope, ast.Import | ast.ImportFrom]] = []
        self.base: int | None = None  # of the string that holds an annotation

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node, [])
        else:
            self._store(node.id, self.source.span(node)[0])

    def _store(self, name: str, start: int) -> None:
        self.scope.bind(name)
        if self.scope is self.module:
            self.stores.setdefault(name, []).append(start)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain: list[ast.Attribute] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            chain.insert(0, value)
            value = value.value
        if isinstance(value, ast.Name) and isinstance(value.ctx, ast.Load):
            self._use(value, chain)
        else:
            self.visit(value)

    def _use(self, name: ast.Name, chain: list[ast.Attribute]) -> None:
        if self.base is None:
            start = self.source.span(name)[0]
            ends = [self.source.span(node)[1] for node in (name, *chain)]
        else:
            start = self.base + name.col_offset
            ends = [self.base + (node.end_col_offset or 0) for node in (name, *chain)]
        parts = (name.id, *(node.attr for node in chain))
        self.uses.append(Use(self.scope, parts, start, tuple(ends)))

    def visit_Import(self, node: ast.Import) -> None:
        self.imports.append((self.scope, node))
        for alias in node.names:
            root = alias.name.partition(".")[0]
            target = root if alias.asname is None else alias.name
            self.scope.bind(alias.asname or root, Binding(node, alias, target))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports.append((self.scope, node))
        for alias in node.names:
            is_ours = not node.level and alias.name != "*"
            binding = Binding(node, alias, f"{node.module}.{alias.name}") if is_ours else None
            self.scope.bind(alias.asname or alias.name, binding)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._define(node)
        for decorator in node.decorator_list:
            self.visit(decorator)
        if node.returns is not None:
            self._annotation(node.returns)
        self._function(node.args, node.body)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        start = self.source.span(node)[0]
        words = re.compile(r"(?:(?:async|def|class)[ \t]+)+").match(self.source.text, start)
        self._store(node.name, start if words is None else words.end())

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the names of ast

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node.args, [node.body])

    def _function(self, args: ast.arguments, body: "list[ast.stmt] | list[ast.expr]") -> None:
        arguments = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        arguments += [argument for argument in (args.vararg, args.kwarg) if argument is not None]
        for argument in arguments:
            if argument.annotation is not None:
                self._annotation(argument.annotation)
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._enter(Scope(self.scope), [argument.arg for argument in arguments], body)

    def _enter(
        self, scope: Scope, names: list[str], body: "list[ast.stmt] | list[ast.expr]"
    ) -> None:
        self.scope, outside = scope, self.scope
        for name in names:
            scope.bind(name)
        for node in body:
            self.visit(node)
        self.scope = outside

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node)
        for expression in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(expression)
        self._enter(Scope(self.scope, is_class=True), [], node.body)

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        self.visit(node.generators[0].iter)
        self.scope, outside = Scope(self.scope, is_comprehension=True), self.scope
        for number, generator in enumerate(node.generators):
            self.visit(generator.target)
            for expression in ([generator.iter] if number else []) + generator.ifs:
                self.visit(expression)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for result in results:
            self.visit(result)
        self.scope = outside

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self.scope
        while scope.is_comprehension and scope.parent is not None:
            scope = scope.parent
        scope.bind(node.target.id)
        self.visit(node.value)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self.scope.elsewhere.add(name)
            self.module.bind(name)  # what is assigned from afar keeps its name

    visit_Nonlocal = visit_Global  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scope.bind(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.scope.bind(node.rest)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        for first, second in zip(node.args, node.args[1:], strict=False):
            if isinstance(second, ast.Constant) and isinstance(second.value, str):
                self.calls.append((self.scope, first, second.value))
        arguments = list(node.args)
        if arguments and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name == "cast":
                self._annotation(arguments.pop(0))
        for expression in (node.func, *arguments, *node.keywords):
            self.visit(expression)

    def _annotation(self, node: ast.expr) -> None:
        """Visit an annotation, and what is inside its strings."""
        self.visit(node)
        literals: set[int] = set()
        for child in ast.walk(node):
            if isinstance(child, ast.Subscript) and ast.unparse(child.value).endswith("Literal"):
                literals |= {id(below) for below in ast.walk(child)}
            words = child.value if isinstance(child, ast.Constant) else None
            if not isinstance(words, str) or id(child) in literals:
                continue
            start, end = self.source.span(child)
            with contextlib.suppress(SyntaxError):
                inner = ast.parse(words, mode="eval").body
                if self.source.text[start + 1 : end - 1] == words:
                    self.base = start + 1
                    self.visit(inner)
                    self.base = None


class Rewriting:
    """The edits that a table asks for in one file, and what they leave to a reader."""

    def __init__(self, table: Table, text: str, texts: bool, module: str | None = None) -> None:
        self.table, self.texts, self.module = table, texts, module
        self.source = Source(text)
        self.edits: dict[tuple[int, int], str] = {}
        self.closed: list[tuple[int, int]] = []  # what the syntax tree decided
        self.notes: list[tuple[int, str]] = []
        self.local: list[tuple[str, str]] = []  # names of the file itself that changed
        roots = "|".join(map(re.escape, table.roots))
        identifier = r"[A-Za-z_]\w*"
        self.dotted = re.compile(
            rf"{START}(?:{roots})(?:\.{identifier})+(?::{identifier}(?:\.{identifier})*)?"
        )
        self.escaped = re.compile(rf"{START}(?:{roots})(?:(\\+\.)[A-Za-z_]\w*)+")
        self.paths = re.compile(
            rf"(?:(?<![\w.\-])|(?<=\\[nrt]))(?:{roots})(?:/\w+)+(?:\.[A-Za-z]\w*)?"
        )
        self.imports = re.compile(
            rf"(?:\b|(?<=\\[nrt]))from[ ]+((?:{roots})(?:\.\w+)*)[ ]+import[ ]+"
            rf"(?:\(([\w\s,]+)\)|({NAMES}(?:,[ ]*{NAMES})*))"
        )
        self.loose = re.compile(rf"(?<![A-Za-z0-9_])(?:{roots})(?:(?:\\*\.|\[\.\]|/)\w+)+")

    def result(self) -> str:
        """Return the text after all edits."""
        text = self.source.text
        for (start, end), new in sorted(self.edits.items(), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def note(self, offset: int, message: str) -> None:
        """Leave a place to a reader."""
        self.notes.append((self.source.line(offset), message))

    # Python

    def python(self, code: str) -> None:
        """Rewrite imports and uses of a module whose lines are those of the file."""
        tree = ast.parse(code)
        scopes = Scopes(self.source)
        scopes.visit(tree)
        self.closed += [self.source.span(statement) for _, statement in scopes.imports]
        renamed = self._renamed_locals(scopes)
        self._rename_definitions(scopes)
        needs: dict[ast.stmt, list[str]] = {}
        owners: dict[ast.stmt, Scope] = {statement: scope for scope, statement in scopes.imports}
        for use in scopes.uses:
            self._rewrite_use(use, renamed, needs)
        for scope, statement in scopes.imports:
            if isinstance(statement, ast.Import):
                self._rewrite_import(statement)
            else:
                self._rewrite_import_from(statement, renamed.get(scope, {}))
        for origin, modules in needs.items():
            self._add_imports(owners[origin], origin, modules)
        self._note_attributes(scopes)
        self._note_tails(tree)

    def _renamed_locals(self, scopes: Scopes) -> dict[Scope, dict[str, str]]:
        """Return the imported names of each scope that take their new name everywhere."""
        renamed: dict[Scope, dict[str, str]] = {}
        for scope in {scope: None for scope, _ in scopes.imports}:
            for name, bindings in scope.bindings.items():
                targets = {
                    self.table.resolve(binding.target).rpartition(".")[2]
                    for binding in bindings
                    if binding is not None
                    and isinstance(binding.statement, ast.ImportFrom)
                    and binding.alias.asname is None
                }
                if targets <= {name}:
                    continue
                new = min(targets - {name})
                offset = self.source.span(next(b for b in bindings if b).statement)[0]
                places = [use.scope for use in scopes.uses if use.parts[0] == name]
                reason = None
                if len(targets) > 1 or not all(
                    binding is not None
                    and isinstance(binding.statement, ast.ImportFrom)
                    and binding.alias.asname is None
                    for binding in bindings
                ):
                    reason = "is bound in another way too"
                elif scope.is_class or any(
                    place.is_class and name in place.bindings and place.parent.owner(name) is scope
                    for place in places
                    if place.parent is not None
                ):
                    reason = "is an attribute of a class"
                elif (
                    new in scope.bindings
                    or any(place.owner(new) for place in places if place.owner(name) is scope)
                    or any(use.parts[0] == new and not use.scope.owner(new) for use in scopes.uses)
                ):
                    reason = f"cannot become {new}, which the file uses for something else"
                elif scope is scopes.module and self._is_exported(name):
                    reason = "is in __all__"
                if reason:
                    self.note(offset, f"{name} {reason}: it is imported under its old name")
                else:
                    renamed.setdefault(scope, {})[name] = new
                    if scope is scopes.module:
                        self.local.append((name, new))
        return renamed

    def _rename_definitions(self, scopes: Scopes) -> None:
        """Give names that the module itself defines, and that keep their module, their new name."""
        for path, (home, new) in self.table.names.items():
            module, _, name = path.rpartition(".")
            starts = scopes.stores.get(name, [])
            if self.module not in (module, home) or self.table.resolve(module) != home:
                continue
            if name == new or not starts:
                continue
            uses = [use for use in scopes.uses if use.parts[0] == name]
            spans = [
                *((start, start + len(name)) for start in starts),
                *(
                    (use.start, use.ends[0])
                    for use in uses
                    if use.scope.owner(name) is scopes.module
                ),
            ]
            if (
                len(starts) < len(scopes.module.bindings[name])
                or any(self.source.text[start:end] != name for start, end in spans)
                or any(use.scope.owner(new) for use in uses)
                or new in scopes.module.bindings
                or any(use.parts[0] == new for use in scopes.uses)
                or self._is_exported(name)
            ):
                self.note(starts[0], f"{name} is {new} in the table, and not yet here")
                continue
            self.edits |= dict.fromkeys(spans, new)

    def _is_exported(self, name: str) -> bool:
        exports = re.search(r"^__all__\s*[+:=].*?[\])]", self.source.text, re.MULTILINE | re.DOTALL)
        return exports is not None and re.search(rf"[\"']{name}[\"']", exports[0]) is not None

    def _rewrite_use(
        self, use: Use, renamed: dict[Scope, dict[str, str]], needs: dict[ast.stmt, list[str]]
    ) -> None:
        scope = use.scope.owner(use.parts[0])
        if (
            scope is use.scope
            and scope.is_class
            and scope.parent
            and None in scope.bindings[use.parts[0]]
        ):
            scope = scope.parent.owner(use.parts[0])  # `plan: plan.Plan` reads the outer name
        if scope is None:
            return
        bindings = [binding for binding in scope.bindings[use.parts[0]] if binding is not None]
        if not bindings:
            return
        binding = bindings[0]
        is_shared = len({(b.target, b.is_plain) for b in scope.bindings[use.parts[0]] if b}) > 1
        full = ".".join([binding.target, *use.parts[1:]])
        depth = binding.target.count(".") + 1
        match = self.table.match(full)
        local = renamed.get(scope, {}).get(use.parts[0], use.parts[0])
        if match is None or (match.length <= depth and not binding.is_plain):
            if self.source.text[use.start : use.ends[0]] != use.parts[0]:
                if local != use.parts[0]:
                    self.note(use.start, f"{use.parts[0]} is {local} now, and was not found")
            elif local != use.parts[0]:
                self.edits[(use.start, use.ends[0])] = local
            if match is None and binding.is_plain:
                needs.setdefault(binding.statement, []).append(binding.target)
            return
        end = use.ends[match.length - depth]
        written = self.source.text[use.start : end]
        if re.sub(r"\s", "", written) != ".".join(use.parts[: match.length - depth + 1]):
            self.note(use.start, f"{full} is written in a way that was not changed")
            return
        if is_shared or len(bindings) < len(scope.bindings[use.parts[0]]):
            self.note(use.start, f"{use.parts[0]} is bound in several ways: {full} moved")
            return
        moved = self.table.resolve(binding.target)
        if binding.is_plain:
            needs.setdefault(binding.statement, []).append(match.module)
            self.edits[(use.start, end)] = match.path
        elif match.path.startswith(f"{moved}."):
            self.edits[(use.start, end)] = local + match.path[len(moved) :]
        else:
            root = match.module.partition(".")[0]
            owner = use.scope.owner(root)
            if owner and not all(b and b.is_plain for b in owner.bindings[root]):
                self.note(
                    use.start, f"{full} is {match.path} now, and {root} is another thing here"
                )
                return
            needs.setdefault(binding.statement, []).append(match.module)
            self.edits[(use.start, end)] = match.path

    def _rewrite_import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            new = self.table.resolve(alias.name)
            if self.table.is_emptied(alias.name):
                self.note(self.source.span(alias)[0], f"parts of {alias.name} moved")
            if new != alias.name:
                start = self.source.span(alias)[0]
                self.edits[(start, start + len(alias.name))] = new

    def _add_imports(self, scope: Scope, statement: ast.stmt, modules: list[str]) -> None:
        """Import, after a statement, the modules that uses of its names need now."""
        provided = [
            self.table.resolve(binding.alias.name)
            for bindings in scope.bindings.values()
            for binding in bindings
            if binding is not None and binding.is_plain
        ]
        start, end = self.source.span(statement)
        lines = []
        for module in dict.fromkeys(modules):
            if not any(path == module or path.startswith(f"{module}.") for path in provided):
                provided.append(module)
                lines.append(f"import {module}")
        if lines:
            separator = self._separator(start, end)
            old = self.edits.pop((start, end), None)
            if old is None:
                self.edits[(end, end)] = separator + separator.join(lines)
            else:
                self.edits[(start, end)] = separator.join([old, *lines])

    def _separator(self, start: int, end: int) -> str:
        """Return what is between two statements in place of one."""
        text = self.source.text
        before = text[text.rfind("\n", 0, start) + 1 : start]
        line_end = text.find("\n", end)
        after = text[end : line_end if line_end >= 0 else len(text)].strip()
        if before.strip() or after.startswith(";"):
            return "; "
        comment = f"  {after}" if after.startswith(("# noqa", "# type:")) else ""
        newline = "\r\n" if text[:line_end].endswith("\r") else "\n"
        return f"{comment}{newline}{before}"

    def _rewrite_import_from(self, statement: ast.ImportFrom, renamed: dict[str, str]) -> None:
        start, end = self.source.span(statement)
        module = statement.module
        if statement.level or module is None:
            return
        if any(alias.name == "*" for alias in statement.names):
            if any(old.startswith(f"{module}.") for old in self.table.names):
                self.note(start, f"names of {module} moved, which a star imports")
            new = self.table.resolve(module)
            targets = [(new, "*", "*")]
        else:
            targets = [self._target(module, alias, renamed) for alias in statement.names]
            for alias in statement.names:
                if self.table.is_emptied(f"{module}.{alias.name}"):
                    self.note(start, f"parts of {module}.{alias.name} moved")
        old = [(module, alias.name, _written(alias)) for alias in statement.names]
        if [target[::2] for target in targets] == [one[::2] for one in old]:
            return
        homes = {home for home, _, _ in targets}
        head = re.match(r"from[ \t]+([\w.]+)", self.source.text[start:end])
        if len(homes) == 1 and "" not in homes and head is not None and head[1] == module:
            self.edits[(start + head.start(1), start + head.end(1))] = targets[0][0]
            for alias, target in zip(statement.names, targets, strict=True):
                if target[2] != _written(alias):
                    self.edits[self.source.span(alias)] = target[2]
            return
        groups: dict[str, list[str]] = {}
        for home, _, words in targets:
            groups.setdefault(home, []).append(words)
        lines = []
        for home, group in sorted(groups.items()):
            verb = f"from {home} import" if home else "import"
            lines.append(f"{verb} {', '.join(group)}")
        comments = [
            token.string
            for token in _tokens(self.source.text[start:end])
            if token.type == tokenize.COMMENT
        ]
        if comments:
            self.note(start, f"a comment left its line: {' '.join(comments)}")
            lines[-1] += "  " + "  ".join(comments)
        self.edits[(start, end)] = self._separator(start, end).join(lines)

    def _target(
        self, module: str, alias: ast.alias, renamed: dict[str, str]
    ) -> tuple[str, str, str]:
        """Return the module that has a name now, the name, and the words that import it."""
        home, _, name = self.table.resolve(f"{module}.{alias.name}").rpartition(".")
        local = alias.asname or renamed.get(alias.name, alias.name)
        if name == alias.name:
            return home, name, _written(alias)
        return home, name, name if local == name else f"{name} as {local}"

    def _note_attributes(self, scopes: Scopes) -> None:
        """Note calls such as `setattr(module, "name", ...)` about a name that moved."""
        for scope, first, name in scopes.calls:
            parts = ast.unparse(first).split(".")
            owner = scope.owner(parts[0])
            binding = next(iter(owner.bindings[parts[0]]), None) if owner else None
            if binding is None:
                continue
            full = ".".join([binding.target, *parts[1:], name])
            match = self.table.match(full)
            if match is not None and match.length == full.count(".") + 1:
                offset = self.source.span(first)[0]
                self.note(offset, f"{name!r} of {full}, which is {match.path} now")

    def _note_tails(self, tree: ast.Module) -> None:
        """Note strings that name a moved module without the first part of its path."""
        for node in ast.walk(tree):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node]
            joins = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            for side in sides:
                if not isinstance(side, ast.Constant) or not isinstance(side.value, str):
                    continue
                words = re.sub(r"(/__init__)?\.py$", "", side.value.strip("/")).replace("/", ".")
                is_path = re.fullmatch(r"[a-z_]\w*(\.[A-Za-z_]\w*)+", words) and not words.endswith(
                    (".json", ".yaml", ".yml", ".md", ".csv", ".toml", ".txt", ".html", ".svg")
                )
                is_file = joins and re.fullmatch(r"[a-z_]\w*", words)
                for root in self.table.roots if is_path or is_file else []:
                    path = f"{root}.{words}"
                    if self.table.match(path) or (joins and self.table.is_emptied(path)):
                        self.note(self.source.span(side)[0], f"{side.value!r} may be {path}")

    # Texts

    def words(self, start: int, end: int) -> None:
        """Rewrite dotted paths, and imports that no syntax tree shows, between two offsets."""
        text = self.source.text
        spans: list[tuple[int, int]] = []
        for match in self.imports.finditer(text, start, end):
            if self._is_closed(*match.span()):
                continue
            new = self._import_in_words(match)
            if new is not None:
                spans.append(match.span())
                self.edits[match.span()] = new
        for match in self.dotted.finditer(text, start, end):
            new = self._moved_words(match[0])
            free = not any(a < match.end() and match.start() < b for a, b in spans)
            if new != match[0] and free and not self._is_closed(*match.span()):
                self.edits[match.span()] = new
        for match in self.escaped.finditer(text, start, end):
            new = self.table.resolve(match[0].replace(match[1], "."))
            if new != match[0].replace(match[1], ".") and not self._is_closed(*match.span()):
                self.edits[match.span()] = new.replace(".", match[1])
        for match in self.paths.finditer(text, start, end) if self.texts else ():
            new = self._moved_path(match[0])
            if new != match[0] and not self._is_closed(*match.span()):
                self.edits[match.span()] = new

    def _is_closed(self, start: int, end: int) -> bool:
        return any(a < end and start < b for a, b in (*self.closed, *self.edits))

    def _import_in_words(self, match: re.Match[str]) -> str | None:
        """Return an import inside a text, unless its module by itself changes.

        Several stay on their line if it has anything else, such as the quotes of a string.
        """
        aliases = []
        for words in re.split(r",\s*", (match[2] or match[3]).strip().rstrip(",")):
            name, _, local = words.strip().partition(" as ")
            aliases.append(ast.alias(name, local.strip() or None))
        targets = [self._target(match[1], alias, {}) for alias in aliases]
        homes = {home for home, _, _ in targets}
        same = [words for _, _, words in targets] == [_written(alias) for alias in aliases]
        if same and homes in ({self.table.resolve(match[1])}, {match[1]}):
            return None if homes != {match[1]} else match[0]
        if not same:
            self.note(match.start(), f"imported under its old name: {match[0]}")
        groups: dict[str, list[str]] = {}
        for home, _, words in targets:
            groups.setdefault(home, []).append(words)
        text, (start, end) = self.source.text, match.span()
        before = text[text.rfind("\n", 0, start) + 1 : start]
        is_single = not before.strip() and text[end : end + 1] in ("", "\n", "\r")
        return (f"\n{before}" if is_single else "; ").join(
            f"from {home} import {', '.join(words)}" if home else f"import {', '.join(words)}"
            for home, words in sorted(groups.items())
        )

    def _moved_words(self, words: str) -> str:
        module, colon, attribute = words.partition(":")
        match = self.table.match(words.replace(":", "."))
        if match is None:
            return words
        rest = words.replace(":", ".").split(".")[match.length :]
        if not colon:
            return ".".join([match.path, *rest])
        covered = module.count(".") + 1
        if match.length <= covered:
            size = covered - match.length
            return ".".join([match.path, *rest[:size]]) + colon + attribute
        if match.name is None:
            return words
        return match.module + colon + ".".join([match.name, *rest])

    def _moved_path(self, path: str) -> str:
        stem, dot, suffix = path.partition(".")
        parts = stem.split("/")
        modules = parts if suffix in ("", "py") else parts[:-1]
        match = self.table.match(".".join(modules))
        if match is None or match.name is not None or match.path.split(".")[0] != parts[0]:
            return path
        return "/".join([*match.path.split("."), *parts[match.length :]]) + dot + suffix

    def remains(self) -> None:
        """Note each place that still names a moved module, however it is written."""
        for match in self.loose.finditer(self.source.text):
            if any(a < match.end() and match.start() < b for a, b in self.edits):
                continue
            path = re.sub(r"\\*\.|\[\.\]|/", ".", match[0])
            path = re.sub(r"\.py$", "", path)
            inside = [span for span in self.closed if span[0] <= match.start() < span[1]]
            if inside:
                continue
            if self.table.match(path) or self.table.is_emptied(path):
                self.note(match.start(), f"not changed: {match[0]}")


def _written(alias: ast.alias) -> str:
    return alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"


def _tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(code).readline)
    except (tokenize.TokenError, IndentationError):
        return


def _strings(source: Source, code: str) -> Iterator[tuple[int, int]]:
    """Where strings and comments of Python code begin and end; a formatted one is one span."""
    depth, begin = 0, 0
    for token in _tokens(code):
        start = source.offset(*token.start, is_utf8=False)
        end = source.offset(*token.end, is_utf8=False)
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            begin, depth = (begin if depth else start), depth + 1
        elif name == "FSTRING_END":
            depth -= 1
            if not depth:
                yield begin, end
        elif name in ("STRING", "COMMENT") and not depth:
            yield start, end


def _blocks(text: str) -> str:
    """Return the Python blocks of a Markdown page that parse, on their lines, and nothing else."""
    kept = list(re.sub(r"[^\n]", " ", text))
    for block in FENCE.finditer(text):
        try:
            ast.parse(block[1])
        except SyntaxError:
            continue
        kept[block.start(1) : block.end(1)] = block[1]
    return "".join(kept)


def rewrite(
    table: Table, text: str, suffix: str, texts: bool = False, module: str | None = None
) -> Rewriting:
    """Rewrite the text of one file.

    Args:
        table: Rows, all of which apply at once.
        text: The file, with its own ends of lines.
        suffix: The ending of its name, with the dot.
        texts: Whether paths of files change as well.
        module: The dotted path of a Python file: a name that it defines itself takes its new name.
    """
    rewriting = Rewriting(table, text, texts, module)
    source = rewriting.source
    if suffix == ".py":
        try:
            rewriting.python(text)
        except SyntaxError as error:
            rewriting.notes.append((error.lineno or 1, "cannot be parsed: rewritten as a text"))
            rewriting.words(0, len(text))
        else:
            for start, end in list(_strings(source, text)):
                rewriting.words(start, end)
    else:
        if suffix == ".md":
            rewriting.python(_blocks(text))
        rewriting.words(0, len(text))
    rewriting.remains()
    return rewriting


def files(paths: list[Path], skipped: list[Path]) -> Iterator[Path]:
    """Yield the files to rewrite, those of folders in order of their names."""
    absent = {path.resolve() for path in skipped}
    for path in paths:
        if path.is_file():
            candidates = [path]
        elif path.is_dir():
            candidates = sorted(
                file
                for file in path.rglob("*")
                if file.suffix in TEXTS | {".py"}
                and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
        else:
            raise FileNotFoundError(f"no file and no folder: {path}")
        for file in candidates:
            resolved = file.resolve()
            is_absent = absent & {resolved, *resolved.parents}
            if file.is_file() and not file.is_symlink() and not is_absent:
                yield file


def dotted(path: Path) -> str:
    """Return the dotted path of a file below the packages that it lies in."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.resolve().parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Rewrite files, print them and what is left, and return the exit status."""
    here = Path(__file__)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--table", type=Path, default=here.with_name("renames.tsv"))
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if files would")
    parser.add_argument("--texts", action="store_true", help="also rewrite paths of files")
    parser.add_argument("--skip", type=Path, action="append", default=[], metavar="PATH")
    parser.add_argument("--once", action="store_true", help="allow rows that a second run repeats")
    options = parser.parse_args(arguments)
    table = Table.load(options.table)
    if not table.roots:
        print(f"{options.table} has no rows")
        return 0
    if table.chained and not options.once:
        print(
            "A second run would move these again, so say --once, and run once:",
            ", ".join(table.chained),
            file=sys.stderr,
        )
        return 2
    changed, notes = 0, []
    renamed: dict[tuple[str, str], str] = {}
    mentions: dict[tuple[str, str], Path] = {}
    for path in files(options.paths, [*options.skip, options.table, here]):
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        mentions |= dict.fromkeys(re.findall(r"\b(\w+)(?=\.(\w+))", text), path)
        if not any(root in text or root in path.parts for root in table.roots):
            continue
        rewriting = rewrite(table, text, path.suffix, options.texts, dotted(path))
        new = rewriting.result()
        notes += [(path, *note) for note in sorted(set(rewriting.notes))]
        stem = path.parent.name if path.stem == "__init__" else path.stem
        renamed |= {(stem, name): new for name, new in rewriting.local}
        if new != text:
            changed += 1
            print(f"{'would change' if options.check else 'changed'} {path}")
            if not options.check:
                path.write_bytes(new.encode("utf-8"))
    for path, line, message in notes:
        print(f"{path}:{line}: {message}")
    for pair in sorted(renamed.keys() & mentions.keys()):
        print(f"{mentions[pair]}: {'.'.join(pair)} may be an import that is {renamed[pair]} now")
    print(f"{changed} files, {len(notes)} places to look at")
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
