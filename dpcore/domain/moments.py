"""Moments as days since 1970-01-01, the zones in which they count, and the versions of their rules.

`zoneinfo` reads a zone's rules from the system's folders, and from the distribution tzdata where no
folder has the zone.
"""

import contextlib
import hashlib
import math
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH, ZoneInfo

import numpy as np

from dpcore.errors import ParameterError

EPOCH = date(1970, 1, 1).toordinal()
_MICROSECONDS = 86400 * 10**6  # of a day: finer times are cut off
_DAY = {"W": (7, 1), "D": (1, 1), "h": (1, 24), "m": (1, 1440), "s": (1, 86400)} | {
    unit: (1, 86400 * 1000**power)
    for power, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), start=1)
}


def days_of_moment(moment: Any, zone: tzinfo | None = None, offsets: str | None = None) -> float:
    """Whole days are exact; the rest of a day is a quotient that never reaches the next one."""
    offset = moment.utcoffset()
    if offsets == ("required" if offset is None else "none"):
        return math.nan
    microseconds = (
        (moment.hour * 60 + moment.minute) * 60 + moment.second
    ) * 10**6 + moment.microsecond
    if offset is not None:
        # The moment counts in UTC, so that the zone comes off before days are counted.
        microseconds -= ((offset.days * 86400) + offset.seconds) * 10**6 + offset.microseconds
    whole_days, remainder = divmod(microseconds, _MICROSECONDS)
    if offset is None or zone is None:
        return _within_day(moment.toordinal() - EPOCH + whole_days, remainder)
    # Out of the calendar, this raises: the moment is then no date.
    midnight = datetime.fromordinal(moment.toordinal() + whole_days).replace(tzinfo=zone)
    local = zone.fromutc(midnight + timedelta(microseconds=remainder))
    return days_of_moment(local.replace(tzinfo=None))


def _within_day(whole_days: int, microseconds: int) -> float:
    return min(whole_days + microseconds / _MICROSECONDS, math.nextafter(whole_days + 1, -math.inf))


def in_utc(cell: Any) -> datetime | None:
    """Return an instant as a moment with an offset; None where it is none, or not in Python's
    calendar.
    """
    with contextlib.suppress(OverflowError):
        elapsed = timedelta(0, 0, _microseconds(cell))
        return None if np.isnat(cell) else datetime(1970, 1, 1, tzinfo=UTC) + elapsed
    return None


def _microseconds(cell: Any) -> int:
    """Since 1970-01-01 in a unit of at most a week; finer times are cut off."""
    unit, count = np.datetime_data(cell.dtype)
    times, per_day = _DAY[unit]
    microseconds: int = int(cell.astype(np.int64)) * count * times * _MICROSECONDS // per_day
    return microseconds


def days_of_ticks(cell: Any) -> float:
    """Days since 1970-01-01 of a moment of numpy, which has no offset; NaN if it is none."""
    if np.isnat(cell):
        return math.nan
    unit, count = np.datetime_data(cell.dtype)
    if unit in _DAY:
        whole_days, remainder = divmod(_microseconds(cell), _MICROSECONDS)
        return _within_day(whole_days, remainder)
    if unit not in "YM":
        return math.nan
    ticks = int(cell.astype(np.int64)) * count
    years, months = (ticks, 0) if unit == "Y" else divmod(ticks, 12)
    # Beyond Python's calendar only the sign matters: columns clip to their range.
    if not 1 <= 1970 + years <= 9999:
        return math.copysign(math.inf, years)
    return float(date(1970 + years, months + 1, 1).toordinal() - EPOCH)


def zone_named(name: str | None) -> ZoneInfo | None:
    """Return the zone that IANA calls so; None for None.

    Raises:
        ParameterError: this machine knows no such zone.
    """
    if name is None:
        return None
    # `localtime` and other sets of rules begin with a small letter: what they mean is a machine's.
    with contextlib.suppress(Exception):  # whatever `zoneinfo` says of a name that is none
        return ZoneInfo(name if name[0].isupper() else "")
    raise ParameterError("dates", "a time zone known here, such as Europe/Berlin", "zone", name)


def zone_rules(name: str) -> str:
    """Return the version of a zone's rules; a digest of the rules themselves where no version is
    stated.

    Raises:
        PackageNotFoundError: neither a folder of the system nor tzdata has the zone.
    """
    from importlib import metadata  # slow to import, and needed where a zone is declared

    folder = next((Path(f) for f in TZPATH if Path(f, name).is_file()), None)
    if folder is None:
        return metadata.version("tzdata")
    with contextlib.suppress(OSError), (folder / "tzdata.zi").open() as file:
        return file.readline().removeprefix("# version").strip()
    return f"SHA-256 {hashlib.sha256((folder / name).read_bytes()).hexdigest()}"
