"""Throughput and latency of `edo serve` beside the same bundle called in one loop.

    python benchmarks/serving.py linear --json linear.json
    python benchmarks/serving.py encoder --model FOLDER --seconds 12 --json encoder.json
    python benchmarks/serving.py --write linear.json encoder.json
    python benchmarks/serving.py beside
    python benchmarks/serving.py encoder --bundle FOLDER --device cuda --json gpu.json

``--write`` writes the section in ``benchmarks/RESULTS.md``, ``beside`` another: what `edo run
--quality fast` made, served beside a FastAPI app with one regression. The loop calls the bundle
with full batches in a process that does nothing else. Then one process asks the server on many
connections: first as fast as it gets answers (texts are counted between two answers in the midst of
that), then at half that rate at random moments (a request's latency counts from the moment at which
it was due; percentiles are of all rounds). The loop runs before and after the server in each round;
medians of rounds count. The share of the loop's throughput is judged by processor time, since
server and clients share the cores with each other and with other work; latencies are judged only
where the machine was idle. Two limits show what is not the server's: an application that answers at
once, on the same HTTP server and with the same client, and a queue without HTTP in which batches
take as long as in the loop.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from results import machine, write_section

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from serve_soak import Server
from training import made_up

if TYPE_CHECKING:
    from edokit import Annotations

BATCH = 64
"""Texts of a full batch, as the server has it by default."""
SIZES = (1, 8, 32)
"""Texts of a request."""
UNDER_WAY = 256
"""The most texts that clients wait for at once."""
MEMBERS = 10
CORES = os.cpu_count() or 1
REQUESTS = 200
"""About the least number of requests at half load, in all rounds together."""
WARM_UP = 0.25
"""Throughput is counted once this share of its seconds has passed."""
TAIL = 3.0
"""The 99th percentile must be below this many medians."""
Row = dict[str, Any]
"""Measurements of one size of request, by name."""


def make_bundle(folder: Path, recipe: str, options: dict[str, str]) -> Path:
    """Ten members with equal weights, trained on simulated texts."""
    from edokit import EDOEnsemble, simulate, train_members
    from edokit.bundle import Bundle
    from edokit.members import Group

    people = simulate("two-camps", items=(300, 100, 5), random_state=0).annotations
    group = Group(recipe, MEMBERS, options=options)
    trained = train_members(people, [group], out=folder / "members", jobs=1)
    weights = [1 / MEMBERS] * MEMBERS
    ensemble = EDOEnsemble.from_weights(weights, trained.predictions["dev"], people.split("dev"))
    ensemble.save(folder / "ensemble")
    Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder / "bundle"


def in_a_loop(bundle: str, device: str | None) -> None:
    """Measure batches in a loop for each line of stdin, a number of seconds.

    Prints texts a second with full batches, processor seconds of a text, and seconds of batches of
    one text, two texts and so on.
    """
    from edokit.bundle import Bundle

    loaded = Bundle.load(bundle, device=device)
    texts = made_up(4096)[0]
    print(json.dumps(device_name(device)), flush=True)
    for line in sys.stdin:
        row: Row = {"batches": {}}
        # Full batches come last: the rates are theirs.
        for size in sorted({*SIZES, 2, 4, 16, BATCH}):
            times: list[float] = []
            batches = [texts[k : k + size] for k in range(0, len(texts), size)]
            seconds = float(line)
            if size != BATCH:
                seconds *= 0.05
            loaded.describe(batches[0])
            start = time.perf_counter()
            processor = time.process_time()
            while time.perf_counter() < start + seconds or len(times) < 3:
                begun = time.perf_counter()
                loaded.describe(batches[len(times) % len(batches)])
                times.append(time.perf_counter() - begun)
            row["batches"][size] = statistics.median(times)
        answered = len(times) * BATCH
        row["loop"] = answered / (time.perf_counter() - start)
        row["loop cost"] = (time.process_time() - processor) / answered
        print(json.dumps(row), flush=True)


def device_name(device: str | None) -> str:
    """The name of a device for the table."""
    if device is None or device == "cpu":
        return "CPU"
    import torch

    return str(torch.cuda.get_device_name())


def answer_at_once() -> None:
    """The HTTP server of `edo serve` with an application that does nothing; prints its port."""
    import uvicorn
    from starlette.types import Receive, Scope, Send

    from edokit.serve.server import _Protocol

    row = {"probabilities": {"0": 1 / 3, "1": 2 / 3}, "entropy": 1 / 3, "spread": 1 / 3}
    answer = json.dumps({"version": "0" * 12, "classes": ["0", "1"], "predictions": [row]}).encode()
    size = (b"content-length", str(len(answer)).encode())

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [size]})
        await send({"type": "http.response.body", "body": answer})

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        application,
        http=_Protocol,
        lifespan="off",
        access_log=False,
        log_level="error",
        ws="none",
    )
    uvicorn.Server(config).run([listening])


def load(
    port: int, size: int, rate: float | None, seconds: float, clients: int | None = None
) -> None:
    """Send requests of ``size`` texts at a rate, or as fast as answers come if it is None.

    Prints texts a second, the latencies of all requests, and processor seconds of a text.
    """
    clients = clients or UNDER_WAY // size
    requests = encoded_requests(size)
    rng = random.Random()
    latencies = list[float]()
    selector = selectors.DefaultSelector()

    def connected() -> socket.socket:
        line = socket.create_connection(("127.0.0.1", port))
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(line, selectors.EVENT_READ)
        return line

    idle = [connected() for _ in range(clients)]
    # The moment from which the latency counts, and the part of the answer that has arrived.
    busy: dict[socket.socket, tuple[float, bytes]] = {}
    processor = time.process_time()
    n_sent = 0
    n_counted = 0
    start = time.perf_counter()
    due = start
    count_from = start
    if rate is None:
        count_from += WARM_UP * seconds
    end = count_from + seconds
    counted_since = start
    counted_until = start
    while True:
        moment = time.perf_counter()
        while idle and moment < end and (rate is None or due <= moment):
            line = idle.pop()
            line.sendall(requests[n_sent % len(requests)])
            n_sent += 1
            if rate is None:
                busy[line] = (moment, b"")
            else:
                busy[line] = (due, b"")
                due += rng.expovariate(rate)
        if moment >= end and not busy:
            break
        timeout = None
        if rate is not None and idle and moment < end:
            timeout = max(0.0, due - moment)
        for key, _ in selector.select(timeout):
            line = key.fileobj
            assert isinstance(line, socket.socket)
            if line not in busy:  # the server has closed it, since it was idle for long
                selector.unregister(line)
                line.close()
                idle[idle.index(line)] = connected()
                continue
            since, before = busy[line]
            answer = before + line.recv(1 << 20)
            if not is_complete(answer):
                busy[line] = (since, answer)
                continue
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(answer[:200].decode())
            arrived = time.perf_counter()
            latencies.append(arrived - since)
            if arrived < count_from:
                counted_since = arrived
            elif arrived < end:
                counted_until = arrived
                n_counted += size
            del busy[line]
            idle.append(line)
    cost = (time.process_time() - processor) / (len(latencies) * size)
    texts_per_second = 0.0
    if n_counted:  # else only a warm-up: no answer came after its first quarter
        texts_per_second = n_counted / (counted_until - counted_since)
    print(json.dumps([texts_per_second, sorted(latencies), cost]))


def encoded_requests(size: int) -> list[bytes]:
    """Requests of ``size`` texts each, as they are sent."""
    texts = made_up(4096)[0]
    head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    requests = []
    for start in range(0, len(texts), size):
        body = json.dumps({"texts": texts[start : start + size]})
        requests.append(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    return requests


def is_complete(answer: bytes) -> bool:
    """Whether all bytes of an HTTP answer have arrived."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not body:
        return False
    length = head.rpartition(b"content-length: ")[2].partition(b"\r")[0]
    return len(body) >= int(length)


def ideal(size: int, rate: float, batches: dict[str, float], requests: int = 20_000) -> list[float]:
    """The sorted latencies of an ideal queue at this rate.

    All waiting requests, up to a full batch, are answered in the time that the loop takes for them.
    """
    measured = sorted((int(texts), seconds) for texts, seconds in batches.items())

    def seconds_of(texts: int) -> float:
        for (fewer, low), (many, high) in pairwise(measured):
            if texts <= many:
                return low + (high - low) * (texts - fewer) / (many - fewer)
        return measured[-1][1]

    rng = random.Random(0)
    due = list[float]()
    latencies = list[float]()
    moment = 0.0
    for _ in range(requests):
        moment += rng.expovariate(rate)
        due.append(moment)
    waiting = deque(due)
    idle_from = 0.0
    while waiting:
        idle_from = max(idle_from, waiting[0])
        batch = []
        while waiting and waiting[0] <= idle_from and len(batch) < max(1, BATCH // size):
            batch.append(waiting.popleft())
        idle_from += seconds_of(len(batch) * size)
        latencies += [idle_from - request_due for request_due in batch]
    return sorted(latencies)


def started(*words: object) -> subprocess.Popen[str]:
    """This program as a new process, which reads and writes lines."""
    command = [sys.executable, __file__, *map(str, words)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """End the process, whatever happens."""
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def load_elsewhere(
    port: int, size: int, rate: float, seconds: float, clients: int | None = None
) -> tuple[float, list[float], float]:
    """What `load` prints in a new process; a rate of 0 means as fast as answers come."""
    words: list[object] = ["--load", port, size, rate, seconds]
    if clients is not None:
        words += ["--clients", clients]
    texts_per_second, latencies, cost = json.loads(started(*words).communicate()[0])
    return texts_per_second, latencies, cost


def counts(server: Server) -> dict[str, float]:
    """Processor seconds of the server, texts that were answered, and batches."""
    names = ("process_cpu_seconds_total", "edo_texts_total", "edo_batch_texts_count")
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(values[name]) for name in names}


def percentiles(latencies: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile of sorted values."""
    median = latencies[int(0.5 * (len(latencies) - 1))]
    p99 = latencies[int(0.99 * (len(latencies) - 1))]
    return median, p99


def measure(kind: str, bundle: Path, folder: Path, given: argparse.Namespace) -> list[Row]:
    """A row per size of request."""
    device = []
    if given.device:
        device = ["--device", given.device]
    loop = started("--loop", bundle, *device)
    bare = started("--at-once")
    rows_by_size: dict[int, list[Row]] = {size: [] for size in SIZES}
    latencies: dict[int, list[float]] = {size: [] for size in SIZES}
    with Server(bundle, folder, *device) as server, ended(loop), ended(bare):
        place = json.loads(loop.stdout.readline())
        bare_port = int(bare.stdout.readline())
        for size in SIZES:
            load_elsewhere(server.port, size, 0, 0.5)  # the warm-up

        def looped() -> Row:
            loop.stdin.write(f"{given.seconds / 2}\n")
            loop.stdin.flush()
            return json.loads(loop.stdout.readline())

        for number in range(given.rounds):
            for size in SIZES:
                row = looped()
                before = counts(server)
                row["server"], _, row["client"] = load_elsewhere(
                    server.port, size, 0, given.seconds
                )
                change = {name: value - before[name] for name, value in counts(server).items()}
                after = looped()
                batches = row.pop("batches")
                for name in ("loop", "loop cost"):
                    row[name] = (row[name] + after[name]) / 2
                row["ratio"] = row["server"] / row["loop"]
                texts = change["edo_texts_total"]
                row["server cost"] = change["process_cpu_seconds_total"] / texts
                row["full"] = texts / change["edo_batch_texts_count"]
                rate = row["server"] / size / 2
                longer = max(given.seconds, REQUESTS / given.rounds / rate)
                latencies[size] += load_elsewhere(server.port, size, rate, longer)[1]
                row["ideal p50"], row["ideal p99"] = percentiles(ideal(size, rate, batches))
                if number == given.rounds - 1:
                    bare_rate, *_ = load_elsewhere(bare_port, size, 0, given.seconds / 2)
                    row["ceiling"] = bare_rate / row["loop"]
                    row["p50"], row["p99"] = percentiles(sorted(latencies[size]))
                    row["requests"] = len(latencies[size])
                    row["tail"] = row["p99"] / row["p50"]
                rows_by_size[size].append(row)
                rounded = {name: float(f"{value:.3g}") for name, value in row.items()}
                print(kind, size, rounded, flush=True)
    packages = ["scikit-learn", "fastapi", "uvicorn"]
    if kind == "encoder":
        packages.append("torch")
    circumstances = {
        "kind": kind,
        "where": place,
        "machine": machine(*packages),
        "load": os.getloadavg()[2],
        "rounds": given.rounds,
        "seconds": given.seconds,
    }
    return [
        {"size": size, **median_row(rows), **circumstances} for size, rows in rows_by_size.items()
    ]


def median_row(rows: list[Row]) -> Row:
    """The last row, in which the values of all rounds are medians."""
    medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    return {**rows[-1], **medians}


def write(files: list[Path]) -> None:
    """Write the rows in these files as a section of ``RESULTS.md``."""
    rows: list[Row] = []
    for file in files:
        rows += json.loads(file.read_text())
    rows_by_members: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        rows_by_members.setdefault((row["kind"], row["where"]), []).append(row)
    verdicts = []
    notes = []
    for (kind, place), member_rows in rows_by_members.items():
        name = f"{MEMBERS} {kind} members, {place}"
        verdicts += [throughput_verdict(name, member_rows), latency_verdict(name, member_rows)]
        row = member_rows[0]
        rounds = "1 round"
        if row["rounds"] > 1:
            rounds = f"{row['rounds']} rounds"
        notes.append(
            f"*{kind}, {place}*: {row['machine']} Medians of {rounds} of {row['seconds']:g} s a"
            f" measurement; load average {row['load']:.1f} over the 15 minutes before (if above the"
            " number of cores, seconds say little)."
        )
    even = {str(texts): texts / BATCH for texts in (1, BATCH)}
    p50, p99 = percentiles(ideal(BATCH // 2, 1.0, even))
    text = "\n\n".join(
        [
            "\n".join(f"    {line.strip()}" for line in __doc__.splitlines()[2:5]),
            "\n".join(verdicts),
            "\n".join(rate_lines(rows)),
            f"*Loop*: `bundle.describe` of {BATCH} texts at a time. *HTTP alone*: the same HTTP"
            " server and clients, with an application that answers at once without reading"
            f" anything. *Server*: texts answered between two answers while clients wait for"
            f" {UNDER_WAY} texts at once: the last one of a warm-up ({WARM_UP:.0%} of the time),"
            " and the last one before clients stop; of the loop, too, whole batches count, after a"
            " first one."
            " *Ideal queue*: no HTTP,"
            " requests at the same rate at random moments, all that waits up to a full batch"
            " answered in the loop's time for it. Where a batch takes as long as its texts one by"
            f" one, its ratio is {p99 / p50:.1f} with {BATCH // 2} texts a request, whatever the"
            " members: half of the requests find nobody before them and take their own time alone,"
            " while others come in clusters, since moments are random. A ratio below three takes"
            " full batches that are much cheaper than small ones, and requests that are small"
            " beside them.",
            "Processor time per text, of each process while the server answers as much as it can:",
            "\n".join(cost_lines(rows)),
            "\n\n".join(notes),
        ]
    )
    write_section("Serving (`serving.py`)", text)


def rate_lines(rows: list[Row]) -> list[str]:
    """The table of rates and latencies."""
    lines = [
        "| members | texts a request | loop, texts/s | server, texts/s | of the loop | HTTP alone,"
        " of the loop | p50, half load | p99 | p99 / p50 | … of an ideal queue | requests |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {MEMBERS} {row['kind']}, {row['where']} | {row['size']} |"
            f" {row['loop']:,.0f} | {row['server']:,.0f} | {row['ratio']:.0%} |"
            f" {row['ceiling']:.0%} | {1e3 * row['p50']:.1f} ms | {1e3 * row['p99']:.1f} ms |"
            f" {row['tail']:.1f} | {_ideal_tail(row):.1f} | {row['requests']} |"
        )
    return lines


def cost_lines(rows: list[Row]) -> list[str]:
    """The table of processor time per text."""
    lines = [
        "| members | texts a request | loop, µs a text | server | loop / server | clients | texts a"
        " batch |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {MEMBERS} {row['kind']}, {row['where']} | {row['size']} |"
            f" {1e6 * row['loop cost']:,.0f} | {1e6 * row['server cost']:,.0f} |"
            f" {_loop_share(row):.0%} | {1e6 * row['client']:,.0f} | {row['full']:.0f} |"
        )
    return lines


def throughput_verdict(name: str, rows: list[Row]) -> str:
    """Whether the server reaches the throughput of the loop."""
    missed = [row for row in rows if _loop_share(row) < 0.9]
    return (
        f"- {name}, 90 % of the loop's throughput by processor time: {reached_or_missed(missed)}."
    )


def latency_verdict(name: str, rows: list[Row]) -> str:
    """Whether the slowest answers come soon enough, and whether those of an ideal queue would."""
    aim = f"- {name}, p99 under three times the median at half load"
    load_average = rows[0]["load"]
    if load_average > CORES:
        return f"{aim}: not judged; the load average was {load_average:.1f}."
    missed = [row for row in rows if row["tail"] >= TAIL]
    verdict = reached_or_missed(missed)
    beyond = [str(row["size"]) for row in missed if _ideal_tail(row) >= TAIL]
    if beyond:
        verdict += f"; an ideal queue misses it with {', '.join(beyond)}"
    return f"{aim}: {verdict}."


def reached_or_missed(missed: list[Row]) -> str:
    """Whether an aim was reached, and the sizes of requests with which it was missed."""
    if not missed:
        return "reached"
    sizes = ", ".join(str(row["size"]) for row in missed)
    return f"missed (texts a request: {sizes})"


def serve_regression() -> None:
    """Serve a FastAPI app with one TF-IDF regression; prints its port."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    people = table_to_learn_from()
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    model.fit(list(map(str, people.texts)), people.soft_labels.argmax(axis=1))
    app = FastAPI()

    class Texts(BaseModel):
        texts: list[str]

    # FastAPI looks annotations up among the names of the module.
    globals()["Texts"] = Texts

    @app.post("/predict")
    def predict(body: Texts) -> list[list[float]]:
        answers: list[list[float]] = model.predict_proba(body.texts).tolist()
        return answers

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, access_log=False, log_level="error")
    uvicorn.Server(config).run([listening])


def table_to_learn_from() -> Annotations:
    """Simulated annotations of 1,000 items."""
    from edokit import simulate

    return simulate("two-camps", items=(1000, 1, 1), random_state=0).annotations.split("train")


def process_seconds(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


CLIENTS = (1, 64)
LONG = 256
"""Texts of a long request."""


def measure_beside(seconds: float, rounds: int) -> str:
    """The section: requests a second of both servers in turns, and long requests."""
    from dataclasses import replace

    import edokit

    rates: dict[tuple[str, int], list[float]] = {}
    costs: dict[tuple[str, int], list[float]] = {}
    one_call: list[float] = []
    one_request: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = replace(table_to_learn_from(), splits=None)
        run = edokit.run(table, folder / "run", quality="fast", jobs=1)
        texts = made_up(4096)[0]
        batches = [texts[start : start + LONG] for start in range(0, len(texts), LONG)]
        app = started("--regression")
        with Server(folder / "run", folder) as server, ended(app):
            assert app.stdout is not None
            pids = {"edo": server.process.pid, "app": app.pid}
            ports = {"edo": server.port, "app": int(app.stdout.readline())}
            for name in ports:
                load_elsewhere(ports[name], 1, 0, 4.0)
            for _ in range(rounds):
                for clients in CLIENTS:
                    for name, port in ports.items():
                        before = process_seconds(pids[name])
                        rate, latencies, _ = load_elsewhere(port, 1, 0, seconds, clients)
                        cost = process_seconds(pids[name]) - before
                        rates.setdefault((name, clients), []).append(rate)
                        costs.setdefault((name, clients), []).append(cost / len(latencies))
                before = process_seconds(pids["edo"])
                _, latencies, _ = load_elsewhere(ports["edo"], LONG, 0, seconds, 1)
                cost = process_seconds(pids["edo"]) - before
                one_request.append(cost / len(latencies))
                processor = time.process_time()
                calls = max(3, len(latencies))
                for call in range(calls):
                    run.bundle.describe(batches[call % len(batches)])
                one_call.append((time.process_time() - processor) / calls)
    lines = [
        "    python benchmarks/serving.py beside",
        "",
        "`edo serve` of what `edo run --quality fast` made of 1,000 simulated items (TF-IDF members"
        " and trees, five folds each; answers with entropy, familiarity and intervals) beside a"
        " FastAPI app with one TF-IDF regression of scikit-learn on the same items. Both are on"
        " loopback, one process each, a text a request; clients wait for their answer before they"
        f" ask again. Medians of {rounds} rounds of {seconds:g} s in turns; milliseconds of the"
        " processor are those of the server's process.",
        "",
        "| clients | `edo serve`, requests a second | the app | `edo serve` / the app | `edo"
        " serve`, processor ms a request | the app |",
        "|---|---|---|---|---|---|",
    ]
    for clients in CLIENTS:
        edo = statistics.median(rates["edo", clients])
        app_rate = statistics.median(rates["app", clients])
        edo_cost = 1000 * statistics.median(costs["edo", clients])
        app_cost = 1000 * statistics.median(costs["app", clients])
        lines.append(
            f"| {clients} | {edo:,.0f} | {app_rate:,.0f} | {edo / app_rate:.2f} |"
            f" {edo_cost:.2f} | {app_cost:.2f} |"
        )
    share = statistics.median(one_call) / statistics.median(one_request)
    lines += [
        "",
        f"A request of {LONG} texts takes the server {1000 * statistics.median(one_request):.0f}"
        f" processor ms, one call of the bundle in Python {1000 * statistics.median(one_call):.0f}:"
        f" {share:.0%} of its rate.",
        "",
        machine("scikit-learn", "fastapi", "uvicorn"),
    ]
    return "\n".join(lines)


def _loop_share(row: Row) -> float:
    """The rate of the server as a share of the loop's, by processor time."""
    return float(row["loop cost"] / row["server cost"])


def _ideal_tail(row: Row) -> float:
    """The 99th percentile in medians of an ideal queue."""
    return float(row["ideal p99"] / row["ideal p50"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=["linear", "encoder", "beside"])
    parser.add_argument("--model", help="a folder with a sentence encoder")
    parser.add_argument("--bundle", type=Path, help="one that exists, instead of a new one")
    parser.add_argument("--device", help="where members compute, e.g. cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--json", type=Path, help="where rows are written")
    parser.add_argument("--write", type=Path, nargs="+", help="write the section of these rows")
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    parser.add_argument("--load", nargs=4, type=float, help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--at-once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--regression", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.loop:
        in_a_loop(arguments.loop, arguments.device)
    elif arguments.load:
        port, size, rate, seconds = arguments.load
        load(int(port), int(size), rate or None, seconds, arguments.clients)
    elif arguments.at_once:
        answer_at_once()
    elif arguments.regression:
        serve_regression()
    elif arguments.kind == "beside":
        text = measure_beside(arguments.seconds, arguments.rounds)
        print(text)
        write_section("Serving beside one regression (`serving.py beside`)", text)
    elif arguments.write:
        write(arguments.write)
    else:
        with tempfile.TemporaryDirectory() as name:
            options = {}
            if arguments.model:
                options["model"] = arguments.model
            bundle = arguments.bundle or make_bundle(Path(name), arguments.kind, options)
            rows = measure(arguments.kind, bundle, Path(name), arguments)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
