"""A proxy in front of an OpenAI-compatible server that fails as servers fail, and counts.

    python tools/fault_proxy.py http://127.0.0.1:8000/v1 --rate 0.2

prints its own address for `base_url`. Requests are counted by a digest of their bodies, so that
no text is kept. `FaultProxy` is the same for tests and for tools/faults.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PASSING = ("429", "429-after", "500", "503", "slow", "broken-json", "html", "closed", "cut")
"""Faults after which the same request is answered, if it is sent again."""

Plan = Callable[[int, int], str]
"""What happens to the n-th request of its kind to arrive, at its k-th attempt; "" is an answer."""


def answered(number: int, attempt: int) -> str:
    """Nothing fails."""
    return ""


def always(fault: str) -> Plan:
    """The same for all, each time."""
    return lambda number, attempt: fault


def in_turn(*faults: str) -> Plan:
    """Every request fails once, with the faults in turn."""

    def plan(number: int, attempt: int) -> str:
        if attempt > 0:
            return ""
        return faults[number % len(faults)]

    return plan


def at_random(rate: float, seed: int, faults: tuple[str, ...] = PASSING) -> Plan:
    """A share of all attempts fails, with random faults."""
    rng = random.Random(seed)

    def plan(number: int, attempt: int) -> str:
        if rng.random() < rate:
            return rng.choice(faults)
        return ""

    return plan


class FaultProxy:
    """Pass requests on to `upstream`, and let them fail as `plan` has it.

    Parameters
    ----------
    upstream : str
        Address of the server, with its path (`http://127.0.0.1:8000/v1`).
    plan : callable, default=answered
        Which fault an attempt gets. Besides `PASSING`: "401", "404" (no such model), "400-echo"
        (an error that repeats the request and the key), "no-label" (an answer that names none),
        "no-logprobs" (an answer without them), "refuse-logprobs" (status 400 if asked for them)
        and "one-choice" (a server that knows no `n`).
    slow : float, default=2.0
        Seconds that a slow answer takes.
    memory : dict, default=None
        Answers of the server by request, kept and given again. Proxies of one test session share
        it, so that a small machine evaluates a prompt once.

    Attributes
    ----------
    asked, answered : Counter
        Attempts, and whole answers with status 200, by digest of the body.
    injected : Counter
        How often each fault happened.
    most_in_flight : int
        The most requests that were open at a time.
    tokens : int
        Tokens of the whole answers and of their requests, as the server counts them.
    """

    def __init__(
        self,
        upstream: str,
        plan: Plan = answered,
        *,
        slow: float = 2.0,
        memory: dict[tuple[str, int], bytes] | None = None,
        port: int = 0,
    ) -> None:
        self.upstream = urlsplit(upstream)
        self.plan = plan
        self.slow = slow
        self.memory = memory
        self.in_flight = 0
        self._left: int | None = None
        self.lock = threading.Condition()
        self.reset()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self.server = _Server(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{self.upstream.path}"

    def __enter__(self) -> FaultProxy:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self.server.shutdown()
        self.server.server_close()

    def reset(self) -> None:
        """Count from zero."""
        with self.lock:
            self.asked = Counter[str]()
            self.answered = Counter[str]()
            self.injected = Counter[str]()
            self.most_in_flight = self.tokens = 0
            self._numbers: dict[str, int] = {}
            self._draws = Counter[str]()

    def hold_after(self, answers: int) -> None:
        """Give this many more answers, then keep all clients waiting."""
        with self.lock:
            self._left = answers

    def release(self) -> None:
        """Answer the waiting clients."""
        with self.lock:
            self._left = None
            self.lock.notify_all()

    def wait_for(self, true: Callable[[], bool], seconds: float = 60.0) -> None:
        """Return once a condition on the counts holds."""
        with self.lock:
            if not self.lock.wait_for(true, seconds):
                raise TimeoutError(f"{self.in_flight} open, {sum(self.answered.values())} answered")

    @property
    def repeated(self) -> int:
        """Whole answers that were given before."""
        return sum(self.answered.values()) - len(self.answered)

    def begin(self, digest: str) -> str:
        """Count an attempt; its fault."""
        with self.lock:
            number = self._numbers.setdefault(digest, len(self._numbers))
            fault = self.plan(number, self.asked[digest])
            self.asked[digest] += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if fault:
                self.injected[fault] += 1
            self.lock.notify_all()
            return fault

    def draw(self, digest: str) -> int:
        """The number of an answer among those to the same request."""
        with self.lock:
            self._draws[digest] += 1
            return self._draws[digest]

    def turn(self) -> None:
        """Wait while answers are held."""
        with self.lock:
            self.lock.wait_for(lambda: self._left is None or self._left > 0)
            if self._left is not None:
                self._left -= 1

    def end(self, digest: str, answer: bytes) -> None:
        """Count the end of an attempt, with its whole answer if there was one."""
        with self.lock:
            self.in_flight -= 1
            if answer:
                self.answered[digest] += 1
                self.tokens += json.loads(answer).get("usage", {}).get("total_tokens", 0)
            self.lock.notify_all()

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """What the server says."""
        connection = HTTPConnection(self.upstream.netloc, timeout=120)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that went away: it was killed."""


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Lists of models, which nobody disturbs."""
        self.reply(*self.proxy.ask("GET", self.path, b"", self.passed_on()))

    def do_POST(self) -> None:
        """One request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        digest = hashlib.sha256(self.path.encode() + b"\n" + body).hexdigest()
        fault = self.proxy.begin(digest)
        response = b""
        try:
            response = self.answer(fault, body, digest)
        finally:
            self.proxy.end(digest, response)

    def answer(self, fault: str, body: bytes, digest: str) -> bytes:
        """Fail or answer, and return the answer if the client got all of it."""
        if fault == "429-after":
            return self.fail(429, "busy", headers={"Retry-After": "1"})
        if fault in ("401", "404", "429", "500", "503"):
            messages = {"401": "no such key", "404": "no such model"}
            return self.fail(int(fault), messages.get(fault, "busy"))
        if fault == "400-echo":
            key = self.headers.get("Authorization", "")
            return self.fail(400, f"bad request: {body.decode()} from {key}")
        if fault == "refuse-logprobs" and "logprobs" in json.loads(body):
            return self.fail(400, "logprobs are not supported", param="logprobs")
        if fault == "slow":
            end = time.monotonic() + self.proxy.slow
            while time.monotonic() < end and not self.gone():
                time.sleep(0.01)
        if fault == "closed":
            return self.hang_up()
        if fault == "html":
            self.reply(200, b"<!DOCTYPE html><title>Sign in</title>", "text/html")
            return b""
        status, data = self.remembered(body, digest)
        if fault == "broken-json":
            self.reply(200, data[: len(data) // 2])
            return b""
        if fault == "cut":
            self.reply(200, data[: len(data) // 2], length=len(data))
            return self.hang_up()
        if status == 200:
            self.proxy.turn()
            data = _changed(data, fault)
        if self.gone():
            return self.hang_up()
        self.reply(status, data)
        if status != 200:
            return b""
        return data

    def gone(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def remembered(self, body: bytes, digest: str) -> tuple[int, bytes]:
        """The server's answer, from memory if the proxies share one."""
        # Only requests for the most probable token always have the same answer.
        draw = 0
        if json.loads(body).get("temperature") != 0:
            draw = self.proxy.draw(digest)
        memory = self.proxy.memory
        if memory is not None and (digest, draw) in memory:
            return 200, memory[digest, draw]
        status, data = self.proxy.ask("POST", self.path, body, self.passed_on())
        if status == 200 and memory is not None:
            memory[digest, draw] = data
        return status, data

    def passed_on(self) -> dict[str, str]:
        """The headers that matter to the server."""
        kept_headers = ("Authorization", "Content-Type")
        return {name: value for name in kept_headers if (value := self.headers.get(name))}

    def fail(
        self,
        status: int,
        message: str,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """An error as OpenAI's API words it."""
        error = {"message": message, "type": "error", "param": param, "code": status}
        self.reply(status, json.dumps({"error": error}).encode(), headers=headers)
        return b""

    def reply(
        self,
        status: int,
        data: bytes,
        kind: str = "application/json",
        length: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Send an answer; `length` announces more bytes than are sent."""
        if length is None:
            length = len(data)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def hang_up(self) -> bytes:
        """Close the connection without an answer."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        return b""

    def log_message(self, *_: object) -> None:
        """Nothing is logged: requests hold texts."""


def _changed(data: bytes, fault: str) -> bytes:
    """The answer of a less capable server, or of a model that names no label."""
    if fault not in ("no-label", "no-logprobs", "refuse-logprobs", "one-choice"):
        return data
    answer = json.loads(data)
    if fault == "one-choice":
        answer["choices"] = answer["choices"][:1]
    for choice in answer["choices"]:
        choice.pop("logprobs", None)
        if fault == "no-label":
            choice["message"]["content"] = "That is hard to say."
    return json.dumps(answer).encode()


def main() -> None:
    """Listen until interrupted, then print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("upstream", help="the server, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--rate", type=float, default=0.1, help="share of the attempts that fail")
    parser.add_argument("--faults", default=",".join(PASSING), help="which ones, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=float, default=2.0, help="seconds of a slow answer")
    arguments = parser.parse_args()
    plan = at_random(arguments.rate, arguments.seed, tuple(arguments.faults.split(",")))
    with FaultProxy(arguments.upstream, plan, slow=arguments.slow, port=arguments.port) as proxy:
        print(proxy.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        print(f"{len(proxy.asked)} requests, {sum(proxy.asked.values())} attempts")
        print(f"{sum(proxy.answered.values())} answered, {proxy.repeated} of them again")
        print(f"{proxy.most_in_flight} at most at a time; faults: {dict(proxy.injected)}")


if __name__ == "__main__":
    main()
