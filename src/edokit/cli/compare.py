"""`edo compare`: every method side by side, fitted on dev, evaluated once on test."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from edokit._errors import InputError, local_path
from edokit._io.atomic import whole_file
from edokit.analysis.compare import compare as compare_methods
from edokit.analysis.compare.options import CompareOptions, Correction
from edokit.analysis.compare.result import Comparison
from edokit.analysis.compare.text import table as compact_table
from edokit.annotations.core import Ties
from edokit.cli import console, options
from edokit.cli.report import add_page
from edokit.runs.folder import output_files, output_folder, refuse_input


def extra_pools(texts: Sequence[str], option: str, form: str) -> dict[str, tuple[Path, Path]]:
    """``["NAME=DEV,TEST"]`` as ``{"NAME": (DEV, TEST)}``; a single file is used for both."""
    pools = {}
    for name, files in options.key_values(texts, option, form).items():
        paths = options.split_names(files)
        if len(paths) not in (1, 2) or not all(paths):
            raise InputError(
                f"{option} {name}={files} does not name two files, {form}",
                f"write {option} soft-ce=soft-ce/dev.npz,soft-ce/test.npz",
                code="malformed-option",
            )
        pools[name] = (local_path(paths[0]), local_path(paths[-1]))
    return pools


@dataclass(frozen=True, kw_only=True)
class CompareFlags:
    """Methods to compare, and how they are evaluated.

    Parameters
    ----------
    methods : list of str, optional
        Only these, separated by commas: majority, best-single, top-5, wel, wel-ce, greedy,
        linear-pool, log-pool, edo-paper-fixed, edo-paper, edo (constant and uniform always); or
        all; package.module:Class is a method of another package. If not given, all but wel and
        wel-ce, the slowest.
    samples : int
        Bootstrap samples of the intervals; tests make twice as many sign flips. 0 for neither.
    level : float
        Level of the intervals.
    ties : str
        Hard label of evenly split items.
    random_state : int
        Seed of searches, intervals, folds and random ties.
    folds : int
        Folds of the cross-validation without test predictions.
    seeds : int
        How often each method is fitted, with this seed and those after it.
    metrics : list of str, optional
        Metrics of the tables, separated by commas, such as f1,macro_f1,ce,jsd,ece; the main metrics
        of the answer scale if not given.
    correct : str
        Correct the p-values against uniform for the number of tests in the table (holm) or not
        (none).
    """

    methods: options.Names = None
    samples: int = 1000
    level: float = 0.95
    ties: Ties = "first"
    random_state: int = 0
    folds: int = 5
    seeds: int = 1
    metrics: options.Names = None
    correct: Correction = "holm"

    def to_options(self) -> CompareOptions:
        """Return the options of the comparison."""
        return CompareOptions(
            methods=self.methods,
            samples=self.samples,
            level=self.level,
            ties=self.ties,
            random_state=self.random_state,
            folds=self.folds,
            seeds=self.seeds,
            metrics=self.metrics,
            correct=self.correct,
        )


@dataclass(frozen=True, kw_only=True)
class TrainAndTestFiles(options.TrainFiles, options.TestFiles):
    """Test data, and the split of the training items."""


def compare(
    *,
    predictions: Path,
    annotations: options.AnnotationsPath,
    files: Annotated[TrainAndTestFiles, options.FLAT] = TrainAndTestFiles(),
    extra: Annotated[
        dict[str, tuple[Path, Path]] | None, options.parser(extra_pools, "NAME=DEV,TEST")
    ] = None,
    flags: Annotated[CompareFlags, options.FLAT] = CompareFlags(),
    latex: Path | None = None,
    out: Path | None = None,
    report: options.WithReport = True,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.FitReading, options.FLAT] = options.FitReading(),
    json: options.Json = False,
) -> None:
    """Compare EDO with every baseline on the same members, with intervals and tests.

    Parameters
    ----------
    predictions : Path
        The members' predictions of the items to fit on (dev).
    extra : dict, optional
        Another pool, or a single model, on the same items: its predictions on dev and on test
        (repeatable); without test predictions one file.
    latex : Path, optional
        Also write the table in LaTeX (booktabs; best in bold, significance marked) to this file,
        e.g. table.tex.
    out : Path, optional
        Folder for the results, tables and EDO's ensemble.
    """
    inputs = (predictions, annotations, files.test_predictions, files.test_annotations)
    if latex is not None:
        refuse_input(latex, *inputs)
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(output_folder(out, "comparison", *inputs, overwrite=overwrite))
        bars = stack.enter_context(console.progress())
        progress = console.add_stages(bars, "")
        comparison = compare_methods(
            predictions,
            annotations,
            options=flags.to_options(),
            extra=extra,
            progress=progress,
            **options.given_arguments(files),
            **options.given_arguments(reading),
        )
        if out is not None:
            progress(1, 1, "writing")
            comparison.save(out, command=console.command_line(), overwrite=overwrite)
            if report:
                add_page(out, overwrite=overwrite)
        if latex is not None:
            with (
                output_files(latex, inputs=inputs, overwrite=overwrite),
                whole_file(latex) as temporary,
            ):
                temporary.write_text(comparison.to_latex(), encoding="utf-8")
    console.print_result(comparison.to_dict(), lambda: _show(comparison), json)


def _show(comparison: Comparison) -> None:
    """Print the scores of all methods, and the differences if there are intervals."""
    table = compact_table(comparison, with_deviations=False)
    console.print_table(table.title, table.header, table.marked(), table.notes, comparison.headline)
    if comparison.scores[0].intervals:
        console.print_tables(comparison.differences())
