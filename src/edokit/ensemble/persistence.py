"""An ensemble as a folder: plain JSON and a card, nothing that executes on load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from edokit._errors import InputError, examples
from edokit._io import read_json, whole_file, write_json
from edokit._names import as_name
from edokit._outputs import REPLACE, check_output, other_content
from edokit._version import __version__
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted
from edokit.ensemble.inputs import label_array

if TYPE_CHECKING:
    from edokit.ensemble.classifier import EDOClassifier

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
KIND = "edo-ensemble"
FILE = "ensemble.json"
CARD = "README.md"
# Beside these, a folder of an EDOClassifier holds:
CLASSIFIER_KIND = "edo-classifier"
CLASSIFIER = "classifier.json"
MEMBERS = "members"
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_CLASSIFIER_PARAMETERS = ("prefit", "cv", "supervision", "missing_values", "n_jobs", "random_state")


def save_ensemble(ensemble: EDOEnsemble, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card; see `EDOEnsemble.save`."""
    check_is_fitted(ensemble)
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    content = to_dict(ensemble)
    with whole_file(folder / CARD) as temporary:
        temporary.write_text(card(content), encoding="utf-8")
    write_json(content, folder / FILE)


def load_ensemble(folder: str | Path) -> EDOEnsemble:
    """The fitted ensemble in a folder; see `EDOEnsemble.load`."""
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


def save_classifier(model: EDOClassifier, folder: str | Path) -> None:
    """Write a classifier: its pool as an ensemble, its members with skops."""
    from edokit._io.skops import write_estimator

    check_is_fitted(model, "ensemble_")
    folder = Path(folder)
    save_ensemble(model.ensemble_, folder)
    for k, estimator in enumerate(model.estimators_):
        with whole_file(folder / MEMBERS / f"{k}.skops") as temporary:
            write_estimator(estimator, temporary)
    parameters = {name: getattr(model, name) for name in _CLASSIFIER_PARAMETERS}
    if not isinstance(model.cv, int):
        parameters["cv"] = 5  # a splitter can't be written as JSON, and is not needed to predict
    names = getattr(model, "feature_names_in_", None)
    content = {
        "format": FORMAT,
        "kind": CLASSIFIER_KIND,
        "classes": model.classes_.tolist(),
        "parameters": parameters,
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
    }
    write_json(content, folder / CLASSIFIER)


def load_classifier(folder: str | Path, *, trust: Sequence[str] = ()) -> EDOClassifier:
    """The fitted classifier in a folder."""
    from edokit._io.skops import read_estimator_file
    from edokit.ensemble.classifier import EDOClassifier

    path = Path(folder) / CLASSIFIER
    if not path.exists():
        raise InputError(
            f"a classifier is a folder with {CLASSIFIER}, but {folder} has none",
            "make one with EDOClassifier.save",
        )
    content = _checked(read_json(path), CLASSIFIER_KIND, str(path))
    pool = load_ensemble(folder)
    names = pool.fitted_.members
    members = [
        read_estimator_file(Path(folder) / MEMBERS / f"{k}.skops", trust) for k in range(len(names))
    ]
    with _whole(str(path)):
        given = {name: content["parameters"][name] for name in _CLASSIFIER_PARAMETERS}
        model = EDOClassifier(list(zip(names, members, strict=True)), **given)
        labels, classes = tuple(content["classes"]), pool.fitted_.classes
        if tuple(map(as_name, labels)) != classes:
            raise ValueError("its classes are not those of its ensemble")
        model.classes_ = label_array(classes, labels)
        if content["n_features_in"] is not None:
            model.n_features_in_ = int(content["n_features_in"])
        if content["feature_names_in"] is not None:
            model.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
    model.ensemble = EDOEnsemble(**pool.get_params())
    model.ensemble_, model.estimators_ = pool, members
    return model


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
    checked = _checked(content, KIND, where)
    with _whole(where):
        return EDOEnsemble.from_fitted(Fitted.from_dict(checked))


def _checked(content: Any, kind: str, where: str) -> dict[str, Any]:
    """The content of a file, if it is of this kind and no newer than this version."""
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise InputError(
            f"{where} does not describe an EDO {kind.removeprefix('edo-')}",
            "check that it is the right file",
        )
    written = content.get("format")
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{where} has format {written!r}; this version reads format {FORMAT} or older",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    return content


@contextmanager
def _whole(where: str) -> Iterator[None]:
    """Whatever is wrong inside a file is said as one line."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{where} is damaged: {type(error).__name__} {error}", "restore it, or fit again"
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
        learned="Learned from" if learned else "Its weights were given; evaluated on",
        where="the fit data (not held out)" if learned else "these items",
        items=content["items"],
        annotated=_annotated_by(content.get("data") or {}),
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


def _annotated_by(data: dict[str, Any]) -> str:
    """Who annotated the fit data, as far as it is known."""
    if not data:
        return ""
    classes = ", ".join(f"{count} × {_cell(name)}" for name, count in data["hard_labels"].items())
    return (
        f" with {data['annotations']} annotations by {data['annotators']} annotators"
        f" (hard labels: {classes})"
    )


def _cell(name: str) -> str:
    """A name inside a table."""
    return name.replace("|", "\\|").replace("\n", " ")


def check_replaceable(
    folder: Path,
    ensemble: EDOEnsemble,
    *,
    members: Sequence[str] | None = None,
    items: int | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse a folder of something else, or with an ensemble that is not this one.

    Called as soon as more is known: parameters before anything is read, ``members`` and ``items``
    before anything is learned, and the fitted ensemble before it is saved.
    """
    check_output(folder, "ensemble")
    if overwrite or not (folder / FILE).exists():
        return
    try:
        there = load_ensemble(folder)
    except InputError as error:
        raise InputError(error.message, REPLACE, parameters=("overwrite",)) from error
    found = there.get_params()
    other = [name for name, value in ensemble.get_params().items() if found[name] != value]
    if other:
        raise other_content(
            folder, "an ensemble", f"which was fitted with other settings: {examples(other)}"
        )
    same = members is None or (there.members_, there.n_items_) == (tuple(members), items)
    if hasattr(ensemble, "fitted_"):
        same = same and _is_same(there.fitted_, ensemble.fitted_)
    if not same:
        raise other_content(folder, "an ensemble", "which was learned from other data")


def _is_same(one: Fitted, other: Fitted) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    found = [(each.members, each.classes, each.items, each.data) for each in (one, other)]
    return found[0] == found[1] and all(
        np.allclose(a, b, rtol=0, atol=1e-6)
        for a, b in ((one.weights, other.weights), (one.member_ce, other.member_ce))
    )
