"""``ensemble.json`` and the card beside it: what a saved ensemble is, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from edokit._errors import InputError, counted
from edokit._io import read_json, whole_file, write_json
from edokit._io.documents import Count, Document, Json, Names, to_model
from edokit._io.markup import markdown_text
from edokit._names import as_name
from edokit._outputs import begin_run
from edokit._types import Floats
from edokit._version import __version__
from edokit.annotator_effects import ATTRIBUTES_NOTE, attribute_names
from edokit.ensemble.answers import ANSWERS_FOR, ORDERED_STEP, Answer
from edokit.ensemble.fitted import Constant, Fitted, LabelFit, on_simplex
from edokit.ensemble.options import Options, from_flat
from edokit.ensemble.reasons import Reason
from edokit.metrics import main_metrics
from edokit.objective import Objective, Pool
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.objective.settings import SCALE_TERMS
from edokit.predictions.core import MemberInfo, checked_info
from edokit.scales import NOMINAL, Declared
from edokit.solvers import Certificate, Trajectory
from edokit.solvers.solution import SOLVERS

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
FILE = "ensemble.json"
_HINT = "restore it, or fit again"

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1, le=2**53)]
Temperature = Annotated[float, Field(ge=0.99 * LOWEST_TEMPERATURE, le=1.01 * HIGHEST_TEMPERATURE)]
Numbers = list[float | None]  # what is not finite is written as null


class _Header(Document):
    kind: str
    format: Count


class _Data(Document):
    annotators: Count
    annotations: Count
    hard_labels: dict[str, Count]


class _Constant(Document):
    shares: list[Share]
    label: Count | list[Count]
    source: str = "fit"


class _Answer(Document):
    step: Literal["temperature", "cumulative-temperature", "mode"]
    temperature: Temperature
    before: float
    after: float
    items: Positive


class EnsembleDocument(Document):
    """The content of ``ensemble.json``."""

    members: Annotated[Names, Field(min_length=1)]
    classes: Annotated[Names, Field(min_length=1)]
    weights: list[Share]
    size: Positive
    settings: dict[str, Json]
    parameters: dict[str, Json]
    objective: dict[str, float | None]
    metrics: dict[str, float | None]
    member_ce: Numbers
    items: Positive
    temperature: Temperature
    pool: Pool
    reasons: tuple[Reason, ...]
    constant: _Constant
    answers: dict[str, _Answer]
    data: _Data
    groups: list[str] | None = None
    pairs: Positive | None = None
    member_info: dict[str, dict[str, Json]] | None = None
    group_weights: list[Share] | None = None
    labels: list[str | bool | int | float] | None = None
    certificate: Certificate | None = None
    trajectory: dict[str, Numbers | list[Numbers]] | None = None
    scale: str | None = None
    label_weights: list[list[Share]] | None = None
    label_fits: dict[str, LabelFit] | None = None

    def to_fitted(self) -> Fitted:
        """The ensemble that the document describes.

        Raises
        ------
        ValueError
            If parts do not go together; anyone may have written the file.
        """
        scale = Declared(self.scale or NOMINAL).on(self.classes)
        label = self.constant.label
        answers = {name: Answer(**vars(answer)) for name, answer in self.answers.items()}
        fitted = Fitted(
            members=tuple(self.members),
            groups=None if self.groups is None else tuple(self.groups),
            member_info=checked_info(self.member_info or {}, self.members),
            classes=tuple(self.classes),
            labels=None if self.labels is None else tuple(self.labels),
            scale=scale,
            weights=np.array(self.weights),
            label_weights=None if self.label_weights is None else np.array(self.label_weights),
            label_fits=self.label_fits,
            group_weights=None if self.group_weights is None else np.array(self.group_weights),
            size=self.size,
            temperature=self.temperature,
            settings={**self.settings, "pool": self.pool.value},
            parameters=_parameters(self.parameters),
            objective=self.objective,  # type: ignore[arg-type]
            certificate=self.certificate,
            trajectory=None if self.trajectory is None else _trajectory(self.trajectory),
            metrics=self.metrics,
            member_ce=np.array(self.member_ce, dtype=np.float64),
            items=self.items,
            pairs=self.pairs,
            data=self.data.model_dump(),
            explanation=self.reasons,
            constant=Constant(
                np.array(self.constant.shares),
                tuple(label) if isinstance(label, list) else label,
                self.constant.source,
            ),
            answers=answers,
        )
        _check(fitted)
        return fitted


def _parameters(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator; version 0.1.0 names the fields of its objects flat."""
    parameters = dict(stored)
    try:
        if "objective" not in parameters:
            return from_flat(parameters)
        if parameters["objective"] is not None:
            parameters["objective"] = Objective(**parameters["objective"])
        if isinstance(parameters["solver"], dict):
            options = dict(parameters["solver"])
            parameters["solver"] = SOLVERS[options.pop("name")](**options)
        Options.of(parameters)
    except (InputError, TypeError, LookupError) as error:
        raise ValueError(f"parameters: {error}") from error
    return parameters


def _trajectory(columns: Mapping[str, Any]) -> Trajectory:
    if set(columns) != set(Trajectory.__dataclass_fields__):
        raise ValueError("trajectory lacks some columns, or has others")
    return Trajectory(**{name: np.array(c, dtype=np.float64) for name, c in columns.items()})


def _check(fitted: Fitted) -> None:
    """Refuse parts that do not go together."""
    members, units = len(fitted.members), len(fitted.unit_weights[0])
    heavy = int((fitted.unit_weights[1] > 0).sum())
    steps = {answer.step for answer in fitted.answers.values()}
    columns = [] if fitted.trajectory is None else list(vars(fitted.trajectory).values())
    labels = fitted.classes if fitted.labels is None else tuple(map(as_name, fitted.labels))
    rules = {
        "groups must be one per member": len(fitted.groups or fitted.members) == members,
        "weights must be one per member, not negative and sum to 1": _on_simplex(
            fitted.weights, members
        ),
        "group_weights must be one per group, not negative and sum to 1": _on_simplex(
            fitted.unit_weights[1], units
        ),
        f"size is {fitted.size}, but {heavy} of {units} carry weight": heavy
        <= fitted.size
        <= units,
        "labels must be the classes, one for each": labels == fitted.classes,
        "member_ce must be one per member": fitted.member_ce.shape == (members,),
        "classes must be at least two": fitted.scale.is_multi_label or len(fitted.classes) > 1,
        "label_weights must be weights of the members for each label of sets, and weights their"
        " mean": fitted.label_weights is None or _are_label_weights(fitted),
        "label_fits must be one for each label": tuple(fitted.label_fits or fitted.classes)
        == fitted.classes,
        "constant must be shares of the classes, and one of them": _is_constant(fitted),
        "answers must be steps for metrics of the scale": set(fitted.answers) <= set(ANSWERS_FOR)
        and (fitted.scale.positions is not None or ORDERED_STEP not in steps),
        "trajectory must be equally long everywhere": len(set(map(len, columns))) < 2,
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(rule)
    try:
        # Parts that these need may be missing.
        _ = fitted.options, fitted.regularization, fitted.nothing_learned
    except InputError as error:
        raise ValueError(f"settings: {error.message}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"settings and trajectory do not go together ({type(error).__name__})"
        ) from error


def _on_simplex(weights: Floats, count: int) -> bool:
    return weights.shape == (count,) and on_simplex(weights)


def _are_label_weights(fitted: Fitted) -> bool:
    weights = fitted.label_weights
    if weights is None or weights.shape != (len(fitted.classes), len(fitted.members)):
        return False
    near = np.allclose(weights.mean(axis=0), fitted.weights, rtol=0, atol=1e-6)
    return fitted.scale.is_multi_label and near and all(map(on_simplex, weights))


def _is_constant(fitted: Fitted) -> bool:
    shares, label, classes = fitted.constant.shares, fitted.constant.label, len(fitted.classes)
    if shares.shape != (classes,):
        return False
    if fitted.scale.is_multi_label:
        return isinstance(label, tuple) and len(label) == classes and set(label) <= {0, 1}
    return isinstance(label, int) and 0 <= label < classes and on_simplex(shares)


Model = TypeVar("Model", bound=Document)


def read_saved(path: Path, kind: str, model: type[Model], newest: int = FORMAT) -> Model:
    """The content of a JSON file of this kind; whatever is wrong with it is one error."""
    content, title = read_json(path), f"an EDO {kind}"
    header = to_model(content, _Header, path, title=title, hint="check that it is the right file")
    if header.kind != f"edo-{kind}":
        raise InputError(f"{path} does not describe {title}", "check that it is the right file")
    if header.format > newest:
        raise InputError(
            f"{path} has format {header.format}; this version reads format {newest} or older",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    return to_model(content, model, path, title=title, hint=_HINT)


def read_fitted(folder: str | Path) -> Fitted:
    """What ``write_fitted`` wrote; anything else is refused."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder}"
            f" {'has none' if Path(folder).exists() else 'does not exist'}",
            f"give {inside}"
            if (inside / FILE).exists()
            else "make one with `edo fit` or EDOEnsemble.save",
        )
    document = read_saved(path, "ensemble", EnsembleDocument)
    try:
        return document.to_fitted()
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}", _HINT) from error


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
    begin_run(folder)
    # By this the folder is known as EDO's, should the process end before there is a card.
    write_json(content, folder / FILE)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(fitted), encoding="utf-8")


_CARD = """# An EDO ensemble

{size} of {count} members carry weight in a {pool} pool over the {kind} {classes}.
{learned} {items}{annotated}, by edokit {version}.

## Members
| member | weight | own cross-entropy |
|---|---|---|
{members}

## On {where}
{metrics}

Settings: {settings}.
{penalty}{certificate}
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
{attributes}"""
_ATTRIBUTES = """
## Attributes of annotators
{users} used attributes of the annotators, beside or instead of their ids: {names}. {note}
"""


_KINDS = {
    "nominal": "classes",
    "ordinal": "ordinal scale",
    "multi-label": "labels (any number of them at once)",
}
_ALWAYS = (
    *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
    *("class_weights", "recalibrate"),
)
_CARD_SETTINGS = (*_ALWAYS, *SCALE_TERMS, "label_weights")
"""Settings on the card; those beyond `_ALWAYS` where they differ from their defaults."""


def card(fitted: Fitted) -> str:
    """The card of an ensemble."""
    settings, scale = fitted.settings, fitted.scale
    learned = settings["solver"] != "given"
    counts = ", ".join(
        f"{count} × {markdown_text(name)}" for name, count in fitted.data["hard_labels"].items()
    )
    penalty = f"\n{fitted.regularization}\n" if fitted.regularization else ""
    certificate = fitted.certificate
    metrics = {name: fitted.metrics.get(name) for name in main_metrics(scale)}
    return _CARD.format(
        size=fitted.size,
        count=len(fitted.members) if fitted.groups is None else "the grouped",
        pool=fitted.pool,
        kind=_KINDS[scale.kind],
        classes=", ".join(map(markdown_text, fitted.classes)),
        learned="Learned from" if learned else "Its weights were given; evaluated on",
        where="the fit data (not held out)" if learned else "these items",
        items=fitted.learned_from,
        annotated=f" with {fitted.data['annotations']} annotations by {fitted.data['annotators']}"
        f" annotators (hard labels: {counts})",
        version=__version__,
        members="\n".join(_member_rows(fitted)),
        metrics=", ".join(
            f"{name.upper().replace('_', ' ')} {value:.4f}"
            for name, value in metrics.items()
            if value is not None
        ),
        settings=", ".join(
            f"{name} {settings[name]}"
            for name in _CARD_SETTINGS
            if name in settings and (name in _ALWAYS or settings[name] not in (0, "shared"))
        ),
        penalty=penalty,
        certificate=""
        if certificate is None
        else f"\nCertificate: {certificate.reason} ({certificate.gap:.1e}).\n",
        attributes=_attributes_of(fitted.member_info),
    )


def _member_rows(fitted: Fitted) -> list[str]:
    """A row per member with weight, and one for all without."""
    order = np.argsort(-fitted.weights, kind="stable")
    heavy = [k for k in order if fitted.weights[k] > 0]
    rows = [
        f"| {markdown_text(fitted.members[k])} | {fitted.weights[k]:.4f}"
        f" | {fitted.member_ce[k]:.4f} |"
        for k in heavy
    ]
    if len(heavy) < len(order):
        rows.append(f"| {counted(len(order) - len(heavy), 'other')} | 0 | |")
    return rows


def _attributes_of(member_info: MemberInfo) -> str:
    """The part of a card about attributes of annotators, if members use some."""
    texts = [str(info["attributes"]) for info in member_info.values() if info.get("attributes")]
    if not texts:
        return ""
    names = dict.fromkeys(name for text in texts for name in attribute_names(text))
    return _ATTRIBUTES.format(
        users=counted(len(texts), "member"),
        names=", ".join(map(markdown_text, names)),
        note=ATTRIBUTES_NOTE,
    )
