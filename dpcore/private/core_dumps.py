"""Core dumps: a process that holds records writes none when it crashes."""

import contextlib


def forbid_core_dumps() -> None:
    """Set the soft limit of this process, and of what it starts from now on, to 0.

    It stays so when the records are closed again, because memory that was freed still holds them.
    The hard limit is the host's, which may raise the soft one again.
    """
    with contextlib.suppress(ImportError):  # no such limit exists on this platform
        import resource

        hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))
