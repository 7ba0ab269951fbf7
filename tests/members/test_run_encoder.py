"""`edo run` takes a sentence encoder that is on the machine, and says what it gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx_files import with_onnx

import edokit
from commands import edo
from edokit import RunOptions, pipeline, simulate
from edokit.analysis.scores.result import Gain
from edokit.members import Group
from edokit.members.catalogue import ENCODERS, KnownEncoder
from edokit.members.recipes import encoder as recipe
from edokit.pipeline import encoders
from edokit.pipeline.encoders import MEASURED_GAIN, EncoderGain, choose_encoder, is_latin
from edokit.pipeline.pool import Ingredient, default_pool
from edokit.report.data import collect

pytestmark = [
    pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning"),
    pytest.mark.usefixtures("own_cache"),
]
ENGLISH = ["what a lovely day", "naïve façade"]
ARABIC = ["يوم جميل", "not only Latin: شكرا جزيلا على كل شيء"]
MINILM, MULTILINGUAL = ENCODERS


def present(monkeypatch: pytest.MonkeyPatch, *models: str) -> None:
    """Have these models on the machine, and no others."""

    def check(model: str) -> None:
        if model not in models:
            raise edokit.InputError(f"{model} is not here", code="unknown-model")

    monkeypatch.setattr(encoders, "check_available", check)


@pytest.mark.parametrize(
    ("texts", "here", "chosen"),
    [
        (ENGLISH, (MINILM, MULTILINGUAL), MINILM),
        (ENGLISH, (MULTILINGUAL,), MULTILINGUAL),
        (ARABIC, (MINILM, MULTILINGUAL), MULTILINGUAL),
        (ENGLISH, (), None),
        (ARABIC, (MINILM,), None),
    ],
)
def test_the_script_of_the_texts_chooses_among_the_encoders_that_are_here(
    texts: list[str],
    here: tuple[KnownEncoder, ...],
    chosen: KnownEncoder | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    present(monkeypatch, *(encoder.repository for encoder in here))
    choice = choose_encoder(None, texts)
    if chosen is None:
        assert not choice.available
        wanted = MINILM if texts is ENGLISH else MULTILINGUAL
        assert choice.model == wanted.repository
        assert choice.advice.endswith(f"edo models get {wanted.alias}")
        assert "\n" not in choice.advice
    else:
        assert choice.available
        assert choice.model == chosen.repository
    assert choose_encoder("somewhere/else", texts).model == "somewhere/else"


def test_the_advice_names_the_extra_where_its_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    present(monkeypatch)
    monkeypatch.setattr(encoders, "find_spec", lambda package: None)
    advice = choose_encoder(None, ENGLISH).advice
    assert advice.endswith('pip install ".[encoder]" && edo models get minilm')


def test_letters_decide_on_the_script_not_digits_or_signs() -> None:
    assert is_latin(["12:30 😀 ok"])
    assert is_latin([])
    assert not is_latin(["今日は🙂", "ok"])
    # A table that is sorted by language is looked at from its beginning to its end.
    assert not is_latin(["a polite reply"] * 3000 + ["يوم جميل"] * 3000)


def test_members_on_an_encoder_join_unless_the_run_is_to_be_fast() -> None:
    def recipes(**options: str) -> set[str]:
        return {part.group.recipe for part in default_pool(RunOptions(**options))}

    assert "encoder" not in recipes()
    assert "encoder" not in recipes(quality="fast", encoder="minilm")
    for quality in ("auto", "good", "best"):
        assert "encoder" in recipes(quality=quality, encoder="minilm")


def votes(folder: Path) -> Path:
    """A table whose labels follow a word that means the same as another."""
    people = simulate("two-camps", random_state=0, items=(60, 1, 1)).annotations
    table = people.to_table().to_pandas().astype(str).drop(columns="split")
    table.to_csv(folder / "votes.csv", index=False)
    return folder / "votes.csv"


def small_pool(options: RunOptions) -> list[Ingredient]:
    """A regression, and one on the encoder."""
    pool = [Ingredient(Group("linear", 1, "bold", "soft"))]
    if options.encoder is not None:
        about = {"model": options.encoder}
        pool.append(Ingredient(Group("encoder", 1, "encoder", "soft", options=about)))
    return pool


def test_a_run_without_an_encoder_says_in_one_line_what_to_do_and_goes_on_with_it_later(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "default_pool", small_pool)
    present(monkeypatch)
    table = votes(tmp_path)
    completed = edo("run", table, "--out", tmp_path / "RUN", "--jobs", 1)
    assert completed.returncode == 0, completed.stderr
    (line,) = [line for line in completed.stdout.splitlines() if "edo models get minilm" in line]
    assert "pip install" not in line  # the packages are here
    assert edokit.Run.load(tmp_path / "RUN").left_out == []
    # The same command again, with an encoder on the machine.
    present(monkeypatch, MINILM.repository)
    pytest.importorskip("onnx")
    folder = with_onnx(model, tmp_path / "tiny")
    monkeypatch.setattr(recipe, "encoder_folder", lambda name: folder)
    found = edokit.run(table, tmp_path / "RUN", jobs=1)
    assert "encoder-01" in found.ensemble.members_
    assert MINILM.repository in found.encoder_note
    page = (tmp_path / "RUN" / "report.html").read_text(encoding="utf-8")
    assert found.encoder_note.split(",")[0].split(" makes")[0] in page
    assert collect(tmp_path / "RUN").remarks == [found.encoder_note]


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Gain(0.031, 0.012, 0.05), "CE is 3.1 % lower than with the other members alone"),
        (Gain(-0.02, -0.03, -0.01), "CE is 2.0 % higher than"),
        (Gain(0.001, -0.004, 0.006), "no clear difference to CE (95 % interval of its gain: −0.4"),
    ],
)
def test_a_gain_says_no_more_than_its_interval(gain: Gain, words: str) -> None:
    assert words in EncoderGain("minilm", "ce", gain).sentence


def test_the_gain_that_the_advice_names_is_the_measured_one() -> None:
    results = Path(__file__).resolve().parents[2] / "benchmarks" / "RESULTS.md"
    lines = results.read_text(encoding="utf-8").splitlines()
    begin = lines.index("## A sentence encoder in the default pool (`encoder.py`)")
    gains = []
    for line in lines[begin + 1 :]:
        if line.startswith("## "):
            break
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 6 and cells[1] in ("ConvAbuse", "HS-Brexit", "MD-Agreement", "CSC"):
            gains.append(float(cells[6].split("+")[1].split()[0]))
    assert len(gains) == 4
    assert (round(min(gains)), round(max(gains))) == MEASURED_GAIN
