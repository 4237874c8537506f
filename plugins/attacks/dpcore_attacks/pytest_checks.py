"""The conformance suite as a parametrised pytest check, one case a law. The only module here that
needs pytest.

In a plugin's own tests:

    import my_plugin
    from dpcore_attacks.pytest_checks import checks

    test_conformance = checks(my_plugin)
"""

from collections.abc import Callable
from functools import cache
from types import ModuleType

from dpcore.registry.registry import Registry
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import LAWS, Report, examine
from dpcore_attacks.laws.law import Law, Outcome


def checks(
    plugin: ModuleType, *others: ModuleType, effort: float = 0.5, seed: int = 0
) -> Callable[[Law], None]:
    """Return a test function with one case per law.

    Args:
        plugin: The module that the plugin's entry point names.
        others: Modules whose components its examples use; the core's are always there.
        effort: Of all attacks and statistical checks, as a multiple of the default one.
    """
    import pytest  # nothing else in the conformance suite needs it

    # One examination serves all cases: pytest asks it once for each law.
    @cache
    def report() -> Report:
        registry = Registry.of(plugin, *others)
        return examine(plugin.__name__, registry, Effort().times(effort), seed)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.id)
    def test_law(law: Law) -> None:
        verdicts = [verdict for verdict in report().verdicts if verdict.law == law]
        broken = [f"{v.subject}: {v.detail}" for v in verdicts if v.failed or v.untested]
        assert not broken, f"{law.id}: {law.sentence}\n" + "\n".join(broken)
        if not any(verdict.outcome is Outcome.PASSED for verdict in verdicts):
            reasons = dict.fromkeys(v.detail for v in verdicts)
            pytest.skip("; ".join(reasons) or "the plugin provides nothing that it is about")

    return test_law
