"""The command line, one file per command. Nothing heavy is imported before a command runs."""


def main() -> None:
    """Entry point of `dpcore`. An interrupt or a termination is one line, whenever it comes."""
    import signal
    import sys

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end a run in the same way
    try:
        from dpcore.cli.app import app  # typer and rich are only needed here

        app(prog_name="dpcore")
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != 130:  # what typer makes of an interrupt
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(1)
