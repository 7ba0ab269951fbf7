"""Run records: the command, its files and its seed, kept beside the results as ``run.json``.

The report reads the same files in the same way, and says whether they changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from edokit._errors import InputError, errors_in, one_of, option, without_credentials
from edokit._io import cannot_read, write_json
from edokit._io.documents import Count, Json, read_model
from edokit._outputs import RUN_RECORD
from edokit._version import __version__
from edokit.annotations import Annotations
from edokit.datasets import read_annotations
from edokit.predictions import Predictions, read_predictions
from edokit.predictions.core import LEARN, view_labels, view_pairs

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "optuna")
_LIMIT = 2**30
# An argument is known to its end, so that a password may hold spaces.
_CREDENTIALS = re.compile(r"(?s)(?<=://).+@")


def versions() -> dict[str, str]:
    """Versions that results may depend on."""
    return {"edokit": __version__, **{name: version(name) for name in _LIBRARIES}}


@dataclass(frozen=True)
class Input:
    """A file or folder that a run read.

    Attributes
    ----------
    path : str
        Where, as it was given; inside the run's folder, relative to it.
    sha256 : str or None
        Digest of its bytes; none above one GiB.
    options : Mapping[str, Json]
        How annotations were read: arguments of ``read_annotations``, ``splits`` and ``learn``; of
        predictions, the ``scale`` that was declared, and ``learn``.
    """

    path: str
    sha256: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """How results came about.

    Attributes
    ----------
    kind : str
        ``demo``, ``search``, ``fit`` or ``compare``.
    inputs : Mapping[str, Input]
        By role: ``predictions``, ``annotations`` (to fit on), ``test_predictions``,
        ``test_annotations`` (to judge by).
    command : str
        As typed, without credentials; empty from Python.
    """

    kind: str
    inputs: Mapping[str, Input]
    seed: Count = 0
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=versions)

    def save(self, folder: Path) -> None:
        """Write ``run.json``; where it is, the results are complete."""
        write_json(asdict(self), folder / RUN_RECORD)

    @classmethod
    def load(cls, folder: Path) -> RunRecord:
        """Read what ``save`` wrote."""
        return read_model(folder / RUN_RECORD, cls, title="a run record", hint="run it again")

    def path(self, role: str, folder: Path) -> Path | None:
        """Where the input of this role is now, if there is one."""
        source = self.inputs.get(role)
        if source is None:
            return None
        inside = folder / source.path
        return inside if os.path.exists(inside) else Path(source.path)

    def predictions(self, role: str, folder: Path) -> Predictions | None:
        """The predictions of this role, if the run had some."""
        path = self.path(role, folder)
        with errors_in(folder / RUN_RECORD):
            return None if path is None else _read_predictions(path, self.inputs[role].options)

    def annotations(
        self, role: str, folder: Path, *, all_splits: bool = False
    ) -> Annotations | None:
        """The annotations of this role, read as the run read them, or those of all splits."""
        path = self.path(role, folder)
        if path is None:
            return None
        options = dict(self.inputs[role].options)
        if all_splits:
            options |= {"split": None, "splits": None}
        try:
            with errors_in(folder / RUN_RECORD):
                return _read_annotations(path, options)
        except InputError:
            raise
        except (TypeError, AttributeError, ValueError, LookupError) as error:
            raise InputError(
                f"{folder / RUN_RECORD} does not say how {role} were read: {error}",
                "run it again",
            ) from error


class InputReader:
    """Reads predictions and annotations that are given as files, and remembers the files.

    Whatever else is given (objects, arrays) passes through. ``options`` are those of
    `read_annotations`, and ``learn``: what is learned from predictions for pairs of an item and an
    annotator, see `LEARN`.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {name: value for name, value in options.items() if value is not None}
        if "learn" in self._options:
            one_of("learn", self._options["learn"], LEARN)
        self._read: dict[str, tuple[Path, dict[str, Any]]] = {}

    @property
    def paths(self) -> list[Path]:
        """The files that were read."""
        return [path for path, _ in self._read.values()]

    def inputs(self) -> dict[str, Input]:
        """What a run record keeps of them, by role."""
        return {
            role: Input(str(p), digest(p), options) for role, (p, options) in self._read.items()
        }

    def predictions(self, role: str, source: Any) -> Any:
        """Predictions, from a file or as they are."""
        if not isinstance(source, str | Path):
            return source
        self._note_predictions(role, source)
        return _read_predictions(*self._read[role])

    def _note_predictions(self, role: str, path: str | Path) -> None:
        names = ("scale", "learn")
        options = {name: self._options[name] for name in names if name in self._options}
        self._read[role] = (Path(path), options)

    def annotations(self, role: str, source: Any, split: str | Sequence[str] | None = None) -> Any:
        """The annotations of one or several splits (None: all), from a file or as they are."""
        splits = _split_names(split)
        if isinstance(source, str | Path):
            self._read[role] = (Path(source), self._reading_options(splits))
            return _read_annotations(*self._read[role])
        if self._options:
            names = ", ".join(map(option, sorted(self._options)))
            raise InputError(
                f"{names}: for annotations that are files, but {role} is not a file",
                "leave it out",
            )
        if splits and not isinstance(source, Annotations):
            raise InputError(f"{role} is an array, without splits", f"leave {option('split')} out")
        return source.split(*splits) if splits else source

    def streamed(
        self, predictions: Any, annotations: Any, split: str | Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Arguments of `FitData.open` for predictions and annotations to fit on."""
        splits = _split_names(split)
        if isinstance(predictions, str | Path):
            self._note_predictions("predictions", predictions)
        arguments = {"annotations": annotations, "splits": splits}
        if not isinstance(annotations, str | Path):
            return arguments
        self._read["annotations"] = (Path(annotations), self._reading_options(splits))
        return {**arguments, **self._options}

    def _reading_options(self, splits: list[str]) -> dict[str, Any]:
        """What a record says of how annotations were read."""
        several: dict[str, Any] = {"splits": splits} if len(splits) > 1 else {}
        return {**self._options, **({"split": splits[0]} if len(splits) == 1 else several)}


def _split_names(split: str | Sequence[str] | None) -> list[str]:
    return [] if split is None else [split] if isinstance(split, str) else list(split)


def _read_predictions(path: Path, options: Mapping[str, Any]) -> Predictions:
    """Predictions, on the scale that was declared for those without one."""
    predictions = read_predictions(path)
    predictions = predictions.on_scale(options["scale"]) if options.get("scale") else predictions
    return view_pairs(predictions, options.get("learn"))


def _read_annotations(path: Path, options: Mapping[str, Any]) -> Annotations:
    """Annotations, read as a record says."""
    arguments = dict(options)
    splits, learn = arguments.pop("splits", None), arguments.pop("learn", None)
    annotations = read_annotations(path, **arguments)
    annotations = annotations.split(*splits) if splits else annotations
    return view_labels(annotations, learn)


def digest(path: Path) -> str | None:
    """SHA-256 of a file, or of the names and bytes of a folder's files; None above one GiB."""
    try:
        # Hidden files are leftover temporary files of an interrupted writer.
        inside = (file for file in path.rglob("[!.]*") if file.is_file())
        files = sorted(inside) or [path]
        if any(file.exists() and not file.is_file() for file in files):
            raise OSError("it is no file")
        if sum(file.stat().st_size for file in files) > _LIMIT:
            return None
        content_digest = hashlib.sha256()
        for file in files:
            if file != path:
                content_digest.update(file.relative_to(path).as_posix().encode() + b"\0")
            content_digest.update(file.read_bytes())
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    return content_digest.hexdigest()


def command_text(arguments: Sequence[str]) -> str:
    """A command line as text, without the credentials that a URL may carry."""
    masked = (_CREDENTIALS.sub("***@", argument) for argument in arguments)
    return shlex.join(map(without_credentials, masked))


Options = TypeVar("Options", bound="DataclassInstance")


def merge_options(
    kind: type[Options], options: Options | None, settings: Mapping[str, Any]
) -> tuple[Options, dict[str, Any]]:
    """Options with single fields changed, and the settings that are no fields of them."""
    names = {field.name for field in fields(kind)}
    changes = {name: value for name, value in settings.items() if name in names}
    unmatched = {name: value for name, value in settings.items() if name not in names}
    return replace(kind() if options is None else options, **changes), unmatched


def with_options(arguments: Sequence[str], options: Mapping[str, object]) -> list[str]:
    """A command line in which options have these values, whatever was typed."""
    words: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument in options:
            next(waiting, None)
        elif argument.partition("=")[0] not in options:
            words.append(argument)
    return words + [text for option, value in options.items() for text in (option, str(value))]
