"""An ensemble as a folder: plain JSON and a card, nothing that executes on load."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, examples
from edokit._io import read_json, whole_file, write_json
from edokit._outputs import REPLACE, check_output, other_content
from edokit._version import __version__
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
KIND = "edo-ensemble"
FILE = "ensemble.json"
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def save_ensemble(ensemble: EDOEnsemble, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card, into a folder."""
    ensemble._check_fitted()
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    content = to_dict(ensemble)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(content), encoding="utf-8")
    write_json(content, folder / FILE)


def load_ensemble(folder: str | Path) -> EDOEnsemble:
    """The fitted ensemble in a folder."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder} has none",
            f"give {inside}"
            if (inside / FILE).exists()
            else "make one with `edo fit` or EDOEnsemble.save",
        )
    return from_dict(read_json(path), str(path))


def to_dict(ensemble: EDOEnsemble) -> dict[str, Any]:
    """All of a fitted ensemble as ``ensemble.json`` holds it."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {
        "format": FORMAT,
        "kind": KIND,
        **ensemble.fitted_.to_dict(),
        "versions": {"edokit": __version__, **libraries},
    }


def from_dict(content: Any, where: str) -> EDOEnsemble:
    """The ensemble that ``to_dict`` described; anything else is refused."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(
            f"{where} must describe an EDO ensemble, but does not",
            "check that it is the right file",
        )
    written = content.get("format")
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{where} must have format {FORMAT} or older, but has {written!r}",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    try:
        return EDOEnsemble.from_fitted(Fitted.from_dict(content))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{where} must hold a whole ensemble, but is damaged: {type(error).__name__} {error}",
            "restore it, or fit again",
        ) from error


_CARD = """# An EDO ensemble

{size} of {count} members carry weight; their {pool} pool answers for {classes}.
{learned} {items} items{people}, by edokit {version}.

## Members
| member | weight | own cross-entropy |
|---|---|---|
{members}

## On {where}
{metrics}

Settings: {settings}.
{certificate}
## Intended use
Estimating how a group of people would answer: which items they would disagree on, and how far.
A low entropy means that the annotators' answers can be foreseen, not that the answer is right.

## Limits
- It repeats the views, and the biases, of the annotators it learned from; it does not remove them.
- It was not made to replace human oversight. In high-stakes decisions, such as moderation, keep
  people in the loop, first of all where the entropy or the spread of an answer is high. Who should
  look, and how: people who know the matter, and those concerned; `edo predict --review N` picks the
  N items where they are needed most, says why, and writes them for Label Studio.
- Do not use it for surveillance, for punishing people, or without the consent of those concerned,
  and keep to the data protection rules that apply to you.
- Weights fit the data above; on other topics, languages or groups of people, measure first
  (`edo evaluate`).
"""


def card(content: dict[str, Any]) -> str:
    """The card of an ensemble as `ensemble.json` describes it."""
    by_weight = sorted(
        zip(content["members"], content["weights"], content["member_ce"], strict=True),
        key=lambda row: -row[1],
    )
    shown = [row for row in by_weight if row[1] > 0]
    rows = [f"| {_cell(name)} | {weight:.4f} | {ce:.4f} |" for name, weight, ce in shown]
    if len(shown) < len(by_weight):
        rows.append(f"| {len(by_weight) - len(shown)} others | 0 | |")
    metrics = content["metrics"]
    certificate = content["certificate"]
    settings = content["settings"]
    learned = settings["solver"] != "given"
    named = [
        *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        *("class_weights", "recalibrate"),
    ]
    return _CARD.format(
        size=content["size"],
        count=len(content["members"]) if content["groups"] is None else "the grouped",
        pool=content["pool"],
        classes=", ".join(_cell(name) for name in content["classes"]),
        learned="Learned from" if learned else "Its weights were given; judged on",
        where="the fit data (not held out)" if learned else "these items",
        items=content["items"],
        people=_people(content.get("data") or {}),
        version=content["versions"]["edokit"],
        members="\n".join(rows),
        metrics=", ".join(
            f"{label} {metrics[key]:.4f}"
            for key, label in (("f1", "F1"), ("ce", "CE"), ("md", "MD"), ("bs", "BS"))
            if metrics.get(key) is not None
        ),
        settings=", ".join(f"{name} {settings[name]}" for name in named),
        certificate=(
            f"\nCertificate: {certificate['reason']} ({certificate['gap']:.1e}).\n"
            if certificate
            else ""
        ),
    )


def _people(data: dict[str, Any]) -> str:
    """Who answered, as far as it is known."""
    if not data:
        return ""
    classes = ", ".join(f"{count} × {_cell(name)}" for name, count in data["hard_labels"].items())
    return (
        f" with {data['annotations']} answers of {data['annotators']} annotators"
        f" (hard labels: {classes})"
    )


def _cell(name: str) -> str:
    """A name inside a table."""
    return name.replace("|", "\\|").replace("\n", " ")


def check_settings(folder: Path, asked: EDOEnsemble, *, overwrite: bool = False) -> None:
    """Before anything is read: refuse a folder of something else, or of other settings."""
    check_output(folder, "ensemble")
    there = None if overwrite else _there(folder)
    if there is None:
        return
    ours, theirs = asked.get_params(), there.get_params()
    other = [name for name, value in ours.items() if theirs[name] != value]
    if other:
        raise other_content(
            folder, "an ensemble", f"which was fitted with other settings: {examples(other)}"
        )


def check_members(
    folder: Path, members: Sequence[str], items: int, *, overwrite: bool = False
) -> None:
    """Before anything is learned: refuse an ensemble of other members or items."""
    there = None if overwrite else _there(folder)
    if there is not None and (list(there.members_), there.n_items_) != (list(members), items):
        raise _other_data(folder)


def check_same(folder: Path, fitted: EDOEnsemble, *, overwrite: bool = False) -> None:
    """Before it is saved: refuse to replace an ensemble that was learned from other data."""
    there = None if overwrite else _there(folder)
    if there is not None and not _alike(there, fitted):
        raise _other_data(folder)


def _there(folder: Path) -> EDOEnsemble | None:
    if not (folder / FILE).exists():
        return None
    try:
        return load_ensemble(folder)
    except InputError as error:
        raise InputError(error.message, REPLACE, parameters=("overwrite",)) from error


def _alike(one: EDOEnsemble, other: EDOEnsemble) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    names = ("members", "classes", "items", "data")
    told = [{name: to_dict(each)[name] for name in names} for each in (one, other)]
    return told[0] == told[1] and all(
        np.allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-6)
        for name in ("weights_", "member_ce_")
    )


def _other_data(folder: Path) -> InputError:
    return other_content(folder, "an ensemble", "which was learned from other data")
