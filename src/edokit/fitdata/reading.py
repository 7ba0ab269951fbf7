"""Reading of predictions and annotations: the options, and a record of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy.typing as npt

from edokit._errors import InputError, local_path, one_of, option
from edokit._io.digests import digest_input
from edokit._io.documents import Json
from edokit._names import as_name
from edokit._parallel import LOCAL
from edokit._progress import Progress
from edokit.annotations.core import Annotations, Ties
from edokit.item_array import Order
from edokit.predictions.core import LEARN
from edokit.runs.inputs import Input, read_annotations_file, read_predictions_file
from edokit.scales import ScaleLike

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from _typeshed import DataclassInstance

    from edokit.fitdata.data import FitData
    from edokit.predictions.core import Predictions
    from edokit.predictions.shards import Shards

PredictionsLike: TypeAlias = "Predictions | Shards | FitData | npt.ArrayLike | str | Path"
"""Predictions as a verb accepts them; an array has the shape (N, K, C), a path is read. `Shards`
and `FitData` are for verbs that learn weights."""

LabelsLike: TypeAlias = Annotations | npt.ArrayLike | str | Path | None
"""Labels as a verb accepts them: annotations, an array with a row per item, or a path to read."""

TableLike: TypeAlias = "pd.DataFrame | pa.Table | Mapping[str, Any]"
"""A table in memory."""

AnnotationsLike: TypeAlias = "Annotations | TableLike | str | Path"
"""Annotations of items with ids: a path is read, a table has a row per annotation."""

ClassLabel: TypeAlias = str | bool | int | float
ClassLabels: TypeAlias = tuple[ClassLabel, ...]
"""Class labels as the user writes them."""


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """How shards are processed.

    Parameters
    ----------
    jobs : int, default=None
        Number of shards that are processed at a time. None: one per core, but no more than fit into
        2 GiB of memory.
    engine : str, default="local"
        ``local``, or ``dask://host:port``.
    scratch : str or Path, default=None
        The folder for the cache; None for TMPDIR or /var/tmp.
    progress : callable, default=None
        Called with the number of shards done, the number of shards, and the current task.
    """

    jobs: int | None = None
    engine: str = LOCAL
    scratch: str | Path | None = None
    progress: Progress | None = None


def as_shard_options(streaming: ShardOptions | Mapping[str, Any] | None) -> ShardOptions | None:
    """Return `ShardOptions` or None unchanged; convert a mapping of its fields."""
    if streaming is None or isinstance(streaming, ShardOptions):
        return streaming
    return ShardOptions(**streaming)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How the inputs of a fit are read, and how hard labels are made of them.

    The fields that are not described here are arguments of `read_annotations`; None means its
    default.

    Parameters
    ----------
    split : str or sequence of str, default=None
        Only annotations of this split, or of these.
    scale : Scale or str, default=None
        The answer scale of arrays, and of predictions and annotations that declare none.
    learn : {"items", "pairs", "pairs+anonymous"}, default=None
        What is learned from predictions for pairs of an item and an annotator.
    further : mapping of str to object
        Arguments of `read_annotations` that only one kind of source takes.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    seed : int, default=0
        Seed of random ties.
    shards : ShardOptions, default=None
        Read the predictions shard by shard. None: read only `Shards` that way.
    order : {"annotations"}, default=None
        Declares that the rows of arrays without ids are in the order of the annotations' items.

    Examples
    --------
    >>> ReadOptions(split="dev", columns={"item": "id"}).file_options()
    {'columns': {'item': 'id'}}
    """

    split: str | Sequence[str] | None = None
    columns: Mapping[str, str] | None = None
    classes: Sequence[object] | None = None
    label_map: Mapping[str, str] | None = None
    duplicates: Literal["error", "first", "all"] | None = None
    empty: Literal["error", "drop"] | None = None
    ignore_case: bool | None = None
    drop_label: Sequence[object] | None = None
    drop_annotator: Sequence[object] | None = None
    scale: ScaleLike | None = None
    format: str | None = None
    question: str | None = None
    learn: str | None = None
    further: Mapping[str, object] = field(default_factory=dict)
    ties: Ties = "first"
    seed: int = 0
    shards: ShardOptions | None = None
    order: Order | None = None

    @classmethod
    def from_arguments(
        cls,
        arguments: Mapping[str, object],
        *,
        split: str | Sequence[str] | None = None,
        scale: ScaleLike | None = None,
        ties: Ties = "first",
        seed: int = 0,
        shards: ShardOptions | None = None,
        order: Order | None = None,
    ) -> ReadOptions:
        """Return options from arguments of `read_annotations` (and ``learn``) by name."""
        file_options = {name: value for name, value in arguments.items() if name in FILE_OPTIONS}
        further = {name: value for name, value in arguments.items() if name not in FILE_OPTIONS}
        if scale is not None:
            file_options["scale"] = scale
        return cls(
            **file_options,  # type: ignore[arg-type]
            split=split,
            further=further,
            ties=ties,
            seed=seed,
            shards=shards,
            order=order,
        )

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes; None if they are not given."""
        if self.classes is None:
            return None
        return [as_name(label) for label in self.classes]

    def file_options(self) -> dict[str, Any]:
        """Return the arguments of `read_annotations` that are set, and ``learn``; not ``split``.

        They apply only to annotations that are files, and are recorded in ``run.json``.
        """
        options: dict[str, object] = {name: getattr(self, name) for name in FILE_OPTIONS}
        options.update(self.further)
        return {name: value for name, value in options.items() if value is not None}


def separate_settings(
    settings: Mapping[str, object], options: type[DataclassInstance]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the keywords of a verb into fields of its options and arguments of `read_annotations`.

    A keyword that is neither is refused.
    """
    names = {part.name for part in fields(options)}
    for name in settings:
        if name not in names:
            _check_reading_option(name, names)
    changes = {name: value for name, value in settings.items() if name in names}
    arguments = {name: value for name, value in settings.items() if name not in names}
    return changes, arguments


def _check_reading_option(name: str, further_names: set[str]) -> None:
    """Refuse a keyword that no source of annotations takes."""
    option_names = {*FILE_OPTIONS, *READING_OPTIONS, *further_names}
    if name in option_names:
        return
    hint = f"the options are {', '.join(sorted(option_names))}"
    close = get_close_matches(name, option_names, 1)
    if name == "seed":
        close = ["random_state"]
    if close:
        hint = f"did you mean {close[0]!r}?"
    raise InputError(f"there is no option {name!r}", hint, code="unknown-option")


READING_OPTIONS = (
    "annotator_columns",
    "attributes",
    "people",
    "sheet",
    "skip_rows",
    "user_first",
)
"""Arguments of `read_annotations` beside the fields of `ReadOptions`."""
_OTHER_OPTIONS = ("split", "further", "ties", "seed", "shards", "order")
FILE_OPTIONS = tuple(part.name for part in fields(ReadOptions) if part.name not in _OTHER_OPTIONS)
"""Fields of `ReadOptions` that say how a file of annotations is read."""


class InputFiles:
    """Reads predictions and annotations that are given as paths, and records the files.

    Objects and arrays are returned unchanged.

    Attributes
    ----------
    inputs : dict of str to Input
        The files that were read, by role.
    """

    def __init__(self, reading: ReadOptions) -> None:
        if reading.learn is not None:
            one_of("learn", reading.learn, LEARN)
        self._reading = reading
        self.inputs: dict[str, Input] = {}

    def predictions(self, role: str, source: PredictionsLike) -> PredictionsLike:
        """Return predictions, read from the file if they are given as a path."""
        if not isinstance(source, str | Path):
            return source
        return read_predictions_file(Path(source), self.note_predictions(role, source))

    def annotations(self, role: str, source: LabelsLike) -> LabelsLike:
        """Return annotations of the requested splits, read from the file if they are a path."""
        if isinstance(source, str | Path):
            return read_annotations_file(Path(source), self.note_annotations(role, source))
        # The scale also applies to arrays, and to annotations that declare none.
        unused = [name for name in self._reading.file_options() if name != "scale"]
        if unused:
            raise InputError(
                f"{', '.join(map(option, sorted(unused)))}: these options are for annotations in a"
                f" file, but {role} is not a file",
                "leave them out",
                code="inapplicable-option",
            )
        split = self._reading.split
        if not split:
            return source
        if not isinstance(source, Annotations):
            raise InputError(
                f"{role} is an array, without splits",
                f"leave {option('split')} out",
                code="missing-splits",
            )
        names = [split] if isinstance(split, str) else split
        return source.split(*names)

    def note_predictions(self, role: str, path: str | Path) -> Mapping[str, Json]:
        """Record a file of predictions; return the options that it is read by."""
        options = {}
        for name, value in self._reading.file_options().items():
            if name in ("scale", "learn"):
                options[name] = value
        return self._note(role, path, options)

    def note_annotations(self, role: str, path: str | Path) -> Mapping[str, Json]:
        """Record a file of annotations; return the options that it is read by."""
        options = self._reading.file_options()
        if self._reading.split:
            options["split"] = self._reading.split
        return self._note(role, path, options)

    def _note(self, role: str, path: str | Path, options: Mapping[str, Json]) -> Mapping[str, Json]:
        """Record the digest of a file before it is read: it may be modified meanwhile."""
        sha256 = None
        file = local_path(path)
        with suppress(InputError):  # reading it says what is wrong
            sha256 = digest_input(file)
        self.inputs[role] = Input(str(path), sha256, options)
        return options
