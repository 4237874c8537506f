"""The deployment record of a run: what registries of private releases ask for, as JSON.

All of it is the replayed lock's, so that it holds no fact beyond `public/`. What a run cannot know
is marked for the operator, who writes it down once.
"""

from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from dpcore.published.folder import Run
from dpcore.published.formats import paid_queries
from dpcore.published.phrases import describe_mechanism, describe_sensitivity
from dpcore_report.page import read_published

MARK = "OPERATOR: "
"""What a field begins with that the operator is to state."""

_UNKNOWN = {
    "name": "what the release is called",
    "owner": "who answers for it, and how to reach them",
    "purpose": "what it is for",
}
_WHO = {
    "curator": "who has the records and operator/",
    "recipients": "who gets public/; what is published may be passed on without a further cost",
}
_LINKS = {
    "data": "where they are described",
    "results": "where public/ is published",
    "contact": "where to report a privacy bug",
}


def deployment_record(
    folder: Path | str,
    *,
    published: date | None = None,
    memory: int | None = None,
    work: int | None = None,
) -> bytes:
    """Return the record of a published run, as JSON.

    Args:
        published: The day, which no file of `public/` holds; marked for the operator if None.
        memory, work: As for `replay`.

    Raises:
        ReplayError: the folder is damaged, of something else, or a rehearsal's.
        NoClaimError: the run guarantees nothing.
    """
    facts = _describe(read_published(folder, memory=memory, work=work))
    facts["dates"] = {
        "published": published.isoformat() if published else f"{MARK}the day",
        "data": f"{MARK}when the records were collected",
    }
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def _describe(run: Run) -> dict[str, Any]:
    claim, lock = run.guarantee, run.lock
    data = lock.spec["data"]
    # Registries ask for names, for the claim, for what was assumed, and for who sees what.
    return {
        "dpcore deployment record": 1,
        **_marked(_UNKNOWN),
        "data": {
            "description": f"{MARK}whose records they are, and how they were collected",
            "columns": {
                name: rule.describe() for name, rule in run.spec.request.domain.rules.items()
            },
            "records": data["domain"].get("records"),
        },
        "unit of privacy": "a person" if claim.adjacency.of_person else "a record",
        "relation": str(claim.adjacency),
        "relation in words": f"datasets that differ {claim.adjacency.describe()}",
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "status": claim.status.value,
        "mechanisms": [
            {
                "release": name,
                "query": query["query"],
                "asked at most": query["at_most"],
                "sensitivity": describe_sensitivity(query["sensitivity"]),
                "mechanism": describe_mechanism(query["mechanism"]),
            }
            for name, queries in {
                **lock.plan["releases"],
                "evaluation": _evaluations(lock.plan),
            }.items()
            for query in queries
        ],
        "accountant": claim.basis.accountant,
        "theorems": claim.basis.sources,
        "assumptions": {entry.name: entry.text for entry in claim.basis.assumptions},
        "public facts": [*claim.basis.premises, *claim.provenance.boundary_premises],
        "ledger": lock.spec.get("ledger"),
        "covers": lock.plan["guarantee"].get("covers"),
        "who may see what": _marked(_WHO),
        "software": lock.versions,
        "lock": {"format": lock.format, "digest": lock.digest},
        "links": _marked(_LINKS),
    }


def _evaluations(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at_most": 1, **evaluation} for evaluation in paid_queries(plan)]


def _marked(fields: dict[str, str]) -> dict[str, str]:
    return {name: f"{MARK}{words}" for name, words in fields.items()}
