"""An ensemble as a folder: plain JSON and a card, nothing that executes on load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import read_json, whole_file, write_json
from edokit._version import __version__
from edokit.ensemble.fitted import Fitted
from edokit.metrics import MAIN_METRICS

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
FILE = "ensemble.json"


def write_fitted(fitted: Fitted, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    content = {
        "format": FORMAT,
        "kind": "edo-ensemble",
        **fitted.to_dict(),
        "versions": {"edokit": __version__, **libraries},
    }
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(content), encoding="utf-8")
    write_json(content, folder / FILE)


def read_fitted(folder: str | Path) -> Fitted:
    """What ``write_fitted`` wrote, in this or an older version; anything else is refused."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        found = (inside / FILE).exists()
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder} has none",
            f"give {inside}" if found else "make one with `edo fit` or EDOEnsemble.save",
        )
    with reading(path, "ensemble") as content:
        return Fitted.from_dict(content)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The content of a JSON file of this kind; whatever is wrong with it is said in one line."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("kind") != f"edo-{kind}":
        raise InputError(
            f"{path} does not describe an EDO {kind}", "check that it is the right file"
        )
    written = content.get("format")
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{path} has format {written!r}; this version reads format {FORMAT} or older",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    try:
        yield content
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{path} is damaged: {type(error).__name__} {error}", "restore it, or fit again"
        ) from error


_CARD = """# An EDO ensemble

{size} of {count} members carry weight in a {pool} pool over the classes {classes}.
{learned} {items} items{annotated}, by edokit {version}.

## Members
| member | weight | own cross-entropy |
|---|---|---|
{members}

## On {where}
{metrics}

Settings: {settings}.
{certificate}
## Intended use
Estimating how a group of annotators would label items: which they would disagree on, and how far.
A low entropy means that the annotators' labels are predictable, not that a label is right.

## Limits
- It repeats the views, and the biases, of the annotators it learned from; it does not remove them.
- It was not made to replace human oversight. In high-stakes decisions, such as moderation, keep
  people in the loop, first of all where the entropy or the spread is high. Who should
  look, and how: people who know the matter, and those concerned; `edo predict --review N` picks the
  N items where they are needed most, says why, and writes them for Label Studio.
- Do not use it for surveillance, for punishing people, or without the consent of those concerned,
  and keep to the data protection rules that apply to you.
- Weights fit the data above; on other topics, languages or groups of people, measure first
  (`edo evaluate`).
"""


def card(content: dict[str, Any]) -> str:
    """The card of an ensemble as ``ensemble.json`` describes it."""
    by_weight = sorted(
        zip(content["members"], content["weights"], content["member_ce"], strict=True),
        key=lambda row: -row[1],
    )
    shown = [row for row in by_weight if row[1] > 0]
    rows = [f"| {_cell(name)} | {weight:.4f} | {ce:.4f} |" for name, weight, ce in shown]
    if len(shown) < len(by_weight):
        rows.append(f"| {len(by_weight) - len(shown)} others | 0 | |")
    metrics, settings, data = content["metrics"], content["settings"], content.get("data")
    annotated = certificate = ""
    if data:
        hard = ", ".join(f"{count} × {_cell(name)}" for name, count in data["hard_labels"].items())
        annotated = (
            f" with {data['annotations']} annotations by {data['annotators']} annotators"
            f" (hard labels: {hard})"
        )
    if content["certificate"]:
        certificate = "\nCertificate: {reason} ({gap:.1e}).\n".format(**content["certificate"])
    learned = settings["solver"] != "given"
    named = [
        *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        *("class_weights", "recalibrate"),
    ]
    return _CARD.format(
        size=content["size"],
        count=len(content["members"]) if content["groups"] is None else "the grouped",
        pool=content["pool"],
        classes=", ".join(map(_cell, content["classes"])),
        learned="Learned from" if learned else "Its weights were given; evaluated on",
        where="the fit data (not held out)" if learned else "these items",
        items=content["items"],
        annotated=annotated,
        version=content["versions"]["edokit"],
        members="\n".join(rows),
        metrics=", ".join(
            f"{name.upper()} {metrics[name]:.4f}"
            for name in MAIN_METRICS
            if metrics.get(name) is not None
        ),
        settings=", ".join(f"{name} {settings[name]}" for name in named),
        certificate=certificate,
    )


def _cell(name: str) -> str:
    """A name inside a table."""
    return name.replace("|", "\\|").replace("\n", " ")
