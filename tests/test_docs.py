"""What the documentation shows can be copied: blocks of Python and commands run, examples are read.

A block of `sh` runs, in the order of the page, on the files of `docs_shelf`. Commands that need
what a test has not (`ELSEWHERE`), and those in blocks of `text`, are only checked word by word: the
command exists and takes these options.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import docs_shelf
from commands import arguments, edo
from edokit import EDOWarning, read_annotations
from edokit.analysis.compare import method as methods
from edokit.cli import console
from edokit.cli.app import COMMANDS
from edokit.demo import compare_camps
from edokit.predictions.join import join_models
from reproduction import __main__ as reproduction

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
    ROOT / "reproduction" / "README.md",
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BY_ITSELF = ("formats.md",)
"""Pages whose blocks are examples of their own, each on fresh files."""
ELSEWHERE = {
    "edo data get": "the network",
    "edo models get": "the network",
    "--model org/": "a model of the hub",
    "--device cuda": "a GPU",
    "postgresql://": "a database",
    "dask://": "a cluster",
    "edo serve": "a process that does not end",
}
CHEAPER = {
    "compare": ["--bootstrap", "50", "--methods", "linear-pool,edo"],
    "demo": ["--members", "2"],
    "run": ["--time", "1s", "--jobs", "1"],
    "search": ["--trials", "10", "--folds", "0"],
    "train": ["--members", "2", "--jobs", "1"],
    "diagnose": ["--permutations", "39"],
}
"""Where a command as it stands would take long, options that come after its own."""


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language, as they stand on the page."""
    text = page.read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def commands(body: str) -> list[list[str]]:
    """The words of each command in a block; comments are left out, continued lines joined."""
    lines = body.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_python_blocks_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A method that a page adds is gone after it.
    methods.method_names()  # which enters all of them
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))
    names: dict[str, object] = {"__name__": "docs"}
    for body in blocks(page, "python"):
        exec(compile(body, str(page), "exec"), names)


# --- Commands -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    docs_shelf.fill(folder)
    return folder


@pytest.fixture(scope="module")
def a_run(shelf: Path) -> Path:
    """The folder of a search, called RUN on the pages."""
    search = f"edo search --predictions {shelf}/dev.npz --annotations {shelf}/dev.csv --no-report"
    run([*search.split(), "--out", str(shelf / "RUN")])
    return shelf / "RUN"


WITH_COMMANDS = [page for page in PAGES if any("edo " in body for body in blocks(page, "sh"))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
def test_commands_run_in_the_order_of_the_page(
    page: Path,
    shelf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if any("RUN" in body for body in blocks(page, "sh")):
        request.getfixturevalue("a_run")
    for number, body in enumerate(blocks(page, "sh")):
        folder = tmp_path / (str(number) if page.name in BY_ITSELF else "all")
        if not folder.exists():
            shutil.copytree(shelf, folder)
            if fits_one(page):
                shutil.rmtree(folder / "ensemble")
        monkeypatch.chdir(folder)
        made: set[str] = set()
        for words in commands(body):
            if words[0] == "edo" and not needs(words):
                # A block makes its own files, which readers don't have yet.
                for name in set(files_made(words)) - made:
                    Path(name).unlink(missing_ok=True)
                    made.add(name)
                run(words)


def files_made(words: list[str]) -> list[str]:
    """The files that a command writes, where it does not write a folder."""
    if words[1:3] in (["data", "convert"], ["data", "split"]):
        return words[4:5]
    if words[1] in ("predict", "score", "report") or words[1:3] == ["predictions", "join"]:
        return [words[words.index("--out") + 1]] if "--out" in words else []
    return []


def fits_one(page: Path) -> bool:
    """Whether the page makes the ensemble itself that it is about."""
    made = [words for body in blocks(page, "sh") for words in commands(body)]
    return any(words[:2] == ["edo", "fit"] and "ensemble" in words for words in made)


def needs(words: list[str]) -> str | None:
    """What a command needs that a test has not."""
    line = " ".join(words)
    return next((what for sign, what in ELSEWHERE.items() if sign in line), None)


def run(words: list[str]) -> None:
    """Run a command in this process, as the installed script does; it must end well."""
    known = next((name for name in CHEAPER if words[1] == name), None)
    more = CHEAPER[known] if known else []
    done = edo(*words[1:], *more)
    assert not done.returncode, (shlex.join(words), done.stderr)


def shown_commands() -> Iterator[tuple[Path, list[str]]]:
    """Every command on every page, those in plain text included."""
    for page in PAGES:
        for body in blocks(page, "sh"):
            yield from ((page, words) for words in commands(body))
        for body in blocks(page, "text"):
            joined = body.replace("\\\n", " ").splitlines()
            lines = [line for line in joined if line.startswith("edo ")]
            yield from ((page, shlex.split(line)) for line in lines)


def test_every_command_on_a_page_exists_and_takes_its_options() -> None:
    taken = {
        name: {flag for argument in arguments(name) for flag in argument.names} | {"--help"}
        for name in COMMANDS
    }
    checked = 0
    for page, words in shown_commands():
        if words[0] != "edo" or words == ["edo", "--version"]:
            continue
        name = words[1] if words[1] in taken else " ".join(words[1:3])
        assert name in taken, (page.name, words)
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert options <= taken[name], (page.name, words, options - taken[name])
        checked += 1
    assert checked > 50


def test_every_flag_is_on_a_page_for_people() -> None:
    commands_pages = ROOT / "docs" / "commands"
    text = "".join(
        page.read_text(encoding="utf-8") for page in PAGES if commands_pages not in page.parents
    )
    written = set(re.findall(r"--[a-z][a-z0-9-]*", text))
    missing = set()
    for name in COMMANDS:
        for argument in arguments(name):
            flags = [flag for flag in argument.names if flag.startswith("--")]
            if flags and written.isdisjoint(flags):
                missing.add((name, flags[0]))
    assert not missing


def test_checks_of_the_papers_numbers_run_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["python", "-m", "reproduction", "lewidi2023", "--table", "checks"]
    assert words in [command for page, command in shown_commands() if page.name == "findings.md"]
    monkeypatch.delenv("EDO_LEWIDI2023", raising=False)
    monkeypatch.chdir(tmp_path)
    assert reproduction.main(words[3:]) == 0
    assert "WEL 0.232 (printed 0.558)" in capsys.readouterr().out


def test_other_words_on_a_page_lead_somewhere() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for page, words in shown_commands():
        if words[0] == "make":
            assert set(words[1:]) <= set(targets), (page.name, words)
        elif words[:3] == ["python", "-m", "reproduction"]:
            assert reproduction.parser().parse_args(words[3:]).task in reproduction.TASKS
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file(), (page.name, words)
        elif words[:2] == ["pip", "install"]:
            for extra in re.findall(r"edokit\[(\w+)\]", " ".join(words)):
                assert re.search(rf"^{extra} = \[", settings, re.MULTILINE), (page.name, words)
        else:
            assert words[0] in ("edo", "optuna-dashboard", "curl"), (page.name, words)


# --- Examples of files ----------------------------------------------------------------------------


def formats(language: str) -> list[str]:
    return blocks(ROOT / "docs" / "formats.md", language)


@pytest.mark.parametrize(
    ("body", "annotations", "scale"),
    [
        (formats("csv")[0], 4, None),
        (formats("csv")[1], 4, "multi-label"),
        (formats("csv")[2], 2, None),
        *((b, n, None) for b, n in zip(formats("json"), (3, 3, 2, 2), strict=True)),
    ],
    ids=[
        "long table",
        "sets",
        "probabilities",
        "LeWiDi 2023",
        "LeWiDi 2025",
        "Label Studio",
        "Argilla",
    ],
)
def test_examples_of_annotations_are_read(
    body: str, annotations: int, scale: str | None, tmp_path: Path
) -> None:
    ending = "json" if body.lstrip().startswith(("{", "[")) else "csv"
    path = tmp_path / f"example.{ending}"
    path.write_text(body, encoding="utf-8")
    assert len(read_annotations(path, scale=scale)) == annotations


def test_examples_of_predictions_are_read(tmp_path: Path) -> None:
    model, scores, sampled = formats("csv")[4:7]
    (tmp_path / "model.csv").write_text(model, encoding="utf-8")
    assert join_models([tmp_path / "model.csv"]).classes == ("no", "yes")
    (tmp_path / "own.csv").write_text(scores, encoding="utf-8")
    columns = {"item": "id", "p_0": "negative", "p_1": "positive"}
    assert len(join_models([tmp_path / "own.csv"], logits=True, columns=columns)) == 2
    (tmp_path / "asked.csv").write_text(sampled, encoding="utf-8")
    with pytest.warns(EDOWarning, match="1 of 12 answers"):
        predictions = join_models(
            [tmp_path / "asked.csv"],
            classes=["no", "yes"],
            unparsed="drop",
        )
    assert predictions.probabilities[0, 0].tolist() == [1.5 / 4, 2.5 / 4]


def test_no_page_has_a_gap_to_be_filled() -> None:
    gap = re.compile(r"^[A-Z]{4,}$|\b(?:TODO|FIXME|TBD)\b", re.MULTILINE)
    for page in PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        assert not gap.findall(text), page.name


def test_the_readme_shows_what_the_demo_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The panels of `edo demo`, without its ten members and its search."""
    monkeypatch.setenv("COLUMNS", "80")
    console.print_panels(compare_camps(0), rows=3)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (shown,) = [
        body for body in blocks(ROOT / "README.md", "text") if body.startswith("Whose view?")
    ]
    assert shown.splitlines() == printed
