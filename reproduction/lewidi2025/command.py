"""`python -m reproduction lewidi2025 table | submit`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, one_of
from edokit._io.atomic import whole_file
from edokit._io.markup import Cell, Table
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
    """The options of this task."""
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
    studies = [
        study
        for name in dataset_names
        for study in (
            Study(data, predictions, name, given.folds, cross_fitted, _progress)
            for cross_fitted in (False, True)
        )
        if study.files("dev.npz")
    ]
    if given.what == "table":
        results_table = table(studies, given.results, shlex.join(typed))
    else:
        # Of a dataset with cross-fitted members these alone: its dev set chooses badly.
        results_table = submit(list({study.name: study for study in studies}.values()), given.out)
    _progress("")
    sys.stdout.write(
        json.dumps(results_table["values"]) + "\n" if given.json else results_table["text"]
    )


def table(studies: Sequence[Study], results: Path | None, command: str) -> dict[str, Any]:
    """Both tasks on dev, and the members, as a page and as plain values."""
    pages = []
    values = {}
    rows_by_dataset = {}
    for study in studies:
        rows = {"A": list(study.task_a()), "B": list(study.task_b()), "members": study.members()}
        rows_by_task = {task: list(task_rows) for task, task_rows in rows.items()}
        rows_by_dataset[study.title] = rows_by_task
        values[study.title] = {
            task: [_values(row) for row in task_rows] for task, task_rows in rows_by_task.items()
        }
        words = {task: _words(chosen(rows_by_task[task])) for task in ("A", "B")}
        pages += [f"## {study.title}", ""]
        items = f"{len(study.labels['dev'].items)} items of " if study.cross_fitted else ""
        judged = f"{items}train and dev" if study.cross_fitted else "dev"
        pages += [f"Chosen on {judged}: task A {words['A']}; task B {words['B']}.", ""]
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
    return {"text": page, "values": {"benchmark": "lewidi2025", "datasets": values}}


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
    with_ce = any(row.ce is not None for row in rows)
    compared = [
        {row.pool: row for row in rows if row.method == method and row.answer_for is None}
        for method in ("uniform", "EDO, CE")
    ]
    # Against CE the other objectives are compared, where the scale has some.
    several = {row.method for row in rows} - {"uniform", "EDO, CE"} > {"training-set mean"}
    bases = compared[: 2 if several else 1] if compared[0] else []
    header = ["pool", "method", "score", "95 % interval"]
    header += ["difference from uniform", "difference from EDO, CE"][: len(bases)]
    header += ["CE"] if with_ce else []
    lines: list[list[Cell]] = []
    for row in rows:
        line: list[Cell] = [row.pool, _method(row), f"{row.mean:.4f}", _between(row.score)]
        for base in (row_by_pool.get(row.pool) for row_by_pool in bases):
            gap = None if base is None or base is row else row.score - base.score
            line.append(None if gap is None else f"{gap.mean():+.4f} ({_between(gap)})")
        if with_ce:
            line.append(None if row.ce is None else f"{row.ce.mean():.4f}")
        lines.append(line)
    return Table(title, tuple(header), lines)


def _method(row: Row) -> str:
    return f"{row.method}, for {row.answer_for}" if row.answer_for else row.method


def _between(values: Any) -> str:
    low, high = interval(values)
    return f"{low:.4f} to {high:.4f}"


def _words(row: Row) -> str:
    return f"{row.mean:.4f} ({_method(row)} on {row.pool})"


def _values(row: Row) -> dict[str, Any]:
    return {
        "pool": row.pool,
        "method": row.method,
        "for": row.answer_for,
        "score": row.mean,
        "interval": interval(row.score),
        "ce": None if row.ce is None else float(row.ce.mean()),
    }


def submit(studies: Sequence[Study], out: Path) -> dict[str, Any]:
    """Refit on all of dev what did best on its held-out parts, and answer for test."""
    files = []
    choices = {}
    lines = []
    for study in studies:
        test = read_test(study.data, study.name)
        a, b = (chosen(list(rows)) for rows in (study.task_a(), study.task_b()))
        pools = {split: study.pools(split) for split in ("dev", "test")}
        asked_rows = asked_pairs(test.items, test.annotators or ())
        dev = study.labels["dev"]
        ensemble = fit(pools["dev"][a.pool], dev, a.method)
        soft = answers(ensemble, pools["test"][a.pool].align(test.items), a.answer_for)
        if b.pool in (pair_pools := study.pair_pools("dev", dev.pairs().rows)):
            learned = fit(pair_pools[b.pool], dev.pairs(), b.method)
            p = learned.predict_proba(study.pair_pools("test", asked_rows)[b.pool])
        else:
            p = spread(pools["test"][b.pool], asked_rows).uniform
        decided = decisions(p, study.scale)
        ends = np.cumsum([len(names) for names in test.annotators or ()])[:-1]
        files += write_dataset(
            out, Asked(study.name, test, dev.scale, dev.classes), soft, np.split(decided, ends)
        )
        choices[study.name] = {"A": _values(a), "B": _values(b)}
        lines.append(f"{study.name}: A {_words(a)}; B {_words(b)}")
    with whole_file(out / CHOICES) as temporary:
        temporary.write_text(json.dumps(choices, indent=1) + "\n", encoding="utf-8")
    write_zip(out / ZIP, files)
    written = [*files, out / CHOICES, out / ZIP]
    text = "\n".join(["Chosen on dev:", *lines, *(f"written: {path}" for path in written)]) + "\n"
    return {"text": text, "values": {"chosen": choices, "written": list(map(str, written))}}


def _progress(what: str) -> None:
    """What is being computed, on stderr, where it is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")
        sys.stderr.flush()
