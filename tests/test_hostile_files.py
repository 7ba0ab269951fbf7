"""Files made to do harm: each is refused in one line, before it costs anything."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier

from edokit import (
    Annotations,
    Bundle,
    EDOEnsemble,
    InputError,
    read_annotations,
    read_predictions,
    write_report,
)
from edokit._io.documents import read_json
from edokit._io.npz import read_arrays
from edokit._io.skops import read_estimator_file, write_estimator
from edokit._io.tables import read_table, write_table
from edokit.members import Group, score_members, train_members
from edokit.members import arrays as member_arrays
from edokit.members.groups import read_groups
from edokit.members.loaded import load_member
from edokit.members.manifest import read_manifest
from edokit.members.texts import read_texts
from edokit.predictions.join import join_models
from edokit.runs.folder import check_output
from fuzz_files import whole_files
from tests.errors import raises_code

WHOLE: dict[str, Any] = {
    "probabilities": np.full((2, 1, 2), 0.5, dtype=np.float32),
    "items": np.array(["a", "b"]),
    "members": np.array(["m"]),
    "classes": np.array(["0", "1"]),
}


def read_member_arrays(path: Path) -> Any:
    """These arrays, as a member reads its own."""
    return member_arrays.read_arrays(path, WHOLE)


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


def read_model(path: Path) -> object:
    return join_models([path])


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
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 600
    return message


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
    assert "can't be read as an .npz file of plain arrays" in refused(read_predictions, path)
    assert "not a file of plain arrays" in refused(read_member_arrays, path)


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
    monkeypatch.setattr("edokit._parallel.free_memory", lambda: 59 << 20)
    bomb = claiming("(1000000, 1, 2)", content=b"\0" * 8_000_000)
    path = archive(tmp_path / "p.npz", probabilities=bomb)
    assert path.stat().st_size < 20_000
    for read in (read_predictions, read_member_arrays):
        assert "would take 15 MiB of memory, but 59 MiB are free" in refused(read, path)
    monkeypatch.undo()
    assert read_arrays(path, ["probabilities"])["probabilities"].shape == (1_000_000, 1, 2)


def test_arrays_that_nobody_asks_for_are_not_unpacked(tmp_path: Path) -> None:
    extra = npy(np.zeros(1 << 23))
    path = archive(tmp_path / "p.npz", extra=extra)
    tracemalloc.start()
    read_predictions(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(extra) / 4


def test_a_document_that_is_far_too_large_is_refused_unread(tmp_path: Path) -> None:
    for name in ("bundle.json", "ensemble.json", "manifest.json"):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(1 << 30)  # a hole, which takes no place on the disk
    for read in (Bundle.load, EDOEnsemble.load, read_manifest):
        assert re.search(r"json has 1\.0 GiB, more than", refused(read, tmp_path))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "p.npz")
    with zipfile.ZipFile(path, "a") as stream:
        stream.writestr("items.npy", npy(np.array(["c", "d"])))
    assert "it holds an array twice" in refused(read_predictions, path)


def test_a_changed_byte_never_changes_what_is_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "p.npz", probabilities=npy(WHOLE["probabilities"]))
    content = path.read_bytes()
    same = read_predictions(path)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            other_predictions = read_predictions(path)
        except InputError:
            continue
        np.testing.assert_array_equal(other_predictions.probabilities, same.probabilities)
        assert other_predictions.items.tolist() == same.items.tolist()


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
    refused(read_model, tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("levels", "message"), [(65, "is not an EDO ensemble"), (900, "nested too deeply")]
)
def test_an_ensemble_of_many_levels_is_refused(levels: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "ensemble.json").write_text("[" * levels + "]" * levels)
    assert message in refused(EDOEnsemble.load, tmp_path)


def test_brackets_in_texts_and_in_many_rows_are_no_depth(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = ["[" * 500, '"{' * 200, "\\" * 7 + '"[', ":-] " * 300, "{}"] * 40
    path.write_text("".join(json.dumps({"item": text, "list": [[1]]}) + "\n" for text in texts))
    assert read_table(path)["item"].to_pylist() == texts
    (tmp_path / "a.json").write_text(json.dumps(texts))
    assert read_json(tmp_path / "a.json") == texts


def claims_rows(path: Path, rows: int) -> Path:
    """A Parquet file whose footer claims another number of rows than it holds, wherever it can."""
    held = 70_001
    column = ["a"] * held
    write_table(pa.table({"item": column, "annotator": column, "label": column}), path)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    start = content[: -8 - size]
    footer = content[-8 - size : -8]
    # Sixteen says that a long follows.
    changed = footer.replace(b"\x16" + long(held), b"\x16" + long(rows))
    assert changed != footer
    path.write_bytes(start + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    return path


def long(number: int) -> bytes:
    """A number as Thrift writes it: seven bits a byte, the sign first."""
    number = 2 * number
    written = []
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


@pytest.mark.parametrize("rows", [70_002, 10**9, 10**12, 2**61])
def test_parquet_that_claims_other_rows_than_it_holds_is_refused(rows: int, tmp_path: Path) -> None:
    path = claims_rows(tmp_path / "a.parquet", rows)
    for read in (read_table, read_annotations, read_predictions, read_model):
        said = refused(read, path)
        assert "can't be read as a Parquet file" in said or "of memory, but" in said


def test_rows_of_nothing_new_are_a_bomb_where_they_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    column = pa.array(["a"] * 1_000_000)
    write_table(pa.table({"item": column, "annotator": column, "label": column}), path)
    assert path.stat().st_size < 20_000
    assert read_table(path).num_rows == 1_000_000
    monkeypatch.setattr("edokit._parallel.free_memory", lambda: 80 << 20)
    assert "but 80 MiB are free" in refused(read_table, path)


def test_a_header_of_thousands_of_columns_is_read_or_refused(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(15_000)]
    # Its time grows with their number: the roles of all columns are guessed.
    few = ",".join(names[:3_000])
    (tmp_path / "a.csv").write_text(f"{few}\n{few}\n")
    assert "'item', 'annotator', 'label' are missing" in refused(
        read_annotations, tmp_path / "a.csv"
    )
    (tmp_path / "a.csv").write_text(",".join([*names, *names]) + "\n")
    assert "several columns named" in refused(read_annotations, tmp_path / "a.csv")
    pairs = ",".join(f'"{name}": 1' for name in [*names, *names])
    (tmp_path / "a.jsonl").write_text("{" + pairs + "}\n")
    refused(read_annotations, tmp_path / "a.jsonl")


def test_a_class_for_every_item_is_refused_before_they_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{number},a,text number {number}\n" for number in range(40_000))
    (tmp_path / "a.csv").write_text("item,annotator,label\n" + rows)
    assert "40,000 different" in refused(read_annotations, tmp_path / "a.csv")


def test_names_that_hold_no_characters_are_refused(tmp_path: Path) -> None:
    for code in (0x110000, 0xFFFFFFFF, 0xD800):
        text = np.array([code, 0, ord("b"), 0], dtype="<u4").view("<U2")
        path = archive(tmp_path / "p.npz", items=npy(text))
        assert "'items' contains invalid Unicode" in refused(read_predictions, path)
        assert "'items' contains invalid Unicode" in refused(read_member_arrays, path)


@pytest.fixture
def members(tmp_path: Path) -> Path:
    """A folder as `edo train` leaves it, with one member."""
    folder = tmp_path / "members-of-others"
    whole_files(folder)
    place = folder / "members" / "few-0"
    place.mkdir(parents=True)
    return folder


OUTSIDE = ["../../evil", "/tmp/evil", "..", ".", "a/../../evil", "C:\\evil", "", "a\0b", "\ud800"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_members_whose_names_point_outside_are_refused(name: str, members: Path) -> None:
    manifest = read_json(members / "manifest.json")
    manifest["members"][0]["name"] = name
    (members / "manifest.json").write_text(json.dumps(manifest))
    message = refused(lambda path: score_members(path, ["a text"]), members)
    assert re.search(r"members\[0\]\.name can't be the name of a folder|half a character", message)


def test_a_folder_that_asks_for_code_is_refused(members: Path) -> None:
    card = read_json(members / "member.json")
    card["recipe"] = "os:system"
    (members / "members" / "few-0" / "member.json").write_text(json.dumps(card))
    assert "which would import code" in refused(load_member, members / "members" / "few-0")


@pytest.mark.parametrize("name", ["../out", "a/b", "..", "con\0", "a b", "-x"])
def test_groups_that_would_name_folders_elsewhere_are_refused(name: str) -> None:
    with raises_code("invalid-name"):
        Group("linear", 1, name).checked()


@pytest.mark.filterwarnings("ignore:all members of a group:edokit._errors.EDOWarning")
@pytest.mark.parametrize("annotator", ["../../evil", "/evil", "a\\b", "nul\0byte", "x" * 300])
def test_annotators_and_splits_name_no_files(annotator: str, tmp_path: Path) -> None:
    rows = [
        {"item": f"{split}{k}", "annotator": who, "label": str(k % 2), "text": f"post {k} {split}"}
        | {"split": split}
        for split in ("train", "dev")
        for k in range(8)
        for who in (annotator, "b")
    ]
    people = Annotations.from_table({name: [row[name] for row in rows] for name in rows[0]})
    out = tmp_path / "out"
    trained = train_members(people, [Group("linear", 2, supervision="per-annotator")], out=out)
    assert not trained.failed
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    names = sorted(path.name for path in (out / "members").iterdir())
    assert len(names) == 2
    assert all(re.fullmatch(r"linear-0[12]-[A-Za-z0-9][\w.-]{0,39}", name) for name in names)
    assert {path.name for path in (out / "predictions").iterdir()} == {"dev.npz"}


@pytest.mark.parametrize("split", ["../evil", "/evil", "a/b"])
def test_a_split_that_is_a_path_is_only_a_name(split: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"item,annotator,label,split\n1,a,0,{split}\n2,a,1,{split}\n")
    people = read_annotations(tmp_path / "a.csv", split=split)
    assert people.split_names == (split,)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


unix = pytest.mark.skipif(os.name == "nt", reason="pipes and links need rights there")


@unix
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".npz", ".json"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(ending: str, tmp_path: Path) -> None:
    pipe = tmp_path / f"pipe{ending}"
    os.mkfifo(pipe)
    device = tmp_path / f"device{ending}"
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        assert "is a pipe or a device" in refused(read_annotations, path)
        assert "is a pipe or a device" in refused(read_predictions, path)
        assert "it is not an archive of arrays" in refused(read_member_arrays, path)
        assert "is a pipe or a device" in refused(read_texts, path)
    (tmp_path / "pool.toml").symlink_to(pipe)
    refused(read_groups, tmp_path / "pool.toml")


@unix
@pytest.mark.parametrize("link", ["report.html", "run.json", "ensemble"])
def test_results_are_not_written_through_links_in_a_folder(link: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "README.md").write_text("mine")
    folder = tmp_path / "run"
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(outside if link == "ensemble" else outside / "README.md")
    said = refused(lambda place: check_output(place, "search"), folder)
    assert "is a link that leads out of" in said
    assert (outside / "README.md").read_text() == "mine"
    assert (folder / link).is_symlink()


@unix
def test_a_report_is_not_written_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    mine = tmp_path / "mine.txt"
    whole_files(folder)
    mine.write_text("mine")
    (folder / "report.html").symlink_to(mine)
    assert "is a link that leads out of" in refused(write_report, folder)
    assert mine.read_text() == "mine"
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to("page.html")
    write_report(folder)
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")


@unix
def test_links_are_followed_where_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    archive(tmp_path / "p.npz")
    (tmp_path / "a" / "q.npz").symlink_to(tmp_path / "p.npz")
    assert len(read_predictions(tmp_path / "a" / "q.npz")) == 2
    (tmp_path / "a" / "loop.npz").symlink_to(tmp_path / "a" / "loop.npz")
    refused(read_predictions, tmp_path / "a" / "loop.npz")


@unix
def test_an_archive_whose_entry_is_a_link_gives_no_other_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.npy"
    secret.write_bytes(npy(np.array(["hidden", "hidden2"])))
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w") as stream:
        for name, array in WHOLE.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            if name == "items":
                entry.create_system = 3
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            stream.writestr(entry, str(secret) if name == "items" else npy(array))
    refused(read_predictions, path)


@pytest.mark.parametrize(
    ("field", "value"), [("left_child", 10**6), ("left_child", 0), ("feature", 9)]
)
def test_a_tree_that_would_crash_compiled_code_is_refused(
    field: str, value: int, tmp_path: Path
) -> None:
    forest = RandomForestClassifier(2, random_state=0).fit(np.eye(6), [0, 1] * 3)
    write_estimator(forest, tmp_path / "whole.skops")
    assert read_estimator_file(tmp_path / "whole.skops").predict([[0] * 6]).shape == (1,)
    tree = forest.estimators_[1].tree_
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    write_estimator(forest, tmp_path / "damaged.skops")
    assert "a tree in it" in refused(read_estimator_file, tmp_path / "damaged.skops")


def test_a_package_that_is_missing_here_does_not_make_a_file_damaged(tmp_path: Path) -> None:
    write_estimator(RandomForestClassifier(2), tmp_path / "whole.skops")
    with mock.patch("skops.io.load", side_effect=ImportError("no module 'lightgbm'")):
        message = refused(read_estimator_file, tmp_path / "whole.skops")
    assert "lightgbm" in message
    assert "damaged" not in message
