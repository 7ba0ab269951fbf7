"""What a sentence encoder adds to the default pool of `edo run`, and what it costs.

    python benchmarks/encoder.py LEWIDI2023 LEWIDI2025 --encoder FOLDER    # a section of RESULTS.md
    python benchmarks/encoder.py LEWIDI2023 LEWIDI2025 --encoder FOLDER --datasets HS-Brexit

`edo run --encoder FOLDER` on items of train and dev, as in run.py; test files are not read.
Members answer for items of folds that they have not seen, and weights are cross-validated once
more, with and without the members on the encoder. The headline metric is CE, on ordered classes
RPS. What is done is kept in the cache, so that a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from results import machine, write_section
from run import DATASETS, read

import edokit
from edokit.analysis.scores.result import Gain
from edokit.metrics import METRIC

Numbers = dict[str, Any]
"""Numbers read from JSON by name, some of them grouped under another name."""


def run_both(source: Path, name: str, items: int, encoder: str) -> Numbers:
    """A run without, then with the encoder, in one folder: what is trained is kept."""
    annotations = replace(read(source, name, items), splits=None)
    with tempfile.TemporaryDirectory() as place:
        os.environ["EDO_CACHE"] = f"{place}/cache"
        folder = Path(place) / "run"
        fast = described(edokit.run(annotations, folder, jobs=1, quality="fast"))
        full = described(edokit.run(annotations, folder, jobs=1, encoder=encoder))
        gain = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    return {"items": len(annotations.items), "fast": fast, "full": full, "gain": gain}


def described(result: edokit.Run) -> Numbers:
    """The numbers of a run, and the processor seconds of this process so far."""
    metric = result.results["headline_metric"]
    methods = {row["name"]: row[metric] for row in result.results["leaderboard"]}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "metric": metric,
        "edo": methods["edo"],
        "gains": result.results["gains"],
        "seconds": usage.ru_utime + usage.ru_stime + helpers.ru_utime + helpers.ru_stime,
    }


def measured(source: Path, name: str, items: int, encoder: str, cache: Path) -> Numbers:
    """The numbers of both runs, measured in a process of their own and cached."""
    file = cache / f"{name}-{items}.json"
    if not file.exists():
        command = [sys.executable, __file__, "--one", str(source), name, str(items), encoder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cache.mkdir(parents=True, exist_ok=True)
        file.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
        print(file.stem, flush=True)
    numbers: Numbers = json.loads(file.read_text(encoding="utf-8"))
    return numbers


def percent(gain: Mapping[str, float]) -> str:
    """A gain in percent with its interval; ▲ better, ▼ worse."""
    signs = {"better": "▲ ", "worse": "▼ ", "unclear": ""}
    standing = signs[Gain(**gain).standing]
    values = [f"{100 * gain[end]:+.1f}".replace("-", "−") for end in ("share", "low", "high")]
    return f"{standing}{values[0]} % [{values[1]}, {values[2]}]"


def table(results: Mapping[str, Numbers]) -> Iterator[str]:
    """Both pools, the gain of the encoder, and the gain of learned weights in each pool."""
    heads = [
        "dataset",
        "items",
        "metric",
        "TF-IDF pool",
        "with the encoder",
        "gain of the encoder",
        "weights over the mean: TF-IDF",
        "with the encoder",
        "over one soft-label model: TF-IDF",
        "with the encoder",
        "processor seconds: TF-IDF",
        "more with the encoder",
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name, result in results.items():
        fast = result["fast"]
        full = result["full"]
        cells = [name, f"{result['items']:,}", METRIC[full["metric"]].short]
        cells += [f"{fast['edo']:.4f}", f"{full['edo']:.4f}", percent(result["gain"]["gain"])]
        for rival in ("uniform", "soft"):
            cells += [percent(fast["gains"][rival]), percent(full["gains"][rival])]
        cells += [f"{fast['seconds']:.0f}", f"{full['seconds'] - fast['seconds']:.0f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and write the section."""
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--one"]:
        source, name, items, encoder = sys.argv[2:]
        print(json.dumps(run_both(Path(source), name, int(items), encoder)))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--encoder", required=True, help="a folder with onnx/model.onnx")
    parser.add_argument("--items", type=int, default=800, help="the most items of each dataset")
    parser.add_argument("--cache", type=Path, default=Path("encoder-benchmark"))
    parser.add_argument("--datasets", nargs="*", help="only these; nothing is written then")
    arguments = parser.parse_args()
    results = {}
    for task, names in DATASETS.items():
        for name in names:
            if arguments.datasets and name not in arguments.datasets:
                continue
            source = getattr(arguments, task)
            results[name] = measured(
                source, name, arguments.items, arguments.encoder, arguments.cache
            )
    lines = list(table(results))
    print("\n".join(lines))
    if not arguments.datasets:
        head = HEAD.format(items=f"{arguments.items:,}")
        section = "\n".join([head, *lines, "", machine("scikit-learn", "onnxruntime")])
        write_section("A sentence encoder in the default pool (`encoder.py`)", section)


HEAD = """\
    python benchmarks/encoder.py LEWIDI2023 LEWIDI2025 --encoder all-MiniLM-L6-v2 --items {items}

`edo run` without and with the members on all-MiniLM-L6-v2 (22 million parameters, English; the ONNX
file exported from its weights, on onnxruntime), on at most {items} items of train and dev of each
dataset, drawn at random. All answers are cross-validated: members in five folds, weights once more,
near-duplicate texts in one fold. Gains are shares of the other's metric, with 95 % intervals over
items; ▲ clearly better, ▼ clearly worse. ArMIS is Arabic and MP is in nine languages, which this
encoder does not read: `edo run` would not choose it there by itself. Processor seconds (user and
system) are of a whole run with page and bundle in one process on two cores that many other programs
used, and of the same command again with the encoder, which keeps the members that are trained.
"""

if __name__ == "__main__":
    main()
