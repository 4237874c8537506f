"""`dpcore export`: the model or the rows of a run as one file, for machines without dpcore."""

from pathlib import Path

import click

from dpcore.console.console import SlowProgress, guarded, out, show_json
from dpcore.console.options import in_bytes, in_number, memory_option, work_option
from dpcore.console.parameters import PATH, argument, command, json_option
from dpcore.errors import SpecError, need
from dpcore.published.files import replace_file
from dpcore.published.folder import PUBLIC
from dpcore_report.exports import Form, export as export_run

_ENDINGS = {
    Form.JSON: "model.json",
    Form.PYTHON: "model.py",
    Form.SHAPES: "shapes.json",
    Form.CSV: "rows.csv",
    Form.PARQUET: "rows.parquet",
}


@command()
@argument("run", "A run folder.", type=PATH)
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Form]),
    default=Form.PYTHON.value,
    help="python needs numpy only; json holds the values, shapes what they say of columns; csv "
    "and parquet hold synthetic rows.",
)
@click.option("--output", type=PATH, help="The file. [default: RUN/model.py, or by the format]")
@memory_option
@work_option
@json_option
def export(
    run: Path,
    form: str,
    output: Path | None,
    memory: str | None,
    work: str | None,
    json: bool,
) -> None:
    """Export a published model, whose predictions are those of the run, or rows, as one file."""
    with guarded():
        path = run / _ENDINGS[Form(form)] if output is None else output
        # A file there would be taken for published, and the folder would not replay.
        need(
            path.resolve().parent != (run / PUBLIC).resolve(),
            SpecError,
            f"--output: {PUBLIC}/ holds what replays, and nothing else",
        )
        with SlowProgress(None, "replaying"):
            text = export_run(run, Form(form), memory=in_bytes(memory), work=in_number(work))
        replace_file(path, text)
        if json:
            show_json({"file": str(path)})
        else:
            out().print(str(path))
