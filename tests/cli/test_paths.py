"""Paths that a command takes are names on this machine, and what it writes replaces nothing."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from commands import arguments, edo
from edokit import (
    fit,
    read_annotations,
    read_predictions,
    simulate,
    train_members,
    write_annotations,
    write_predictions,
)
from edokit.cli.app import COMMANDS
from edokit.datasets import get
from edokit.members import Group

SECRET = "geheim"


def paths_of(name: str) -> list[str]:
    """The parameters of a command that are paths."""
    return [
        argument.field_info.name
        for argument in arguments(name)
        if Path in (argument.hint, *get_args(argument.hint))
    ]


def call(name: str, **given: str) -> list[str]:
    """A command line with these paths, and with something for all else that is needed."""
    words: list[str] = []
    for argument in arguments(name):
        parameter = argument.field_info.name
        if parameter in given or argument.required:
            if argument.name.startswith("--"):
                words.append(argument.name)
            words.append(given.get(parameter, "nothing"))
    return [*name.split(), *words]


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, one) for name in COMMANDS for one in paths_of(name)]
)
def test_no_path_is_empty_or_an_address(
    name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, wrong in (
        ("", "empty"),
        (" ", "empty"),
        (f" postgresql://ann:{SECRET}@host/study", "address"),
        (f"https://ann:{SECRET} {SECRET}@host/x.csv", "address"),
        (f"here/s3://{SECRET}", "address"),
    ):
        done = edo(*call(name, **{parameter: path}))
        assert done.returncode == 2
        assert wrong in done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("predictions", "join"), ("compare", "--extra")])
def test_nor_is_a_path_inside_of_another_word(words: tuple[str, ...], tmp_path: Path) -> None:
    address = f"https://ann:{SECRET}@host/x.npz"
    if words[0] == "compare":
        more = [f"soft={address},{tmp_path / 't.npz'}", *call("compare")[1:]]
    else:
        more = [f"soft={address}", "--out", str(tmp_path / "p.npz")]
    done = edo(*words, *more)
    assert (done.returncode, "address" in done.stderr) == (2, True)
    assert SECRET not in done.stdout + done.stderr


# What commands write

INPUTS = {
    "annotations",
    "annotators",
    "bundle",
    "data",
    "ensemble",
    "folder",
    "judges",
    "labels",
    "member_info",
    "members",
    "panel",
    "path",
    "people",
    "predictions",
    "probabilities",
    "run",
    "scratch",
    "source",
    "test_annotations",
    "test_predictions",
    "texts",
}
OUTPUTS = {"out", "figures", "truth", "page", "latex", "card"}
OUTPUTS_BY_COMMAND = {"diagnose": {"labels"}}  # `edo estimate --labels` is read
FOLDERS = {  # what each command writes into its folder
    "run": ("summary.json",),
    "demo": ("results.json", "predictions/dev.npz", "report.html", "ensemble/README.md"),
    "train": ("manifest.json", "predictions/dev.npz", "members/linear-01/mine.txt"),
    "fit": ("ensemble.json", "README.md", "run.json"),
    "search": ("run.json", "report.html", "ensemble/README.md", "search/trials.parquet"),
    "compare": ("run.json", "report.html", "ensemble/README.md", "compare/methods.md"),
    "bundle": ("bundle.json", "README.md", "ensemble/ensemble.json", "members/manifest.json"),
    "data get": ("Tone/Tone_train.json",),
}
FILES = {
    "data convert": "out.csv",
    "data split": "out.parquet",
    "data simulate": "out.csv",
    "predictions join": "out.npz",
    "predict": "out.csv",
    "score": "out.npz",
    "report": "page.html",
    "diagnose": "card.md",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotations, predictions, members and an ensemble."""
    folder: Path = tmp_path_factory.mktemp("data")
    annotations = simulate("two-camps", items=(40, 30, 30), random_state=0).annotations
    write_annotations(annotations, folder / "people.csv")
    groups = [Group("linear", members=2)]
    trained = train_members(annotations, groups, out=folder / "members", jobs=1)
    for name in ("dev", "test"):
        write_predictions(trained.predictions[name], folder / f"{name}.npz")
    fit(folder / "dev.npz", folder / "people.csv", split="dev", out=folder / "ensemble")
    (folder / "texts.txt").write_text("a fine day\nso rude\n")
    return folder


def words(name: str, data: Path) -> list[str]:
    """A command line that works, but for where its results go."""
    dev = str(data / "dev.npz")
    people = str(data / "people.csv")
    fitted = ["--predictions", dev, "--annotations", people, "--split", "dev"]
    tested = ["--test-predictions", str(data / "test.npz"), "--test-split", "test"]
    more = {
        "demo": [],
        "run": [people, "--time", "1s", "--jobs", "1"],
        "train": [people, "--members", "1", "--jobs", "1"],
        "fit": fitted,
        "search": [*fitted, "--trials", "4", "--population", "2", "--solver", "exact"],
        "compare": [*fitted, *tested, "--methods", "edo", "--bootstrap", "0"],
        "bundle": [str(data / "ensemble"), "--members", str(data / "members")],
        "data get": ["lewidi2023"],
        "data convert": [people],
        "data split": [people, "--from", "dev", "--into", "train=0.5,dev=0.5"],
        "data simulate": ["two-camps", "--items", "20,5,5"],
        "predictions join": [dev],
        "predict": [str(data / "ensemble"), "--predictions", dev],
        "score": ["--members", str(data / "members"), "--texts", str(data / "texts.txt")],
        "report": [str(data / "ensemble")],
        "diagnose": [people],
    }[name]
    return [*name.split(), *more]


def to(name: str, out: Path) -> list[str]:
    """Where the results go."""
    if name.startswith("data "):
        return [str(out)]
    if name == "diagnose":
        return ["--card", str(out)]
    return ["--out", str(out)]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(*words: str) -> str:
    """The line of a command that wrote nothing."""
    done = edo(*words)
    assert done.returncode == 2, words
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


def test_every_path_is_known_as_read_or_written_and_every_output_is_tested() -> None:
    written = set()
    for name in COMMANDS:
        paths = set(paths_of(name))
        outputs = OUTPUTS | OUTPUTS_BY_COMMAND.get(name, set())
        assert paths <= INPUTS | outputs, name
        if paths & outputs:
            written.add(name)
            options = {argument.name for argument in arguments(name)}
            assert "--overwrite" in options, name
    assert written == {*FOLDERS, *FILES}


@pytest.fixture
def _published(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A dataset of one small file, and no network."""
    body = b'{"1": {}}'
    one = get.Published("Tone/Tone_train.json", hashlib.sha256(body).hexdigest())
    monkeypatch.setitem(get.DATASETS, "lewidi2023", [one])
    monkeypatch.setattr(get, "open_https", lambda url: io.BytesIO(body))
    return body


@pytest.mark.usefixtures("_published")
@pytest.mark.parametrize(("name", "file"), [(n, file) for n in FOLDERS for file in FOLDERS[n]])
def test_a_file_of_ones_own_in_the_folder_is_not_replaced(
    name: str, file: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / file).parent.mkdir(parents=True)
    (out / file).write_text("mine")
    said = refused(*words(name, data), *to(name, out))
    assert (out / file).parts[-1] in said or str((out / file).parent) in said or "members" in said
    assert "--overwrite" in said
    assert content(tmp_path) == {f"out/{file}": b"mine"}
    if name != "demo" and "linear-01" not in file:
        done = edo(*words(name, data), *to(name, out), "--overwrite")
        assert done.returncode == 0, done.stderr
        assert not (out / file).exists() or (out / file).read_text(errors="replace") != "mine"


@pytest.mark.usefixtures("_published")
@pytest.mark.parametrize("name", FOLDERS)
def test_the_root_a_file_and_a_folder_in_use_are_refused(
    name: str, data: Path, tmp_path: Path
) -> None:
    assert "root of the file system" in refused(*words(name, data), *to(name, Path("/")))
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in refused(*words(name, data), *to(name, tmp_path / "notes.txt"))
    out = tmp_path / "out"
    script = [
        *(sys.executable, "-c"),
        "import sys; from pathlib import Path; from edokit.runs.folder import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()",
    ]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*script, str(out)], **pipes) as other:
        assert other.stdout.readline() == "held\n"
        assert "another process writes to" in refused(*words(name, data), *to(name, out))
        assert [path.name for path in out.iterdir()] == [".edo.lock"]
        other.stdin.close()
    assert content(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("name", [name for name in FOLDERS if name != "data get"])
def test_links_that_lead_out_of_the_folder_are_not_followed(
    name: str, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    for file in FOLDERS[name]:
        link = tmp_path / "out" / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "mine")
        for more in ([], ["--overwrite"]):
            assert "link" in refused(*words(name, data), *to(name, tmp_path / "out"), *more)
        link.unlink()
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_replaced_by_the_same_content_or_if_asked_for(
    name: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / FILES[name]
    out.write_text("mine")
    link = tmp_path / f"link{out.suffix}"
    link.symlink_to(out)
    for path in (out, link):
        assert "--overwrite" in refused(*words(name, data), *to(name, path))
        assert out.read_text() == "mine"
    assert edo(*words(name, data), *to(name, out), "--overwrite").returncode == 0
    made = out.read_bytes()
    assert made != b"mine"
    done = edo(*words(name, data), *to(name, out))
    assert (done.returncode, out.read_bytes()) == (0, made), done.stderr
    for path in (tmp_path, Path("/")):
        refused(*words(name, data), *to(name, path))


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_is_not_overwritten_even_if_asked_for(
    name: str, data: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    shutil.copytree(data, here)
    before = content(here)
    for read in words(name, here)[1:]:
        if (path := Path(read)).is_file() or path == here / "ensemble":
            source = path / "ensemble.json" if path.is_dir() else path
            refused(*words(name, here), *to(name, source), "--overwrite")
    assert content(here) == before


def test_a_review_replaces_nothing_either(data: Path, tmp_path: Path) -> None:
    for file in ("out-review.json", "out-review.xml"):
        (tmp_path / file).write_text("mine")
        done = edo(*words("predict", data), *to("predict", tmp_path / "out.csv"), "--review", "2")
        assert (done.returncode, file in done.stderr) == (2, True), done.stderr
        assert (tmp_path / file).read_text() == "mine"
        (tmp_path / file).unlink()


SCRIPT = [sys.executable, "-c", "from edokit.cli import main; main()"]


def test_of_two_trainings_into_one_folder_one_is_done(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = simulate("crowd", items=(60, 20, 20), random_state=1).annotations
    write_annotations(other, tmp_path / "other.csv")
    sources = [data / "people.csv", tmp_path / "other.csv"]
    call = ["--members", "3", "--jobs", "1", "--out", str(out)]
    started = [
        subprocess.Popen([*SCRIPT, "train", str(source), *call], stderr=subprocess.PIPE, text=True)
        for source in sources
    ]
    said = [one.communicate()[1] for one in started]
    assert sorted(one.returncode for one in started) == [0, 2], said
    won = [one.returncode for one in started].index(0)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert manifest["data"]["source"] == sources[won].name
    items = set(read_predictions(out / "predictions" / "dev.npz").items)
    assert items == set(read_annotations(sources[won], split="dev").items)
    assert not (out / ".edo.lock").exists()


def test_a_killed_training_is_continued_at_once(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ["train", str(data / "people.csv"), "--members", "40", "--jobs", "1", "--out", str(out)]
    started = subprocess.Popen([*SCRIPT, *call])
    while started.poll() is None and not (out / ".edo.lock").exists():
        time.sleep(0.01)
    started.kill()
    started.wait()
    done = edo(*(word if word != "40" else "2" for word in call))
    assert done.returncode == 0, done.stderr
    assert not (out / ".edo.lock").exists()


def test_a_table_in_latex_replaces_no_other_file_unless_asked_for(
    data: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.tex"
    table.write_text("mine")
    line = [*words("compare", data), "--latex", str(table)]
    assert "--overwrite" in refused(*line)
    assert table.read_text() == "mine"
    assert edo(*line, "--overwrite").returncode == 0
    assert "toprule" in table.read_text()
    people = tmp_path / "people.csv"
    shutil.copy(data / "people.csv", people)
    before = people.read_bytes()
    own = [str(people) if one == str(data / "people.csv") else one for one in line]
    own[-1] = str(people)
    refused(*own, "--overwrite")
    assert people.read_bytes() == before
