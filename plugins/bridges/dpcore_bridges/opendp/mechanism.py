"""An OpenDP measurement as a mechanism: its noise, and the event that its privacy map implies."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Domain as OpenDPDomain, Measurement

from dpcore import Distance, Event, Needs, Query, Sensitivity
from dpcore.checks import positive
from dpcore.claims.mechanisms.noise.release import Executed
from dpcore.errors import ContractError, ParameterError, ReleaseError, need
from dpcore.mechanism import Arithmetic, Prepared, coordinates, finite, free, from_real
from dpcore.randomness import Stream
from dpcore_bridges.opendp.privacy_map import event_of

_PROBE = (1.0, 1)  # noise scale and size at which the metric is looked up


def _needs(mechanism: "FromOpenDP") -> Needs:
    """Return a sensitivity in the norm that the measurement's input metric is, and no stream."""
    # the metric is part of the measurement: it is looked up once, with no record at hand
    metric = mechanism.make(*_PROBE).input_metric
    for norm, same in (
        (Distance.L1, l1_distance(T=float)),
        (Distance.L2, l2_distance(T=float)),
        (Distance.LINF, linf_distance(T=float)),
    ):
        if metric == same:
            return Needs(distance=norm, stream=False)
    raise ParameterError("FromOpenDP", "l1, l2 or linf distance of floats", "input_metric", metric)


def _vectors(size: int) -> Iterator[OpenDPDomain]:
    """Yield the domains that hold every finite vector of `size` floats."""
    for length, nan in itertools.product((None, size), (False, True)):
        yield vector_domain(atom_domain(T=float, nan=nan), size=length)


@attrs.frozen(kw_only=True)
class FromOpenDP(Executed):
    """Noise from an OpenDP measurement on vectors of floats; costs what its map says.

    The statistic's real coordinates go in as a list, and a list of as many comes out. The
    sensitivity is the measurement's input distance: l1, l2 or linf, read off its metric. Its event
    is the worst one with that map (`event_of`). The noise is drawn by the measurement, not from the
    ask's stream, so that not even a rehearsal repeats it.

    Args:
        make: From the noise scale, in units of the statistic, and the number of coordinates to
            the measurement, for example `lambda scale, size: make_laplace(vector_domain(
            atom_domain(T=float, nan=False), size), l1_distance(T=float), scale)`. Its loss must
            fall in the scale.
        noise_scale: Calibrated if left out.
        arithmetic: `exact` if the measurement's sampler is: OpenDP's own are.
    """

    source: ClassVar[str] = "the privacy map of an OpenDP measurement"

    make: Callable[[float, int], Measurement]
    noise_scale: float = free(validator=positive)
    arithmetic: Arithmetic = "real"
    needs: Needs = attrs.field(  # type: ignore[misc]  # the measurement's, per instance
        init=False, default=attrs.Factory(_needs, takes_self=True)
    )

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "FromOpenDP":
        """noise_scale = scale * sensitivity."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def measurement(self, query: Query) -> Measurement:
        """Return the measurement for one query."""
        return self.make(self.noise_scale, query.real_size)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return what the map says of the sensitivity.

        Raises:
            NoClaimError: the map says nothing that is an event.
            ParameterError: the measurement does not take every vector of the query's size.
        """
        measurement = self.measurement(query)
        # a narrower domain may fail on a statistic, and a failure says about records
        need(
            any(measurement.input_domain == domain for domain in _vectors(query.real_size)),
            ParameterError,
            "FromOpenDP",
            f"a domain of all vectors of {query.real_size} floats, without bounds",
            "input_domain",
            measurement.input_domain,
        )
        return event_of(measurement, sensitivity.unit, sensitivity.adjacency)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Return the measurement, made once.

        It answers with a `ContractError` where it returns something else than as many numbers, and
        with a `ReleaseError` where it fails or overflows. No cause is shown: it may hold a value.
        """
        return _PreparedMeasurement(self.measurement(query))


@attrs.frozen(eq=False)
class _PreparedMeasurement:
    measurement: Measurement

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        exact = coordinates(value, query)
        try:
            answer = np.asarray(self.measurement(exact.tolist()), dtype=np.float64)
        except Exception as error:
            # its message may quote the value: only the kind of error is public
            raise ReleaseError(
                f"the OpenDP measurement of {query.name!r} failed ({type(error).__name__})"
            ) from None
        need(
            answer.shape == exact.shape,
            ContractError,
            f"the OpenDP measurement of {query.name!r} changed the shape",
        )
        return from_real(finite(answer, query), query)
