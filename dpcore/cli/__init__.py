"""The command line, one file per command. Nothing heavy is imported before a command runs."""


def main() -> None:
    """Entry point of `dpcore`."""
    from dpcore.cli.app import app  # typer and rich are only needed here

    app(prog_name="dpcore")
