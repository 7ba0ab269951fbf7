"""Every reader of files from elsewhere, and the rule that it must follow."""

from __future__ import annotations

import atexit
import json
import shutil
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import optuna

from edokit import (
    Annotations,
    Bundle,
    EDOClassifier,
    EDOEnsemble,
    EDOError,
    EDOWarning,
    Predictions,
    read_annotations,
    read_predictions,
    train_members,
    write_predictions,
    write_report,
)
from edokit._errors import errors_in
from edokit._io.digests import digest_input
from edokit._io.documents import read_json
from edokit._io.tables import write_table
from edokit.analysis.search.storage import open_storage
from edokit.members import loaded, parse_groups, score_members
from edokit.members.arrays import read_arrays
from edokit.members.card import read_card
from edokit.members.loaded import load_member
from edokit.members.manifest import read_manifest
from edokit.members.texts import read_annotators, read_texts
from edokit.predictions.join import join_models
from edokit.report.data import ReportData
from edokit.report.results import ranked_scores, read_comparison, read_search
from edokit.report.summary import summarize
from edokit.runs.record import RunRecord
from fuzz_damage import another
from fuzz_files import GROUPS, OTHERS, few_people, lewidi2025, whole_files, whole_folders

__all__ = ["OTHERS", "another", "read_everywhere", "read_own", "whole_files", "whole_folders"]

Reader = Callable[[Path], object]
_AGAIN = Path(mkdtemp(prefix="edo-again-"))
"""The folder in which objects are saved again after they were read."""
atexit.register(shutil.rmtree, _AGAIN, ignore_errors=True)


def _ensemble(path: Path) -> EDOEnsemble:
    loaded = EDOEnsemble.load(path.parent)
    loaded.summary()
    loaded.explain()
    k = len(loaded.members_)
    c = len(loaded.classes_)
    shares = np.full((2, k, c), 1 / c)
    answers = loaded.predict_proba(
        Predictions.from_arrays(
            shares,
            members=loaded.members_,
            classes=loaded.classes_,
            groups=loaded.groups_,
            layout="NKC",
        )
    )
    assert np.allclose(answers.sum(axis=1), 1, atol=1e-3)
    repr(loaded)
    loaded.save(_AGAIN / "ensemble")
    assert EDOEnsemble.load(_AGAIN / "ensemble").members_ == loaded.members_
    return loaded


def _classifier(path: Path) -> EDOClassifier:
    folder = path.parent
    if path.suffix == ".skops":
        folder = folder.parent
    model = EDOClassifier.load(folder)
    with loaded._model_errors(folder):
        answers = model.predict_proba(np.zeros((2, 2)))
        model.predict(np.zeros((2, 2)))
    assert answers.shape == (2, len(model.classes_))
    model.save(_AGAIN / "model")
    return model


def _bundle(path: Path) -> None:
    bundle = Bundle.load(path.parent)
    assert bundle.predict_proba(["One text.", "Another one."]).shape == (2, len(bundle.classes))
    repr((bundle, bundle.version, bundle.size))


def _trained(path: Path) -> Predictions:
    """Members score texts, and can be saved again."""
    folder = next(parent for parent in path.parents if (parent / "manifest.json").exists())
    predictions = score_members(folder, ["One text.", "Another one."])
    write_predictions(predictions, _AGAIN / "scored.npz")
    for card in folder.glob("members/*/member.json"):
        shutil.rmtree(_AGAIN / "member", ignore_errors=True)
        (_AGAIN / "member").mkdir()
        load_member(card.parent).save(_AGAIN / "member")
    return predictions


def _resumed(path: Path) -> Mapping[str, Predictions]:
    """A resumed training keeps complete members, and trains or refuses the others."""
    folder = path.parents[2]
    return train_members(few_people(), GROUPS, out=folder).predictions


def _journal(path: Path) -> None:
    copied = _AGAIN / "journal.log"
    shutil.copy(path, copied)
    with open_storage(copied) as opened:
        for name in optuna.get_all_study_names(opened.storage):
            trials = optuna.load_study(study_name=name, storage=opened.storage).trials
            assert all(trial.state is not None for trial in trials)


def _comparison(path: Path) -> object:
    return ranked_scores(read_comparison(path), None)


def _in_a_run(path: Path) -> Path | None:
    """The page of a run with a damaged document."""
    candidates = (path.parent.with_name("run"), *path.parents)
    folder = next(candidate for candidate in candidates if (candidate / "run.json").exists())
    if path.name == "run.json":
        RunRecord.load(folder).save(_AGAIN)
    if zlib.crc32(path.read_bytes()) % 10:
        return None  # a page takes much longer than the documents that it shows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return write_report(folder, _AGAIN / "page.html")


def _run(path: Path) -> RunRecord:
    record = RunRecord.load(path.parent)
    with errors_in(path):
        for role in record.inputs:
            digest_input(record.path(role, path.parent) or path)
    record.annotations("annotations", path.parent)
    record.predictions("predictions", path.parent)
    record.save(_AGAIN)
    return record


def _search(path: Path) -> object:
    search = read_search(path.parent)
    return summarize(ReportData("run", search=search))


def _manifest(path: Path) -> object:
    manifest = read_manifest(path.parent)
    for member in manifest["members"]:
        place = (path.parent / "members" / member["name"]).resolve()
        assert place.is_relative_to(path.parent.resolve())
    return manifest["data"]["classes"]


def _member(path: Path) -> object:
    return read_card(path.parent)["recipe"]


def _pool(path: Path) -> object:
    return parse_groups(str(path))


def _metadata(path: Path) -> Annotations:
    """Attributes of annotators beside an undamaged file."""
    data = path.with_name("nli_train.json")
    data.write_text(json.dumps(lewidi2025()))
    return read_annotations(data)


_LABEL_STUDIO = partial(read_annotations, format="label-studio")
_ARGILLA = partial(read_annotations, format="argilla")
_LEWIDI = partial(read_annotations, format="lewidi")
_JOIN: Reader = lambda path: join_models([path])  # noqa: E731
_ARRAYS = ("probabilities", "items", "members", "weights", "columns", "seen", "dev", "data")
_member_arrays: Reader = lambda path: read_arrays(path, _ARRAYS)  # noqa: E731
_ANSWERS: Reader = lambda path: join_models(  # noqa: E731
    [path], classes=["no", "yes"], unparsed="drop", missing="drop"
)

OWN: dict[str, list[Reader]] = {
    "people": [read_annotations],
    "model": [_JOIN],
    "texts": [read_texts],
    "studio": [read_annotations, _LABEL_STUDIO],
    "argilla": [read_annotations, _ARGILLA],
    "tone_train": [read_annotations, _LEWIDI],
    "nli_train": [read_annotations, _LEWIDI, read_texts],
    "nli_annotators_meta": [_metadata],
    "made": [read_predictions],
    "asked": [_ANSWERS],
    "ensemble": [_ensemble],
    "run": [_run],
    "search": [_search],
    "trials": [_search],
    "manifest": [_manifest],
    "member": [_member],
    "pool": [_pool],
    "bundle": [_bundle],
    "classifier": [_classifier],
    "0": [_classifier],
    "1": [_classifier],
    "linear": [_trained],
    "sklearn": [_trained],
    "estimator": [_trained],
    "predictions": [_resumed],
    "familiarity": [_trained],
    "dev": [read_predictions],
    "test": [read_predictions],
    "journal": [_journal],
    "methods": [_comparison],
}
"""The readers that a file is meant for, by the file's name."""

_TABLES: list[Reader] = [
    *(read_annotations, _JOIN, read_texts, read_annotators),
    *(_LABEL_STUDIO, _ARGILLA, _LEWIDI),
]
ENDINGS: dict[str, list[Reader]] = {
    ".csv": _TABLES,
    ".tsv": _TABLES,
    ".jsonl": _TABLES,
    ".parquet": [*_TABLES, read_predictions],
    ".npz": [_JOIN, _member_arrays],
    ".json": [read_annotations, _LABEL_STUDIO, _ARGILLA, _LEWIDI, read_json, read_annotators],
}
"""The readers that a file may be given to by mistake, by its ending."""


def own_readers(name: str) -> list[Reader]:
    """The readers that a file is meant for."""
    if name == "run-inputs/dev.csv":
        return [read_annotations, _in_a_run]
    if name.startswith(("run/", "run-inputs/")) and not name.endswith(".log"):
        return [*OWN[Path(name).stem], _in_a_run]
    if name.startswith("fine-tuned/"):
        return [_trained]
    if name.startswith("trained/members") and name.endswith("member.json"):
        return [_trained, _resumed]
    if name == "trained/manifest.json":
        return [_trained]
    return OWN[Path(name).stem]


@cache
def readers_of(name: str) -> list[Reader]:
    """Every reader that a file of this name may be given to."""
    readers = [*own_readers(name)]
    for reader in ENDINGS.get(Path(name).suffix, ()):
        if reader not in readers:
            readers.append(reader)
    return readers


def read_everywhere(path: Path) -> int:
    """The number of readers that accept the file; each must do so or refuse it in one line."""
    return sum(_accepts(read, path) for read in readers_of(path.name))


def read_own(path: Path, name: str = "") -> bool:
    """Whether all readers that a file is meant for accept it; ``name`` is its path in a folder."""
    accepted = [_accepts(read, path) for read in own_readers(name or path.name)]
    return all(accepted)


def _accepts(read: Reader, path: Path) -> bool:
    """Whether a reader accepts the file and returns a valid object; else its error is one line.

    Warnings other than EDO's are failures.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EDOWarning)
        try:
            _check(read(path))
        except EDOError as error:
            message = str(error)
            assert message, read
            assert len(message.splitlines()) == 1 or "decisions are open" in message, message
            assert len(message) < 3000, message
            assert any(name in message for name in _names(path)), message
            return False
    return True


def _names(path: Path) -> list[str]:
    """Names of the file and its folders, one of which a message must contain."""
    return [path.name, path.stem, path.parent.name, path.parent.parent.name]


def _check(value: object) -> None:
    """Use an object as the rest of EDO would."""
    if isinstance(value, Annotations):
        assert np.allclose(value.scale.rows(value.soft_labels).sum(axis=1), 1)
        assert value.hard_labels().max() < len(value.classes)
        table = value.to_table()
        rebuilt = Annotations.from_table(table, classes=value.classes, duplicates="all")
        assert rebuilt.items.tolist() == value.items.tolist()
        write_table(table, _AGAIN / "people.jsonl")
        assert len(read_annotations(_AGAIN / "people.jsonl", duplicates="all")) == len(value)
    elif isinstance(value, Predictions):
        write_predictions(value, _AGAIN / "made.parquet")
        assert np.isfinite(value.probabilities).all()
        assert np.allclose(value.uniform.sum(axis=1), 1, atol=1e-3)
