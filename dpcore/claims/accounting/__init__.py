"""Accounting: what several releases cost together, filters, and calibration to a target.

No guarantee rests on a calibration of a program's own: dpcore-report brings `calibrate`.
"""

from typing import Any

from dpcore.siblings import sibling


def __getattr__(name: str) -> Any:
    if name not in ("Calibrated", "calibrate"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = sibling("report", "accounting.calibration", f"{__name__}.{name}")
    return getattr(module, name)
