"""Folders of strangers: documents whose paths lead elsewhere, and models made to do harm."""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edokit import (
    Bundle,
    EDOEnsemble,
    InputError,
    Predictions,
    fit,
    simulate,
    write_annotations,
    write_predictions,
)
from edokit._io.skops import read_estimator_file, write_estimator
from edokit.report import collect

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from serve_soak import make_bundle

SECRET = "a sentence that only its owner should read"


def refused(read: Any, *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


# --- run.json --------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a fit whose inputs lie beside it."""
    people = simulate("two-camps", items=(40, 30, 5), random_state=0).annotations
    items = people.split("dev").items
    shares = np.random.default_rng(0).dirichlet([2, 2], (len(items), 3))
    pool = Predictions.from_arrays(shares, layout="NKC", items=items, classes=people.classes)
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    write_annotations(people, inputs / "labels.csv")
    write_predictions(pool, inputs / "dev.npz")
    fit(inputs / "dev.npz", inputs / "labels.csv", split="dev", out=tmp_path / "run")
    return tmp_path / "run"


def point_elsewhere(run: Path, role: str, path: str) -> None:
    document = run / "run.json"
    record = json.loads(document.read_text())
    record["inputs"][role]["path"] = path
    document.write_text(json.dumps(record))


def private_file(run: Path) -> Path:
    """Annotations of the same items, with a text that nobody else should see."""
    labels = (run.parent / "inputs" / "labels.csv").read_text()
    header, *rows = labels.splitlines()
    place = header.replace('"', "").split(",").index("text")
    for number, row in enumerate(rows):
        cells = row.split(",")
        cells[place] = f'"{SECRET}"'
        rows[number] = ",".join(cells)
    path = run.parent / "private.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize("form", ["absolute", "dots", "link"])
def test_a_record_that_names_another_file_does_not_have_it_read(form: str, run: Path) -> None:
    path = private_file(run)
    name = str(path)
    if form == "dots":
        name = "../private.csv"
    if form == "link":
        (run / "labels.csv").symlink_to(path)
        name = "labels.csv"
    point_elsewhere(run, "annotations", name)
    data = collect(run)
    assert data.inputs["annotations"] == "changed"
    assert data.evaluation is None
    assert SECRET not in repr(data)
    assert any("is not the file that the run read" in line for line in data.missing)


def test_the_files_that_a_run_read_are_read_wherever_they_are(run: Path) -> None:
    data = collect(run)
    assert data.inputs["annotations"] == "same"
    assert data.evaluation is not None


def test_a_file_that_changes_while_it_is_read_is_noted_as_changed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = run.parent / "inputs"
    from edokit.fitdata import reading as module

    read = module.read_annotations_file

    def change_then_read(path: Path, options: Any) -> Any:
        text = path.read_text()
        path.write_text(text.replace('"sim-train-1"', '"sim-train-01"'))
        return read(path, options)

    monkeypatch.setattr(module, "read_annotations_file", change_then_read)
    out = run.parent / "again"
    fit(inputs / "dev.npz", inputs / "labels.csv", split="dev", out=out)
    monkeypatch.undo()
    assert collect(out).inputs["annotations"] == "changed"


# --- bundle.json -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def bundle(whole_bundle: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    shutil.copytree(whole_bundle, folder)
    return folder


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside.txt", "members/../../outside.txt"])
def test_a_bundle_that_lists_a_file_elsewhere_is_refused(name: str, bundle: Path) -> None:
    (bundle.parent / "outside.txt").write_text("mine")
    document = bundle / "bundle.json"
    contents = json.loads(document.read_text())
    contents["files"][name] = {"size": 4, "sha256": "0" * 64}
    document.write_text(json.dumps(contents))
    said = refused(Bundle.load, bundle)
    assert name in said or "not a valid" in said


# --- skops and ensembles ---------------------------------------------------------------------


def skops_file(path: Path, schema: dict[str, Any], **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def schema_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        content: dict[str, Any] = json.loads(archive.read("schema.json"))
    return content


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.skops"
    write_estimator(LogisticRegression().fit(np.eye(4), [0, 1] * 2), path)
    return path


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "FunctionNode"),
        ("builtins", "eval", "FunctionNode"),
        ("subprocess", "Popen", "ObjectNode"),
        ("builtins", "getattr", "TypeNode"),
        ("operator", "methodcaller", "OperatorFuncNode"),
        ("edokit.cli.app", "main", "FunctionNode"),
    ],
)
def test_a_model_that_names_code_is_refused_by_its_name(
    module: str, name: str, loader: str, model: Path, tmp_path: Path
) -> None:
    schema = schema_of(model)
    harmful = {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 1,
        "attrs": {
            "__class__": "dict",
            "__module__": "builtins",
            "__loader__": "DictNode",
            "content": {},
            "key_types": {
                "__class__": "list",
                "__module__": "builtins",
                "__loader__": "ListNode",
                "content": [],
            },
        },
        "content": {"module_path": module, "function": name},
    }
    for changed in (schema | harmful, schema | {"content": harmful}):
        said = refused(read_estimator_file, skops_file(tmp_path / "harm.skops", changed))
        assert "harm.skops" in said


def test_a_model_that_holds_a_pickle_is_refused(model: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    schema = schema_of(model)
    with zipfile.ZipFile(model) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in entries if name.endswith(".npy")]
    entries |= dict.fromkeys(arrays, stream.getvalue())
    del entries["schema.json"]
    refused(read_estimator_file, skops_file(tmp_path / "pickle.skops", schema, **entries))


@pytest.mark.parametrize("name", ["../../evil.npy", "/tmp/evil.npy"])
def test_a_model_whose_entries_lead_elsewhere_writes_nothing(
    name: str, model: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(model, "a") as archive:
        archive.writestr(name, b"x" * 100)
    read_estimator_file(model)  # read in memory, never unpacked
    assert not (tmp_path.parent.parent / "evil.npy").exists()
    assert not Path("/tmp/evil.npy").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("weights", {"a": float("inf")}),
        ("weights", {"a": 10**400}),
        ("members", ["../../a", "../../a"]),
        ("classes", ["x"] * 3),
        ("classes", []),
        ("format", 10**9),
    ],
)
def test_an_ensemble_with_harmful_values_is_refused(
    key: str, value: object, run: Path, tmp_path: Path
) -> None:
    document = run / "ensemble.json"
    content = json.loads(document.read_text())
    content[key] = value
    document.write_text(json.dumps(content))
    assert "ensemble.json" in refused(EDOEnsemble.load, run)
