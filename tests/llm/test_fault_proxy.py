"""The proxy of the tests fails as it should, and counts right, in front of a real server."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from language_model import KEY, MODEL, PASSING, FaultProxy, always, in_turn

Proxies = Callable[..., FaultProxy]


def ask(url: str, text: str, timeout: float = 30.0, **fields: object) -> tuple[int, dict, dict]:
    """Status, headers and answer of one request, as a plain client sees them."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=timeout)
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 1,
        "temperature": 0,
        **fields,
    }
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    try:
        connection.request("POST", f"{where.path}/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), json.loads(answer.read())
    finally:
        connection.close()


def test_a_real_model_gives_log_probabilities_through_it(proxy: Proxies) -> None:
    front = proxy()
    status, _, answer = ask(front.url, "One, two, three,", logprobs=True, top_logprobs=5)
    assert status == 200
    best = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert len(best) == 5
    assert best[0]["logprob"] == max(each["logprob"] for each in best)
    assert "four" in best[0]["token"].lower() or best[0]["token"].strip() == ""
    front.wait_for(lambda: front.in_flight == 0)
    assert sum(front.answered.values()) == 1


def test_each_fault_is_what_its_name_says_and_the_next_attempt_is_answered(
    proxy: Proxies,
) -> None:
    front = proxy(in_turn(*PASSING), slow=0.6)
    seen: dict[str, object] = {}
    for fault in PASSING:
        try:
            status, headers, _ = ask(front.url, f"A text for {fault}.", timeout=0.4)
            seen[fault] = (status, "Retry-After" in headers)
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            seen[fault] = type(error).__name__
        assert ask(front.url, f"A text for {fault}.")[0] == 200
    assert seen == {
        "429": (429, False),
        "429-after": (429, True),
        "500": (500, False),
        "503": (503, False),
        "slow": "TimeoutError",
        "broken-json": "JSONDecodeError",
        "html": "JSONDecodeError",
        "closed": "RemoteDisconnected",
        "cut": "IncompleteRead",
    }
    assert set(front.asked.values()) == {2}
    front.wait_for(lambda: front.in_flight == 0)
    assert set(front.answered.values()) == {1}  # one that nobody waited for does not count


@pytest.mark.parametrize("fault", ["no-label", "no-logprobs", "refuse-logprobs", "one-choice"])
def test_lesser_servers_are_played(proxy: Proxies, fault: str) -> None:
    front = proxy(always(fault))
    asked = {"logprobs": True, "top_logprobs": 2} if "logprobs" in fault else {"n": 2}
    status, _, answer = ask(front.url, "Tea or coffee?", **asked)
    if fault == "refuse-logprobs":
        assert (status, answer["error"]["param"]) == (400, "logprobs")
        return
    assert status == 200
    assert len(answer["choices"]) == (1 if fault in ("one-choice", "no-logprobs") else 2)
    assert "logprobs" not in answer["choices"][0]
    hard = answer["choices"][0]["message"]["content"] == "That is hard to say."
    assert hard == (fault == "no-label")


def test_held_answers_are_counted_as_open_and_not_as_given(proxy: Proxies) -> None:
    front = proxy()
    front.hold_after(1)
    threads = [
        threading.Thread(target=ask, args=(front.url, f"Number {i}."), daemon=True)
        for i in range(3)
    ]
    for thread in threads:
        thread.start()
    front.wait_for(lambda: front.in_flight == 2 and sum(front.answered.values()) == 1)
    assert front.most_in_flight >= 2
    front.release()
    for thread in threads:
        thread.join(30)
    front.wait_for(lambda: sum(front.answered.values()) == 3)
    assert front.repeated == 0


def test_the_server_itself_asks_for_the_key(llm_server: str) -> None:
    where = urlsplit(llm_server)
    connection = http.client.HTTPConnection(where.netloc, timeout=30)
    connection.request("POST", f"{where.path}/chat/completions", "{}")
    assert connection.getresponse().status == 401
    connection.close()
