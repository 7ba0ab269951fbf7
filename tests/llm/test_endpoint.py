"""Answers are kept under all that determines them, budgets hold, and addresses carry no secret."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hostile_endpoint import MISBEHAVIOURS, QUESTIONS, Findings, HostileServer, ask_once, leaks
from hypothesis import given, settings
from hypothesis import strategies as st
from language_model import KEY

from edokit import EDOWarning, InputError
from edokit.members.recipes._completions import (
    AnswerCache,
    Completion,
    read_answer,
    redact,
    without_key,
)
from edokit.members.recipes._endpoint import (
    Endpoint,
    Request,
    RequestRefusedError,
    _retry_after,
    check_address,
    counted_tokens,
    refuse_address,
    refuse_clear_text,
)
from edokit.members.spending import Budget, Prices, current_session, session
from tests.errors import raises_code

HERE = "http://127.0.0.1:9/v1"
PLAIN = {
    "model": "m",
    "messages": [{"role": "user", "content": "good day"}],
    "temperature": 1.0,
    "max_tokens": 16,
}


def test_an_answer_is_kept_under_everything_that_determines_it() -> None:
    other = [{"role": "system", "content": "good day"}]
    requests = [
        Request(PLAIN),
        Request(PLAIN, draw=1),
        *(
            Request({**PLAIN, **change})
            for change in (
                {"model": "n"},
                {"messages": other},
                {"messages": [*other, *PLAIN["messages"]]},
                {"temperature": 0.0},
                {"max_tokens": 17},
                {"logprobs": True, "top_logprobs": 20},
                {"logprobs": True, "top_logprobs": 5},
                {"top_p": 0.9},
            )
        ),
    ]
    here = Endpoint(HERE)
    there = Endpoint("http://127.0.0.1:8/v1")
    keys = [server.digest(request) for server in (here, there) for request in requests]
    assert len(set(keys)) == 2 * len(requests)


def test_how_requests_are_sent_does_not_change_the_key() -> None:
    slow = Endpoint(HERE, timeout=1, retries=0, concurrency=1, prices=Prices(1, 2))
    turned = dict(reversed(PLAIN.items()))
    assert slow.digest(Request(turned)) == Endpoint(HERE).digest(Request(PLAIN))


@given(st.text(), st.text())
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    keys = {
        Endpoint(HERE).digest(Request({**PLAIN, "messages": [{"role": "user", "content": text}]}))
        for text in (one, other)
    }
    assert len(keys) == (1 if one == other else 2)


def test_the_cache_holds_answers_and_no_text_for_its_owner_alone(tmp_path: Path) -> None:
    key = Endpoint(HERE).digest(Request(PLAIN))
    answer = Completion("B", None, 3, 1)
    AnswerCache(tmp_path / "answers").put(key, answer)
    again = AnswerCache(tmp_path / "answers")
    assert again.get(key) == answer
    assert again.get("another") is None
    for path in again.folder.iterdir():
        assert b"good day" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(os.stat(again.folder).st_mode) == 0o700


def _fill(folder: Path, number: int) -> None:
    cache = AnswerCache(folder)
    for k in range(20):
        cache.put(f"{number}-{k}", Completion(str(k), None))


def test_two_processes_share_the_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=_fill, args=(tmp_path, 1))
    other.start()
    while other.is_alive():
        _fill(tmp_path, 0)
    assert other.exitcode == 0
    cache = AnswerCache(tmp_path)
    assert all(
        cache.get(f"{n}-{k}") == Completion(str(k), None) for n in range(2) for k in range(20)
    )


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("a file")
    with raises_code("unwritable-file", "EDO_CACHE"):
        AnswerCache(tmp_path / "answers")


def damaged_entries() -> dict[str, Callable[[dict[str, Any]], object]]:
    """Ways to damage a cached answer that leave valid JSON."""
    position = [["B", -0.1], ["B", -0.1], ["A", -2.5]]
    return {
        "another answer": lambda entry: {**entry, "text": "A"},
        "another request": lambda entry: {**entry, "request": "0" * 64},
        "other tokens": lambda entry: {**entry, "tokens_in": 10**6},
        "a negative count": lambda entry: {**entry, "tokens_out": -1},
        "alternatives that were not there": lambda entry: {**entry, "logprobs": [position]},
        "no positions": lambda entry: {**entry, "logprobs": [[]]},
        "a number for a text": lambda entry: {**entry, "text": 7},
        "no digest": lambda entry: {key: entry[key] for key in entry if key != "digest"},
        "another format": lambda entry: {**entry, "format": 3},
        "as earlier builds wrote it": lambda entry: [entry["text"], None, 3, 1],
        "a list": lambda entry: [],
        "nothing": lambda entry: None,
    }


@pytest.mark.parametrize("damage", damaged_entries())
def test_a_damaged_answer_is_valid_json_but_not_used(tmp_path: Path, damage: str) -> None:
    cache = AnswerCache(tmp_path)
    cache.put("key", Completion("B", None, 3, 1))
    path = tmp_path / "key.json"
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(damaged_entries()[damage](entry)))
    assert cache.get("key") is None
    assert cache.damaged == [path]


@pytest.mark.parametrize("content", [b"no answer", b"[1", b"", b"[" * 10**5, b"\xff\xfe", b"NaN"])
def test_what_is_not_json_is_not_used_either(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key.json").write_bytes(content)
    cache = AnswerCache(tmp_path)
    assert cache.get("key") is None
    assert cache.damaged


@given(st.integers(0, 10**6), st.integers(0, 7))
@settings(deadline=None, max_examples=100)
def test_no_flipped_bit_of_a_cached_answer_goes_unnoticed(place: int, bit: int) -> None:
    answer = Completion("B", [[("B", -0.1), ("B", -0.1), ("A", -2.5)]], 3, 1)
    with tempfile.TemporaryDirectory() as folder:
        cache = AnswerCache(Path(folder))
        cache.put("key", answer)
        path = Path(folder) / "key.json"
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= 1 << bit
        path.write_bytes(content)
        assert cache.get("key") in (None, answer)


def test_damaged_answers_are_asked_for_again_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    with HostileServer("reports no tokens") as server:
        endpoint = Endpoint(server.url)
        first = endpoint.ask([Request(PLAIN)])
        (path,) = (tmp_path / "answers").glob("*.json")
        path.write_text(path.read_text().replace('"A"', '"B"'))
        path.chmod(0o644)
        with pytest.warns(EDOWarning, match="1 cached answer"):
            assert endpoint.ask([Request(PLAIN)]) == first
        assert endpoint.ask([Request(PLAIN)]) == first
        assert server.requests == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(
    st.floats(0.5, 30),
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=1, max_size=40),
    st.integers(1, 6),
)
@settings(deadline=None, max_examples=40)
def test_no_budget_is_exceeded_by_servers_that_keep_to_the_limits_of_requests(
    limit: float, requests: list[tuple[float, float]], threads: int
) -> None:
    budget = Budget(limit)
    paid: list[float] = []

    def request(most: float, share: float) -> None:
        with suppress(InputError):
            reservation = budget.reserve(most)
            paid.append(most * share)
            budget.settle(reservation, most * share)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(request, *zip(*requests, strict=True)))
    assert budget.spent == pytest.approx(sum(paid))
    assert budget.spent <= limit * (1 + 1e-9)
    if sum(most for most, _ in requests) <= limit:
        assert len(paid) == len(requests)


def test_a_server_that_counts_more_than_a_request_allows_exceeds_a_budget_once() -> None:
    budget = Budget(10.0)
    for _ in range(3):
        budget.settle(budget.reserve(0.1), 3.0)
    # The next one may cost 3 as well, which no longer fits.
    with raises_code("exceeded-budget", "3"):
        budget.reserve(0.1)
    assert budget.spent == 9.0


def test_a_budget_of_nothing_sends_nothing_that_costs_and_says_how_to_go_on() -> None:
    with raises_code("exceeded-budget", "0"):
        Budget(0.0).reserve(10)
    assert Budget(0.0).reserve(0).amount == 0
    with raises_code("invalid-number", "budget", "1"), session(budget=-1):
        pass


def test_requests_that_cost_nothing_are_sent_side_by_side() -> None:
    budget = Budget(1.0)
    budget.settle(budget.reserve(0.0), 0.0)
    first = budget.reserve(0.0)
    second = budget.reserve(0.0)
    budget.settle(first, 0.0)
    budget.settle(second, 0.0)
    assert budget.spent == 0


def test_a_free_request_does_not_show_how_a_server_counts() -> None:
    budget = Budget(10.0)
    budget.settle(budget.reserve(0.0), 0.0)
    first = budget.reserve(1.0)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(budget.reserve, 1.0)
        # The second waits for the answer to the first, by which nearly all is spent.
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        budget.settle(first, 9.5)
        with raises_code("exceeded-budget", "9.5"):
            second.result()


def test_a_request_that_is_refused_gives_back_what_it_reserved() -> None:
    budget = Budget(10.0)
    for cost in (4.0, 0.0, 4.0):
        budget.settle(budget.reserve(4.0), cost)
    assert budget.spent == 8.0
    with pytest.raises(InputError):
        budget.reserve(4.0)


def test_tokens_count_as_reported_or_as_estimated_whichever_is_more() -> None:
    request = Request({**PLAIN, "messages": [{"role": "user", "content": "x" * 400}]})
    assert counted_tokens(request, Completion("B", None, 150, 3)) == (150, 3)
    assert counted_tokens(request, Completion("B", None, 0, 0)) == (100, 1)
    assert counted_tokens(request, Completion("long " * 100, None, 0, 0)) == (100, 16)
    unknown = counted_tokens(request, Completion("B", None))
    assert unknown[0] > 400  # a token a byte
    assert unknown[1] == 16  # max_tokens


def test_sessions_end_with_their_block() -> None:
    with session(budget=3) as inner:
        assert current_session() is inner
    assert current_session().budget.limit is None


def test_costs_are_per_million_tokens() -> None:
    tokens = {"tokens_in": 2_000_000, "tokens_out": 500_000}
    assert Endpoint(HERE, prices=Prices(0.5, 4.0)).cost(**tokens) == pytest.approx(3.0)
    assert Endpoint(HERE).cost(**tokens) is None


@pytest.mark.parametrize(
    "address",
    [
        "http://user:sesame@host/v1",
        "http://sesame@host/v1",
        "https://host/v1?key=sesame",
        "https://host/v1#sesame",
        "https://host\\@127.0.0.1/sesame",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(InputError) as raised:
        check_address(address)
    assert "sesame" not in str(raised.value)
    assert "OPENAI_API_KEY" in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        *("", "host:80", "ftp://host", "http://", "http://a b", "/v1", "http://a:b"),
        *("http://[::1", "http://[::1/v1", "http://::1]/v1", "http://höst/v1"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with raises_code("invalid-address", "URL"):
        check_address(address)


def test_addresses_are_compared_in_one_form() -> None:
    same = {"https://Host:80/v1/", "https://host:80/v1", "https://host:80/v1/chat/completions"}
    assert {check_address(address) for address in same} == {"https://host:80/v1"}


def test_a_file_sends_texts_nowhere_that_people_did_not_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = "https://host/v1"
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    refuse_address("a member", "http://localhost:8000/v1", ())
    refuse_address("a member", there, ["numpy", "https://host/v1/"])
    with raises_code("untrusted-address", "trust='https://host/v1'"):
        refuse_address("a member", there, ["numpy", "https://other/v1"])
    with raises_code("untrusted-address", "base_url='https://host/v1'"):
        refuse_address("a file", there, None)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://host/v1/")
    refuse_address("a member", there, ())


def completion(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "B"}, **choice}]}


def test_answers_are_read_with_usage_and_alternatives_where_there_are_some() -> None:
    assert read_answer(json.dumps(completion()).encode()) == Completion("B", None)
    top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -2.5}]
    whole = {
        **completion(logprobs={"content": [{**top[0], "top_logprobs": top}]}),
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    answer = read_answer(json.dumps(whole).encode())
    assert answer == Completion("B", [[("B", -0.1), ("B", -0.1), ("A", -2.5)]], 9, 1)
    assert read_answer(b'{"choices": [{"message": {"content": null}}]}').text == ""
    assert read_answer(b'{"choices": [{"message": {"content": "\\ud83d"}}]}').text == "?"


ABSURD = [{"usage": {"prompt_tokens": count}} for count in (-1, 10**12, float("inf"))]


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": [{"text": "B"}]},
        *({**completion(), **usage} for usage in ABSURD),
    ],
)
def test_anything_else_is_no_answer(payload: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read_answer(json.dumps(payload).encode())


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"content": None},
        {"content": [{"token": "B", "logprob": 0, "top_logprobs": []}]},
        {"content": [{"token": "B", "logprob": 0, "top_logprobs": None}]},
        {"content": [{"token": "B"}, 3]},
        {"tokens": ["B"], "token_logprobs": [0]},
    ],
)
def test_log_probabilities_without_alternatives_are_none(given: Any) -> None:
    assert read_answer(json.dumps(completion(logprobs=given)).encode()).logprobs is None


def test_how_long_to_wait_is_a_number_of_seconds() -> None:
    assert _retry_after("7") == 7
    assert _retry_after("0.5") == 0.5
    for odd in ("soon", None, "nan", "inf", "-1", "1e400"):
        assert _retry_after(odd) is None


def test_where_nothing_ever_listened_is_found_out_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    prices = Prices(1.0, 1.0)
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", retries=9, timeout=5.0, prices=prices)
    with (
        session(budget=1.0) as requests,
        raises_code("failed-request", "3"),
    ):
        endpoint.ask([Request(PLAIN)])
    assert requests.budget.spent == 0  # nothing was sent


@pytest.mark.parametrize(
    "address", ["http://llm.example.org/v1", "http://10.1.2.3:8000/v1", "http://[2001:db8::1]/v1"]
)
def test_texts_and_keys_leave_this_machine_encrypted_unless_people_allow_it(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.delenv("EDO_ALLOW_HTTP", raising=False)
    with raises_code("unencrypted-address", "allow_http=True", "EDO_ALLOW_HTTP"):
        Endpoint(address).ask([Request(PLAIN)])
    for local in ("http://127.0.0.1:9/v1", "http://localhost/v1", "https://llm.example.org/v1"):
        refuse_clear_text(local)
    with session(allow_http=True):
        refuse_clear_text(address)
    monkeypatch.setenv("EDO_ALLOW_HTTP", "1")
    refuse_clear_text(address)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a key to look for."""
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return tmp_path


@pytest.mark.parametrize("recipe", QUESTIONS)
@pytest.mark.parametrize("behaviour", MISBEHAVIOURS)
def test_a_hostile_server_gets_an_answer_or_one_line_and_nothing_else(
    behaviour: str, recipe: str, planted: Path
) -> None:
    findings = Findings()
    with HostileServer(behaviour) as server:
        ask_once(server, 0, planted, findings, recipe)
    assert findings.wrong == []
    assert sum(findings.outcomes.values()) == 1


def test_a_response_is_cut_off_where_it_is_too_large(planted: Path) -> None:
    with HostileServer("sends 60 mib of braces") as server:
        with raises_code("failed-request", "256", "KiB"):
            Endpoint(server.url, retries=0).ask([Request(PLAIN)])
        while server._connections:
            time.sleep(0.01)
        assert server.sent < 30 << 20  # what the buffers of both sides take in the meantime


def test_room_for_alternatives_is_made_only_where_they_are_asked_for() -> None:
    plain = Request(PLAIN).most_bytes
    asked = Request({**PLAIN, "logprobs": True, "top_logprobs": 20}).most_bytes
    unlimited = Request({"model": "m", "messages": [], "top_logprobs": 20}).most_bytes
    assert plain < asked < unlimited == 4 << 20


@pytest.mark.parametrize(
    "behaviour",
    [
        "leaves out usage",
        "sends broken json",
        "promises more than it sends",
        "hangs up",
        "drips a body",
    ],
)
def test_what_may_be_charged_counts_and_a_budget_ends_it(
    behaviour: str, planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    bodies = [{**PLAIN, "top_p": number / 100} for number in range(30)]
    most = Request(bodies[0]).estimate.most_prompt + 16
    with HostileServer(behaviour) as server, session(budget=3.5 * most) as requests:
        endpoint = Endpoint(
            server.url, timeout=0.3, retries=50, concurrency=4, prices=Prices(1e6, 1e6)
        )
        with raises_code("exceeded-budget"):
            endpoint.ask([Request(body) for body in bodies])
        assert server.requests == 3
    assert requests.budget.spent == pytest.approx(3 * most)


def test_a_server_without_usage_is_named(planted: Path) -> None:
    with HostileServer("leaves out usage") as server:
        Endpoint(server.url).ask([Request(PLAIN)])  # without prices there is no cost to estimate
        with pytest.warns(EDOWarning, match="does not report how many tokens"):
            Endpoint(server.url, prices=Prices(1.0, 1.0)).ask([Request(PLAIN)])


@pytest.mark.parametrize("length", [8, 9, 20, len(KEY)])
def test_no_part_of_a_key_stays(length: int) -> None:
    for start in range(len(KEY) - length + 1):
        part = KEY[start : start + length]
        assert redact(f"so {part}, {part}{part} then", KEY).count("***") >= 2
        assert not leaks(redact(f"so {part}, {part}{part} then", KEY), KEY)
    assert redact("a rude answer", KEY) == "a rude answer"
    assert redact("none", "none") == "none"  # a placeholder, and perhaps a label


def test_a_key_that_is_spelled_by_tokens_leaves_no_log_probabilities() -> None:
    spelled = [[(letter, -0.1), (letter, -0.1), ("A", -2.0)] for letter in KEY[:12]]
    assert without_key(Completion("A", spelled), KEY).logprobs is None
    (position,) = without_key(Completion("A", [[("A", -0.1), (KEY, -1.0)]]), KEY).logprobs or []
    assert position == [("A", -0.1), ("***", -1.0)]


def test_half_a_character_is_sent_written_out(
    llm_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    odd = {**PLAIN, "messages": [{"role": "user", "content": "good \ud83d day \u202e"}]}
    with suppress(RequestRefusedError):  # it may refuse it, but is asked
        Endpoint(llm_server, retries=1).ask([Request({**odd, "max_tokens": 1})])
