"""Everything that comes from data is text, wherever it is put."""

from __future__ import annotations

import html
import json
import unicodedata
from typing import Any

from markupsafe import Markup

# A name must not reorder or break what stands around it: controls, bidi marks, lone surrogates.
_UNWANTED = {"Cc", "Cs", "Zl", "Zp"}
_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_IN_SCRIPT = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def clean(value: object, most: int = 200) -> str:
    """A name on one line, without characters that act instead of being seen."""
    text = "".join(
        " " if unicodedata.category(mark) in _UNWANTED else mark
        for mark in str(value)
        if mark not in _BIDI
    )
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def label(value: object, most: int = 24) -> str:
    """A name for a Plotly chart, which would read tags and entities as markup."""
    return html.escape(clean(value, most), quote=False)


def embed(value: Any) -> Markup:
    """A value as JSON that can't leave the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.translate(_IN_SCRIPT)
    # A lone surrogate can't be written as UTF-8.
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))
