"""`python -m reproduction lewidi2025 table | submit`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from edokit._errors import InputError, one_of
from edokit._io.atomic import whole_file
from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.metrics.formulas import decisions
from reproduction.lewidi2025.data import DATASETS, find_data, read_test
from reproduction.lewidi2025.observations import observations
from reproduction.lewidi2025.study import (
    FOLDS,
    KNOWN,
    Row,
    Study,
    answers,
    asked_pairs,
    chosen,
    fit,
    interval,
    spread,
)
from reproduction.lewidi2025.submission import Asked, write_dataset, write_zip

HELP = "LeWiDi 2025: both tasks on dev as tables, and a submission for test."
ZIP = "submission.zip"
CHOICES = "choices.json"
_PREDICTIONS = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2025"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this task."""
    add = parser.add_argument
    add("what", choices=("table", "submit"), help="tables on dev, or the files of a submission")
    add("--data", type=Path, help="LeWiDi 2025 folder; else EDO_LEWIDI2025, else ./lewidi2025")
    add("--predictions", type=Path, help="members' predictions; else benchmarks/lewidi2025")
    add("--dataset", action="append", help=f"only this one (repeatable): {', '.join(DATASETS)}")
    add("--results", type=Path, help="table: write the page to this file as well")
    add("--out", type=Path, help="submit: folder for the files and the zip")
    add(
        "--folds", type=int, default=FOLDS, help=f"parts of dev that are held out (default {FOLDS})"
    )
    add("--json", action="store_true", help="print one JSON object")


def run(given: argparse.Namespace, typed: Sequence[str]) -> None:
    """Make the tables, or the submission."""
    data = find_data(given.data)
    predictions = given.predictions or _PREDICTIONS
    for name in given.dataset or ():
        one_of("the dataset", name, DATASETS)
    if given.what == "submit" and given.out is None:
        raise InputError(
            "a submission needs a folder to go to", "add --out DIR", code="missing-option"
        )
    dataset_names = given.dataset or [name for name in DATASETS if (predictions / name).is_dir()]
    if not dataset_names:
        raise InputError(
            f"{predictions} holds no predictions",
            "name a folder: --predictions DIR",
            code="wrong-folder",
        )
    if given.folds < 2:
        raise InputError(
            f"--folds is {given.folds}, but must be at least 2",
            "leave it out",
            code="invalid-number",
        )
    studies = []
    for name in dataset_names:
        for cross_fitted in (False, True):
            study = Study(data, predictions, name, given.folds, cross_fitted, _progress)
            if study.files("dev.npz"):
                studies.append(study)
    if given.what == "table":
        output = table(studies, given.results, shlex.join(typed))
    else:
        # A dev set is too small to choose by where there are cross-fitted members.
        last_by_dataset = {study.name: study for study in studies}
        output = submit(list(last_by_dataset.values()), given.out)
    _progress("")
    if given.json:
        sys.stdout.write(json.dumps(output.values) + "\n")
    else:
        sys.stdout.write(output.text)


@dataclass(frozen=True)
class Output:
    """What the command prints: text, or values as JSON."""

    text: str
    values: Mapping[str, object]


def table(studies: Sequence[Study], results: Path | None, command: str) -> Output:
    """Both tasks on dev, and the members, as a page and as plain values."""
    pages = []
    values = {}
    rows_by_dataset = {}
    for study in studies:
        rows_by_task = {
            "A": list(study.task_a()),
            "B": list(study.task_b()),
            "members": list(study.members()),
        }
        rows_by_dataset[study.title] = rows_by_task
        values[study.title] = {
            task: list(map(_values, rows)) for task, rows in rows_by_task.items()
        }
        items = "dev"
        if study.cross_fitted:
            items = f"{len(study.labels['dev'].items)} items of train and dev"
        best_a = _sentence_part(chosen(rows_by_task["A"]))
        best_b = _sentence_part(chosen(rows_by_task["B"]))
        pages += [f"## {study.title}", ""]
        pages += [f"Chosen on {items}: task A {best_a}; task B {best_b}.", ""]
        for task, title in _TITLES.items():
            pages += [_table(rows_by_task[task], f"{study.title}: {title}").markdown().rstrip(), ""]
    sentences = [f"- {sentence}" for sentence in observations(rows_by_dataset)]
    opening = [
        *_OPENING,
        f"Written by `{command}`; do not edit.",
        "",
        "## What it shows",
        *sentences,
        "",
    ]
    page = "\n".join([*opening, *pages])
    if results is not None:
        with whole_file(results) as temporary:
            temporary.write_text(page.rstrip() + "\n", encoding="utf-8")
    return Output(page, {"benchmark": "lewidi2025", "datasets": values})


_OPENING = [
    "# LeWiDi 2025 on dev",
    "",
    "Official scores, lower is better, with 95 % bootstrap intervals over items. Task A: Manhattan"
    " distance (MP; VariErrNLI per label, averaged) or Wasserstein-1 distance (CSC, Paraphrase)"
    " between the predicted distribution and the annotators'. Task B: error of the answer predicted"
    " for each annotator. Learned weights, and steps that make answers for a metric (`for md`, `for"
    " w1`), are fitted in folds, so that no item is scored by what was fitted on it; uniform means"
    " and constant answers need no fit. The epoch of each fine-tuned member was chosen on all of"
    " dev; of cross-fitted members, which answer for items of train and dev that they have not"
    " seen, on items that they learn from."
    " CE is of the distribution; a step for another metric may raise it. Pools that end in"
    f" `{KNOWN.strip()}` predict the mean over the annotators known to label an item; all others"
    " know the text alone. Chosen for the submission: in task A the pool and weights with the"
    " lowest CE, and the step if it lowers the score; in task B the lowest score; of a dataset with"
    " cross-fitted members, among these. Test labels are held out: nothing here looks at test.",
    "",
]
_TITLES = {
    "A": "task A, the distribution of answers",
    "B": "task B, each annotator's answer",
    "members": "task A, each member alone",
}


def _table(rows: Sequence[Row], title: str) -> Table:
    columns: list[tuple[str, Callable[[Row], str | None]]] = [
        ("pool", lambda row: row.pool),
        ("method", _method),
        ("score", lambda row: f"{row.mean:.4f}"),
        ("95 % interval", lambda row: _interval_text(row.score)),
    ]
    uniform = _rows_by_pool(rows, "uniform")
    if uniform:
        columns.append(("difference from uniform", partial(_difference, uniform)))
        # Against CE the other objectives are compared, where the scale has some.
        other_methods = {row.method for row in rows} - {"uniform", "EDO, CE"}
        if other_methods > {"training-set mean"}:
            learned_by_ce = _rows_by_pool(rows, "EDO, CE")
            columns.append(("difference from EDO, CE", partial(_difference, learned_by_ce)))
    if any(row.ce is not None for row in rows):
        columns.append(("CE", _ce))
    header = [name for name, _ in columns]
    lines: list[list[Cell]] = []
    for row in rows:
        lines.append([cell(row) for _, cell in columns])
    return Table(title, tuple(header), lines)


def _rows_by_pool(rows: Sequence[Row], method: str) -> dict[str, Row]:
    """The rows of a method without a step for a metric."""
    return {row.pool: row for row in rows if row.method == method and row.answer_for is None}


def _difference(rows_by_pool: Mapping[str, Row], row: Row) -> str | None:
    """The score of a row less that of the same pool's row."""
    other_row = rows_by_pool.get(row.pool)
    if other_row is None or other_row is row:
        return None
    gap = row.score - other_row.score
    return f"{gap.mean():+.4f} ({_interval_text(gap)})"


def _ce(row: Row) -> str | None:
    if row.ce is None:
        return None
    return f"{row.ce.mean():.4f}"


def _method(row: Row) -> str:
    """The name of the method with the metric that its answers are made for."""
    if row.answer_for:
        return f"{row.method}, for {row.answer_for}"
    return row.method


def _interval_text(values: Floats) -> str:
    low, high = interval(values)
    return f"{low:.4f} to {high:.4f}"


def _sentence_part(row: Row) -> str:
    return f"{row.mean:.4f} ({_method(row)} on {row.pool})"


def _values(row: Row) -> dict[str, object]:
    """Ready for JSON."""
    ce = None
    if row.ce is not None:
        ce = float(row.ce.mean())
    return {
        "pool": row.pool,
        "method": row.method,
        "for": row.answer_for,
        "score": row.mean,
        "interval": interval(row.score),
        "ce": ce,
    }


def submit(studies: Sequence[Study], out: Path) -> Output:
    """Refit on all of dev what did best on its held-out parts, and answer for test."""
    files = []
    choices = {}
    lines = []
    for study in studies:
        test = read_test(study.data, study.name)
        best_a = chosen(list(study.task_a()))
        best_b = chosen(list(study.task_b()))
        dev_pools = study.pools("dev")
        test_pools = study.pools("test")
        test_annotators = test.annotators or ()
        test_pairs = asked_pairs(test.items, test_annotators)
        dev = study.labels["dev"]
        ensemble = fit(dev_pools[best_a.pool], dev, best_a.method)
        soft = answers(ensemble, test_pools[best_a.pool].align(test.items), best_a.answer_for)
        dev_pair_pools = study.pair_pools("dev", dev.pairs().rows)
        if best_b.pool in dev_pair_pools:
            pair_ensemble = fit(dev_pair_pools[best_b.pool], dev.pairs(), best_b.method)
            test_pair_pools = study.pair_pools("test", test_pairs)
            p = pair_ensemble.predict_proba(test_pair_pools[best_b.pool])
        else:
            p = spread(test_pools[best_b.pool], test_pairs).uniform
        decided = decisions(p, study.scale)
        ends = np.cumsum([len(names) for names in test_annotators])[:-1]
        files += write_dataset(
            out, Asked(study.name, test, dev.scale, dev.classes), soft, np.split(decided, ends)
        )
        choices[study.name] = {"A": _values(best_a), "B": _values(best_b)}
        lines.append(f"{study.name}: A {_sentence_part(best_a)}; B {_sentence_part(best_b)}")
    with whole_file(out / CHOICES) as temporary:
        temporary.write_text(json.dumps(choices, indent=1) + "\n", encoding="utf-8")
    write_zip(out / ZIP, files)
    written = [*files, out / CHOICES, out / ZIP]
    text = "\n".join(["Chosen on dev:", *lines, *(f"written: {path}" for path in written)]) + "\n"
    return Output(text, {"chosen": choices, "written": list(map(str, written))})


def _progress(step: str) -> None:
    """Show the current step on stderr if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{step}")
        sys.stderr.flush()
