"""Sharing: a ledger's file that several users of one machine may spend from.

All of them are in the group of the folder. SQLite makes its rollback journal next to the file, with
the file's mode, and any of the users may have to remove it after another's crash. So the folder
must be writable for the group, without the sticky bit; it must not be for everybody, who could then
put another file in the ledger's place. The file gets the folder's group and mode 0660.
"""

import os
import stat
from pathlib import Path

from dpcore.errors import DpcoreError, need

OWN, SHARED = 0o600, 0o660
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs"}
_MOUNTS = Path("/proc/self/mounts")


class SharingError(DpcoreError):
    """A folder is not fit for a ledger that users share."""


def share(path: Path) -> None:
    """Give a new file the folder's group, readable and writable for it.

    Raises:
        SharingError: the folder is not the group's, or everybody's.
        OSError: the system does not let this user.
    """
    require_shareable(path.parent)
    os.chown(path, -1, path.parent.stat().st_gid)
    os.chmod(path, SHARED)


def require_shareable(folder: Path) -> None:
    """Raise `SharingError` unless the folder's group, and no one else, may add and remove files."""
    need(os.name == "posix", SharingError, "users can share a ledger on POSIX systems only")
    mode = folder.stat().st_mode
    octal_mode = f"{stat.S_IMODE(mode):04o}"
    need(
        not (mode & stat.S_IWOTH),
        SharingError,
        f"{folder} may be written by everybody (mode {octal_mode}): `chmod o-w` it",
    )
    # Setgid gives new files the folder's group. The sticky bit would keep a user from removing the
    # rollback journal that another one's crash left behind.
    need(
        mode & stat.S_IRWXG == stat.S_IRWXG and not (mode & stat.S_ISVTX) and mode & stat.S_ISGID,
        SharingError,
        f"{folder} needs mode 2770, so that its group may add and remove files, which belong "
        f"to the group; it has {octal_mode}",
    )


def remote(path: Path, mounts: str | None = None) -> str:
    """Return the kind of network file system that holds a path; empty where none is known to.

    Args:
        mounts: The system's list of mounts; read where None.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(errors="replace")
        except OSError:
            return ""
    place, kind, longest = path.absolute(), "", -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount_point = Path(fields[1].replace("\\040", " "))
        # The longest mount point above a path holds it; of equal ones the later one counts.
        if place.is_relative_to(mount_point) and len(mount_point.parts) >= longest:
            kind, longest = fields[2], len(mount_point.parts)
    return kind if kind in _REMOTE else ""


def missing_access(path: Path) -> str:
    """Return what this user lacks to spend from a ledger, and the way out; empty if nothing is
    known.
    """
    folder = path.parent
    checks = (
        (folder, os.X_OK, "enter"),
        (path, os.R_OK, "read"),
        (path, os.W_OK, "write"),
        (folder, os.W_OK, "write"),
    )
    try:
        if not path.exists():
            return ""
        lacking = [f"{verb} {place}" for place, mode, verb in checks if not os.access(place, mode)]
    except OSError:
        lacking = [f"enter {folder}"]
    if not lacking:
        return ""
    return (
        f"; this user may not {' or '.join(lacking)}: ask its owner to share it "
        f"(`dpcore ledger create --shared` in a folder of a common group, mode 2770)"
    )
