"""Commands in processes of their own, forked from this one: nothing is imported anew."""

import contextlib
import functools
import importlib
import io
import os
import subprocess
import sys
import tempfile

COMMANDS = ("check", "plugins", "replay", "run", "schema")
OF_TOOLS = (
    *(f"dpcore_attacks.commands.{name}" for name in ("attack", "audit", "falsify", "test")),
    "dpcore_report.account_command",
    "dpcore_report.accounting.account",
)


@functools.cache
def _imported():
    """Have in memory what commands import, so that no child has to."""
    import scipy.special
    import scipy.stats  # noqa: F401

    from dpcore.errors import RegistryError
    from dpcore.registry.index import Index
    from dpcore.registry.registry import Registry

    for name in COMMANDS:
        importlib.import_module(f"dpcore.console.{name}")
    for name in OF_TOOLS:
        with contextlib.suppress(ModuleNotFoundError):  # the core by itself has none
            importlib.import_module(name)
    for module in ("runs.run_spec", "private.evaluation", "ledger.book"):
        importlib.import_module(f"dpcore.{module}")
    registry = Registry(Index.packaged().entries)
    for plugin in registry.entries:
        with contextlib.suppress(RegistryError):  # it is not installed
            registry.load(plugin)


def forked(arguments, *, folder, text="", stdout=None, environment=()):
    """What `python -c "from dpcore.console import main; main()"` does with these arguments.

    The child is a copy of this process with its own descriptors, folder and environment, so that
    whatever a command does to them stays there. Imports that a command makes for itself, and their
    time, are what a copy cannot show: `test_start.py` starts interpreters.
    """
    _imported()
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as complained,
    ):
        given.write(text.encode())
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            out = output if stdout is None else stdout
            _become(arguments, folder, dict(environment), given, out, complained)
        _, status = os.waitpid(child, 0)
        complained.seek(0)
        output.seek(0)
        return subprocess.CompletedProcess(
            arguments,
            os.waitstatus_to_exitcode(status),
            output.read().decode(),
            complained.read().decode(),
        )


def _become(arguments, folder, environment, given, report, complained):
    """Run the command and end; never returns."""
    code = 70
    try:
        for number, file in enumerate((given, report, complained)):
            os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, mode), encoding="utf-8", line_buffering=number == 2)
            for number, mode in ((0, "rb"), (1, "wb"), (2, "wb"))
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        os.chdir(folder)
        os.environ.update(environment)
        sys.argv = ["dpcore", *map(str, arguments)]
        from dpcore.console import main

        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
