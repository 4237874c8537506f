"""A locked query in a few words: its sensitivity and its mechanism."""

from typing import Any


def describe_sensitivity(sensitivity: float | dict[str, Any]) -> str:
    """A number, or a law's range: `law: 0.01 to 0.4`."""
    return (
        f"law: {sensitivity['smallest']:.4g} to {sensitivity['largest']:.4g}"
        if isinstance(sensitivity, dict)
        else f"{sensitivity:.4g}"
    )


def describe_mechanism(mechanism: dict[str, Any]) -> str:
    """A locked mechanism with its fields to four digits: `Gaussian(noise_multiplier=3.73)`."""
    fields = {name: value for name, value in mechanism.items() if name != "class"}
    inner = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields.items()
    )
    return f"{mechanism['class']}({inner})"
