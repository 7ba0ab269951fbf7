"""Every reader that may be handed a file of someone else's, and what it may do with it."""

from __future__ import annotations

import atexit
import json
import shutil
import warnings
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

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

Reader = Callable[[Path], Any]
_AGAIN = Path(mkdtemp(prefix="edo-again-"))
"""Where what was read is saved again."""
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


def _classifier(path: Path) -> Any:
    folder = path.parent.parent if path.suffix == ".skops" else path.parent
    model = EDOClassifier.load(folder)
    with loaded._model_errors(folder):
        answers = model.predict_proba(np.zeros((2, 2)))
        model.predict(np.zeros((2, 2)))
    assert answers.shape == (2, len(model.classes_))
    model.save(_AGAIN / "model")
    return model


def _bundle(path: Path) -> Any:
    bundle = Bundle.load(path.parent)
    assert bundle.predict_proba(["One text.", "Another one."]).shape == (2, len(bundle.classes))
    repr((bundle, bundle.version, bundle.size))
    return None


def _trained(path: Path) -> Any:
    """Members score texts, and a training that is begun again keeps or refuses them."""
    folder = next(one for one in path.parents if (one / "manifest.json").exists())
    predictions = score_members(folder, ["One text.", "Another one."])
    write_predictions(predictions, _AGAIN / "scored.npz")
    for card in folder.glob("members/*/member.json"):
        shutil.rmtree(_AGAIN / "member", ignore_errors=True)
        (_AGAIN / "member").mkdir()
        load_member(card.parent).save(_AGAIN / "member")
    return predictions


def _resumed(path: Path) -> Any:
    """A training that is begun again keeps what is whole, and trains or refuses the rest."""
    folder = path.parents[2]
    return train_members(few_people(), GROUPS, out=folder).predictions


def _journal(path: Path) -> Any:
    copied = _AGAIN / "journal.log"
    shutil.copy(path, copied)
    with open_storage(copied) as opened:
        for name in optuna.get_all_study_names(opened.storage):
            trials = optuna.load_study(study_name=name, storage=opened.storage).trials
            assert all(trial.state is not None for trial in trials)
    return None


def _comparison(path: Path) -> Any:
    return ranked_scores(read_comparison(path), None)


def _in_a_run(path: Path) -> Any:
    """The page of a run of which a document is damaged."""
    near = (path.parent.with_name("run"), *path.parents)
    folder = next(one for one in near if (one / "run.json").exists())
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


def _search(path: Path) -> Any:
    found = read_search(path.parent)
    return summarize(ReportData("run", search=found))


def _manifest(path: Path) -> Any:
    manifest = read_manifest(path.parent)
    for member in manifest["members"]:
        place = (path.parent / "members" / member["name"]).resolve()
        assert place.is_relative_to(path.parent.resolve())
    return manifest["data"]["classes"]


def _member(path: Path) -> Any:
    return read_card(path.parent)["recipe"]


def _pool(path: Path) -> Any:
    return parse_groups(str(path))


def _metadata(path: Path) -> Any:
    """Attributes of annotators beside a file that is whole."""
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
    own = own_readers(name)
    return own + [reader for reader in ENDINGS.get(Path(name).suffix, ()) if reader not in own]


def read_everywhere(path: Path) -> int:
    """How many readers accept the file; each must do so or refuse it in one line."""
    return sum(_accepts(read, path) for read in readers_of(path.name))


def read_own(path: Path, name: str = "") -> bool:
    """Whether all readers that a file is meant for accept it; ``name`` is its path in a folder."""
    accepted = [_accepts(read, path) for read in own_readers(name or path.name)]
    return all(accepted)


def _accepts(read: Reader, path: Path) -> bool:
    """Whether a reader accepts the file, with a valid object; if not, it must say so in one line.

    EDO's own warnings tell what was decided; any other is a failure.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EDOWarning)
        try:
            _check(read(path))
        except EDOError as error:
            said = str(error)
            assert said, read
            assert len(said.splitlines()) == 1 or "decisions are open" in said, said
            assert len(said) < 3000, said
            assert any(part in said for part in _named(path)), said
            return False
    return True


def _named(path: Path) -> list[str]:
    """One of which a message must name: the file, or the folder that it belongs to."""
    return [path.name, path.stem, path.parent.name, path.parent.parent.name]


def _check(found: Any) -> None:
    """Use what was read, as the rest of EDO would."""
    if isinstance(found, Annotations):
        assert np.allclose(found.scale.rows(found.soft_labels).sum(axis=1), 1)
        assert found.hard_labels().max() < len(found.classes)
        again = Annotations.from_table(found.to_table(), classes=found.classes, duplicates="all")
        assert again.items.tolist() == found.items.tolist()
        write_table(found.to_table(), _AGAIN / "people.jsonl")
        assert len(read_annotations(_AGAIN / "people.jsonl", duplicates="all")) == len(found)
    elif isinstance(found, Predictions):
        write_predictions(found, _AGAIN / "made.parquet")
        assert np.isfinite(found.probabilities).all()
        assert np.allclose(found.uniform.sum(axis=1), 1, atol=1e-3)
