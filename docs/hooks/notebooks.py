"""Renders notebooks as pages: a line `<!-- notebook: NAME.ipynb -->` becomes its cells and outputs.

Outputs are those that the notebook holds; nothing is run when the site is built.
"""

import html
import json
import re
from pathlib import Path

_PLACE = re.compile(r"^<!-- notebook: ([\w-]+\.ipynb) -->$", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_page_markdown(markdown, page, **_):
    folder = Path(page.file.abs_src_path).parent
    return _PLACE.sub(lambda place: rendered(folder / place[1]), markdown)


def rendered(path):
    """The cells of a notebook as Markdown, without its title, which the page has."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n\n".join(part for cell in cells[1:] for part in _cell(cell))


def _cell(cell):
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _output(output)


def _output(output):
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = {kind: "".join(text) for kind, text in output["data"].items()}
    if "image/png" in data:
        picture = data["image/png"].replace("\n", "")
        return f'<p><img alt="What the cell above draws" src="data:image/png;base64,{picture}"></p>'
    if "text/html" in data:
        return f'<div class="output">{" ".join(data["text/html"].splitlines())}</div>'
    return _text(data["text/plain"])


def _text(text):
    return f'<pre class="output">{html.escape(_COLOURS.sub("", text)).strip()}</pre>'
