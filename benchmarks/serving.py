"""Throughput and latency of `edo serve` beside the same bundle called in one loop.

    python benchmarks/serving.py                       # linear members
    python benchmarks/serving.py --model FOLDER        # also members on this sentence encoder

Writes its table into ``benchmarks/RESULTS.md``. The loop calls the bundle, and its bare members,
with full batches in a process that does nothing else. Then clients in another process ask the
server: first as fast as they get answers, then at half that rate at random moments (their waiting
counts from the moment at which the request was due). Loop and server take turns; medians count.
Processor time stands beside the clock's, since server and clients share the cores with other work.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
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
CLIENTS = {1: 128, 8: 32, 32: 8}
MEMBERS = 10
REQUESTS = 100
"""At half load, so many at least."""


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


def in_a_loop(bundle: str, seconds: float) -> None:
    """Print texts a second of the bundle, and of its bare members, with full batches."""
    from edokit.bundle import Bundle
    from edokit.members.texts import Texts

    loaded = Bundle.load(bundle)
    texts = made_up(4096)[0]
    batches = [texts[k : k + BATCH] for k in range(0, len(texts), BATCH)]
    found: dict[str, float] = {}
    ways = {
        "loop": loaded.describe,
        "members": lambda batch: loaded.members.predict(Texts.of(batch)),
    }
    for way, call in ways.items():
        call(batches[0])
        done, start, processor = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < start + seconds:
            call(batches[done % len(batches)])
            done += 1
        found[way] = done * BATCH / (time.perf_counter() - start)
        found[f"{way} cost"] = (time.process_time() - processor) / done / BATCH
    print(json.dumps(found))


def load(port: int, size: int, rate: float | None, seconds: float) -> None:
    """Print texts a second and the latencies of requests of so many texts, at a rate or at most."""
    texts = made_up(4096)[0]
    bodies = [json.dumps({"texts": texts[k : k + size]}) for k in range(0, len(texts), size)]
    rng, lock, latencies = random.Random(0), threading.Lock(), list[float]()
    start = time.perf_counter() + 0.2
    due, asked = start, 0

    def next_request() -> tuple[float, str]:
        nonlocal due, asked
        with lock:
            asked += 1
            if rate is None:
                return time.perf_counter(), bodies[asked % len(bodies)]
            due += rng.expovariate(rate)
            return due, bodies[asked % len(bodies)]

    def ask() -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            when, body = next_request()
            if when > start + seconds:
                return
            time.sleep(max(0.0, when - time.perf_counter()))
            line.request("POST", "/predict", body, {"content-type": "application/json"})
            answer = line.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")
            latencies.append(time.perf_counter() - when)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS[size])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    print(json.dumps([len(latencies) * size / took, sorted(latencies)]))


def elsewhere(*words: Any) -> Any:
    """What this program prints in a process of its own."""
    command = [sys.executable, __file__, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def counts(server: Server) -> dict[str, float]:
    """Processor seconds of the server and of its members, and texts that were answered."""
    names = ("process_cpu_seconds_total", "members_process_cpu_seconds_total", "edo_texts_total")
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(values[name]) for name in names}


def measure(bundle: Path, folder: Path, rounds: int, seconds: float) -> list[dict[str, float]]:
    """A row per size of request."""
    found: dict[int, list[dict[str, float]]] = {size: [] for size in SIZES}
    with Server(bundle, folder) as server:
        for size in SIZES:
            elsewhere("--load", server.port, size, 0, 0.5)  # as warm as it is later
        for _ in range(rounds):
            for size in SIZES:
                row = elsewhere("--loop", bundle, seconds)
                before = counts(server)
                most, _ = elsewhere("--load", server.port, size, 0, seconds)
                used = {name: value - before[name] for name, value in counts(server).items()}
                texts = used["edo_texts_total"]
                rate = most / size / 2
                longer = max(seconds, REQUESTS / rate)
                _, waits = elsewhere("--load", server.port, size, rate, longer)
                p50, p99 = (waits[int(share * (len(waits) - 1))] for share in (0.5, 0.99))
                row |= {"server": most, "p50": p50, "p99": p99, "tail": p99 / p50}
                row["ratio"], row["bare"] = most / row["loop"], most / row["members"]
                cost = used["members_process_cpu_seconds_total"] / texts
                row["work"] = row["loop cost"] / cost
                row["http"] = used["process_cpu_seconds_total"] / texts / cost
                found[size].append(row)
    return [
        {name: statistics.median(row[name] for row in rows) for name in rows[0]}
        for rows in found.values()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with a sentence encoder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--loop", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--load", nargs=4, type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        in_a_loop(given.loop[0], float(given.loop[1]))
        return
    if given.load:
        port, size, rate, seconds = given.load
        load(int(port), int(size), rate or None, seconds)
        return
    kinds: dict[str, dict[str, Any]] = {"linear": {}}
    if given.model:
        kinds["encoder"] = {"model": given.model}
    lines = [
        "| members | texts a request | loop, texts/s | server, texts/s | of the loop | of the bare"
        " members | of the loop, members' processor time | HTTP's, of the members' | p50, half"
        " load | p99 | p99 / p50 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    verdicts = []
    for kind, options in kinds.items():
        with tempfile.TemporaryDirectory() as name:
            bundle = make_bundle(Path(name), kind, options)
            rows = measure(bundle, Path(name), given.rounds, given.seconds)
        for size, row in zip(SIZES, rows, strict=True):
            lines.append(
                f"| {MEMBERS} {kind} | {size} | {row['loop']:,.0f} | {row['server']:,.0f} |"
                f" {row['ratio']:.0%} | {row['bare']:.0%} | {row['work']:.0%} |"
                f" {row['http']:.0%} | {1e3 * row['p50']:.1f} ms |"
                f" {1e3 * row['p99']:.1f} ms | {row['tail']:.1f} |"
            )
        for name, aim, reached in (
            ("ratio", "90 % of the loop's throughput", lambda value: value >= 0.9),
            ("tail", "p99 under three times the median at half load", lambda value: value < 3),
        ):
            missed = [
                str(size) for size, row in zip(SIZES, rows, strict=True) if not reached(row[name])
            ]
            result = f"missed with {', '.join(missed)} texts a request" if missed else "reached"
            verdicts.append(f"- {MEMBERS} {kind} members, {aim}: {result}.")
        print("\n".join(lines[-len(SIZES) :]), flush=True)
    about = machine("scikit-learn", "fastapi", "uvicorn", *(["torch"] if given.model else []))
    text = "\n\n".join(
        [
            "    python benchmarks/serving.py" + (" --model FOLDER" if given.model else ""),
            f"{about} Server, clients and whatever else runs share these cores (load average"
            f" {os.getloadavg()[2]:.1f} over the last 15 minutes; well above the number of cores,"
            f" seconds say little). Medians of {given.rounds} rounds of {given.seconds:g} s each.",
            "\n".join(verdicts),
            "\n".join(lines),
            f"*Loop*: `bundle.describe` of {BATCH} texts at a time. *Bare members*: their"
            " predictions alone, neither pooled nor described. *Members' processor time*: that of"
            " the loop per text, of what the server's members take per text under load; below 100 %"
            " where batches are not full. *HTTP's*: processor time of the process that reads"
            " requests and writes answers, which runs beside the members where a core is free.",
        ]
    )
    write_section("Serving (`serving.py`)", text)


if __name__ == "__main__":
    main()
