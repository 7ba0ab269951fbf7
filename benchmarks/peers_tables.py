"""`edo run` beside what a user would take instead, on six tables, by cross-validation.

    python -m venv ag && ag/bin/pip install "autogluon.tabular[lightgbm,xgboost,catboost]"
    python benchmarks/peers_tables.py LEWIDI2023 LEWIDI2025 --encoder FOLDER \\
        --autogluon-python ag/bin/python                     # a section of RESULTS.md, and README's

The folds, items and methods of run.py, and its cache: a constant answer, scikit-learn by hand, one
soft-label regression, `edo run` without and with the sentence encoder. Besides these AutoGluon's
tabular predictor on rows of annotations. It has an environment of its own, since it needs an older
pandas. It gets the seconds that `edo run` took, and at least those of `--least`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from results import machine, rewrite, write_section
from run import (
    AUTO,
    FAST,
    FOLDS,
    FoldResult,
    Measured,
    Table,
    cached_fold,
    parser_of,
    read_tables,
    use_embedding_cache,
)

from edokit import Annotations
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import METRIC

README = Path(__file__).resolve().parent.parent / "README.md"
MARKS = ("<!-- peers_tables.py -->", "<!-- /peers_tables.py -->")
PROGRAM = Path(__file__).with_name("peers_autogluon.py")
AUTOGLUON = "autogluon"
TITLES = {
    AUTO: "`edo run`, with an encoder",
    FAST: "`edo run --quality fast`",
    AUTOGLUON: "AutoGluon",
    "by hand": "scikit-learn by hand",
    "soft": "one soft-label model",
    "constant": "constant answer",
}
RIVALS = (AUTOGLUON, "by hand", "soft", "constant")
METRICS = ("ce", "md", "bs", "rps")


def annotation_rows(train: Annotations) -> pd.DataFrame:
    """A row for each annotation; near-duplicate texts have the same fold."""
    folds = fold_numbers(TrainingData.from_annotations(train), FOLDS, 0)
    texts = np.array(list(map(str, train.whole_texts)), dtype=object)
    labels = np.array(list(map(str, train.classes)), dtype=object)
    return pd.DataFrame(
        {
            "text": texts[train.item_codes],
            "label": labels[train.label_codes],
            "fold": folds[train.item_codes],
        }
    )


def ask_autogluon(
    python: Path, train: Annotations, texts: Sequence[str], seconds: float
) -> tuple[np.ndarray, float]:
    """The probabilities of AutoGluon's ensemble, and its processor seconds."""
    rows = annotation_rows(train)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows.to_csv(folder / "rows.csv", index=False)
        pd.DataFrame({"text": list(texts)}).to_csv(folder / "texts.csv", index=False)
        files = [str(folder / name) for name in ("rows.csv", "texts.csv", "answers.json")]
        command = [str(python), str(PROGRAM), *files, "--seconds", str(round(seconds))]
        subprocess.run(command, check=True, capture_output=True)
        answer = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    column_of = {name: column for column, name in enumerate(map(str, train.classes))}
    # A class that it leaves out has been seen a few times at most: as often as never.
    probabilities = np.full((len(texts), len(column_of)), 1 / (len(rows) + len(column_of)))
    columns = [column_of[name] for name in answer["classes"]]
    probabilities[:, columns] = np.array(answer["probabilities"])
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities, float(answer["processor_seconds"])


def measure_peers(table: Table, fold: int, arguments: argparse.Namespace) -> FoldResult:
    """The methods of run.py and AutoGluon; what the cache holds is not measured again."""
    result = cached_fold(table, fold, arguments.cache)
    file = table.file(arguments.cache / "peers", fold)
    if not file.exists():
        train, held_out = table.split(fold)
        seconds = max(arguments.least, sum(result.seconds.values()))
        texts = list(map(str, held_out.whole_texts))
        answer, processor_seconds = ask_autogluon(arguments.autogluon_python, train, texts, seconds)
        peers = FoldResult(result.soft_labels, result.positions)
        peers.add(AUTOGLUON, answer)
        peers.processor_seconds[AUTOGLUON] = processor_seconds
        peers.seconds[AUTOGLUON] = seconds
        peers.save(file)
        print(file.stem, f"AutoGluon {processor_seconds:.0f} of {seconds:.0f} s", flush=True)
    peers = FoldResult.load(file)
    return replace(
        result,
        answers=result.answers | peers.answers,
        processor_seconds=result.processor_seconds | peers.processor_seconds,
        seconds=result.seconds | peers.seconds,
    )


def best_run(measured: Measured) -> str:
    """The run that a user gets: with the encoder where one reads the texts."""
    if measured.has(AUTO):
        return AUTO
    return FAST


def cell(measured: Measured, method: str, metric: str) -> str:
    """The metric of a method, and for rivals how `edo run` differs from it."""
    if not measured.has(method):
        return "–"
    mean = f"{measured.mean(method, metric):.4f}"
    run = best_run(measured)
    if method == run:
        return mean
    return f"{mean}; {measured.difference(run, method, metric)}"


def metric_lines(results: Mapping[str, Measured], metric: str) -> Iterator[str]:
    """A row for each data set on whose scale the metric is defined."""
    yield f"| {METRIC[metric].short} | items | {' | '.join(TITLES.values())} |"
    yield "|---" * (len(TITLES) + 2) + "|"
    for name, measured in results.items():
        if metric == "rps" and measured.headline != "rps":
            continue
        cells = [cell(measured, method, metric) for method in TITLES]
        yield f"| {' | '.join([name, f'{measured.items:,}', *cells])} |"


def seconds_lines(results: Mapping[str, Measured]) -> Iterator[str]:
    """Processor seconds of the first fold, in which nothing is in a cache."""
    methods = (FAST, AUTO, AUTOGLUON)
    yield f"| processor seconds | {' | '.join(TITLES[method] for method in methods)} |"
    yield "|---" * (len(methods) + 1) + "|"
    for name, measured in results.items():
        seconds = dict(measured.folds[0].processor_seconds)
        if AUTO in seconds:
            seconds[AUTO] += seconds[FAST]
        cells = [name]
        for method in methods:
            if method in seconds:
                cells.append(f"{seconds[method]:.0f}")
            else:
                cells.append("–")
        yield f"| {' | '.join(cells)} |"


def not_ahead(results: Mapping[str, Measured]) -> Iterator[str]:
    """For each rival and metric, the data sets on which `edo run` is not clearly better."""
    for rival in RIVALS:
        parts = []
        for metric in METRICS:
            undecided = []
            worse = []
            for name, measured in results.items():
                if metric == "rps" and measured.headline != "rps":
                    continue
                standing = measured.standing(best_run(measured), rival, metric)
                if standing == "":
                    undecided.append(name)
                elif standing == "▼":
                    worse.append(name)
            if worse:
                parts.append(f"{METRIC[metric].short} clearly worse on {', '.join(worse)}")
            if undecided:
                parts.append(f"{METRIC[metric].short} undecided on {', '.join(undecided)}")
        verdict = "; ".join(parts) or "clearly better everywhere"
        yield f"- `edo run` beside {TITLES[rival]}: {verdict}."


def readme_lines(results: Mapping[str, Measured]) -> Iterator[str]:
    """CE of each method; ▲ where `edo run` is clearly better than it, ▼ where clearly worse."""
    yield f"| table | items | {' | '.join(TITLES.values())} |"
    yield f"|---|---:|{'---:|' * len(TITLES)}"
    for name, measured in results.items():
        cells = [name, f"{measured.items:,}"]
        run = best_run(measured)
        for method in TITLES:
            if not measured.has(method):
                cells.append("–")
                continue
            mean = f"{measured.mean(method, 'ce'):.3f}"
            if method not in (AUTO, FAST):
                mean = f"{mean} {measured.standing(run, method, 'ce')}".strip()
            cells.append(mean)
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, write the section, and the table of the README."""
    parser = parser_of(__doc__)
    parser.add_argument("--autogluon-python", type=Path, required=True)
    parser.add_argument("--least", type=float, default=60.0, help="seconds for AutoGluon")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    use_embedding_cache(arguments.cache)
    tables = read_tables(arguments)
    folds: dict[str, list[FoldResult]] = {table.name: [] for table in tables}
    for fold in range(FOLDS - 1, FOLDS - 1 - arguments.outer, -1):
        for table in tables:
            folds[table.name].append(measure_peers(table, fold, arguments))
    results = {name: Measured(parts) for name, parts in folds.items()}
    lines = [*not_ahead(results), ""]
    for metric in METRICS:
        lines += [*metric_lines(results, metric), ""]
    lines += [*seconds_lines(results), ""]
    print("\n".join(lines))
    if arguments.datasets:
        return
    version = subprocess.run(
        [arguments.autogluon_python, "-c", VERSION], check=True, capture_output=True, text=True
    )
    head = HEAD.format(items=arguments.items, outer=arguments.outer, least=round(arguments.least))
    versions = machine("scikit-learn", "onnxruntime") + f" AutoGluon {version.stdout.strip()}."
    write_section(
        "What one would take instead (`peers_tables.py`)", "\n".join([head, *lines, versions])
    )
    rewrite(README, MARKS, "\n".join([MARKS[0], *readme_lines(results), MARKS[1]]))


VERSION = "from importlib.metadata import version; print(version('autogluon.tabular'))"
HEAD = """\
    python benchmarks/peers_tables.py LEWIDI2023 LEWIDI2025 --encoder FOLDER \\
        --autogluon-python AG/bin/python --items {items} --outer {outer}

The same items for everybody: at most {items} of the train and dev items of a dataset, drawn at
random, in five outer folds, near-duplicate texts in the same one; the last {outer} are held out in
turn, and test files are not read. *AutoGluon* is its tabular predictor (LightGBM, XGBoost,
CatBoost, forests, weighted ensemble; no torch, as installed by
`autogluon.tabular[lightgbm,xgboost,catboost]`) on a row for each annotation: text and label, preset
`medium_quality`, log loss, bagged in five folds by item. It has the seconds on the clock that `edo
run` took beside it, and at least {least}. *By hand*, *one soft-label model* and *constant* are
those of run.py. The encoder is all-MiniLM-L6-v2, which does not read ArMIS (Arabic). Behind each
value: `edo run` (with the encoder where it reads the texts) less the method, with the 95 % interval
over held-out items; ▲ `edo run` is clearly better, ▼ clearly worse. Lower is better everywhere. RPS
is for points of a scale. Seconds of `edo run` include page and bundle. The machine had other work,
so that both computed for a part of their seconds on the clock: the last table has the processor's.
"""

if __name__ == "__main__":
    main()
