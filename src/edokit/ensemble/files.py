"""Ensembles and files: `edo fit`, and ``ensemble.json`` with the card beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from sklearn.base import clone

from edokit._errors import InputError, counted
from edokit._io import read_json, whole_file, write_json
from edokit._io.documents import Count, Document, to_model
from edokit._io.markup import markdown_text
from edokit._names import as_name
from edokit._outputs import begin_run, output_folder
from edokit._version import __version__
from edokit.annotations import Annotations
from edokit.ensemble._fit import fit_inputs
from edokit.ensemble.answers import ANSWERS_FOR, ORDERED_STEP
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.ensemble.inputs import predictions_for, read_inputs, warn_if_unanimous
from edokit.ensemble.options import Options
from edokit.fitdata import FitData
from edokit.metrics import main_metrics
from edokit.objective.settings import SCALE_TERMS
from edokit.runs import InputReader, RunRecord

if TYPE_CHECKING:
    pass

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
FILE = "ensemble.json"
_HINT = "restore it, or fit again"

Content = TypeVar("Content")


def fit(
    predictions: Any,
    annotations: Any,
    *,
    ensemble: EDOEnsemble | None = None,
    out: str | Path | None = None,
    split: str | Sequence[str] | None = None,
    overwrite: bool = False,
    streaming: Mapping[str, Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
    command: str = "",
) -> EDOEnsemble:
    """Learn member weights and ensemble size from predictions and annotations.

    Parameters
    ----------
    predictions : Predictions, array of shape (n_items, n_members, n_classes), Shards, str or Path
        What each member predicts for each item. A path is read as `read_predictions` does; `Shards`
        are read one by one.
    annotations : Annotations, array, str or Path
        The labels of these items, in any form that `EDOEnsemble.fit` takes. A path is read as
        `read_annotations` does.
    ensemble : EDOEnsemble, optional
        The options of the fit; ``EDOEnsemble()`` by default. It is not changed.
    out : str or Path, optional
        Folder to save the ensemble in, with a record of the files it was fitted on (``run.json``).
        An ensemble in it is replaced.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    overwrite : bool, default=False
        Also replace files in `out` that EDO did not write.
    streaming : mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``memory``,
        ``jobs``, ….
    read_options : mapping, optional
        Further arguments of `read_annotations`, such as ``columns`` or ``classes``.
    command : str, default=""
        The command line to record in ``run.json``.

    Returns
    -------
    EDOEnsemble
        The fitted ensemble.

    Raises
    ------
    InputError
        If an option or the data are unusable, or `out` holds something else.

    Examples
    --------
    >>> import edokit
    >>> from edokit import EDOEnsemble
    >>> P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]], [[0.7, 0.3], [0.4, 0.6]]]
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    >>> edokit.fit(P, votes, ensemble=EDOEnsemble("paper-fixed", solver="exact")).size_
    2
    """
    ensemble = EDOEnsemble() if ensemble is None else clone(ensemble)
    reading = dict(read_options or {})
    ensemble.scale = ensemble.scale or reading.get("scale")
    if isinstance(annotations, str | Path):
        reading["scale"] = ensemble.scale
    parameters = ensemble.get_params(deep=False)
    options = Options.of(parameters)  # refused before anything is read
    reader = InputReader(**reading)
    with ExitStack() as stack:
        if out is not None:
            paths = [Path(p) for p in (predictions, annotations) if isinstance(p, str | Path)]
            guard = output_folder(Path(out), "ensemble", *paths, overwrite=overwrite)
            stack.enter_context(guard)
        source = (predictions, annotations, split)
        predictions, labels = read_inputs(stack, reader, source, streaming, options.label_options)
        if not isinstance(predictions, FitData):
            predictions = predictions_for(labels, predictions, options.scale)
        labelled = predictions if labels is None else labels
        if isinstance(labelled, Annotations | FitData):
            warn_if_unanimous(labelled, annotations, split)
        fitted = fit_inputs(predictions, labels, parameters)
        if out is not None:
            write_fitted(fitted, out)
            if inputs := reader.inputs():
                RunRecord("fit", inputs, options.random_state, command).save(Path(out))
    return ensemble._keep(fitted)


class _Header(Document):
    kind: str
    format: Count


def _problem(fitted: Fitted) -> str | None:
    """Which parts do not go together, if some do not; anyone may have written the file."""
    members, classes, scale = len(fitted.members), len(fitted.classes), fitted.scale
    units, unit_weights = fitted.unit_weights
    heavy = int((unit_weights > 0).sum())
    labels, label_weights = fitted.labels, fitted.label_weights
    steps = {answer.step for answer in fitted.answers.values()}
    columns = [] if fitted.trajectory is None else list(vars(fitted.trajectory).values())
    rules = {
        "groups must be one per member": len(fitted.groups or fitted.members) == members,
        "weights must be one per member, not negative and sum to 1": on_simplex(
            fitted.weights, members
        ),
        "group_weights must be one per group, not negative and sum to 1": on_simplex(
            unit_weights, len(units)
        ),
        f"size is {fitted.size}, but {heavy} of {len(units)} carry weight": heavy
        <= fitted.size
        <= len(units),
        "labels must be the classes, one for each": labels is None
        or tuple(map(as_name, labels)) == fitted.classes,
        "member_ce must be one per member": fitted.member_ce.shape == (members,),
        "classes must be at least two": scale.is_multi_label or classes > 1,
        "label_weights must be those of the members for each label of sets, with weights as their"
        " mean": label_weights is None
        or (
            scale.is_multi_label
            and on_simplex(label_weights, classes, members)
            and np.allclose(label_weights.mean(axis=0), fitted.weights, rtol=0, atol=1e-6)
        ),
        "label_fits must be one for each label": tuple(fitted.label_fits or fitted.classes)
        == fitted.classes,
        "constant must be shares of the classes, and one of them": _is_constant(fitted),
        "answers must be steps for metrics of the scale": set(fitted.answers) <= set(ANSWERS_FOR)
        and (scale.positions is not None or ORDERED_STEP not in steps),
        "trajectory must be equally long everywhere": len(set(map(len, columns))) < 2,
    }
    for rule, holds in rules.items():
        if not holds:
            return rule
    try:
        # Parts that these need may be missing.
        _ = fitted.options, fitted.pool, fitted.regularization, fitted.nothing_learned
    except (InputError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        return f"settings: {getattr(error, 'message', repr(error))}"
    return None


def _is_constant(fitted: Fitted) -> bool:
    shares, label, classes = fitted.constant.shares, fitted.constant.label, len(fitted.classes)
    if len(shares) != classes or np.shape(label) != fitted.scale.hard(shares[None])[0].shape:
        return False
    codes = len(fitted.scale.row_classes(fitted.classes))
    in_range = all(0 <= code < codes for code in np.ravel(label))
    return in_range and bool(fitted.scale.are_distributions(shares))


def read_saved(path: Path, kind: str, model: type[Content]) -> Content:
    """The content of a JSON file of this kind; whatever is wrong with it is one error."""
    content, title = read_json(path), f"an EDO {kind}"
    header = to_model(content, _Header, path, title=title, hint="check that it is the right file")
    if header.kind != f"edo-{kind}":
        raise InputError(f"{path} does not describe {title}", "check that it is the right file")
    if header.format > FORMAT:
        raise InputError(
            f"{path} has format {header.format}; this version reads format {FORMAT} or older",
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
    fitted = read_saved(path, "ensemble", Fitted)
    if problem := _problem(fitted):
        raise InputError(f"{path} is damaged: {problem}", _HINT)
    return fitted


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


_ALWAYS = (
    *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
    *("class_weights", "recalibrate"),
)
_UNLESS_DEFAULT = (*SCALE_TERMS, "label_weights")


def card(fitted: Fitted) -> str:
    """The card of an ensemble, ``assets/card.md`` filled in."""
    settings = fitted.settings
    environment = Environment(
        loader=PackageLoader("edokit.ensemble", "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"escaped": markdown_text, "counted": counted}
    order = np.argsort(-fitted.weights, kind="stable")
    metrics = {name: fitted.metrics.get(name) for name in main_metrics(fitted.scale)}
    return environment.get_template("card.md").render(
        fitted=fitted,
        learned=settings.get("solver") != "given",
        version=__version__,
        heavy=[k for k in order if fitted.weights[k] > 0],
        metrics={name: value for name, value in metrics.items() if value is not None},
        settings={name: settings[name] for name in _ALWAYS if name in settings}
        | {
            name: settings[name]
            for name in _UNLESS_DEFAULT
            if settings.get(name, 0) not in (0, "shared")
        },
    )
