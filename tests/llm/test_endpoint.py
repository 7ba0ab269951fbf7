"""Answers are kept under all that determines them, budgets hold, and addresses carry no secret."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_model import KEY

from edokit._errors import InputError
from edokit.members.recipes import _endpoint
from edokit.members.recipes._endpoint import (
    Answer,
    AnswerCache,
    Endpoint,
    RefusedError,
    Request,
    _retry_after,
    check_address,
    read_answer,
    refuse_address,
)
from edokit.members.spending import Budget, current_session, session

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
    here, there = Endpoint(HERE), Endpoint("http://127.0.0.1:8/v1")
    keys = [server.key(request) for server in (here, there) for request in requests]
    assert len(set(keys)) == 2 * len(requests)


def test_how_requests_are_sent_does_not_change_the_key() -> None:
    slow = Endpoint(HERE, timeout=1, retries=0, concurrency=1, prices=(1, 2))
    turned = dict(reversed(PLAIN.items()))
    assert slow.key(Request(turned)) == Endpoint(HERE).key(Request(PLAIN))


@given(st.text(), st.text())
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    keys = {
        Endpoint(HERE).key(Request({**PLAIN, "messages": [{"role": "user", "content": text}]}))
        for text in (one, other)
    }
    assert len(keys) == (1 if one == other else 2)


def test_the_cache_holds_answers_and_no_text_for_its_owner_alone(tmp_path: Path) -> None:
    key, answer = Endpoint(HERE).key(Request(PLAIN)), Answer("B", None, 3, 1)
    AnswerCache(tmp_path / "answers").put(key, answer)
    again = AnswerCache(tmp_path / "answers")
    assert again.get(key) == answer
    assert again.get("another") is None
    for path in again.folder.iterdir():
        assert b"good day" not in path.read_bytes()
    assert stat.S_IMODE(os.stat(again.folder).st_mode) == 0o700


def _fill(folder: Path, number: int) -> None:
    cache = AnswerCache(folder)
    for k in range(20):
        cache.put(f"{number}-{k}", Answer(str(k), None))


def test_two_processes_share_the_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=_fill, args=(tmp_path, 1))
    other.start()
    while other.is_alive():
        _fill(tmp_path, 0)
    assert other.exitcode == 0
    cache = AnswerCache(tmp_path)
    assert all(cache.get(f"{n}-{k}") == Answer(str(k), None) for n in range(2) for k in range(20))


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("a file")
    with pytest.raises(InputError, match="EDO_CACHE"):
        AnswerCache(tmp_path / "answers")


@pytest.mark.parametrize("damage", [b"no answer", b"[1", b"{}", b"7", b"[1, 2, 3, 4, 5]"])
def test_a_damaged_answer_is_asked_for_again(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "key.json").write_bytes(damage)
    assert AnswerCache(tmp_path).get("key") is None


@given(
    st.floats(0.5, 30),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=40),
    st.integers(1, 6),
)
@settings(deadline=None, max_examples=40)
def test_no_budget_is_exceeded_where_a_character_costs_the_same(
    budget: float, costs: list[float], threads: int
) -> None:
    limits = Budget(budget)
    paid: list[float] = []
    stop = threading.Event()

    def request(cost: float) -> None:
        size = round(cost * 1000)
        if stop.is_set():
            return
        try:
            limits.reserve(size)
        except InputError:
            stop.set()
            return
        paid.append(size / 1000)
        limits.settle(size, size / 1000)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(request, costs))
    assert limits.spent == pytest.approx(sum(paid))
    # The first request's cost is not known before it is made.
    assert limits.spent <= max(budget, paid[0] if paid else 0) + 1e-9
    if sum(round(cost * 1000) / 1000 for cost in costs) <= budget - 1e-9:
        assert len(paid) == len(costs)


def test_a_budget_of_nothing_sends_nothing_and_says_how_to_go_on() -> None:
    with pytest.raises(InputError, match=r"budget of 0 .*same command"):
        Budget(0.0).reserve(10)
    with pytest.raises(InputError, match="budget is -1"), session(budget=-1):
        pass


def test_an_attempt_that_is_not_answered_in_time_counts_as_one_that_cost_most() -> None:
    budget = Budget(10.0)
    budget.reserve(5)
    budget.settle(5, 4.0)
    budget.count_lost(5)
    assert budget.spent == 8.0
    with pytest.raises(InputError, match="does not cover the next request"):
        budget.reserve(5)


def test_a_request_that_fails_gives_back_what_it_reserved() -> None:
    limits = Budget(10.0)
    for cost in (4.0, None, 4.0):
        limits.reserve(100)
        limits.settle(100, cost)
    assert limits.spent == 8.0
    with pytest.raises(InputError):
        limits.reserve(100)


def test_sessions_end_with_their_block() -> None:
    with session(budget=3) as inner:
        assert current_session() is inner
    assert current_session().budget.limit is None


def test_costs_are_per_million_tokens() -> None:
    tokens = {"tokens_in": 2_000_000, "tokens_out": 500_000}
    assert Endpoint(HERE, prices=(0.5, 4.0)).cost(**tokens) == pytest.approx(3.0)
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
    with pytest.raises(InputError, match="not a valid URL"):
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
    with pytest.raises(InputError, match=r"https://host/v1.*trust='https://host/v1'"):
        refuse_address("a member", there, ["numpy", "https://other/v1"])
    with pytest.raises(InputError, match=r"base_url='https://host/v1'"):
        refuse_address("a file", there, None)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://host/v1/")
    refuse_address("a member", there, ())


def completion(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "B"}, **choice}]}


def test_answers_are_read_with_usage_and_alternatives_where_there_are_some() -> None:
    assert read_answer(json.dumps(completion()).encode()) == Answer("B", None)
    top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -2.5}]
    whole = {
        **completion(logprobs={"content": [{**top[0], "top_logprobs": top}]}),
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    answer = read_answer(json.dumps(whole).encode())
    assert answer == Answer("B", [[["B", -0.1], ["B", -0.1], ["A", -2.5]]], 9, 1)
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


def test_where_nothing_ever_listened_is_found_out_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Event, "wait", lambda self, seconds=None: self.is_set())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", retries=9, concurrency=1, timeout=1.0)
    with pytest.raises(InputError, match=r"can't be reached.*3 attempts"):
        endpoint._post(endpoint._client(), Request(PLAIN), threading.Event(), Budget())


@pytest.mark.parametrize("body", ["endless", "large"])
def test_a_response_without_end_is_cut_off(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_endpoint, "_MOST_BYTES", 1000)

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b" " if body == "endless" else b" " * 500)
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        endpoint = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", timeout=0.5)
        problem = "in 0.5 s" if body == "endless" else "more than"
        with pytest.raises(_endpoint._TemporaryError) as raised:
            endpoint._attempt(endpoint._client(), Request(PLAIN))
        server.join()
    assert problem in raised.value.reason


HOSTILE = {
    "content type": (b"Content-Type: text/{key}", b"<html>{key} {text}</html>"),
    "reason": (b"X: 1", b'{"error": {"message": "{key}", "code": "{text}"}}'),
    "infinity": (
        b"X: 1",
        b'{"choices": [{"message": {"content": "{key}"}}], "usage": {"prompt_tokens": Infinity}}',
    ),
    "number": (
        b"X: 1",
        b'{"choices": [{"message": {"content": "B"}}], "usage": {"prompt_tokens": 1'
        + b"0" * 400
        + b"}}",
    ),
    "digits": (b"X: 1", b'{"usage": {"prompt_tokens": 1' + b"0" * 5000 + b"}}"),
    "nested": (b"X: 1", b"[" * 100_000),
    "packed": (b"Content-Encoding: gzip, gzip", gzip.compress(gzip.compress(bytes(1 << 26)))),
    "redirect": (b"Location: http://127.0.0.1:9/{key}", b""),
    "wait": (b"Retry-After: nan", b"{key}"),
    "no HTTP": (b"{key} \xff\x00", b"{text}"),
}


@pytest.mark.parametrize(
    "status", [b"200 {key}", b"302 OK", b"400 {text}", b"401 {key}", b"404 {key}", b"500 {key}"]
)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_gets_nothing_shown_and_one_message(
    case: str, status: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def filled(content: bytes) -> bytes:
        return content.replace(b"{key}", KEY.encode()).replace(b"{text}", b"good day")

    header, body = (filled(part) for part in HOSTILE[case])
    response = b"HTTP/1.1 %b\r\n%b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(response % (filled(status), header, len(body), body))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        endpoint = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", retries=0)
        with pytest.raises(InputError) as raised:
            endpoint.ask([Request(PLAIN)])
        server.join()
    message = str(raised.value)
    assert not any(KEY[i : i + 6] in message for i in range(len(KEY) - 5))
    assert "good day" not in message
    assert len(message) < 400
    assert message.isprintable()


def test_half_a_character_is_sent_written_out(
    llm_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDO_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    odd = {**PLAIN, "messages": [{"role": "user", "content": "good \ud83d day \u202e"}]}
    with suppress(RefusedError):  # it may refuse it, but is asked
        Endpoint(llm_server, retries=1).ask([Request({**odd, "max_tokens": 1})])
