"""Predictions and annotations that a run reads from files, and how it read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from edokit._errors import InputError, one_of, option
from edokit._io.digests import digest_input
from edokit._io.documents import Json
from edokit.annotations.core import Annotations
from edokit.datasets.read import read_annotations
from edokit.predictions.core import LEARN, Predictions, view_labels, view_pairs
from edokit.predictions.shards import read_predictions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
        How annotations were read: arguments of ``read_annotations`` and ``learn``; of
        predictions, the ``scale`` that was declared, and ``learn``.
    """

    path: str
    sha256: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


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
        self.inputs: dict[str, Input] = {}  # what a run record keeps of the files, by role

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, Input]) -> InputReader:
        """A reader for objects in memory that came from these files."""
        reader = cls()
        reader.inputs = dict(inputs)
        return reader

    @property
    def paths(self) -> list[Path]:
        """The files that were read."""
        return [Path(source.path) for source in self.inputs.values()]

    def _note(self, role: str, path: str | Path, options: dict[str, Any]) -> dict[str, Any]:
        """Record the digest of a file before it is read: it may be modified meanwhile."""
        sha256 = None
        with suppress(InputError):  # reading it says what is wrong
            sha256 = digest_input(Path(path))
        self.inputs[role] = Input(str(path), sha256, options)
        return options

    def predictions(self, role: str, source: Any) -> Any:
        """Predictions, from a file or as they are."""
        if not isinstance(source, str | Path):
            return source
        return read_recorded_predictions(Path(source), self._note_predictions(role, source))

    def _note_predictions(self, role: str, path: str | Path) -> dict[str, Any]:
        names = ("scale", "learn")
        options = {name: self._options[name] for name in names if name in self._options}
        return self._note(role, path, options)

    def annotations(self, role: str, source: Any, split: str | Sequence[str] | None = None) -> Any:
        """The annotations of one or several splits (None: all), from a file or as they are."""
        if isinstance(source, str | Path):
            options = self._note(role, source, self._reading_options(split))
            return read_recorded_annotations(Path(source), options)
        if self._options:
            flags = ", ".join(map(option, sorted(self._options)))
            raise InputError(
                f"{flags}: for annotations that are files, but {role} is not a file",
                "leave it out",
            )
        if split and not isinstance(source, Annotations):
            raise InputError(f"{role} is an array, without splits", f"leave {option('split')} out")
        if not split:
            return source
        names = [split] if isinstance(split, str) else split
        return source.split(*names)

    def streamed(
        self, predictions: Any, annotations: Any, split: str | Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Arguments of `FitData.open` for predictions and annotations to fit on."""
        if isinstance(predictions, str | Path):
            self._note_predictions("predictions", predictions)
        if not isinstance(annotations, str | Path):
            return {"annotations": self.annotations("annotations", annotations, split)}
        options = self._note("annotations", annotations, self._reading_options(split))
        return {"annotations": annotations, **options}

    def _reading_options(self, split: str | Sequence[str] | None) -> dict[str, Any]:
        """What a record says of how annotations were read."""
        options = dict(self._options)
        if split:
            options["split"] = split
        return options


def read_recorded_predictions(path: Path, options: Mapping[str, Any]) -> Predictions:
    """Predictions, on the scale that was declared for those without one."""
    predictions = read_predictions(path)
    if options.get("scale"):
        predictions = predictions.on_scale(options["scale"])
    return view_pairs(predictions, options.get("learn"))


def read_recorded_annotations(path: Path, options: Mapping[str, Any]) -> Annotations:
    """Annotations, read as a record says."""
    arguments = dict(options)
    learn = arguments.pop("learn", None)
    # Earlier records keep several splits under a name of their own.
    arguments["split"] = arguments.pop("splits", None) or arguments.get("split")
    return view_labels(read_annotations(path, **arguments), learn)


Options = TypeVar("Options", bound="DataclassInstance")


def merge_options(
    kind: type[Options], options: Options | None, settings: Mapping[str, Any]
) -> tuple[Options, dict[str, Any]]:
    """Options with single fields changed, and the settings that are not fields of them."""
    names = {field.name for field in fields(kind)}
    changes = {name: value for name, value in settings.items() if name in names}
    unmatched = {name: value for name, value in settings.items() if name not in names}
    if options is None:
        options = kind()
    return replace(options, **changes), unmatched
