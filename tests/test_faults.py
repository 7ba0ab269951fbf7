"""A short run of tools/faults: whatever happens to a command, what it finished stays, and running
it again ends where nobody had disturbed it. `make soak` does the same for longer."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

if TYPE_CHECKING:
    from faults.cases import Case
    from faults.tally import Tally
    from faults.zygote import Ran, Zygote

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the harness forks and reads /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def zygote(folder: Path) -> Iterator[Zygote]:
    from faults.zygote import Zygote

    with Zygote(folder / "zygote") as running:
        yield running


@pytest.fixture(scope="module")
def cases(folder: Path) -> dict[str, Case]:
    from faults.cases import make_cases, make_inputs

    make_inputs(folder / "in")
    return make_cases(folder / "in")


@pytest.fixture(scope="module")
def in_peace(zygote: Zygote, cases: dict[str, Case], folder: Path) -> Callable[[str], Ran]:
    """The undisturbed run of a command, done once."""
    from faults.kills import undisturbed

    return cache(lambda name: undisturbed(zygote, cases[name], folder / "out"))


@pytest.fixture
def tally() -> Iterator[Tally]:
    """Something must have happened, and nothing been lost."""
    from faults.tally import Tally

    tally = Tally()
    yield tally
    assert tally.times
    assert tally.troubles == []


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("train", ("at any moment", "at a step")),
        ("train --cross-fit", ("while replacing",)),
        ("search (gumbel)", ("at any moment",)),
        ("search (exact)", ("at a step", "while replacing")),
        ("fit --stream", ("at a step",)),
    ],
)
def test_a_killed_command_goes_on_and_ends_as_if_nothing_had_been(
    name: str,
    ways: tuple[str, ...],
    zygote: Zygote,
    cases: dict[str, Case],
    folder: Path,
    tally: Tally,
    in_peace: Callable[[str], Ran],
) -> None:
    from faults.kills import WAYS, kill_often

    assert set(ways) <= set(WAYS)
    out = folder / "out"
    rng = random.Random(len(name))
    kill_often(zygote, cases[name], out, tally, times=2, rng=rng, ways=ways, peace=in_peace(name))


def test_the_harness_sees_what_is_lost_or_half_written(
    zygote: Zygote, cases: dict[str, Case], folder: Path, in_peace: Callable[[str], Ran]
) -> None:
    from faults.kills import Disturbed

    case = cases["train"]
    out = folder / "out"
    peace = in_peace("train")
    one = Disturbed(zygote, case, out)
    one.kill_before(peace.steps)
    assert len(one.finished) == case.finishes
    card = out / "members" / "linear-01" / "member.json"
    card.write_bytes(card.read_bytes())
    with pytest.raises(AssertionError, match="computed again: members/linear-01"):
        one.look()
    one.finished = {}
    (out / "predictions" / "dev.npz").write_bytes(b"PK half")
    with pytest.raises(Exception, match="not an archive of arrays"):
        one.look()
    zygote.run(case.argv(out))
    (out / "predictions" / "test.npz").write_bytes((out / "predictions" / "dev.npz").read_bytes())
    with pytest.raises(AssertionError, match=r"differs from the undisturbed run: predictions/test"):
        one.after(peace)


def test_a_full_or_read_only_disk_is_told_in_one_line_and_costs_nothing_finished(
    zygote: Zygote,
    cases: dict[str, Case],
    folder: Path,
    tally: Tally,
    in_peace: Callable[[str], Ran],
) -> None:
    from faults import disk

    case = cases["train"]
    peace = in_peace("train")
    if disk.can_mount(folder / "disk"):
        disk.full_disk(zygote, case, folder, tally, times=2)
    disk.small_files(zygote, case, folder / "out", tally, times=1)
    if disk.can_lock(folder / "disk"):
        disk.read_only(zygote, case, folder, tally, steps=[peace.steps // 2])
    assert all(row.refused == row.times for row in tally.rows)


def test_files_may_disappear_under_a_command(
    zygote: Zygote,
    cases: dict[str, Case],
    folder: Path,
    tally: Tally,
    in_peace: Callable[[str], Ran],
) -> None:
    from faults import disk

    case = cases["search (exact)"]
    out = folder / "out"
    rng = random.Random(0)
    peace = in_peace("search (exact)")
    disk.input_deleted(zygote, case, out, tally, times=2, seconds=peace.seconds)
    disk.output_deleted(zygote, case, out, tally, times=1, rng=rng)
    disk.torn_journal(zygote, case, out, tally, times=1, steps=peace.steps, rng=rng)


def test_the_page_gets_the_table_between_its_marks(tmp_path: Path) -> None:
    from faults import __main__ as program
    from faults.tally import Tally

    tally = Tally()
    row = tally.row("SIGKILL at a step", "fit")
    row.times = 7
    row.well = 4
    page = tmp_path / "page.md"
    marks = "<!-- faults: begin -->", "<!-- faults: end -->"
    page.write_text("Before.\n{}\nold\n{}\nAfter.\n".format(*marks), encoding="utf-8")
    program.write(page, tally, 1.0)
    text = page.read_text(encoding="utf-8")
    assert "| SIGKILL at a step | fit | 7 | 0 | 4 | 0 |" in text
    assert "7 kills" in text
    assert "old" not in text
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
