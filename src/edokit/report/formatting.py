"""Numbers and names as text: rounding, plurals, and escaping of everything that comes from data."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from edokit import _errors
from edokit._errors import listed
from edokit._io.documents import json_text
from edokit.metrics import METRIC

NONE = "–"


def asset(name: str) -> str:
    """The text of a file in the folder ``assets``."""
    return (files("edokit.report") / "assets" / name).read_text(encoding="utf-8")


def number(value: float | None, digits: int = 4, sign: str = "") -> str:
    """``0.2947``, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    # Write zero without a minus sign.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 4) -> str:
    """``+0.0012`` or ``−0.0097``, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    return _errors.signed(value, digits)


def percent(share: float | None, digits: int = 0, sign: str = "") -> str:
    """``74 %``, with a space that does not break."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{number(100 * share, digits, sign)}\u00a0%"


def level_percent(level: float) -> str:
    """``95 %`` or ``97.5 %``: a confidence level is not rounded."""
    return f"{100 * level:g}\u00a0%"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """``1 item``, ``10,000 items``."""
    if value == 1:
        return f"{value:,} {noun}"
    return f"{value:,} {plural or noun + 's'}"


def interval(ends: Sequence[float | None] | None, digits: int = 4) -> str:
    """``0.2812 to 0.3090``, or nothing."""
    if ends is None or len(ends) != 2 or ends[0] is None or ends[1] is None:
        return ""
    return f"{number(ends[0], digits)} to {number(ends[1], digits)}"


def named(metric: str) -> str:
    """``cross-entropy (CE)``, ``distance (MD)``."""
    short = METRIC[metric].short
    title = METRIC[metric].title
    if metric == "f1":
        return short
    if metric == "md":
        title = "distance"
    if short in title:
        return title
    return f"{title} ({short})"


# A name must not reorder or break the text around it: these categories of Unicode become spaces,
# and marks of the direction of writing are left out.
_LINE_BREAKING = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTION_MARKS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def clean(value: object, most: int = 200) -> str:
    """A name on one line, without control characters and direction marks."""
    characters: list[str] = []
    for character in str(value):
        if unicodedata.category(character) in _LINE_BREAKING:
            characters.append(" ")
        elif character not in _DIRECTION_MARKS:
            characters.append(character)
    words = "".join(characters).split(" ")
    text = " ".join(word for word in words if word)  # spaces that do not break stay
    if len(text) > most:
        return text[: most - 1] + "…"
    return text


def prose(text: object, most: int = 900) -> Markup:
    """A sentence for the page, with `commands` set as code."""
    parts = html.escape(clean(text, most)).split("`")
    if len(parts) % 2 == 0:  # a single backtick is not markup
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    for k in range(1, len(parts), 2):
        parts[k] = f"<code>{parts[k]}</code>"
    return Markup("".join(parts))


# What templates call filters: functions by their names.
FILTERS: dict[str, object] = {
    function.__name__: function
    for function in (
        number,
        signed,
        percent,
        level_percent,
        count,
        interval,
        listed,
        named,
        clean,
        prose,
    )
}


def embed(value: object) -> Markup:
    """A value as JSON that can't leave its script element."""
    text = json_text(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_IN_SCRIPT))
