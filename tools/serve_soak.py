"""Put `edo serve` under load, send it malformed requests, kill it, and count lost answers.

    python tools/serve_soak.py --requests 10000 --minutes 3

Every answer is compared with that of the same bundle in Python. A planted text must not appear in
the output of the server. The exit status is 1 if an answer was lost or wrong.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HEADERS = {"content-type": "application/json"}
PLANTED = "quiet marmalade evening near the old harbour"
WORDS = ("the", "bus", "was", "late", "so", "we", "walked", "and", "talked", "kind", "reply")


def make_bundle(folder: Path, members: int = 3, recipe: str = "linear", **options: Any) -> Path:
    """A small bundle of members on simulated texts."""
    from edokit import EDOEnsemble, fit, simulate, train_members
    from edokit.bundle import Bundle
    from edokit.members import Group

    people = simulate("two-camps", items=(150, 60, 5), random_state=0).annotations
    groups = [Group(recipe, members, options=options)]
    train_members(people, groups, out=folder / "members", jobs=1)
    predictions = folder / "members" / "predictions" / "dev.npz"
    fit(
        predictions,
        people.split("dev"),
        out=folder / "ensemble",
        ensemble=EDOEnsemble("paper-fixed"),
    )
    Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder / "bundle"


class Server:
    """`edo serve` as a process of its own; what it writes is kept."""

    def __init__(
        self, bundle: Path, folder: Path, *options: str, stderr: int | None = None, **env: str
    ) -> None:
        command = [sys.executable, "-c", "from edokit.cli import main; main()", "serve"]
        self.out = folder / "serve.out"
        self.err = folder / "serve.err"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            if stderr is None:
                stderr = err.fileno()
            self.process = subprocess.Popen(
                [*command, str(bundle), "--port", "0", "--json", *options],
                stdout=out,
                stderr=stderr,
                env={**os.environ, **env},
            )
        self._before = self.out.stat().st_size

    def __enter__(self) -> Server:
        """The server, once its members are loaded."""
        ends = time.monotonic() + 600  # other processes may have the processor
        while time.monotonic() < ends:
            lines = self.out.read_bytes()[self._before :]
            if lines.endswith(b"}\n"):
                self.about = json.loads(lines)
                self.url = self.about["url"]
                self.port = int(self.url.rpartition(":")[2])
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"the server does not start: {self.err.read_text()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(120)

    def ask(self, body: Any, client: http.client.HTTPConnection) -> Any:
        """The status and the content of the answer to a request."""
        client.request("POST", "/predict", json.dumps(body), HEADERS)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())

    def written(self) -> str:
        """All that it wrote."""
        return self.out.read_text() + self.err.read_text()


def same(answer: object, expected: object) -> bool:
    """Whether two answers are equal up to the last digit, which depends on the batch."""
    if isinstance(answer, dict) and isinstance(expected, dict):
        if answer.keys() != expected.keys():
            return False
        return all(same(answer[key], expected[key]) for key in answer)
    if isinstance(answer, list) and isinstance(expected, list):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    if isinstance(answer, float) and isinstance(expected, float):
        return abs(answer - expected) < 1e-12
    return bool(answer == expected)


def some_texts(rng: random.Random, most: int = 8) -> list[str]:
    """A few texts for a request, sometimes with the planted one."""
    texts = []
    for _ in range(rng.randint(1, most)):
        texts.append(" ".join(rng.choices(WORDS, k=rng.randint(1, 30))))
    if rng.random() < 0.1:
        texts.append(PLANTED)
    return texts


Answers = Callable[[Sequence[str]], object]
"""From texts to the answers of the bundle in Python, as JSON has them."""


def under_load(
    server: Server,
    expected: Answers,
    requests: int,
    clients: int = 16,
    seed: int = 0,
) -> Counter[str]:
    """Send requests of many clients at once, and compare their answers with those of Python."""
    rng = random.Random(seed)
    pool = [some_texts(rng) for _ in range(100)]
    expected_answers = [expected(texts) for texts in pool]
    counts: Counter[str] = Counter()
    lock = threading.Lock()

    def run(number: int) -> None:
        rng = random.Random(f"{seed}-{number}")
        thread_counts = Counter[str]()
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        for _ in range(requests // clients + (number < requests % clients)):
            k = rng.randrange(len(pool))
            try:
                status, answer = server.ask({"texts": pool[k]}, client)
            except (OSError, http.client.HTTPException, ValueError) as error:
                thread_counts[f"lost: {type(error).__name__}"] += 1
                client.close()
                continue
            if status != 200:
                thread_counts[f"status {status}"] += 1
            elif same(answer["predictions"], expected_answers[k]):
                thread_counts["right"] += 1
            else:
                thread_counts["wrong"] += 1
        client.close()
        with lock:
            counts.update(thread_counts)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
UNREAD = 20
"""Clients that never read their answers."""
MOST_GROWTH = 32 << 20
"""Bytes that pipelined requests, and clients that never read, may take."""
PIPELINED = (
    b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 2\r\n\r\n{}",
)
"""Requests that a client sends one after another without waiting for their answers."""


@dataclass
class Flood:
    """The effect of pipelined requests on a server.

    Attributes
    ----------
    answers : int
        Answers that arrived.
    growth : int
        Bytes by which the memory of the server grew at most.
    health : list of float
        Seconds that `/health` took, asked on other connections meanwhile.
    """

    answers: int
    growth: int
    health: list[float]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder and their bytes."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def memory(process: int) -> int:
    """Bytes of memory that a process takes (resident set, Linux)."""
    with open(f"/proc/{process}/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(process: int) -> float:
    """Seconds of a processor that a process took (Linux)."""
    with open(f"/proc/{process}/stat") as numbers:
        fields = numbers.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pipeline(
    server: Server, requests: int, connections: int, kinds: Sequence[bytes] = PIPELINED
) -> Flood:
    """Send requests on some connections without waiting for answers, which are all read."""
    per_connection = requests // connections
    content = b"".join(kinds[k % len(kinds)] for k in range(per_connection))
    answers = Counter[str]()
    finished = threading.Event()
    health: list[float] = []
    before = memory(server.process.pid)
    largest = before

    def read(line: socket.socket) -> None:
        number = 0
        tail = b""
        while number < per_connection:
            received = line.recv(1 << 16)
            if not received:
                break
            tail += received
            number += tail.count(b"HTTP/1.1 ")
            tail = tail[-8:]  # the beginning of an answer may be cut in two
        answers["all"] += number

    def flood() -> None:
        # The time for all bytes of sendall together: other processes may have the processor.
        with socket.create_connection(("127.0.0.1", server.port), timeout=1800) as line:
            reader = threading.Thread(target=read, args=(line,))
            reader.start()
            line.sendall(content)
            reader.join()

    def watch() -> None:
        nonlocal largest
        while not finished.wait(0.05):
            largest = max(largest, memory(server.process.pid))

    def ask() -> None:
        while not finished.wait(0.1):
            begun = time.monotonic()
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            client.request("GET", "/health")
            if client.getresponse().status == 200:
                health.append(time.monotonic() - begun)
            client.close()

    threads = [threading.Thread(target=watch), threading.Thread(target=ask)]
    floods = [threading.Thread(target=flood) for _ in range(connections)]
    for thread in (*threads, *floods):
        thread.start()
    for thread in floods:
        thread.join()
    finished.set()
    for thread in threads:
        thread.join()
    largest = max(largest, memory(server.process.pid))
    return Flood(answers["all"], largest - before, sorted(health))


@dataclass
class Unread:
    """The effect of clients that never read their answers on a server.

    Attributes
    ----------
    cut_off : int
        Connections that the server ended.
    growth : int
        Bytes by which the memory of the server grew at most.
    """

    cut_off: int
    growth: int


def leave_unread(server: Server, connections: int, seconds: float) -> Unread:
    """Ask for pages on some connections until nothing more can be sent, and read no answer.

    The server must end them within these seconds of its last work on answers.
    """
    content = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000
    before = memory(server.process.pid)
    largest = before
    sent: dict[socket.socket, int] = {}
    for _ in range(connections):
        line = socket.create_connection(("127.0.0.1", server.port))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        line.setblocking(False)
        sent[line] = 0
    ends = time.monotonic() + seconds
    worked = processor_seconds(server.process.pid)
    while sent and time.monotonic() < ends:
        if processor_seconds(server.process.pid) > worked + 0.5:
            worked = processor_seconds(server.process.pid)
            ends = time.monotonic() + seconds
        for line, position in list(sent.items()):
            try:
                sent[line] = (position + line.send(content[position:])) % len(content)
            except BlockingIOError:
                continue
            except OSError:
                line.close()
                del sent[line]
        largest = max(largest, memory(server.process.pid))
        time.sleep(0.05)
    for line in sent:
        line.close()
    return Unread(connections - len(sent), largest - before)


def malformed(rng: random.Random) -> bytes:
    """The bytes of a request that should not be answered with 200."""
    body = json.dumps({"texts": [PLANTED]}).encode()
    wrong_value = rng.choice([1, None, "", [PLANTED], {PLANTED: 1}])
    bodies = [
        body[: rng.randrange(len(body))],
        json.dumps({"texts": [PLANTED, wrong_value]}).encode(),
        json.dumps({"texts": [PLANTED], PLANTED: 1}).encode(),
        json.dumps({"texts": [PLANTED], "annotators": [[PLANTED]]}).encode(),
        json.dumps({"texts": [PLANTED], "for": PLANTED}).encode(),
        json.dumps({"texts": [PLANTED] * 5000}).encode(),
        b"[" * 100_000,
        rng.randbytes(rng.randrange(2000)),
        b'{"texts": ["\\ud800"]}',
    ]
    content = rng.choice(bodies)
    kind = rng.choice([b"application/json"] * 4 + [b"text/plain", PLANTED.encode()])
    head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: " + kind
    size = rng.choice([len(content)] * 6 + [len(content) + 50, 10**12, -1])
    complete = b"%b\r\ncontent-length: %d\r\n\r\n%b" % (head, size, content)
    other_requests = [
        b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n" % PLANTED.replace(" ", "%20").encode(),
        b"PUT /predict?%b HTTP/1.1\r\nhost: localhost\r\n\r\n" % PLANTED.replace(" ", "+").encode(),
        b"%b\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b" % (head, len(content) + 7, content),
        b"%b\r\nx: %b\r\n\r\n" % (head, b"x" * 100_000),
        b"GET /metrics HTTP/1.1\r\nhost: elsewhere.example\r\n\r\n",
        rng.randbytes(rng.randrange(1, 400)),
    ]
    return rng.choice([complete] * 8 + other_requests)


def disturb(server: Server, stop: threading.Event, seed: int, counts: Counter[str]) -> None:
    """Send malformed requests, cut off and slow ones, until the event is set."""
    rng = random.Random(seed)
    while not stop.is_set():
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=1) as line:
                line.sendall(malformed(rng))
                if rng.random() < 0.7:
                    line.settimeout(rng.choice([0.01, 0.3]))
                    counts[line.recv(64)[9:12].decode("latin-1") or "closed"] += 1
        except TimeoutError:
            counts["left waiting"] += 1
        except OSError as error:
            counts[type(error).__name__] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000, help="under load")
    parser.add_argument("--minutes", type=float, default=3.0, help="of nonsense and of kills")
    parser.add_argument("--pipelined", type=int, default=200_000, help="on one and on eight lines")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    troubles: list[str] = []
    pipelined = 0
    largest_growth = 0
    with tempfile.TemporaryDirectory(prefix="edo-serve-") as name:
        folder = Path(name)
        path = make_bundle(folder)
        expected = in_python(path)
        before = contents(path)
        with Server(path, folder) as server:
            begun = time.monotonic()
            counts = under_load(
                server, expected, arguments.requests, clients=32, seed=arguments.seed
            )
            print(
                f"{arguments.requests} requests in {time.monotonic() - begun:.0f} s: {dict(counts)}"
            )
            troubles += [key for key in counts if key != "right"]
            nonsense_counts = nonsense(server, expected, 30 * arguments.minutes, arguments.seed)
            print("beside nonsense:", dict(nonsense_counts))
            good = nonsense_counts.pop("good requests right")
            if server.process.poll() is not None:
                troubles.append("the server ended")
            for connections in (1, 8):
                flood = pipeline(server, arguments.pipelined, connections)
                pipelined += flood.answers
                print(
                    f"{arguments.pipelined} pipelined requests on {connections} connections:"
                    f" {flood.answers} answers, {flood.growth / 2**20:.0f} MiB more memory, /health"
                    f" {len(flood.health)} times, at most {max(flood.health):.2f} s"
                )
                largest_growth = max(largest_growth, flood.growth)
                if flood.answers != arguments.pipelined // connections * connections:
                    troubles.append("pipelined requests were lost")
            if largest_growth > MOST_GROWTH:
                troubles.append("pipelined requests took memory")
            unread = leave_unread(server, UNREAD, 90)
            print(
                f"{unread.cut_off} of {UNREAD} clients that never read were cut off,"
                f" {unread.growth / 2**20:.0f} MiB more memory"
            )
            if unread.cut_off < UNREAD:
                troubles.append("clients that never read were not cut off")
            if unread.growth > MOST_GROWTH:
                troubles.append("clients that never read took memory")
            status = server.stop()
            if status:
                troubles.append(f"exit status {status}")
        rounds = 0
        ends = time.monotonic() + 30 * arguments.minutes
        while time.monotonic() < ends:
            ending = ENDS[rounds % len(ENDS)]
            counts = killed(path, folder, expected, arguments.seed + rounds, ending)
            troubles += [key for key in counts if key.startswith(("lost", "wrong", "status"))]
            rounds += 1
        if contents(path) != before:
            troubles.append("the bundle changed")
        print(f"{rounds} times ended while clients asked")
        output = (folder / "serve.out").read_text() + (folder / "serve.err").read_text()
        if "marmalade" in output:  # a word of the planted text
            troubles.append("a text was written")
    tried = (
        f"{arguments.requests:,} requests, {good:,} beside {nonsense_counts.total():,} malformed"
        " ones,"
        f" {pipelined:,} pipelined ones ({largest_growth / 2**20:.0f} MiB more memory),"
        f" {unread.cut_off} clients that never read cut off, {rounds}"
    )
    outcome = "; ".join(sorted(set(troubles))) or "nothing was lost, nothing was wrong"
    print(f"{tried} ends of the server: {outcome}")
    return bool(troubles)


def in_python(bundle: Path) -> Answers:
    """The answers of the bundle in Python."""
    from edokit.bundle import Bundle
    from edokit.serve.batching import Answerer
    from edokit.serve.requests import Question

    answers = Answerer(Bundle.load(bundle))
    return lambda texts: answers(Question(list(texts)))


def nonsense(server: Server, expected: Answers, seconds: float, seed: int) -> Counter[str]:
    """Send good requests, which must be answered, beside malformed ones."""
    stop = threading.Event()
    counts = Counter[str]()
    bad = [
        threading.Thread(target=disturb, args=(server, stop, seed + k, counts)) for k in range(4)
    ]
    for thread in bad:
        thread.start()
    ends = time.monotonic() + seconds
    try:
        while time.monotonic() < ends:
            good = under_load(server, expected, 100, clients=4, seed=seed)
            counts.update({f"good requests {key}": number for key, number in good.items()})
            if set(good) != {"right"}:
                raise RuntimeError(f"good requests beside malformed ones: {dict(good)}")
    finally:
        stop.set()
        for thread in bad:
            thread.join()
    return counts


def killed(
    bundle: Path,
    folder: Path,
    expected: Answers,
    seed: int,
    how: signal.Signals = signal.SIGTERM,
) -> Counter[str]:
    """End a server while clients ask: connected clients are answered, later ones are refused.

    After SIGKILL, pending answers are lost, but none is wrong.
    """
    rng = random.Random(seed)
    counts = Counter[str]()
    texts = some_texts(rng)
    expected_answer = expected(texts)
    with Server(bundle, folder) as server:

        def run() -> None:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            while True:
                try:
                    client.connect()
                except OSError:
                    counts["refused after the end"] += 1
                    return
                while client.sock is not None:  # until an answer closes the connection
                    try:
                        status, answer = server.ask({"texts": texts}, client)
                    except (OSError, http.client.HTTPException, ValueError) as error:
                        counts[f"lost: {type(error).__name__}"] += 1
                        return
                    if status == 200 and same(answer["predictions"], expected_answer):
                        counts["right"] += 1
                    else:
                        counts[f"status {status} or wrong"] += 1

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(rng.random())
        status = server.stop(how)
        for thread in threads:
            thread.join()
        if how == signal.SIGKILL:
            lost = [key for key in counts if key.startswith("lost")]
            counts["cut off by the kill"] += sum(counts.pop(key) for key in lost)
        elif status:
            counts[f"lost: exit status {status}"] += 1
    return counts


if __name__ == "__main__":
    raise SystemExit(main())
