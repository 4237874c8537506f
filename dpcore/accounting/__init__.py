"""Accounting: what several releases cost together, filters, and calibration to a target."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcore.accounting.calibration import Calibrated as Calibrated, calibrate as calibrate

_HOME = {"Calibrated": "calibration", "calibrate": "calibration"}


# Imported on first use, since calibration imports every accountant.
def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
