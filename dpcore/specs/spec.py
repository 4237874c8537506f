"""Spec: one YAML file to frozen objects. Anyone who reads the file can state the guarantee.

What the text by itself says is checked before anything is imported that a right spec needs: a
mistyped key is reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dpcore.checks import describe_type
from dpcore.claims.plan.cost_statement import Limits
from dpcore.errors import DpcoreError, need
from dpcore.specs.columns import with_lists
from dpcore.specs.declared import Declared, Point, declared, releases
from dpcore.specs.grammar import Csv
from dpcore.specs.rules import with_rules
from dpcore.yaml.located import Node, locate_errors, of_plain, parse, place, read

if TYPE_CHECKING:
    from dpcore.claims.plan.plan import Plan
    from dpcore.claims.plan.request import Request
    from dpcore.metrics.base import Metric
    from dpcore.metrics.groups import Groups
    from dpcore.randomness import PublicRandomness
    from dpcore.registry.registry import Registry
    from dpcore.source import Location


@attrs.frozen(kw_only=True, eq=False)
class Spec:
    """A validated spec: what to ask for, and where the records stand.

    Args:
        text: The spec as plain data, for the lock.
        points: The spec as it was read, once for every point of a sweep.
        request: What is priced. A sweep's points are releases one after the other.
        source: As written: a path relative to the spec or LOADER:NAME; or a component.
        path: Of its file; None for one rebuilt from a lock.
        metrics: What the operator wants to see of the hold-out without paying, by name.
        groups: By which groups; None for none.
        ledger: Place of the ledger that every run is charged to, if any.
        analyst: Whose limit inside it every run is charged to, too, if any.
        registry: Where every component was found.
        limits: What a run may need of the machine; the text says nothing of it.
    """

    text: Mapping[str, Any]
    points: tuple[Point, ...]
    request: Request
    source: Location | str
    path: Path | None
    csv: Csv
    metrics: Mapping[str, Metric]
    groups: Groups | None
    ledger: str | None
    analyst: str | None
    registry: Registry
    limits: Limits = attrs.field(factory=Limits)

    @property
    def folder(self) -> Path | None:
        """The folder that its paths are relative to; None where the spec is no file."""
        return None if self.path is None else self.path.parent

    def price(self, randomness: PublicRandomness | None = None, *, reproduce: bool = False) -> Plan:
        """Return the priced plan, at the spec's pinned randomness, else at `randomness`, else at
        fresh ones.

        Args:
            reproduce: Price refuted and conditional claims as printed, without any guarantee.

        Raises:
            NoClaimError: no guarantee can be stated.
            SpecError: components do not fit together, at the place of the one that does not.
        """
        from dpcore.runs.price import price

        with self.locate_errors():
            randomness = self.request.randomness or randomness
            return price(
                self.request,
                registry=self.registry,
                randomness=randomness,
                reproduce=reproduce,
                **attrs.asdict(self.limits),
            )

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """What is raised inside about a part of the request says where it is in the file.

        A release is counted over all points of a sweep; a value that a sweep puts in is at fault
        where the sweep lists it.
        """
        try:
            yield
        except DpcoreError as error:
            node = self.points[0].node
            match error.steps:
                # Pricing counts releases over all points; the file has those of one point.
                case ("releases", number, *rest) if int(number) < len(self.request.releases):
                    point, index = divmod(int(number), len(releases(node)))
                    node = self.points[point].node
                    error.steps = (*releases(node)[index][0], *rest)
            place(error, node)
            raise


_START = "; `dpcore examples copy statistics.clinic .` writes a spec to start from"


def load_spec(path: Path | str, registry: Registry | None = None) -> Spec:
    """Read and validate a spec file. No data is opened.

    Raises:
        SpecError: at file:line:column.
    """
    need(
        isinstance(path, Path | str), "load_spec", "the path of a spec", "path", describe_type(path)
    )
    return _spec(read(Path(path), _START), Path(path), registry)


def spec_of_text(text: str, name: str, registry: Registry | None = None) -> Spec:
    """Read and validate a spec from text; its paths are relative to no folder.

    Raises:
        SpecError: at name:line:column.
    """
    return _spec(parse(text, name), None, registry)


def spec_of_plain(data: Any, name: str, registry: Registry | None = None) -> Spec:
    """Validate a spec that is plain data already, such as a lock's: no file is read for it.

    Raises:
        SpecError: the data are no valid spec; the keys that name a file to be put in their place
            (`categories_from`), and rules, are no keys of one.
    """
    node = of_plain(data, name)
    with locate_errors(node):
        return _with_components(declared(node), node, None, registry)


def _spec(node: Node, path: Path | None, registry: Registry | None) -> Spec:
    with locate_errors(node):
        # Category lists first, then rules: both leave plain values, so the lock holds what was
        # priced and needs no other file.
        node = with_rules(with_lists(node, None if path is None else path.parent), registry)
        return _with_components(declared(node), node, path, registry)


def _with_components(
    declaration: Declared, node: Node, path: Path | None, registry: Registry | None
) -> Spec:
    from dpcore.registry.registry import Registry
    from dpcore.specs.requested import evaluated, location_of, requested, require_measurable

    registry = Registry.default() if registry is None else registry
    # Imported late: a spec with a wrong key is refused before any plugin is loaded.
    source = location_of(node, registry)
    evaluations = evaluated(declaration, node, registry)
    request = requested(
        declaration, node, registry, evaluations, None if path is None else path.parent
    )
    require_measurable(evaluations, request)
    return Spec(
        text=node.plain(),
        points=declaration.points,
        request=request,
        source=source,
        path=path,
        csv=declaration.text.data.csv,
        metrics=evaluations.metrics if request.evaluation is None else {},
        groups=evaluations.groups,
        ledger=None if declaration.text.ledger is None else str(declaration.text.ledger),
        analyst=getattr(declaration.text.ledger, "analyst", None),
        registry=registry,
    )
