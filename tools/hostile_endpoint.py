"""A server of models that misbehaves in many ways, and what the client makes of it.

    python tools/hostile_endpoint.py --minutes 2

asks a server on loopback, as members of the recipes llm and embeddings do, once for each
misbehaviour and then for mutations of valid responses, until the time is over. Each question must
end with an answer or with one line, before its deadline, without much memory, within the budget,
and without the key in a file or a message. The last line says what was done; the exit status is 1
if one of these did not hold. `HostileServer` is the same server for tests.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KEY = "sk-planted-7f3a9c51e2d84b06"
TEXT = "zanzibarquux, good day"
DRIP = 0.02
"""Seconds between two bytes of a server that drips."""


@dataclass
class Exchange:
    """A connection on which a request arrived."""

    connection: socket.socket
    key: str
    rng: random.Random
    sent: int = 0

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.connection.sendall(data)
        self.sent += len(data)

    def head(self, *lines: str, status: str = "200 OK") -> None:
        """Send a status line and headers."""
        self.send("\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1"))

    def reply(self, body: bytes, *lines: str, status: str = "200 OK") -> None:
        """Send a whole response."""
        length = f"Content-Length: {len(body)}"
        self.head("Content-Type: application/json", length, *lines, status=status)
        self.send(body)

    def complete(self, text: object, usage: object = None, **choice: object) -> None:
        """Send a chat completion."""
        self.reply(completion(text, usage, **choice))


def completion(text: object, usage: object = None, **choice: object) -> bytes:
    """A chat completion; without ``usage`` it reports plausible counts."""
    if usage is None:
        usage = {"prompt_tokens": 20, "completion_tokens": 1}
    choices = [{"message": {"role": "assistant", "content": text}, **choice}]
    return json.dumps({"choices": choices, "usage": usage}).encode()


def alternatives(*tokens: tuple[str, float], number: int = 1) -> dict[str, object]:
    """The log-probabilities of an answer whose every token has these alternatives."""
    top = [{"token": token, "logprob": value} for token, value in tokens]
    return {"content": [{**top[0], "top_logprobs": top}] * number}


Misbehaviour = Callable[[Exchange], None]
MISBEHAVIOURS: dict[str, Misbehaviour] = {}


def misbehaviour(function: Misbehaviour) -> Misbehaviour:
    """Register a function by its name."""
    MISBEHAVIOURS[function.__name__.replace("_", " ")] = function
    return function


@misbehaviour
def drips_headers(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        exchange.send(b"x")
        time.sleep(DRIP)


@misbehaviour
def drips_a_body(exchange: Exchange) -> None:
    exchange.head("Content-Length: 1000000")
    while True:
        exchange.send(b" ")
        time.sleep(DRIP)


@misbehaviour
def never_answers(exchange: Exchange) -> None:
    while exchange.connection.recv(1000):
        pass


@misbehaviour
def continues_for_ever(exchange: Exchange) -> None:
    while True:
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        time.sleep(DRIP)


@misbehaviour
def sends_endless_headers(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        exchange.send(b"X-Filler: " + b"x" * 1000 + b"\r\n")


@misbehaviour
def sends_an_endless_status_line(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 ")
    while True:
        exchange.send(b"OK" * 1000)


@misbehaviour
def sends_endless_spaces(exchange: Exchange) -> None:
    exchange.head("Connection: close")
    while True:
        exchange.send(b" " * 65536)


@misbehaviour
def sends_60_mib_of_braces(exchange: Exchange) -> None:
    piece = b"{}," * 20_000
    exchange.head(f"Content-Length: {1 + 1000 * len(piece) + 3}")
    exchange.send(b"[")
    for _ in range(1000):
        exchange.send(piece)
    exchange.send(b"{}]")


@misbehaviour
def sends_endless_chunks(exchange: Exchange) -> None:
    exchange.head("Transfer-Encoding: chunked")
    while True:
        exchange.send(b"1;" + b"x" * 5000 + b"\r\n \r\n")


@misbehaviour
def announces_a_chunk_of_an_exabyte(exchange: Exchange) -> None:
    exchange.head("Transfer-Encoding: chunked")
    exchange.send(b"1000000000000000\r\n" + b" " * 1000)
    time.sleep(DRIP)


@misbehaviour
def sends_endless_trailers(exchange: Exchange) -> None:
    exchange.head("Transfer-Encoding: chunked")
    exchange.send(b"2\r\n{}\r\n0\r\n")
    while True:
        exchange.send(b"X-Filler: " + b"x" * 1000 + b"\r\n")


@misbehaviour
def sends_a_gzip_bomb(exchange: Exchange) -> None:
    bomb = gzip.compress(bytes(1 << 20)) * 200
    exchange.reply(gzip.compress(bomb), "Content-Encoding: gzip, gzip")


@misbehaviour
def sets_many_cookies(exchange: Exchange) -> None:
    cookies = [f"Set-Cookie: c{number}={exchange.key}; Max-Age=1000" for number in range(1000)]
    exchange.reply(completion("A"), *cookies)


@misbehaviour
def nests_deeply(exchange: Exchange) -> None:
    exchange.reply(b"[" * 200_000)


@misbehaviour
def nests_an_answer_deeply(exchange: Exchange) -> None:
    depth = 50_000
    exchange.reply(b'{"choices": [{"message": {"content": ' + b"[" * depth + b"]" * depth + b"}}]}")


@misbehaviour
def thinks_without_an_end(exchange: Exchange) -> None:
    exchange.complete("<think>" * 30_000)


@misbehaviour
def ends_thoughts_that_never_began(exchange: Exchange) -> None:
    exchange.complete("</think>" * 26_000 + "A")


@misbehaviour
def says_answer_very_often(exchange: Exchange) -> None:
    exchange.complete("answer " * 30_000)


@misbehaviour
def answers_with_spaces(exchange: Exchange) -> None:
    exchange.complete("answer" + " " * 200_000 + "x")


@misbehaviour
def echoes_the_key(exchange: Exchange) -> None:
    exchange.complete(f"A Authorization: Bearer {exchange.key} and {exchange.key[3:20]}")


@misbehaviour
def spells_the_key_in_tokens(exchange: Exchange) -> None:
    key = exchange.key
    pieces = [key[start : start + 3] for start in range(0, len(key), 3)]
    content = [
        {**(token := {"token": piece, "logprob": -0.1}), "top_logprobs": [token, token, token]}
        for piece in pieces
    ]
    exchange.complete("A", logprobs={"content": content})


@misbehaviour
def puts_the_key_among_alternatives(exchange: Exchange) -> None:
    tokens = (("A", -0.1), (exchange.key, -2.0), ("B", -3.0))
    exchange.complete("A", logprobs=alternatives(*tokens))


@misbehaviour
def echoes_the_key_in_an_error(exchange: Exchange) -> None:
    body = json.dumps({"error": {"message": f"{exchange.key} {TEXT}"}}).encode()
    exchange.reply(body, f"X-Key: {exchange.key}", status=f"400 {exchange.key}")


@misbehaviour
def redirects_with_the_key(exchange: Exchange) -> None:
    exchange.reply(b"", f"Location: http://127.0.0.1:9/{exchange.key}", status="307 Moved")


@misbehaviour
def leaves_out_usage(exchange: Exchange) -> None:
    exchange.complete("A", usage={})


@misbehaviour
def reports_no_tokens(exchange: Exchange) -> None:
    exchange.complete("A", usage={"prompt_tokens": 0, "completion_tokens": 0})


@misbehaviour
def reports_a_negative_number(exchange: Exchange) -> None:
    exchange.complete("A", usage={"prompt_tokens": -5, "completion_tokens": 1})


@misbehaviour
def reports_infinity(exchange: Exchange) -> None:
    exchange.complete("A", usage={"prompt_tokens": float("inf"), "completion_tokens": 1})


@misbehaviour
def reports_a_number_of_many_digits(exchange: Exchange) -> None:
    exchange.reply(b'{"usage": {"prompt_tokens": 1' + b"0" * 50_000 + b"}}")


@misbehaviour
def lists_many_long_alternatives(exchange: Exchange) -> None:
    tokens = [(" " * 900, -1.0 - number) for number in range(14)]
    exchange.complete("A", logprobs=alternatives(*tokens, number=16))


@misbehaviour
def lists_a_token_without_end(exchange: Exchange) -> None:
    exchange.complete("A", logprobs=alternatives((" " * 200_000, -0.1), ("A", -1.0), ("B", -2.0)))


@misbehaviour
def has_odd_log_probabilities(exchange: Exchange) -> None:
    odd = exchange.rng.choice([float("nan"), float("inf"), 1e308, -1e308])
    exchange.complete("A", logprobs=alternatives(("A", odd), ("B", odd), ("C", -1.0)))


@misbehaviour
def answers_with_another_type(exchange: Exchange) -> None:
    odd: list[object] = [7, [1], {"a": 1}, True, None, "\ud83d", "\u202e\x1b[2J", "\x00"]
    exchange.complete(exchange.rng.choice(odd))


@misbehaviour
def sends_broken_json(exchange: Exchange) -> None:
    complete = completion("A")
    exchange.reply(complete[: exchange.rng.randrange(len(complete))])


@misbehaviour
def promises_more_than_it_sends(exchange: Exchange) -> None:
    exchange.head("Content-Length: 5000")
    exchange.send(completion("A"))


@misbehaviour
def hangs_up(exchange: Exchange) -> None:
    pass


@misbehaviour
def resets_the_connection(exchange: Exchange) -> None:
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


@misbehaviour
def speaks_something_else(exchange: Exchange) -> None:
    exchange.send(exchange.rng.randbytes(2000))


@misbehaviour
def has_no_time(exchange: Exchange) -> None:
    pause = exchange.rng.choice(["nan", "inf", "-1", "1e9", "99999999999", "soon"])
    exchange.reply(b"{}", f"Retry-After: {pause}", status="429 Busy")


@misbehaviour
def mutates_a_response(exchange: Exchange) -> None:
    """Some bytes of a valid response, or of its body alone, changed, removed or repeated."""
    tokens = (("A", -0.1), ("B", -2.5), ("C", -3.0))
    body = completion("A", logprobs=alternatives(*tokens))
    if exchange.rng.random() < 0.5:
        exchange.reply(mutated(body, exchange.rng))
        return
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    exchange.send(mutated(head + body, exchange.rng))


@misbehaviour
def mutates_a_vector(exchange: Exchange) -> None:
    exchange.reply(mutated(embedding([0.25, -1.5e-3, 3.0]), exchange.rng))


@misbehaviour
def returns_huge_numbers(exchange: Exchange) -> None:
    exchange.reply(embedding([1e300, -1e300, 1.0]))


@misbehaviour
def returns_vectors_of_several_lengths(exchange: Exchange) -> None:
    exchange.reply(embedding([1.0] * exchange.rng.randint(1, 50)))


@misbehaviour
def returns_a_long_vector(exchange: Exchange) -> None:
    exchange.reply(embedding([1.0] * 100_000))


@misbehaviour
def hides_the_key_in_a_vector(exchange: Exchange) -> None:
    vector: list[object] = [1.0, exchange.key]
    exchange.reply(embedding(vector))


def embedding(vector: Sequence[object]) -> bytes:
    """The vector of a text."""
    data = [{"object": "embedding", "index": 0, "embedding": vector}]
    return json.dumps({"data": data, "usage": {"prompt_tokens": 5}}).encode()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The data with one to five changes; digits are changed to digits half of the time."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        start = rng.randrange(len(changed))
        end = start + rng.randint(1, 20)
        piece = bytes(changed[start:end])
        choice = rng.randrange(6)
        if choice == 0:
            changed[start:end] = rng.randbytes(len(piece))
        elif choice == 1:
            del changed[start:end]
        elif choice == 2:
            changed[start:start] = piece * rng.randint(1, 50)
        else:
            digits = [place for place, byte in enumerate(changed) if chr(byte).isdigit()]
            if digits:
                changed[rng.choice(digits)] = rng.choice(b"0123456789-.e")
    return bytes(changed)


class HostileServer:
    """A server on loopback that answers every request with one misbehaviour.

    Attributes
    ----------
    url : str
        Its address, for ``base_url``.
    behaviour : str
        The misbehaviour of the next requests.
    requests : int
        Requests that arrived.
    sent : int
        Bytes that were sent.
    """

    def __init__(self, behaviour: str = "", key: str = KEY, seed: int = 0) -> None:
        self.behaviour = behaviour
        self.requests = 0
        self.sent = 0
        self._key = key
        self._rng = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._connections: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> HostileServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing a listener does not end the call that waits on it; this does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self._connections.add(connection)
        exchange = Exchange(connection, self._key, self._rng)
        with connection, contextlib.suppress(OSError):
            if read_request(connection):
                self.requests += 1
                MISBEHAVIOURS[self.behaviour](exchange)
        self.sent += exchange.sent
        self._connections.discard(connection)


def read_request(connection: socket.socket) -> bool:
    """Read a request to its end; False if the client went away before."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return False
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    while len(body) < sum(lengths):
        part = connection.recv(65536)
        if not part:
            return False
        body += part
    return True


@dataclass
class Findings:
    """What was tried, and what did not hold."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


TIMEOUT = 0.5
SLACK = 5.0
"""Seconds that a question may take beyond the deadline of its exchange, on a busy machine."""
MOST_MEMORY = 200 << 20
BUDGET = 50.0
"""With a price of 1e4 per million tokens, some thousands of tokens."""


def ask_chat(server: HostileServer, text: str) -> None:
    """Ask for the label of a text, as a member of the recipe llm does."""
    from edokit.members.recipe import MemberData
    from edokit.members.recipes.llm import LanguageModel

    member = LanguageModel(
        2,
        base_url=server.url,
        model="m",
        timeout=TIMEOUT,
        retries=0,
        concurrency=2,
        samples=2,
        price_in=1e4,
        price_out=1e4,
    )
    member.fit(MemberData([], lambda epoch: None, classes=("polite", "rude")))
    probabilities = member.predict_proba([text])
    assert abs(probabilities.sum() - 1) < 1e-6, "the probabilities of an answer do not sum to 1"


def ask_vectors(server: HostileServer, text: str) -> None:
    """Ask for the vectors of two texts, as a member of the recipe embeddings does."""
    from edokit.members.recipes._embeddings import EmbeddingServer

    endpoint = EmbeddingServer(
        server.url, "m", timeout=TIMEOUT, retries=0, concurrency=2, price=1e4
    )
    vectors = endpoint([text, f"{text} again"])
    length = (vectors**2).sum(axis=1)
    assert ((abs(length - 1) < 1e-3) | (length == 0)).all(), "a vector does not have length one"


QUESTIONS = {"llm": (ask_chat, 5), "embeddings": (ask_vectors, 2)}
"""By recipe: what asks, and how many exchanges that takes at most."""


def ask_once(
    server: HostileServer, number: int, cache: Path, findings: Findings, recipe: str = "llm"
) -> None:
    """Ask one question as a member of a recipe does, and look at what it left."""
    from edokit import InputError
    from edokit.members.spending import session

    ask, exchanges = QUESTIONS[recipe]
    message = ""
    started = time.monotonic()
    with session(budget=BUDGET) as requests, warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            ask(server, f"{TEXT} {number}")
            outcome = "answered"
        except InputError as error:
            message = str(error)
            outcome = "refused in one line"
        except Exception as error:
            outcome = "broken"
            findings.wrong.append(f"{server.behaviour}: {type(error).__name__}: {error}")
    seconds = time.monotonic() - started
    findings.outcomes[outcome] += 1
    findings.slowest = max(findings.slowest, seconds)
    if seconds > exchanges * TIMEOUT + SLACK:
        findings.wrong.append(f"{server.behaviour}: took {seconds:.1f} s")
    if requests.budget.spent > BUDGET:
        findings.wrong.append(f"{server.behaviour}: spent {requests.budget.spent:g} of {BUDGET:g}")
    messages = "\n".join([message, *(str(note.message) for note in notes)])
    if not message.isprintable() or leaks(messages, server._key) or TEXT in messages:
        findings.wrong.append(f"{server.behaviour}: a message shows too much")
    for path in cache.rglob("*"):
        if path.is_file():
            if leaks(path.read_text(encoding="utf-8", errors="replace"), server._key):
                findings.wrong.append(f"{server.behaviour}: {path.name} holds the key")
            if path.stat().st_mode & 0o077 and path.suffix == ".json":
                findings.wrong.append(f"{server.behaviour}: others can read {path.name}")
            path.unlink()


def leaks(text: str, key: str) -> bool:
    """Whether a text holds eight characters of a key, one after the other."""
    return any(key[start : start + 8] in text for start in range(len(key) - 7))


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    import resource  # not on Windows

    unit = 1024
    if sys.platform == "darwin":
        unit = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def behaviours(seconds: float) -> Iterator[tuple[str, str]]:
    """Each misbehaviour once for each recipe, then mutations until the time is over."""
    end = time.monotonic() + seconds
    for behaviour in MISBEHAVIOURS:
        for recipe in QUESTIONS:
            yield behaviour, recipe
    while time.monotonic() < end:
        yield "mutates a response", "llm"
        yield "mutates a vector", "embeddings"


def main() -> int:
    """Ask until the time is over; the exit status is 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    findings = Findings()
    os.environ["OPENAI_API_KEY"] = KEY
    with tempfile.TemporaryDirectory() as folder, HostileServer(seed=arguments.seed) as server:
        os.environ["EDO_CACHE"] = folder
        server.behaviour = "leaves out usage"
        for recipe in QUESTIONS:
            ask_once(server, -1, Path(folder), findings, recipe)  # everything is imported
        memory = peak_memory()
        for number, (behaviour, recipe) in enumerate(behaviours(60 * arguments.minutes)):
            server.behaviour = behaviour
            ask_once(server, number, Path(folder), findings, recipe)
            if peak_memory() - memory > MOST_MEMORY:
                findings.wrong.append(f"{behaviour}: {(peak_memory() - memory) >> 20} MiB more")
                memory = peak_memory()
        grown = peak_memory() - memory
        requests = server.requests
    for line in findings.wrong:
        print(f"wrong: {line}")
    outcomes = ", ".join(f"{number:,} {name}" for name, number in findings.outcomes.items())
    print(
        f"{len(MISBEHAVIOURS)} misbehaviours, {requests:,} requests: {outcomes}; slowest"
        f" {findings.slowest:.1f} s at a deadline of {TIMEOUT:g} s, {grown >> 20} MiB more memory,"
        f" {len(findings.wrong)} wrong"
    )
    return int(bool(findings.wrong))


if __name__ == "__main__":
    sys.exit(main())
