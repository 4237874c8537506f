"""A child process for code that no one vouches for: its exits, crashes and hangs become words."""

import contextlib
import io
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import attrs

_MEMORY = 8 << 30  # bytes of address space
_NOT_ASLEEP = "RDTt"  # runnable, waiting for a disk, or stopped by somebody else
PATIENCE = 60
"""Seconds for which code may sleep, with no processor time used and none waited for."""


@attrs.frozen
class Ended:
    """What became of a piece of work.

    Args:
        code: Exit code; None if the process ended before its work did.
        reason: Why it ended then, or empty.
    """

    code: int | None
    output: str
    errors: str
    reason: str = ""


def apart(
    work: Callable[[], int],
    seconds: int,
    patience: int = PATIENCE,
    *,
    waiting: Callable[[float], None] = lambda clock: None,
    show: Callable[[str], None] | None = None,
) -> Ended:
    """Run `work` in a forked process with limits on memory and processor time.

    How long it waits for a processor does not matter: only seconds in which it and all that it
    started sleep are counted against its patience.

    Args:
        work: Returns an exit code; what it prints is handed back.
        seconds: Of processor time.
        patience: Seconds of sleep in a row, after which it is ended.
        waiting: Called once a second, once the process is there, with the seconds since then.
        show: Gets what the work prints whenever it flushes its output; the rest is handed back.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_run_child, args=(work, seconds, sender, show is not None), daemon=False
    )
    child.start()
    sender.close()
    outcome: Ended | None = None
    clock: float | None = None
    idle = 0
    began = time.monotonic()
    while outcome is None:
        waiting(time.monotonic() - began)
        if receiver.poll(1.0):
            message = None
            with contextlib.suppress(EOFError, OSError):
                message = receiver.recv()
            if show is not None and isinstance(message, str):
                show(message)
                idle = 0
                continue
            outcome = None if message is None else Ended(*message)
            break
        spent = _asleep(child.pid)
        # only a family that sleeps and uses no time is idle; a waiting or running one is not
        idle = idle + 1 if spent is not None and spent == clock else 0
        clock = spent
        if idle >= patience:
            child.kill()
            child.join()
            reason = f"it slept for {patience} s and used no processor time (see --patience)"
            return Ended(None, "", "", reason)
    child.join(5)
    if child.is_alive():  # its work is done, and something in it does not let go
        child.kill()
        child.join()
    return outcome or Ended(None, "", "", _reason(child.exitcode, seconds))


class _Sending(io.StringIO):
    """Text that is sent to the parent whenever it is flushed."""

    def __init__(self, sender: Connection) -> None:
        super().__init__()
        self._sender, self._process, self._lock = sender, os.getpid(), threading.Lock()

    def flush(self) -> None:
        # what a plugin forks holds this too: two writers would mix their messages
        with self._lock:
            if self.getvalue() and os.getpid() == self._process:
                self._sender.send(self.getvalue())
                self.seek(0)
                self.truncate()


def _run_child(
    work: Callable[[], int], seconds: int, sender: Connection, sends: bool = False
) -> None:
    _limit(seconds)
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
    # a plugin's prints travel as text: it never writes to the user's terminal
    output = _Sending(sender) if sends else io.StringIO()
    errors = io.StringIO()
    code: int | None = None
    reason = ""
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = work()
    except MemoryError:
        reason = f"it needs more than {_MEMORY >> 30} GiB of memory"
    except BaseException as error:  # SystemExit of a component is one
        reason = f"its code raised {type(error).__name__}"
    sender.send((code, output.getvalue(), errors.getvalue(), reason))
    sender.close()
    os._exit(0)  # nothing that a component registered runs in the parent's name


def _leave_with(parent: int) -> None:
    """End this process when its parent has ended, however that came about."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # not on every system
        return
    # code can catch the first signal, and not the second one, five seconds later
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _asleep(pid: int | None) -> float | None:
    """Ticks that a process and all that it started have used; None if any of them runs, waits for a
    processor or a disk or was stopped, or if no one can say.
    """
    processes = _processes()
    family, ticks = {pid}, 0.0
    for _ in processes:  # as deep as it goes
        grown = family | {
            process for process, (parent, *_) in processes.items() if parent in family
        }
        if grown == family:
            break
        family = grown
    if pid not in processes:
        return None
    for process in family:
        if process not in processes:
            continue
        _, awake, spent = processes[process]
        if awake:
            return None
        ticks += spent
    return ticks


def _processes() -> dict[int | None, tuple[int, bool, float]]:
    """Parent, whether a thread of it is not asleep, and ticks used, by process."""
    processes: dict[int | None, tuple[int, bool, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _stat(folder / "stat")
            # a process may sleep in one thread and work in another
            threads = [_stat(path)[0] for path in folder.glob("task/[0-9]*/stat")]
            awake = any(state in _NOT_ASLEEP for state in threads)
            processes[int(folder.name)] = (
                int(fields[1]),
                awake,
                float(fields[11]) + float(fields[12]),
            )
    return processes


def _stat(path: Path) -> list[str]:
    # a command's name may hold spaces and brackets: fields are counted from its end
    return path.read_text("utf-8").rpartition(")")[2].split()


def _reason(code: int | None, seconds: int) -> str:
    if code is not None and code < 0:
        if -code == signal.SIGXCPU or -code == signal.SIGKILL:
            return f"it needs more than {seconds} s of processor time, or was killed"
        return f"it crashed ({signal.Signals(-code).name})"
    return f"its code ended the process with exit code {code}"
