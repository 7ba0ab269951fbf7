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
from typing import Any

from results import machine, write_section

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from serve_soak import Server
from training import made_up

BATCH = 64
"""Texts of a full batch, as the server has it by default."""
SIZES = (1, 8, 32)
"""Texts of a request."""
UNDER_WAY = 256
"""Texts that clients wait for at once, at most."""
MEMBERS = 10
CORES = os.cpu_count() or 1
REQUESTS = 200
"""At half load about so many at least, in all rounds together."""
WARM_UP = 0.25
"""Throughput is counted once this share of its seconds has passed."""
TAIL = 3.0
"""The 99th percentile must be below so many medians."""


def make_bundle(folder: Path, recipe: str, options: dict[str, Any]) -> Path:
    """Ten members with equal weights, trained on simulated texts."""
    from edokit import EDOEnsemble, simulate, train_members
    from edokit.bundle import Bundle
    from edokit.members import Group

    people = simulate("two-camps", items=(300, 100, 5), random_state=0).annotations
    group = Group(recipe, MEMBERS, options=options)
    trained = train_members(people, [group], out=folder / "members", jobs=1)
    given = trained.predictions["dev"], people.split("dev")
    EDOEnsemble.from_weights([1 / MEMBERS] * MEMBERS, *given).save(folder / "ensemble")
    Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder / "bundle"


def in_a_loop(bundle: str, device: str | None) -> None:
    """For each line with a number of seconds, print texts a second with full batches, processor
    seconds of a text, and seconds of batches of one request, two requests and so on."""
    from edokit.bundle import Bundle

    loaded = Bundle.load(bundle, device=device)
    texts = made_up(4096)[0]
    print(json.dumps(where(device)), flush=True)
    for line in sys.stdin:
        found: dict[str, Any] = {"batches": {}}
        for size in sorted({*SIZES, 2, 4, 16, BATCH}):
            times = []
            batches = [texts[k : k + size] for k in range(0, len(texts), size)]
            seconds = float(line) * (1.0 if size == BATCH else 0.05)
            loaded.describe(batches[0])
            start = time.perf_counter()
            processor = time.process_time()
            while (now := time.perf_counter()) < start + seconds or len(times) < 3:
                loaded.describe(batches[len(times) % len(batches)])
                times.append(time.perf_counter() - now)
            found["batches"][size] = statistics.median(times)
        done = len(times) * BATCH
        found["loop"] = done / (time.perf_counter() - start)
        found["loop cost"] = (time.process_time() - processor) / done
        print(json.dumps(found), flush=True)


def where(device: str | None) -> str:
    if device is None or device == "cpu":
        return "CPU"
    import torch

    return str(torch.cuda.get_device_name())


def answer_at_once() -> None:
    """The HTTP server of `edo serve` with an application that does nothing; prints its port."""
    import uvicorn

    from edokit.serve.server import _Protocol

    row = {"probabilities": {"0": 1 / 3, "1": 2 / 3}, "entropy": 1 / 3, "spread": 1 / 3}
    answer = json.dumps({"version": "0" * 12, "classes": ["0", "1"], "predictions": [row]}).encode()
    size = b"content-length", str(len(answer)).encode()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [size]})
        await send({"type": "http.response.body", "body": answer})

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    how: Any = {"lifespan": "off", "access_log": False, "log_level": "error", "ws": "none"}
    uvicorn.Server(uvicorn.Config(application, http=_Protocol, **how)).run([listening])


def load(
    port: int, size: int, rate: float | None, seconds: float, clients: int | None = None
) -> None:
    """Print texts a second and the latencies of requests of so many texts, at a rate or at most,
    and processor seconds of a text."""
    clients = clients or UNDER_WAY // size
    texts = made_up(4096)[0]
    head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    bodies = [json.dumps({"texts": texts[k : k + size]}) for k in range(0, len(texts), size)]
    requests = [f"{head}content-length: {len(body)}\r\n\r\n{body}".encode() for body in bodies]
    rng = random.Random()
    latencies = list[float]()
    chosen = selectors.DefaultSelector()

    def connected() -> socket.socket:
        line = socket.create_connection(("127.0.0.1", port))
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen.register(line, selectors.EVENT_READ)
        return line

    idle = [connected() for _ in range(clients)]
    busy: dict[Any, tuple[float, bytes]] = {}
    processor = time.process_time()
    asked = 0
    counted = 0
    start = due = begin = last = time.perf_counter()
    first = start + WARM_UP * seconds if rate is None else start
    seconds += first - start
    while True:
        now = time.perf_counter()
        while idle and now < start + seconds and (rate is None or due <= now):
            line = idle.pop()
            line.sendall(requests[asked % len(requests)])
            busy[line] = (now if rate is None else due), b""
            asked += 1
            due += rng.expovariate(rate) if rate else 0.0
        if now >= start + seconds and not busy:
            break
        waits = rate is not None and idle and now < start + seconds
        for key, _ in chosen.select(max(0.0, due - now) if waits else None):
            line: Any = key.fileobj
            if line not in busy:  # the server has closed it, since it was idle for long
                chosen.unregister(line)
                line.close()
                idle[idle.index(line)] = connected()
                continue
            since, before = busy[line]
            answer = before + line.recv(1 << 20)
            whole, _, body = answer.partition(b"\r\n\r\n")
            length = whole.rpartition(b"content-length: ")[2].partition(b"\r")[0]
            if not body or len(body) < int(length):
                busy[line] = since, answer
                continue
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(answer[:200].decode())
            latencies.append((now := time.perf_counter()) - since)
            if now < first:
                begin = now
            elif now < start + seconds:
                last = now
                counted = counted + size
            del busy[line]
            idle.append(line)
    cost = (time.process_time() - processor) / (len(latencies) * size)
    reached = 0.0
    if counted:  # else only a warm-up: no answer came after its first quarter
        reached = counted / (last - begin)
    print(json.dumps([reached, sorted(latencies), cost]))


def ideal(size: int, rate: float, batches: dict[str, float], requests: int = 20_000) -> list[float]:
    """Latencies, sorted, of a queue at this rate: all that waits, up to a full batch, is answered
    in the time that the loop takes for it."""
    known = sorted((int(texts), seconds) for texts, seconds in batches.items())

    def seconds_of(texts: int) -> float:
        for (less, low), (more, high) in pairwise(known):
            if texts <= more:
                return low + (high - low) * (texts - less) / (more - less)
        return known[-1][1]

    rng = random.Random(0)
    free = 0.0
    due = list[float]()
    latencies = list[float]()
    moment = 0.0
    for _ in range(requests):
        moment += rng.expovariate(rate)
        due.append(moment)
    waiting = deque(due)
    while waiting:
        free = max(free, waiting[0])
        batch = []
        while waiting and waiting[0] <= free and len(batch) < max(1, BATCH // size):
            batch.append(waiting.popleft())
        free += seconds_of(len(batch) * size)
        latencies += [free - one for one in batch]
    return sorted(latencies)


def started(*words: Any, **how: Any) -> subprocess.Popen[str]:
    """This program in a process of its own, which is asked and answers by lines."""
    command = [sys.executable, __file__, *map(str, words)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, **how)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """End it, whatever happens."""
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def elsewhere(*words: Any) -> Any:
    """What this program prints in a process of its own."""
    return json.loads(started(*words).communicate()[0])


def counts(server: Server) -> dict[str, float]:
    """Processor seconds of the server, texts that were answered, and batches."""
    names = ("process_cpu_seconds_total", "edo_texts_total")
    names += ("edo_batch_texts_count",)
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(values[name]) for name in names}


def percentiles(latencies: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile of sorted values."""
    p50, p99 = (latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.99))
    return p50, p99


def measure(kind: str, bundle: Path, folder: Path, given: argparse.Namespace) -> list[Any]:
    """A row per size of request."""
    device = ["--device", given.device] if given.device else []
    loop = started("--loop", bundle, *device)
    bare = started("--at-once")
    found: dict[int, list[dict[str, Any]]] = {size: [] for size in SIZES}
    latencies: dict[int, list[float]] = {size: [] for size in SIZES}
    with Server(bundle, folder, *device) as server, ended(loop), ended(bare):
        name = json.loads(loop.stdout.readline())
        port = int(bare.stdout.readline())
        for size in SIZES:
            elsewhere("--load", server.port, size, 0, 0.5)  # as warm as it is later

        def looped() -> dict[str, Any]:
            loop.stdin.write(f"{given.seconds / 2}\n")
            loop.stdin.flush()
            return json.loads(loop.stdout.readline())

        for last in range(given.rounds - 1, -1, -1):
            for size in SIZES:
                row = looped()
                before = counts(server)
                row["server"], _, row["client"] = elsewhere(
                    "--load", server.port, size, 0, given.seconds
                )
                used = {name: value - before[name] for name, value in counts(server).items()}
                after = looped()
                batches = row.pop("batches")
                for one in ("loop", "loop cost"):
                    row[one] = (row[one] + after[one]) / 2
                row["ratio"] = row["server"] / row["loop"]
                texts = used["edo_texts_total"]
                row["server cost"] = used["process_cpu_seconds_total"] / texts
                row["full"] = texts / used["edo_batch_texts_count"]
                rate = row["server"] / size / 2
                longer = max(given.seconds, REQUESTS / given.rounds / rate)
                latencies[size] += elsewhere("--load", server.port, size, rate, longer)[1]
                row["ideal p50"], row["ideal p99"] = percentiles(ideal(size, rate, batches))
                if not last:
                    row["ceiling"], *_ = elsewhere("--load", port, size, 0, given.seconds / 2)
                    row["ceiling"] /= row["loop"]
                    row["p50"], row["p99"] = percentiles(sorted(latencies[size]))
                    row["requests"], row["tail"] = len(latencies[size]), row["p99"] / row["p50"]
                found[size].append(row)
                shown = {name: float(f"{value:.3g}") for name, value in row.items()}
                print(kind, size, shown, flush=True)
    packages = "scikit-learn", "fastapi", "uvicorn", *(["torch"] if kind == "encoder" else [])
    about = {
        "kind": kind,
        "where": name,
        "machine": machine(*packages),
        "load": os.getloadavg()[2],
        "rounds": given.rounds,
        "seconds": given.seconds,
    }
    return [
        {"size": size, **rows[-1]}
        | {name: statistics.median(row[name] for row in rows) for name in rows[0]}
        | about
        for size, rows in found.items()
    ]


def write(files: list[Path]) -> None:
    rows = [row for file in files for row in json.loads(file.read_text())]
    lines = [
        "| members | texts a request | loop, texts/s | server, texts/s | of the loop | HTTP alone,"
        " of the loop | p50, half load | p99 | p99 / p50 | … of an ideal queue | requests |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    costs = [
        "| members | texts a request | loop, µs a text | server | loop / server | clients | texts a"
        " batch |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = f"| {MEMBERS} {row['kind']}, {row['where']} | {row['size']} |"
        lines.append(
            f"{name} {row['loop']:,.0f} | {row['server']:,.0f} | {row['ratio']:.0%} |"
            f" {row['ceiling']:.0%} | {1e3 * row['p50']:.1f} ms | {1e3 * row['p99']:.1f} ms |"
            f" {row['tail']:.1f} | {_ideal_tail(row):.1f} | {row['requests']} |"
        )
        costs.append(
            f"{name} {1e6 * row['loop cost']:,.0f} | {1e6 * row['server cost']:,.0f} |"
            f" {_loop_share(row):.0%} | {1e6 * row['client']:,.0f} | {row['full']:.0f} |"
        )
    verdicts = []
    notes = []
    for kind, place in dict.fromkeys((row["kind"], row["where"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["where"]) == (kind, place)]
        for aim, reached in (
            (
                "90 % of the loop's throughput by processor time",
                lambda row: _loop_share(row) >= 0.9,
            ),
            ("p99 under three times the median at half load", lambda row: row["tail"] < TAIL),
        ):
            if aim[0] == "p" and own[0]["load"] > CORES:
                verdicts.append(
                    f"- {MEMBERS} {kind} members, {place}, {aim}: not judged; the load average was"
                    f" {own[0]['load']:.1f}."
                )
                continue
            missed = [row for row in own if not reached(row)]
            sizes = ", ".join(str(row["size"]) for row in missed)
            result = f"missed (texts a request: {sizes})" if missed else "reached"
            beyond = [row for row in missed if aim[0] == "p" and _ideal_tail(row) >= TAIL]
            if beyond:
                sizes = ", ".join(str(row["size"]) for row in beyond)
                result += f"; an ideal queue misses it with {sizes}"
            verdicts.append(f"- {MEMBERS} {kind} members, {place}, {aim}: {result}.")
        row = own[0]
        rounds = f"{row['rounds']} round" + ("s" if row["rounds"] > 1 else "")
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
            "\n".join(lines),
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
            "\n".join(costs),
            "\n\n".join(notes),
        ]
    )
    write_section("Serving (`serving.py`)", text)


def serve_regression() -> None:
    """A FastAPI app with one TF-IDF regression, as one would write it; prints its port."""
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


def table_to_learn_from() -> Any:
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
                elsewhere("--load", ports[name], 1, 0, 4.0)
            for _ in range(rounds):
                for clients in CLIENTS:
                    for name, port in ports.items():
                        before = process_seconds(pids[name])
                        rate, latencies, _ = elsewhere(
                            "--load", port, 1, 0, seconds, "--clients", clients
                        )
                        used = process_seconds(pids[name]) - before
                        rates.setdefault((name, clients), []).append(rate)
                        costs.setdefault((name, clients), []).append(used / len(latencies))
                before = process_seconds(pids["edo"])
                _, latencies, _ = elsewhere(
                    "--load", ports["edo"], LONG, 0, seconds, "--clients", 1
                )
                used = process_seconds(pids["edo"]) - before
                one_request.append(used / len(latencies))
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
        other = statistics.median(rates["app", clients])
        edo_cost = 1000 * statistics.median(costs["edo", clients])
        other_cost = 1000 * statistics.median(costs["app", clients])
        lines.append(
            f"| {clients} | {edo:,.0f} | {other:,.0f} | {edo / other:.2f} | {edo_cost:.2f} |"
            f" {other_cost:.2f} |"
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


def _loop_share(row: dict[str, Any]) -> float:
    """The rate of the server as a share of the loop's, by processor time."""
    return float(row["loop cost"] / row["server cost"])


def _ideal_tail(row: dict[str, Any]) -> float:
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
            options = {"model": arguments.model} if arguments.model else {}
            bundle = arguments.bundle or make_bundle(Path(name), arguments.kind, options)
            rows = measure(arguments.kind, bundle, Path(name), arguments)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
