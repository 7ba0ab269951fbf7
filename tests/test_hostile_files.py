"""Files made to do harm: each is refused in one line, before it costs anything."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import EDOEnsemble
from edokit.archives import read_arrays
from edokit.datasets import read_annotations
from edokit.errors import InputError
from edokit.files import read_json, read_table
from edokit.members.arrays_file import read_arrays as read_member_arrays
from edokit.predictions import read_model_file, read_predictions

WHOLE: dict[str, Any] = {
    "probabilities": np.full((2, 1, 2), 0.5, dtype=np.float32),
    "items": np.array(["a", "b"]),
    "members": np.array(["m"]),
    "classes": np.array(["0", "1"]),
}


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def claiming(shape: str, kind: str = "<f4", content: bytes = b"\0" * 16) -> bytes:
    """An .npy file whose header claims a shape."""
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive(path: Path, **changed: bytes) -> Path:
    """Predictions of which some arrays are others."""
    entries = {f"{name}.npy": npy(array) for name, array in WHOLE.items()}
    entries |= {f"{name}.npy": content for name, content in changed.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, content in entries.items():
            stream.writestr(name, content)
    return path


def refused(read: Any, path: Path) -> str:
    """What is said of a file, which must be little and cost next to no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    assert len(said) < 600
    return said


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("(1000000000000, 1, 2)", "<f4"),
        ("(1000000000000, 1000000000000, 1000000000000)", "<f4"),
        ("(4, 1, 2)", "<f4"),
        ("(-2, 1, -2)", "<f4"),
        ("(1000000000000,)", "<U0"),
        ("(1000000000000,)", "|S0"),
        ("(1000000000000,)", "|V0"),
        ("(2,)", "<U1000000000"),
        ("(2,)", "|O"),
        ("(" * 3000, "<f4"),
        ("2", "<f4"),
        ("(2.5, 1, 2)", "<f4"),
    ],
)
@pytest.mark.parametrize("name", ["probabilities", "items"])
def test_a_header_that_claims_too_much_is_refused(
    name: str, shape: str, kind: str, tmp_path: Path
) -> None:
    path = archive(tmp_path / "p.npz", **{name: claiming(shape, kind)})
    assert "must be a whole .npz file of plain arrays" in refused(read_predictions, path)
    assert "whole file of plain arrays" in refused(read_member_arrays, path)


def test_the_archive_of_the_other_tests_is_valid(tmp_path: Path) -> None:
    assert len(read_predictions(archive(tmp_path / "p.npz"))) == 2


def test_a_size_that_the_archive_states_falsely_is_refused(tmp_path: Path) -> None:
    # Header and archive agree on 4 TB; the file holds 16 bytes of them.
    shape = "(500000000000, 1, 2)"
    path = archive(tmp_path / "p.npz", probabilities=claiming(shape))
    honest = len(claiming(shape)).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(honest, b"\xfe\xff\xff\xff"))
    assert "can't be read" in refused(read_predictions, path)


def test_a_bomb_is_refused_and_repetitive_predictions_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edokit.archives._LARGE", 1 << 20)
    bomb = claiming("(1000000, 1, 2)", content=b"\0" * 8_000_000)
    path = archive(tmp_path / "p.npz", probabilities=bomb)
    assert path.stat().st_size < 20_000
    assert "it would unpack to" in refused(read_predictions, path)
    monkeypatch.undo()
    assert read_arrays(path, ["probabilities"])["probabilities"].shape == (1_000_000, 1, 2)


@pytest.mark.parametrize("name", ["../../evil.npy", "/evil.npy", "..\\evil.npy", "C:\\evil.npy"])
def test_names_that_point_outside_are_refused(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "p.npz")
    with zipfile.ZipFile(path, "a") as stream:
        stream.writestr(name, b"evil")
    assert "points outside the archive" in refused(read_predictions, path)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["p.npz"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "p.npz")
    with zipfile.ZipFile(path, "a") as stream:
        stream.writestr("items.npy", npy(np.array(["c", "d"])))
    assert "it holds 'items' twice" in refused(read_predictions, path)


def test_a_changed_byte_never_changes_what_is_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "p.npz", probabilities=npy(WHOLE["probabilities"]))
    content = path.read_bytes()
    same = read_predictions(path)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            other = read_predictions(path)
        except InputError:
            continue
        np.testing.assert_array_equal(other.probabilities, same.probabilities)
        assert other.items.tolist() == same.items.tolist()


DEEP = 50_000
NESTED = {
    "lists": "[" * DEEP + "]" * DEEP,
    "objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "left open": "[" * DEEP,
    "over many lines": "[\n" * DEEP + "]\n" * DEEP,
    "behind text": r'"\\\"[", "x": ' + "[" * DEEP + "]" * DEEP,
    "behind a text that is left open": '"\n' + "[" * DEEP,
    "behind brackets that close too much": "]" * DEEP + "\n" + "[" * DEEP,
}


@pytest.mark.parametrize("nested", NESTED.values(), ids=list(NESTED))
def test_json_of_tens_of_thousands_of_levels_is_refused(nested: str, tmp_path: Path) -> None:
    content = '{"item": "a", "annotator": "b", "label": "c"}\n{"item": "b", "more": ' + nested + "}"
    for name in ("a.jsonl", "a.ndjson", "a.json"):
        path = tmp_path / name
        path.write_text(content + "\n")
        for read in (read_json, read_annotations) if name == "a.json" else (read_table,):
            refused(read, path)
        for kind in ("label-studio", "argilla", "lewidi"):
            refused(lambda path, kind=kind: read_annotations(path, format=kind), path)
    refused(read_model_file, tmp_path / "a.jsonl")


@pytest.mark.parametrize("levels", [65, 900])
def test_an_ensemble_of_many_levels_is_refused(levels: int, tmp_path: Path) -> None:
    (tmp_path / "ensemble.json").write_text("[" * levels + "]" * levels)
    assert "nested too deeply" in refused(EDOEnsemble.load, tmp_path)


def test_brackets_in_texts_and_in_many_rows_are_no_depth(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = ["[" * 500, '"{' * 200, "\\" * 7 + '"[', ":-] " * 300, "{}"] * 40
    path.write_text("".join(json.dumps({"item": text, "list": [[1]]}) + "\n" for text in texts))
    assert read_table(path)["item"].to_pylist() == texts
    (tmp_path / "a.json").write_text(json.dumps(texts))
    assert read_json(tmp_path / "a.json") == texts
