"""An output folder holds one kind of output, and nothing is written anywhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edokit._errors import InputError
from edokit._outputs import LAYOUTS, Kind, check_output, check_page, kind_of, refuse_input

unix = pytest.mark.skipif(os.name == "nt", reason="links need rights there")


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).mkdir() if name.endswith("/") else (folder / name).touch()


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ([], None),
        (["members/a/card.json"], None),
        (["ensemble.json"], "ensemble"),
        (["ensemble/ensemble.json"], "ensemble"),
        (["search/journal.log"], "search"),
        (["compare/methods.json", "ensemble/ensemble.json"], "comparison"),
        (["search/trials.parquet", "results.json", "probabilities.csv"], "demo"),
        (["manifest.json", "predictions/dev.npz", "ensemble/ensemble.json"], "members"),
        (["manifest.json"], None),
    ],
)
def test_a_folder_is_known_by_what_it_holds(
    files: list[str], kind: Kind | None, tmp_path: Path
) -> None:
    touch(tmp_path, *files)
    assert kind_of(tmp_path) == kind
    if kind is not None:
        check_output(tmp_path, kind)


@pytest.mark.parametrize("held", LAYOUTS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_kind_wants_a_folder_of_its_own(kind: Kind, held: Kind, tmp_path: Path) -> None:
    touch(tmp_path, *LAYOUTS[held].marks[0])
    if held == kind:
        check_output(tmp_path, kind)
        return
    with pytest.raises(InputError, match=f"{LAYOUTS[kind].title} .*holds {LAYOUTS[held].title}"):
        check_output(tmp_path, kind)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_file_is_no_folder_for_anything(kind: Kind, tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt")
    for path in ("notes.txt", "notes.txt/inside"):
        with pytest.raises(InputError, match=r"notes\.txt is a file"):
            check_output(tmp_path / path, kind)


@unix
@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, v in LAYOUTS.items() for n in v.files])
def test_nothing_is_written_through_links(kind: Kind, name: str, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    touch(outside, "mine")
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(outside if name.endswith("/") else outside / "mine")
    touch(folder, *(mark for mark in LAYOUTS[kind].marks[0] if not (folder / mark).exists()))
    with pytest.raises(InputError, match="through a link"):
        check_output(folder, kind)
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "elsewhere in it")
    check_output(folder, kind)


def test_what_is_not_ours_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").symlink_to(tmp_path)
    check_output(tmp_path / "out", "search")


def test_an_input_is_not_overwritten(tmp_path: Path) -> None:
    touch(tmp_path, "predictions/dev.npz")
    with pytest.raises(InputError, match="input and output are the same file"):
        check_output(tmp_path, "demo", tmp_path / "predictions" / "dev.npz")
    with pytest.raises(InputError, match="input and output are the same file"):
        check_output(tmp_path, "search", tmp_path / "x" / ".." / "search" / "search.json")
    check_output(tmp_path, "ensemble", tmp_path / "predictions" / "dev.npz", None)
    refuse_input(None, tmp_path)
    with pytest.raises(InputError, match=r"\.html"):
        check_page(tmp_path / "page.txt")
