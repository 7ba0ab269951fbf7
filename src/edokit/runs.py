"""What a run reads and writes: its inputs, its record ``run.json``, and its output folder.

A record keeps the command, its files and its seed beside the results. The report reads the same
files in the same way, and says whether they changed.

A folder for results is new, empty or holds earlier results of the same kind, unless the user says
``overwrite``; one process writes to it at a time. Inputs are kept.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from edokit._credentials import argument_without_credentials
from edokit._errors import (
    InputError,
    errors_in,
    local_path,
    one_of,
    option,
    warn,
)
from edokit._io.atomic import cannot_write, keep_others, remove_empty
from edokit._io.digests import digest_input
from edokit._io.documents import Count, Json, read_model, write_json
from edokit._io.locks import FileLock, Timeout, drop_lock, take_lock
from edokit._package import result_versions
from edokit.annotations.core import Annotations
from edokit.datasets.read import read_annotations
from edokit.predictions.core import LEARN, Predictions, view_labels, view_pairs
from edokit.predictions.shards import read_predictions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RUN_RECORD = "run.json"


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


@dataclass(frozen=True)
class RunRecord:
    """How results came about.

    Attributes
    ----------
    kind : str
        ``demo``, ``search``, ``fit``, ``compare`` or ``run``.
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
    versions: Mapping[str, str] = field(default_factory=result_versions)

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
        self.inputs: dict[str, Input] = {}  # what a run record keeps of the files, by role

    @property
    def paths(self) -> list[Path]:
        """The files that were read."""
        return [Path(source.path) for source in self.inputs.values()]

    def _note(self, role: str, path: str | Path, options: dict[str, Any]) -> dict[str, Any]:
        """Keep the digest of a file that is about to be read: it may change or go meanwhile."""
        sha256 = None
        with suppress(InputError):  # reading it says what is wrong
            sha256 = digest_input(Path(path))
        self.inputs[role] = Input(str(path), sha256, options)
        return options

    def predictions(self, role: str, source: Any) -> Any:
        """Predictions, from a file or as they are."""
        if not isinstance(source, str | Path):
            return source
        return _read_predictions(Path(source), self._note_predictions(role, source))

    def _note_predictions(self, role: str, path: str | Path) -> dict[str, Any]:
        names = ("scale", "learn")
        options = {name: self._options[name] for name in names if name in self._options}
        return self._note(role, path, options)

    def annotations(self, role: str, source: Any, split: str | Sequence[str] | None = None) -> Any:
        """The annotations of one or several splits (None: all), from a file or as they are."""
        if isinstance(source, str | Path):
            options = self._note(role, source, self._reading_options(split))
            return _read_annotations(Path(source), options)
        if self._options:
            names = ", ".join(map(option, sorted(self._options)))
            raise InputError(
                f"{names}: for annotations that are files, but {role} is not a file",
                "leave it out",
            )
        if split and not isinstance(source, Annotations):
            raise InputError(f"{role} is an array, without splits", f"leave {option('split')} out")
        return source.split(*([split] if isinstance(split, str) else split)) if split else source

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
        return {**self._options, **({"split": split} if split else {})}


def _read_predictions(path: Path, options: Mapping[str, Any]) -> Predictions:
    """Predictions, on the scale that was declared for those without one."""
    predictions = read_predictions(path)
    predictions = predictions.on_scale(options["scale"]) if options.get("scale") else predictions
    return view_pairs(predictions, options.get("learn"))


def _read_annotations(path: Path, options: Mapping[str, Any]) -> Annotations:
    """Annotations, read as a record says."""
    arguments = dict(options)
    learn = arguments.pop("learn", None)
    # Earlier records keep several splits under a name of their own.
    arguments["split"] = arguments.pop("splits", None) or arguments.get("split")
    return view_labels(read_annotations(path, **arguments), learn)


def command_text(arguments: Sequence[str]) -> str:
    """A command line as text, without the credentials that a URL may carry."""
    return shlex.join(map(argument_without_credentials, arguments))


Options = TypeVar("Options", bound="DataclassInstance")


def merge_options(
    kind: type[Options], options: Options | None, settings: Mapping[str, Any]
) -> tuple[Options, dict[str, Any]]:
    """Options with single fields changed, and the settings that are no fields of them."""
    names = {field.name for field in fields(kind)}
    changes = {name: value for name, value in settings.items() if name in names}
    unmatched = {name: value for name, value in settings.items() if name not in names}
    return replace(kind() if options is None else options, **changes), unmatched


# --- Output folders -------------------------------------------------------------------------------

Kind = Literal["run", "bundle", "demo", "search", "comparison", "members", "ensemble"]

BUNDLE = "bundle.json"
REPORT = "report.html"
LOCK = ".edo.lock"
REPLACE = f"choose another output folder, or replace it with {option('overwrite', True)}"


class Layout(NamedTuple):
    """One kind of output folder.

    Attributes
    ----------
    title : str
        For messages.
    markers : dict[str, set[str]]
        A folder is of this kind if it holds one of these documents, with these keys; a document of
        this kind is written before all other output.
    """

    title: str
    markers: dict[str, set[str]]


_MEMBER = {"format", "recipe", "fingerprint"}
# A kind comes before those that are part of it.
LAYOUTS: dict[Kind, Layout] = {
    "run": Layout("a run", {"summary.json": {"options", "summary"}}),
    "bundle": Layout("a bundle", {BUNDLE: {"kind", "format", "files"}}),
    "demo": Layout("a demo", {"results.json": {"regime", "methods"}}),
    "search": Layout(
        "a search",
        {"search/search.json": {"trials", "front", "chosen"}, "search/journal.log": {"op_code"}},
    ),
    "comparison": Layout("a comparison", {"compare/methods.json": {"methods", "lowest_ce"}}),
    "members": Layout(
        "a set of trained members",
        {
            "manifest.json": {"format", "data", "groups", "members"},
            "members/*/member.json": _MEMBER,
            "members/*/fold-*/member.json": _MEMBER,
        },
    ),
    "ensemble": Layout("a fitted ensemble", {"ensemble.json": {"kind", "format", "weights"}}),
}


def kind_of(folder: Path) -> Kind | None:
    """Which kind of output a folder holds, finished or not; None if it holds none."""
    for kind, layout in LAYOUTS.items():
        for marker, keys in layout.markers.items():
            if any(_has_keys(path, keys) for path in folder.glob(marker)):
                return kind
    return None


def _has_keys(path: Path, keys: set[str]) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        # Of a journal, the first of its lines; a search that was killed at once wrote none.
        content = json.loads(text.partition("\n")[0] or "{}" if path.suffix == ".log" else text)
        return isinstance(content, dict) and (not text or keys <= content.keys())
    except (OSError, ValueError, RecursionError):
        return False


def check_output(folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse, before any work, a folder that this kind of output can't be written to.

    It must be new, empty or of this kind; with ``overwrite`` it may hold what EDO did not write,
    but no other kind of output. Nor may it hold an input, or links that lead out of it.
    """
    _check_folder(folder)
    title, present = LAYOUTS[kind].title, kind_of(folder)
    if present not in (None, kind):
        raise InputError(
            f"{title} needs a folder of its own, but {folder} holds {LAYOUTS[present].title}",
            "choose another output folder",
        )
    refuse_input(folder, *inputs, below=True)
    refuse_links(folder)
    file = None if present or overwrite else _first_file(folder)
    if file is not None:
        raise InputError(
            f"{folder} holds no {title.partition(' ')[2]} of edo's, but {file.relative_to(folder)}",
            REPLACE,
        )


def _check_folder(folder: Path) -> None:
    """Refuse what is no folder to write to: an address, a file or a path below one, the root."""
    local_path(folder)
    for path in (folder, *folder.parents):
        if path.is_file():
            raise InputError(
                f"results are written into a folder, but {path} is a file",
                "choose another output folder",
            )
    if os.path.realpath(folder) == Path(os.path.realpath(folder)).anchor:
        raise InputError(
            f"{folder} is the root of the file system, and no folder for results",
            "choose another output folder",
        )


def _first_file(folder: Path) -> Path | None:
    """A file in a folder, if there is one that is not hidden, as what killed processes left is."""
    for path in folder.rglob("*"):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not is_hidden and (path.is_symlink() or not path.is_dir()):
            return path
    return None


@contextmanager
def output_folder(
    folder: Path, kind: Kind, *inputs: Path | None, overwrite: bool = False, wait: bool = False
) -> Iterator[None]:
    """Lock a folder for exclusive writing; refused as by `check_output`, or if it is in use.

    With ``wait``, the end of a process that has it is waited for.
    """
    check_output(folder, kind, *inputs, overwrite=overwrite)
    with locked(folder, wait=wait):
        # Another process may have finished there meanwhile.
        check_output(folder, kind, *inputs, overwrite=overwrite)
        yield


@contextmanager
def output_files(
    *outs: Path | None, inputs: Iterable[Path | None] = (), overwrite: bool = False
) -> Iterator[None]:
    """Write files, but not over an input nor, without ``overwrite``, over any other content."""
    sources = list(inputs)
    for out in outs:
        if out is not None:
            local_path(out)
            refuse_input(out, *sources)
    with nullcontext() if overwrite else keep_others():
        yield


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder for exclusive writing; refused if another process (or thread) has it.

    With ``wait``, the end of the other one is waited for.
    """
    _check_folder(folder)
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    lock: FileLock | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(folder, wait)
    except (OSError, InputError) as error:
        remove_empty(new_folders)
        if isinstance(error, InputError):
            raise
        raise cannot_write(folder, error) from error
    try:
        yield
    finally:
        if lock is not None:
            drop_lock(lock)
        remove_empty(new_folders)


def _take_lock(folder: Path, wait: bool) -> FileLock | None:
    """The lock of a folder; None, with a warning, where nothing can be locked."""
    path = Path(os.path.realpath(folder)) / LOCK
    try:
        return take_lock(path, reentrant=True)
    except Timeout:
        message = f"another process writes to {folder}"
        if not wait:
            raise InputError(
                message, "wait until it has ended, or choose another output folder"
            ) from None
        warn(f"{message}; waiting until it has ended")
        return take_lock(path, wait=True, reentrant=True)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        warn(
            f"{folder} can't be locked here ({error.strerror}): make sure that only one command"
            " writes to it at a time"
        )
        path.unlink(missing_ok=True)  # the file of the lock may have been made
        return None


def begin_run(folder: Path) -> None:
    """Remove the ``run.json`` of earlier results, which are about to be replaced.

    Where it is, the results beside it are complete.
    """
    try:
        (folder / RUN_RECORD).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder / RUN_RECORD, error) from error


def refuse_links(folder: Path, name: str = "*") -> None:
    """Refuse links that lead out of the folder, by which other files would be overwritten."""
    home = os.path.realpath(folder)
    for path in folder.rglob(name):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
            raise InputError(
                f"{path} leads out of {folder} through a link, and what it leads to would be"
                " overwritten",
                "remove the link, or choose another output folder",
            )


def refuse_input(out: Path | None, *inputs: Path | None, below: bool = False) -> None:
    """Refuse to overwrite an input, or one ``below`` a folder, with what is made of it."""
    for source in inputs:
        is_same = False
        # What is no path is refused where it is read or written.
        with suppress(OSError, ValueError):
            if out is not None and source is not None:
                target, origin = os.path.realpath(out), Path(os.path.realpath(source))
                is_same = below and origin.is_relative_to(target)
                is_same = is_same or origin == Path(target) or out.samefile(source)
        if is_same:
            raise InputError(
                f"{source} is read and would be overwritten: input and output are the same file",
                "name another file for the output",
            )


def check_page(out: Path, *inputs: Path | None, overwrite: bool = False) -> None:
    """Refuse to write a page over what it is made of or what is no page of EDO's."""
    refuse_input(out, *inputs)
    if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{out} is no name for a page: it must end in .html", "name it report.html"
        )
    if not overwrite and out.is_file() and not _is_page(out):
        raise InputError(
            f"edo did not write {out}, and it would be replaced",
            f"name another file, or replace it with {option('overwrite', True)}",
        )


def _is_page(path: Path) -> bool:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as stream:
        start = stream.read(1 << 16)
        return '<meta name="generator" content="edokit' in start or "EDO report</title>" in start
    return False
