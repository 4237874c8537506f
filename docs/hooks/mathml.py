"""Formulas become MathML while the site is built, so that a page shows them without any script.

A formula that math-core cannot read stops the build with the page's name.
"""

import html
import re

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_CONVERTER = LatexToMathML(fancy_error=False, macros={"norm": r"\lVert #1 \rVert"})


def on_page_content(content, *, page, **_):
    def mathml(formula):
        try:
            drawn = _CONVERTER.convert_with_local_state(
                html.unescape(formula["latex"]), displaystyle=formula["tag"] == "div"
            )
        except LatexError as error:
            raise PluginError(f"{page.file.src_path}: {formula['latex']}: {error}") from error
        return f'<div class="formula">{drawn}</div>' if formula["tag"] == "div" else drawn

    return _FORMULA.sub(mathml, content)
