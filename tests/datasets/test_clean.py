"""The paper's cleaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit.datasets.clean import clean_text, has_arabic, without_markup
from edokit.datasets.lewidi import read_lewidi
from edokit.datasets.read import read_annotations

ARABIC = "صباح الخير"


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("<b>Good</b> <user> morning <url>", "Good morning"),
        ("<span class='emoji-bytes' data-emoji-bytes='[240, 159]'></span>hello", "hello"),
        ("tea &amp; cake &lt;user&gt;", "tea cake"),
        ("see https://example.org/a?b=1 or www.example.org now", "see or now"),
        ("@anna_1 thanks, @Ben!", "thanks"),
        ("well-known, isn't it? (yes)", "well known isnt it yes"),
        ("“quoted” — it’s fine…", "quoted its fine"),
        ("at 10 past 7", "at past"),
        ("café 😀 crème", "caf crme"),
        ("good😀morning", "good morning"),
        ("  two\n lines\t", "two lines"),
        ("#Sunny_day $5 a+b", "Sunny day a b"),
        ("I <3 tea", "I tea"),
        ("1, 2, 3!", ""),
    ],
)
def test_each_part_of_the_cleaning(raw: str, cleaned: str) -> None:
    assert clean_text(raw) == cleaned


def test_an_address_with_an_at_sign_inside_is_no_mention() -> None:
    assert without_markup("write to anna@example") == "write to anna@example"


def test_arabic_keeps_its_letters_but_loses_the_rest() -> None:
    raw = f"<b>{ARABIC}</b>، @anna https://example.org ١٢٣ 456 #يوم_جميل؟ 😀"
    assert clean_text(raw) == f"{ARABIC} يوم جميل 😀"


def test_arabic_in_an_english_text_keeps_all_its_letters() -> None:
    assert clean_text(f"café means {ARABIC}!") == f"café means {ARABIC}"


def test_a_text_in_another_script_is_not_emptied() -> None:
    assert clean_text("Доброе утро, 2 ok") == "Доброе утро ok"


@given(st.text())
def test_cleaning_leaves_no_digit_and_none_of_the_ascii_marks(text: str) -> None:
    cleaned = clean_text(text)
    assert not any(char.isdecimal() for char in cleaned)
    assert not set(cleaned) & set("""!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~""")
    assert cleaned == " ".join(cleaned.split())


@given(st.text(st.characters(max_codepoint=127)))
def test_an_english_text_comes_out_in_ascii(text: str) -> None:
    assert clean_text(text + " été").isascii()
    assert clean_text(text + " été ñandú").isascii()


def test_no_text_of_armis_is_emptied_or_loses_its_script(lewidi: Path) -> None:
    for text in read_annotations(lewidi / "ArMIS", clean=True).texts:
        assert has_arabic(text)


@pytest.mark.parametrize("name", ["ConvAbuse", "HS-Brexit"])
def test_the_english_datasets_come_out_in_ascii(lewidi: Path, name: str) -> None:
    raw = read_lewidi(lewidi / name)
    cleaned = read_annotations(lewidi / name, clean=True)
    assert not all(text.isascii() for text in raw.texts)
    assert all(text.isascii() for text in cleaned.texts)
    assert (raw.items == cleaned.items).all()
