"""The paper's cleaning of texts, for those who ask for it; raw text is the default."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Callable

_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]*>")
_URL = re.compile(r"(?:https?://|www\.|pic\.twitter\.com/)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)@\w+")
_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
_APOSTROPHES = frozenset("'’‘ʼ`´")


def clean_text(text: str) -> str:
    """The text without markup, URLs, user mentions, punctuation, digits and non-ASCII characters.

    Non-ASCII letters and emoji stay where there is Arabic script in the text or most letters are
    of another script than Latin. An apostrophe joins what it parts ("dont"), other marks part
    words.
    """
    text = without_markup(text)
    letters = [char for char in text if char.isalpha()]
    latin = sum(unicodedata.name(char, "").startswith("LATIN") for char in letters)
    keep = has_arabic(text) or 2 * latin < len(letters)
    text = text.translate(_NO_PUNCTUATION)
    return " ".join((text if keep else text.translate(_ASCII)).split())


def without_markup(text: str) -> str:
    """The text without markup (entities such as ``&amp;`` are resolved), URLs and mentions."""
    text = _MARKUP.sub(" ", html.unescape(text))
    return _MENTION.sub(" ", _URL.sub(" ", text))


def has_arabic(text: str) -> bool:
    """Whether there is Arabic script in the text."""
    return _ARABIC.search(text) is not None


class Characters(dict[int, str]):
    """A table for ``str.translate`` that works out a character when it first meets it."""

    def __init__(self, become: Callable[[str], str]) -> None:
        self.become = become

    def __missing__(self, code: int) -> str:
        self[code] = self.become(chr(code))
        return self[code]


def _no_punctuation(char: str) -> str:
    if char in _APOSTROPHES:
        return ""
    kind = unicodedata.category(char)
    gone = kind[0] == "P" or kind == "Nd" or char in string.punctuation
    return " " if gone else char


def _ascii(char: str) -> str:
    if char.isascii():
        return char
    return "" if unicodedata.category(char)[0] in "LM" else " "


_NO_PUNCTUATION = Characters(_no_punctuation)
_ASCII = Characters(_ascii)
