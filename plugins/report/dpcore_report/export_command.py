"""`dpcore export`: the model of a run as one file, for machines without dpcore."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import JsonOption, guarded, out, show_json
from dpcore.cli.limit_options import MemoryOption, WorkOption, in_bytes, in_number
from dpcore.cli.progress import SlowProgress
from dpcore.errors import SpecError, need
from dpcore.publish.files import replace_file
from dpcore.publish.folder import PUBLIC
from dpcore_report.exports import Form, export as export_run

_ENDINGS = {Form.JSON: "model.json", Form.PYTHON: "model.py"}


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    form: Annotated[
        Form, typer.Option("--format", help="python needs numpy alone; json holds the values.")
    ] = Form.PYTHON,
    output: Annotated[
        Path | None,
        typer.Option(help="The file. [default: RUN/model.py or RUN/model.json]"),
    ] = None,
    memory: MemoryOption = None,
    work: WorkOption = None,
    json: JsonOption = False,
) -> None:
    """Export a published model as one file: predictions are those of the run, to the last digit."""
    with guarded():
        path = run / _ENDINGS[form] if output is None else output
        # A file there would be taken for published, and the folder would not replay.
        need(
            path.resolve().parent != (run / PUBLIC).resolve(),
            SpecError,
            f"--output: {PUBLIC}/ holds what replays, and nothing else",
        )
        with SlowProgress(None, "replaying"):
            text = export_run(run, form, memory=in_bytes(memory), work=in_number(work))
        replace_file(path, text)
        if json:
            show_json({"file": str(path)})
        else:
            out().print(str(path), markup=False)
