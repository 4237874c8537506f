"""The page of regression tables prints what its example prints."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "regression.md"


def test_the_page_shows_the_table_that_its_example_prints():
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own page
    assert printed.getvalue() == shown
