"""`edo run`: from a table of annotations to an ensemble that answers for new text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from edokit.analysis.diagnose.groups.text import group_lines
from edokit.cli import console, options
from edokit.metrics import METRIC
from edokit.pipeline import run as run_all
from edokit.pipeline.options import RunOptions
from edokit.pipeline.result import Run


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """How thorough a run is.

    Parameters
    ----------
    quality : str
        fast (TF-IDF), auto (also a sentence encoder, if one is on this machine), good (more
        members) or best (also transformers, on a GPU).
    time : str, optional
        How long it may take, such as 90s, 10m or 2h: the pool is cut to fit.
    encoder : str, optional
        The sentence encoder: a folder, minilm, multilingual or a downloaded hub id; by default one
        that is on this machine and reads the script of the texts.
    transformer : str
        The transformer of best: a folder, or a hub id that has been downloaded.
    by : list of str, optional
        Do groups differ? Also compare the levels of these attributes of annotators, e.g.
        gender,age.
    random_state : int
        Seed of members, folds and intervals.
    jobs : int, optional
        Members that train at a time; by default one per core.
    overwrite : bool
        Replace a run on other annotations, and files that edo did not write.
    no_people : bool
        Do not estimate how annotators and their attributes differ from the pool.
    no_texts : bool
        Write a page without the texts of the items.
    """

    quality: str = "auto"
    time: str | None = None
    encoder: str | None = None
    transformer: str = "microsoft/mpnet-base"
    by: options.Names = None
    random_state: int = 0
    jobs: int | None = None
    overwrite: bool = False
    no_people: bool = False
    no_texts: bool = False

    def to_options(self) -> RunOptions:
        """Return the options of the run."""
        return RunOptions(
            quality=self.quality,  # type: ignore[arg-type]
            time=self.time,
            encoder=self.encoder,
            transformer=self.transformer,
            by=self.by,
            random_state=self.random_state,
            jobs=self.jobs,
            overwrite=self.overwrite,
            no_people=self.no_people,
            no_texts=self.no_texts,
        )


def run(
    annotations: options.AnnotationsSource,
    /,
    *,
    out: Path,
    flags: Annotated[RunFlags, options.FLAT] = RunFlags(),
    reading: Annotated[options.Reading, options.FLAT] = options.Reading(),
    json: options.Json = False,
) -> None:
    """Train a diverse pool, learn its weights, compare, and write a page and a bundle.

    Run it again to resume. `edo serve RUN` then answers for new texts.

    Parameters
    ----------
    out : Path
        Folder for members, ensemble, comparison, page and bundle.
    """
    with console.resumable(), console.progress() as bars:
        result = run_all(
            annotations,
            out,
            flags.to_options(),
            progress=console.add_steps(bars, "reading"),
            command=console.command_line(),
            **options.given_arguments(reading),
        )
    console.print_result(result.results, lambda: _print(result), json)


def _print(result: Run) -> None:
    """The leaderboard, what was left out, the commands, and the sentence."""
    methods: list[Any] = result.leaderboard.reset_index().to_dict("records")
    headline = result.results["headline_metric"]
    metrics = [name for name in methods[0] if name not in ("name", "kind", "low", "high", "weight")]
    rows = []
    for method in methods:
        interval = ""
        if not math.isnan(method["low"]):
            interval = f"{method['low']:.4f} … {method['high']:.4f}"
        weight = ""
        if not math.isnan(method["weight"]):
            weight = f"{method['weight']:.3f}"
        values = [f"{method[name]:.4f}" for name in metrics]
        rows.append([method["name"], *values, interval, weight])
    console.print_table(
        f"{result.folder}: {result.results['items']} items, each answered by models that had not"
        " seen it",
        ["", *metrics, f"{headline}, 95% interval", "weight"],
        rows,
    )
    notes = [f"Left out: {reason}." for reason in result.left_out]
    if result.encoder_note:
        notes.append(result.encoder_note)
    console.print_lines([*notes, "The same, step by step:"])
    console.print_lines((f"  {line}" for line in result.commands), copied=True)
    groups = result.groups
    if groups is not None:
        console.print_lines(group_lines(groups))
    page = result.folder / "report.html"
    console.print_lines(
        [f"Page: {page}. For new texts: edo serve {result.folder}", "", result.summary]
    )
    metric = METRIC[headline].short
    console.print_lines(
        [f"(Percentages are of the {metric}; a lower {metric} is better.)", *result.quality]
    )
