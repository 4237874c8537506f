"""Inputs from outside a run: public records, and what a session published before.

Only the public part of a learner gets them, as it gets what earlier releases of the run published:
they are the same for neighbours. So a bound that holds for all `args` holds whatever they are, and
no cost changes. Whom public records are about, nothing here can know: that is a premise.
"""

import hashlib

import attrs

from dpcore.claims.plan.request import PublicInput, Request
from dpcore.domain.domain import Domain, Table
from dpcore.errors import SourceError, below, need
from dpcore.records import PublicRecords
from dpcore.source import DeclaredSource, Source
from dpcore.transcript.isolated_copies import Before

_MOST = 1 << 26  # numbers of public records: every release that starts from them has a copy


def read_public(domain: Domain, name: str, table: Table | Source | DeclaredSource) -> PublicInput:
    """Public records, through the intake of private ones; all must fit the domain.

    Raises:
        SourceError: a column is missing or of another type than is declared, a record does not fit,
            or there are none, or too many.
    """
    # imported where there are some: most runs have no public records
    from dpcore.encoding.admission import admit_to
    from dpcore.encoding.blocks import Encoding, in_memory

    # The columns by itself are shared with the private records: not their number, nor whose they
    # are. Conditions are for private rows: of public ones, all count.
    plain = attrs.evolve(domain, exact=None, limit=None, people=None, groups={}, only={})
    admitted = admit_to(plain, table, "refuse")
    columns = in_memory(admitted, plain) if isinstance(admitted, Source) else admitted
    # What starts from them reads what is encoded by itself.
    records = Encoding(domain=plain, refuse=True, numbers=())(columns)
    need(
        0 < records.features.size <= _MOST,
        SourceError,
        f"the public records {name!r} must be one record or more, of {_MOST} encoded numbers at "
        f"most, not {records.features.size}",
    )
    digest = _digest(plain, columns)
    return PublicInput(
        copy=Before(PublicRecords(records=records)).copy,
        premises=(
            f"none of the public records {name!r} (SHA-256 {digest}) is about a person of the "
            f"private records",
        ),
        digest=digest,
    )


def read_inputs(request: Request) -> dict[str, PublicInput]:
    """Return what a request declares as public, by name, read where no one has read it yet.

    Raises:
        SourceError: public records cannot be read, or do not fit.
    """
    inputs = {}
    for name, item in request.public.items():
        with below("data", "public", name):
            inputs[name] = (
                item if isinstance(item, PublicInput) else read_public(request.domain, name, item)
            )
    return inputs


def _digest(domain: Domain, table: Table) -> str:
    from dpcore.encoding.blocks import Encoding

    # How a norm scales a row may differ by a rounding between machines; encoding by itself does
    # not.
    plain = attrs.evolve(domain, norm=None, exact=None, limit=None, people=None, groups={}, only={})
    records = Encoding(domain=plain, refuse=False)(table)
    # It is in locks: a format of its own, whatever else digests look like.
    digest = hashlib.sha256()
    for array in (records.features, records.labels):
        digest.update(f"{array.shape} ".encode() + array.astype("<f8").tobytes())
    return digest.hexdigest()
