"""Members of the recipe llm ask a real model behind a real server, through a proxy that fails."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from faults.zygote import Zygote
from language_model import (
    KEY,
    MODEL,
    PASSING,
    TEMPLATE,
    TEXTS,
    FaultProxy,
    always,
    in_turn,
    write_votes,
)

from edokit import EDOWarning, InputError, Predictions, read_annotations, read_predictions
from edokit.members import Group, score_members, train_members
from tests.errors import raises_code

Proxies = Callable[..., FaultProxy]
PREDICTED = len(TEXTS)
PLANTED = "zanzibarquux"
EDO = [sys.executable, "-c", "from edokit.cli import main; main()"]


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and a cache of answers that no other test fills."""
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    return write_votes(tmp_path / "votes.csv")


@dataclass
class Asked:
    """One member that asks through a proxy."""

    votes: Path
    out: Path

    def options(self, front: FaultProxy, **options: object) -> dict[str, object]:
        common = {"model": MODEL, "prompt": TEMPLATE, "max_tokens": 1}
        return {"base_url": front.url, **common, **options}

    def __call__(
        self, front: FaultProxy, budget: float | None = None, **options: object
    ) -> Predictions:
        """Train in this process; the predictions of dev."""
        group = Group("llm", members=1, options=self.options(front, **options))
        data = read_annotations(self.votes)
        trained = train_members(data, [group], out=self.out, budget=budget)
        return trained.predictions["dev"]

    def words(self, front: FaultProxy, **options: object) -> list[str]:
        """The same as people type it, after `edo`."""
        chosen = self.options(front, **options)
        words = [word for key in chosen for word in ("--option", f"{key}={chosen[key]}")]
        return ["train", str(self.votes), "--recipe", "llm", *words, "--out", str(self.out)]


@pytest.fixture
def asked(votes: Path, tmp_path: Path) -> Asked:
    return Asked(votes, tmp_path / "members")


def probabilities(predictions: Predictions) -> np.ndarray:
    return np.asarray(predictions.probabilities)[:, 0]


def test_probabilities_are_those_of_the_labels_tokens(proxy: Proxies, asked: Asked) -> None:
    front = proxy()
    dev = asked(front)
    rude = dict(zip(map(str, dev.items), probabilities(dev)[:, 1], strict=True))
    assert min(rude["t1"], rude["t2"], rude["t5"]) > max(rude["t0"], rude["t4"])
    assert front.repeated == 0
    assert len(front.answered) == PREDICTED
    (info,) = dev.member_info.values()
    assert info["model"] == MODEL
    assert (info["requests"], info["failures"]) == (PREDICTED, 0)


def test_every_fault_is_survived_with_the_same_answers(
    proxy: Proxies, asked: Asked, tmp_path: Path
) -> None:
    peace = probabilities(asked(proxy()))
    for turn in (PASSING[:5], PASSING[5:]):
        asked.out = tmp_path / turn[0]
        front = proxy(in_turn(*turn), slow=1.5)
        np.testing.assert_array_equal(probabilities(asked(front, timeout=1.0)), peace)
        assert set(front.injected) >= set(turn)
        front.wait_for(lambda f=front: f.in_flight == 0)
        assert set(front.answered.values()) == {1}


@pytest.mark.filterwarnings("ignore::edokit.EDOWarning")  # answers are drawn; some name none
@pytest.mark.parametrize("server", ["no-logprobs", "refuse-logprobs"])
def test_a_server_without_log_probabilities_is_asked_for_several_answers(
    proxy: Proxies, asked: Asked, server: str
) -> None:
    kept: dict[tuple[str, int], bytes] = {}
    front = proxy(always(server), memory=kept)
    dev = asked(front, samples=2, smoothing=0.5, temperature=0.5)
    drawn = [digest for digest, draw in kept if draw]
    assert sorted(Counter(drawn).values()) == [2] * PREDICTED
    front.wait_for(lambda: front.in_flight == 0)
    assert {front.answered[digest] for digest in drawn} == {2}
    # The answers as the server gave them, counted by hand.
    answers = [
        json.loads(data)["choices"][0]["message"]["content"].strip()
        for (_, draw), data in kept.items()
        if draw
    ]
    named = sum(answer in ("polite", "rude") for answer in answers)
    (info,) = dev.member_info.values()
    assert (info["requests"], info["failures"]) == (2 * PREDICTED, 2 * PREDICTED - named)
    assert named
    votes = ((a, b) for a in range(3) for b in range(3 - a))
    possible = {0.5} | {(b + 0.5) / (a + b + 1) for a, b in votes}
    assert all(min(abs(p - each) for each in possible) < 1e-6 for p in probabilities(dev)[:, 1])


def test_answers_that_name_no_label_are_counted_and_a_model_that_never_does_is_an_error(
    proxy: Proxies, asked: Asked, tmp_path: Path
) -> None:
    some = proxy(lambda number, attempt: "no-label" if number in (2, 5) else "")
    with pytest.warns(EDOWarning, match="2 of 6 answers"):
        dev = asked(some)
    (info,) = dev.member_info.values()
    assert info["failures"] == 2
    asked.out = tmp_path / "never"
    silent = proxy(always("no-label"))
    with raises_code("failed-member") as raised:
        asked(silent, samples=2)
    assert not any(text in str(raised.value) for text in TEXTS)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Commands in processes of their own that start in a moment."""
    with Zygote(tmp_path_factory.mktemp("zygote")) as running:
        yield running


def test_a_killed_run_goes_on_and_no_request_is_repeated(
    proxy: Proxies, asked: Asked, zygote: Zygote
) -> None:
    peace = probabilities(asked(proxy()))
    asked.out = asked.out.parent / "killed"
    front = proxy()
    words = asked.words(front, concurrency=2)
    for given in (1, 2, 4):
        front.hold_after(given - sum(front.answered.values()))
        running = zygote.start(words)
        # Once two more wait for an answer, all that came before are kept.
        front.wait_for(lambda n=given: front.in_flight == 2 and sum(front.answered.values()) == n)
        running.kill()
        assert running.wait().killed
        front.release()
        front.wait_for(lambda: front.in_flight == 0)
    ran = zygote.run(words)
    assert ran.status == 0, ran.stderr
    assert front.repeated == 0
    assert len(front.answered) == PREDICTED
    assert sum(front.asked.values()) == PREDICTED + 3 * 2
    second_predictions = read_predictions(asked.out / "predictions" / "dev.npz")
    np.testing.assert_array_equal(probabilities(second_predictions), peace)


def test_a_budget_stops_cleanly_and_a_larger_one_goes_on(proxy: Proxies, asked: Asked) -> None:
    peace = probabilities(asked(proxy()))
    asked.out = asked.out.parent / "budget"
    front = proxy()
    prices = {"price_in": 1e6, "price_out": 1e6}  # one per token
    with raises_code("failed-member", "150"):
        asked(front, budget=150.0, **prices)
    assert 0 < front.tokens <= 150
    assert 0 < len(front.answered) < PREDICTED
    dev = asked(front, budget=1e9, **prices)
    assert front.repeated == 0
    assert len(front.answered) == PREDICTED
    np.testing.assert_array_equal(probabilities(dev), peace)
    (info,) = dev.member_info.values()
    assert info["cost"] == pytest.approx(front.tokens / PREDICTED)


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_at_a_time_than_concurrency_allows(
    proxy: Proxies, asked: Asked, limit: int
) -> None:
    front = proxy(always("slow"), slow=0.05)
    asked(front, concurrency=limit)
    assert front.most_in_flight == limit


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


BAD = {
    "down": ("", "can't be reached", "base_url"),
    "html": ("html", "unexpected form", "/v1"),
    "model": ("404", "gemma-3-270m", "model"),
    "key": ("401", "OPENAI_API_KEY", "environment"),
    "echo": ("400-echo", "400", ""),
    "busy": ("429", "429", "concurrency"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_endpoint_that_cannot_answer_is_one_clear_message(
    proxy: Proxies, asked: Asked, case: str
) -> None:
    fault, named, remedy = BAD[case]
    front = proxy(always(fault))
    if case == "down":
        front.url = f"http://127.0.0.1:{unused_port()}/v1"
    with pytest.raises(InputError) as raised:
        asked(front, retries=0)
    message = str(raised.value)
    assert front.url.removesuffix("/v1") in message
    assert named in message
    assert remedy in message
    assert KEY not in message
    assert KEY[:12] not in message
    assert not any(text in message for text in TEXTS)
    assert "Get lost" not in message  # nor the prompt
    assert "\n" not in message.strip()


def test_a_missing_key_is_named_with_where_it_belongs(
    proxy: Proxies, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with raises_code("failed-member", "OPENAI_API_KEY", "401"):
        asked(proxy(memory=None))


def everything_in(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    for folder in folders:
        for path in folder.rglob("*"):
            yield path, str(path).encode()
            if path.is_file():
                yield path, path.read_bytes()


def test_neither_the_key_nor_a_text_is_in_any_file_or_message(
    proxy: Proxies, asked: Asked, tmp_path: Path
) -> None:
    write_votes(asked.votes, [f"{text} {PLANTED}" for text in TEXTS])
    # An error that repeats text and key, then the rest.
    front = proxy(lambda number, attempt: "400-echo" if number == 5 and not attempt else "")
    printed = ""
    ended = []
    for _ in range(2):
        ran = subprocess.run(
            [*EDO, *asked.words(front, concurrency=1)], capture_output=True, text=True
        )
        printed += ran.stdout + ran.stderr
        ended.append(ran.returncode)
    assert ended == [2, 0], printed
    assert "400" in printed
    assert len(read_predictions(asked.out / "predictions" / "dev.npz")) == 6
    for secret in (KEY, KEY[:14], PLANTED):
        assert secret not in printed
        for path, data in everything_in(asked.out, tmp_path / "cache"):
            assert secret.encode() not in data, path


INSULTS = ("Get lost, you fool.", "You are a liar.", "Shut your mouth.", "Nobody likes you.")
PRAISE = ("You are so kind.", "What a lovely garden.", "Good morning to you.", "Happy birthday.")
COMPLAINTS = ("The train was late.", "My soup is cold.", "This costs too much.", "It is dirty.")
PATTERN = "Is each text polite or rude?\n\n{examples}Text: {text}\nAnswer:"
NEW = ("The bus is late again.",)


@pytest.mark.filterwarnings("ignore::edokit.EDOWarning")
def test_an_annotators_own_labels_make_it_answer_as_that_annotator_does(
    proxy: Proxies, asked: Asked
) -> None:
    rows = ["item,text,annotator,label,split"]
    for number, text in enumerate((*INSULTS, *PRAISE, *COMPLAINTS, "The lift is slow.")):
        split = "train" if number < 12 else "dev"
        for who, rude in (("strict", text not in PRAISE), ("mild", text in INSULTS)):
            rows.append(f't{number},"{text}",{who},{"rude" if rude else "polite"},{split}')
    asked.votes.write_text("\n".join(rows), encoding="utf-8")
    front = proxy()
    asked(front, examples=12, prompt=PATTERN)
    whose = dict.fromkeys(map(str, range(len(NEW))), ("strict", "mild"))
    scored = score_members(asked.out, NEW, annotators=whose, by_annotator=True)
    rude = dict.fromkeys(("strict", "mild"), 0.0)
    for who, p in zip(scored.annotators, probabilities(scored)[:, 1], strict=True):
        if who in rude:
            rude[who] += p / len(NEW)
    assert rude["strict"] > rude["mild"] + 0.05
    asked_before = sum(front.asked.values())
    score_members(asked.out, NEW, annotators=whose, by_annotator=True)
    assert sum(front.asked.values()) == asked_before
