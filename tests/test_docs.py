"""What the documentation shows can be copied: every Python block runs, every example is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edokit.datasets import read_annotations
from edokit.predictions import join_models, read_model_file

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language, as they stand on the page."""
    text = page.read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::edokit.errors.EDOWarning")
def test_python_blocks_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "docs"}
    for body in blocks(page, "python"):
        exec(compile(body, str(page), "exec"), names)


def formats(language: str) -> list[str]:
    return blocks(ROOT / "docs" / "formats.md", language)


@pytest.mark.parametrize(
    ("body", "annotations"),
    [
        (formats("csv")[0], 4),
        (formats("csv")[1], 2),
        *((b, n) for b, n in zip(formats("json"), (3, 2, 2), strict=True)),
    ],
    ids=["long table", "probabilities", "LeWiDi", "Label Studio", "Argilla"],
)
def test_examples_of_annotations_are_read(body: str, annotations: int, tmp_path: Path) -> None:
    ending = "json" if body.lstrip().startswith(("{", "[")) else "csv"
    path = tmp_path / f"example.{ending}"
    path.write_text(body, encoding="utf-8")
    assert len(read_annotations(path)) == annotations


def test_examples_of_predictions_are_read(tmp_path: Path) -> None:
    model, wide = formats("csv")[2:4]
    (tmp_path / "model.csv").write_text(model, encoding="utf-8")
    assert read_model_file(tmp_path / "model.csv").classes == ("no", "yes")
    (tmp_path / "wide.csv").write_text(wide, encoding="utf-8")
    joined = join_models([tmp_path / "wide.csv"], positive="1")
    assert joined.members == ("bert", "llm")


def test_every_command_on_a_page_exists() -> None:
    from edokit.cli.app import app, data, predictions

    groups = {"data": data, "predictions": predictions}
    known = {command.name for command in app.registered_commands}
    for page in PAGES:
        for body in blocks(page, "sh"):
            for line in re.findall(r"^edo (\w+)(?: (\w+))?", body, re.MULTILINE):
                if line[0] in groups:
                    inner = {command.name for command in groups[line[0]].registered_commands}
                    assert line[1] in inner, (page.name, line)
                else:
                    assert line[0] in known, (page.name, line)
