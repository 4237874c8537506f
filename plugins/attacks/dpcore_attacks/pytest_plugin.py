"""The pytest plugin: one error rate for all claims of a session, and files for machines.

pytest loads it by itself where dpcore-attacks is installed. It acts only on tests that
`dpcore_attacks.claims` made, and imports what attacks only where there are some.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

if TYPE_CHECKING:
    from dpcore_attacks.black_box.claims import ClaimUnderTest

_FRACTION = pytest.StashKey[float]()
_MARK = "dpcore_claim"
_PROPERTY = "dpcore_attack"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for the files that are written, and for fresh seeds of nightly runs."""
    group = parser.getgroup("dpcore attacks")
    group.addoption("--attacks-json", type=Path, help="Write all attacks to this file as JSON.")
    group.addoption("--attacks-sarif", type=Path, help="Write them to this file as SARIF.")
    group.addoption("--attacks-seed", type=int, help="Seed of all attacks, in place of their own.")


def pytest_configure(config: pytest.Config) -> None:
    """Collect reports where a file is asked for; a worker of several leaves that to its parent."""
    files = config.getoption("--attacks-json"), config.getoption("--attacks-sarif")
    if any(files) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Files(json_file=files[0], sarif_file=files[1]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Give each claim an equal proportion of one error rate."""
    claims = sum(_claim(item) is not None for item in session.items)
    if claims:
        from dpcore_attacks.black_box.attack import ERROR

        session.config.stash[_FRACTION] = ERROR / claims


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Attack the claim of a test that makes one; any other test is left to pytest."""
    claim = _claim(pyfuncitem)
    if claim is None:
        return None
    from dpcore_attacks.black_box.report import sarif_result

    config = pyfuncitem.config
    report = claim.attack(config.stash[_FRACTION], config.getoption("--attacks-seed"))
    data = {"report": report.to_dict(), "result": sarif_result(report)}
    pyfuncitem.user_properties.append((_PROPERTY, json.dumps(data)))
    if report.exit_code:
        pytest.fail(report.describe(), pytrace=False)
    return True


@attrs.define(eq=False)
class _Files:
    """Reports of a session, and where they are written at its end."""

    json_file: Path | None
    sarif_file: Path | None
    attacks: list[dict[str, Any]] = attrs.field(factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test said of its attack."""
        if report.when == "call":
            texts = [value for name, value in report.user_properties if name == _PROPERTY]
            self.attacks += [json.loads(str(text)) for text in texts]

    def pytest_sessionfinish(self) -> None:
        """Write the files that were asked for."""
        if self.json_file is not None:
            reports = [attack["report"] for attack in self.attacks]
            self.json_file.write_text(json.dumps({"attacks": reports}, indent=2), "utf-8")
        if self.sarif_file is not None:
            from dpcore_attacks.black_box.report import sarif_of

            results = [attack["result"] for attack in self.attacks]
            self.sarif_file.write_text(json.dumps(sarif_of(results), indent=2), "utf-8")


def _claim(item: pytest.Item) -> ClaimUnderTest | None:
    return getattr(getattr(item, "obj", None), _MARK, None)
