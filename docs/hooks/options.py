"""Keeps an option such as `--epsilon` on one line: browsers break lines at its hyphens."""

import re

_CODE = re.compile(r"<code>[^<]*--[^<]*</code>")
_OPTION = re.compile(r"--[a-z][a-z-]*")


def on_page_content(content, **_):
    return _CODE.sub(
        lambda code: _OPTION.sub(r'<span class="option">\g<0></span>', code[0]), content
    )
