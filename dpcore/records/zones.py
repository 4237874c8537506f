"""Zones: where moments with an offset count, and which version of their rules is in force here.

`zoneinfo` reads a zone's rules from the system's folders, and from the distribution tzdata where no
folder has the zone.
"""

import contextlib
import hashlib
from importlib import metadata
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from dpcore.errors import ParameterError


def zone_named(name: str | None) -> ZoneInfo | None:
    """The zone that IANA calls so; None for None.

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
    """The version of a zone's rules; a digest of the rules themselves where no version is stated.

    Raises:
        PackageNotFoundError: neither a folder of the system nor tzdata has the zone.
    """
    folder = next((Path(f) for f in TZPATH if Path(f, name).is_file()), None)
    if folder is None:
        return metadata.version("tzdata")
    with contextlib.suppress(OSError), (folder / "tzdata.zi").open() as file:
        return file.readline().removeprefix("# version").strip()
    return f"SHA-256 {hashlib.sha256((folder / name).read_bytes()).hexdigest()}"
