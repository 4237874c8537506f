"""A statement of a paper as a calculator: as printed and corrected, from public facts only."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from dpcore.errors import ParameterError, SpecError, nearest

Numbers = Mapping[str, float]

_EXACT = 2**53  # integers from here on are not all doubles
_NONE = "no number for these values: one is out of its range"


@attrs.frozen(kw_only=True, eq=False)
class Statement:
    """What `dpcore theory` computes. No claim of privacy rests on it.

    Args:
        title: What it bounds.
        source: Where it is printed.
        printed: As printed, with the constant 1 where none is given; None if it states no number.
        corrected: As proved; None if nothing is proved.
        wrong: What is wrong with it, or how loose it is.
        symbols: The paper's symbols, for the names of parameters.
        labels: What `printed` and `corrected` are called.
    """

    title: str
    source: str
    printed: Callable[..., float | Numbers] | None = None
    corrected: Callable[..., float | Numbers] | None = None
    wrong: str = ""
    symbols: Mapping[str, str] = attrs.field(factory=dict)
    labels: tuple[str, str] = ("printed", "corrected")

    def parameters(self) -> dict[str, Any]:
        """Names of what it needs, with defaults; `inspect.Parameter.empty` for none."""
        defaults: dict[str, Any] = {}
        for function in (self.printed, self.corrected):
            if function is not None:
                for name, parameter in inspect.signature(function).parameters.items():
                    defaults.setdefault(name, parameter.default)
        return defaults

    def values(self, parameters: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Evaluate both by their labels, each as named numbers.

        Args:
            parameters: Parameters by name or symbol: finite numbers >= 0, or whether.

        Raises:
            SpecError: one is unknown, missing or out of its range.
        """
        defaults = self.parameters()
        # A paper's symbol and the parameter's name mean the same.
        arguments = {self.symbols.get(key, key): value for key, value in parameters.items()}
        for key in arguments:
            if key not in defaults:
                raise SpecError(f"no parameter is called {key!r}{nearest(key, self.options())}")
        # A message names the option that the reader wrote, not the parameter behind it.
        arguments = {
            key: _fit(self.option(key), argument, defaults[key])
            for key, argument in arguments.items()
        }
        required_names = [
            k for k, default in defaults.items() if default is inspect.Parameter.empty
        ]
        if missing := [self.option(key) for key in required_names if key not in arguments]:
            raise SpecError(f"needs {', '.join(f'--{key}' for key in missing)}")
        versions = zip(self.labels, (self.printed, self.corrected), strict=True)
        return {
            label: _numbers(function, arguments)
            for label, function in versions
            if function is not None
        }

    def option(self, parameter: str) -> str:
        """Return the symbol of a parameter, or its name."""
        return {name: symbol for symbol, name in self.symbols.items()}.get(parameter, parameter)

    def options(self) -> list[str]:
        """Return every name and symbol that `values` takes."""
        return [*self.parameters(), *self.symbols]


def _fit(option: str, value: Any, default: Any) -> Any:
    """Return a parameter: a size of something, which is not negative, or whether something
    holds.
    """
    if isinstance(default, bool) or isinstance(value, bool):
        if isinstance(value, bool) and isinstance(default, bool):
            return value
        requirement = "true or false" if isinstance(default, bool) else "a number"
        raise ParameterError("the statement", requirement, option, value)
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ParameterError("the statement", "a finite number >= 0", option, value)
    return value if value < _EXACT else float(value)


def _numbers(
    function: Callable[..., float | Numbers], arguments: Mapping[str, Any]
) -> dict[str, float]:
    inputs = {
        key: arguments[key] for key in inspect.signature(function).parameters if key in arguments
    }
    try:
        # Outside its range a formula may fail or be NaN: both become one message.
        with np.errstate(all="ignore"):
            result = function(**inputs)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise SpecError(_NONE) from None
    numbers = result if isinstance(result, Mapping) else {"value": result}
    named_numbers = {str(key): float(value) for key, value in numbers.items()}
    if any(math.isnan(value) for value in named_numbers.values()):
        raise SpecError(_NONE)
    return named_numbers
