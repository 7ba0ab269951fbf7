"""Whatever files a command is given, people see one line and never a traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from commands import Done, edo
from fuzz_cases import another, whole_files

SCRIPT = [sys.executable, "-c", "from edokit.cli import main; main()"]
RUN = ("ensemble.json", "run.json")
FOLDER = ("manifest.json", "members/few-0/member.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind, and a folder of members."""
    folder: Path = tmp_path_factory.mktemp("whole")
    whole_files(folder)
    for name in ("few-0", "few-1"):
        (folder / "members" / name).mkdir(parents=True)
        shutil.copy(folder / "member.json", folder / "members" / name)
    (folder / "search").mkdir()
    for name in ("trials.parquet", "search.json"):
        shutil.move(folder / name, folder / "search")
    return folder


def commands(name: str, folder: Path, out: Path) -> list[tuple[Any, ...]]:
    """What a person may type with a file of this name."""
    path = folder / name
    ending = Path(name).suffix
    pool = folder / "made.npz"
    people = folder / "people.csv"
    if name in RUN or name.startswith("search/"):
        return [
            ("report", folder, "--out", out / "page.html"),
            *[("predict", folder, "--predictions", pool, "--out", out / "p.csv")] * (name in RUN),
        ]
    if name in FOLDER:
        return [("score", "--members", folder, "--texts", folder / "texts.txt", "--out", out)]
    if name.startswith("texts"):
        return [("score", "--members", folder, "--texts", path, "--out", out / "s.npz")]
    if ending == ".toml":
        return [("train", people, "--recipe", path, "--out", out / "m")]
    if ending == ".npz" or name == "made.parquet":
        return [
            ("predictions", "info", path),
            ("predictions", "join", path, "--out", out / "j.npz"),
            ("fit", "--predictions", path, "--annotations", people, "--out", out / "e"),
            ("predict", folder, "--predictions", path, "--out", out / "p.csv"),
        ]
    if name.startswith("model"):
        return [
            ("predictions", "join", path, "--out", out / "j.npz"),
            ("evaluate", "--probabilities", path, "--annotations", people),
        ]
    return [
        ("data", "info", path),
        ("data", "convert", path, out / "c.csv"),
        ("data", "split", path, out / "s.parquet"),
        ("diagnose", path),
        ("fit", "--predictions", pool, "--annotations", path, "--out", out / "e"),
        ("evaluate", "--probabilities", folder / "model.csv", "--annotations", path),
    ]


NAMES = [
    *("people.csv", "people.tsv", "people.jsonl", "people.parquet", "model.csv", "model.parquet"),
    *("tone_train.json", "studio.json", "argilla.json", "argilla.jsonl"),
    *("made.npz", "made.parquet", "texts.csv", "texts.txt", "pool.toml", *RUN, *FOLDER),
    *("search/trials.parquet", "search/search.json"),
]
MARKED = "\x1b[31mred\x1b[0m \u202eesrever"
"""Characters that would steer a terminal."""
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "another file": lambda content: b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "null": lambda content: b"null\n",
    "a list of lists": lambda content: b"[[], [[]]]\n",
    "not UTF-8": lambda content: content.replace(b"a", b"\xff"),
    "steering": lambda content: content.replace(b"i1", MARKED.encode()).replace(b"t", b"\x1b[2J"),
}


def assert_clean(done: Done, words: Any) -> None:
    """One line in case of failure, and nothing that a terminal would obey."""
    said = done.stdout + done.stderr
    assert "Traceback" not in said, (words, said)
    assert "mistake in edo" not in said, (words, said)
    assert "--help`" not in said, (words, said)
    assert done.returncode in (0, 2), (words, said)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    if done.returncode:
        assert len(lines) == 1, (words, said)
        assert lines[0].startswith("edo: "), (words, said)
        assert len(lines[0]) < 3000, (words, said)
    assert all(line.isprintable() for line in said.splitlines()), (words, said)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_give_one_line(name: str, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    out = tmp_path / "out"
    shutil.copytree(whole, folder)
    content = (folder / name).read_bytes()
    versions = [damage(content) for damage in DAMAGE.values()]
    versions += [another(name, content, random.Random(seed)) for seed in range(2)]
    if name == "run.json" or name.startswith("search/"):
        versions = versions[1::3]  # a page takes longer
    refused = 0
    for number, damaged in enumerate(versions):
        (folder / name).write_bytes(damaged)
        typed = commands(name, folder, out)
        # One of them for each version keeps this short.
        words = typed[number % len(typed)]
        done = edo(*words)
        assert_clean(done, words)
        refused += done.returncode == 2
        shutil.rmtree(out, ignore_errors=True)
    # A page is made of whatever is left of a run.
    assert refused or name.startswith(("search/", "texts", "run.json"))


def test_the_same_commands_accept_whole_files(whole: Path, tmp_path: Path) -> None:
    for name in ("people.csv", "model.csv", "tone_train.json", "studio.json", "made.npz", *RUN):
        words = commands(name, whole, tmp_path)[0]
        done = edo(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert_clean(done, words)


@pytest.mark.parametrize("command", ["search", "compare", "train"])
def test_commands_that_take_long_refuse_damaged_files_at_once(
    command: str, whole: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"item,annotator\n1,2,3\n")
    pool = ("--predictions", whole / "made.npz", "--annotations", bad, "--out", tmp_path / "o")
    if command == "compare":
        pool = (*pool, "--test-predictions", whole / "made.npz")
    done = edo(command, *(pool if command != "train" else (bad, "--out", tmp_path / "o")))
    assert done.returncode == 2
    assert_clean(done, command)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("given", ["folder", "missing", "pipe", "loop"])
def test_what_is_no_file_is_one_line(given: str, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    if given == "folder":
        path.mkdir()
    elif given == "pipe":
        os.mkfifo(path)
    elif given == "loop":
        path.symlink_to(path)
    people = whole / "people.csv"
    pool = whole / "made.npz"
    for words in (
        ("data", "info", path),
        ("data", "convert", path, tmp_path / "o.csv"),
        ("diagnose", path),
        ("predictions", "info", path),
        ("predictions", "join", path, "--out", tmp_path / "o.npz"),
        ("evaluate", "--probabilities", path, "--annotations", people),
        ("fit", "--predictions", path, "--annotations", people, "--out", tmp_path / "e"),
        ("fit", "--predictions", pool, "--annotations", path, "--out", tmp_path / "e"),
        ("predict", path, "--predictions", pool, "--out", tmp_path / "o.csv"),
        ("score", "--members", path, "--texts", whole / "texts.txt", "--out", tmp_path / "o.npz"),
        ("score", "--members", whole, "--texts", path, "--out", tmp_path / "o.npz"),
        ("report", path),
        ("train", path, "--out", tmp_path / "m"),
        ("search", "--predictions", pool, "--annotations", path),
    ):
        done = edo(*words)
        assert done.returncode == 2, words
        assert_clean(done, words)


def test_a_name_that_is_no_text_is_one_line(whole: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"people-\xff\xfe.csv")
    shutil.copy(whole / "people.csv", odd)
    for words in (("data", "info", odd), ("data", "convert", whole / "people.csv", odd)):
        done = edo(*words)
        assert "is not valid Unicode" in done.stderr
        assert r"people-\udcff\udcfe.csv" in done.stderr
        assert_clean(done, words)


def test_debug_shows_the_traceback_and_the_line(tmp_path: Path) -> None:
    done = edo("--debug", "data", "info", tmp_path / "nowhere.csv")
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("edo: there is no file")
    assert "Traceback" not in edo("data", "info", tmp_path / "nowhere.csv").stderr


def test_names_that_would_steer_a_terminal_are_written_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f"{k},{MARKED},{MARKED}\n{k},b,0\n" for k in range(3))
    path.write_text("item,annotator,label\n" + rows, encoding="utf-8")
    for words in (("data", "info", path), ("diagnose", path)):
        done = edo(*words)
        assert done.returncode == 0, done.stderr
        assert_clean(done, words)
    assert r"\x1b[31mred" in edo("data", "info", path).stdout


class _Unforeseen(Exception):
    pass


def caused(error: Exception, cause: Exception) -> Exception:
    """An error that another one led to."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (MemoryError(), 2, "out of memory"),
        (caused(RuntimeError("somebody's text"), MemoryError()), 2, "out of memory"),
        (ImportError("libx.so: no room", name="numpy"), 2, "can't import numpy: libx.so: no room"),
        (caused(ValueError("somebody's text"), ImportError("y")), 2, "can't import edokit: y"),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (PermissionError(13, "Permission denied", "/a/b"), 2, "/a/b: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (_Unforeseen("somebody's text"), 2, "unexpected _Unforeseen in line"),
        (RecursionError(), 2, "unexpected RecursionError in line"),
        (UnicodeEncodeError("utf-8", "somebody's text", 0, 1, "no"), 2, "UnicodeEncodeError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_failure_is_one_line(error: BaseException, code: int, says: str, whole: Path) -> None:
    with mock.patch("edokit.runs.inputs.read_annotations", side_effect=error):
        plain_completed = edo("data", "info", whole / "people.csv")
        debug = edo("--debug", "data", "info", whole / "people.csv")
    assert plain_completed.returncode == debug.returncode == code
    assert plain_completed.stdout == ""
    assert says in plain_completed.stderr
    assert len(plain_completed.stderr.strip().splitlines()) == 1
    assert "somebody's text" not in plain_completed.stderr
    assert ("Traceback" in debug.stderr) == (code == 2)


def test_with_json_an_error_is_an_object_with_its_code(whole: Path, tmp_path: Path) -> None:
    done = edo("data", "info", tmp_path / "nowhere.csv", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    error = json.loads(done.stderr)
    assert error["code"] == "missing-file"
    assert "nowhere.csv" in error["error"]
    assert error["hint"]
    done = edo("data", "info", whole / "people.csv", "--json", "--ties", "never")
    assert json.loads(done.stderr)["code"] == "invalid-command"


def test_with_json_open_decisions_have_a_code_each_and_the_command(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,no\na,x,no\nb,x,\nb,y,yes\n", encoding="utf-8")
    done = edo("data", "info", path, "--json")
    error = json.loads(done.stderr)
    assert error["code"] == "open-decisions"
    codes = {decision["code"] for decision in error["decisions"]}
    assert codes == {"missing-value", "duplicate-annotation"}
    assert error["command"].startswith("edo data info")
    assert "--duplicates first" in error["command"]
    assert "--empty drop" in error["command"]


def unread(*words: object, both: bool = False) -> tuple[int, bytes]:
    """The exit status and the complaints of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*SCRIPT, *map(str, words)],
        stdout=writing,
        stderr=writing if both else subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    return ran.returncode, ran.stderr or b""


def test_a_reader_that_goes_away_is_no_trouble(whole: Path) -> None:
    # Without --json, and with output that a reader began to read: the next test.
    assert unread("data", "info", whole / "people.csv", "--json") == (141, b"")
    assert unread("--help") == (141, b"")
    assert unread("data", "info", "nowhere.csv", both=True) == (141, b"")
    code, said = unread("data", "info", "nowhere.csv")
    assert (code, said.count(b"\n")) == (2, 1)


@pytest.mark.skipif(shutil.which("head") is None, reason="there is no head here")
def test_the_head_of_a_big_table_is_shown_quietly(tmp_path: Path) -> None:
    rows = "\n".join(f"a,member {number},0.5,0.5" for number in range(3000))
    content = f"item,member,p_0,p_1\n{rows}\n"
    (tmp_path / "long.csv").write_text(content, encoding="utf-8")
    made = tmp_path / "made.npz"
    joined = edo("predictions", "join", tmp_path / "long.csv", "--out", made)
    assert joined.returncode == 0
    # Without buffers, Python takes a part that was written for the whole.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for more in ([], ["--json"]):
        with subprocess.Popen(
            [*SCRIPT, "predictions", "info", made, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=usual,
        ) as running:
            assert running.stdout is not None
            completed = subprocess.run(
                ["head", "-c", "20"], stdin=running.stdout, capture_output=True, check=False
            )
            running.stdout.close()
            assert running.stderr is not None
            assert running.stderr.read() == b""
        assert len(completed.stdout) == 20
        assert running.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_output_that_can_not_be_written_is_one_line(whole: Path) -> None:
    for more in ([], ["--json"]):
        with open("/dev/full", "wb") as full:
            ran = subprocess.run(
                [*SCRIPT, "data", "info", str(whole / "people.csv"), *more],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert ran.returncode == 2
        assert "No space left" in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1


def assert_interrupted(code: str) -> None:
    """A program that waits after it has printed a line ends with one line on Ctrl-C."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"here\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors.decode() == "edo: interrupted\n"


def test_an_interruption_while_it_loads_ends_it_with_one_line() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys; sys.argv = ['edo', '--version'];"
        # Whatever the command line imports first waits here.
        "wait = lambda: print('here', flush=True) or __import__('time').sleep(60);"
        "find = staticmethod(lambda name, *rest: wait() if name == 'cyclopts' else None);"
        "sys.meta_path.insert(0, type('Slow', (), {'find_spec': find}));"
        "from edokit.cli import main; main()"
    )
    assert_interrupted(code)


def test_an_interruption_ends_it_with_one_line(whole: Path, tmp_path: Path) -> None:
    # A reader that waits stands for a long computation. Whoever runs the tests in the background
    # has told processes not to listen to Ctrl-C.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys, time, edokit.datasets.read as d;"
        "d.read_annotations = lambda *a, **k: (print('here', flush=True), time.sleep(60));"
        f"sys.argv = ['edo', 'data', 'info', {str(whole / 'people.csv')!r}];"
        "from edokit.cli import main; main()"
    )
    assert_interrupted(code)
