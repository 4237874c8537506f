"""The command line, one file per command. Nothing heavy is imported before a command runs."""


def main() -> None:
    """Entry point of `dpcore`. An interrupt or a termination is one line, whenever it comes."""
    import signal
    import sys

    code: object
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end a run in the same way
    try:
        code = _code_of_command()
        _ignore_signals()  # the command is done: its code stands
    except KeyboardInterrupt:
        _ignore_signals()
        code = 130
    if code == 130:  # an interrupted command's
        print("interrupted", file=sys.stderr)
        code = 1
    sys.exit(code)  # type: ignore[arg-type]  # what SystemExit held


def _code_of_command() -> object:
    """One thread of linear algebra, unless the environment names another number: on matrices of a
    few hundred rows more threads wait for each other, and take the processor meanwhile.
    """
    import os
    import sys

    for library in ("OPENBLAS", "MKL", "OMP"):  # read when numpy is imported
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

    from dpcore.cli.app import app  # click is only needed here
    from dpcore.cli.console import WANTS_JSON

    WANTS_JSON.set("--json" in sys.argv)
    try:
        app(prog_name="dpcore")
    except SystemExit as end:
        return end.code
    except OSError as error:  # help or version: the commands guard themselves
        print(f"input or output failed: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _ignore_signals() -> None:
    import signal

    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, signal.SIG_IGN)
