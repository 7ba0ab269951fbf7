"""A comparison kept in a folder, with how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edokit._io import whole_file, write_json
from edokit._io.markup import ENDINGS
from edokit._outputs import begin_run, check_output
from edokit.baselines.compare import Comparison
from edokit.ensemble import EDOEnsemble
from edokit.predictions import write_predictions
from edokit.runs import Input, RunRecord, as_typed, digest


def keep(
    comparison: Comparison,
    folder: Path,
    predictions: Mapping[str, Path] | None = None,
    annotations: Mapping[str, tuple[Path, Mapping[str, Any]]] | None = None,
    *,
    arguments: Sequence[str] = (),
) -> None:
    """Write ``compare/`` (methods.json, the table as Markdown, CSV and LaTeX, every method's
    answers on test), EDO's ``ensemble/`` and ``run.json``.

    ``predictions`` and ``annotations`` are the files behind it by role, annotations with the
    arguments that they were read with.
    """
    check_output(folder, "comparison")
    begin_run(folder)
    place = folder / "compare"
    write_json(comparison.to_dict(), place / "methods.json")
    for kind, ending in ENDINGS.items():
        with whole_file(place / f"methods.{ending}") as temporary:
            temporary.write_text(comparison.text(kind), encoding="utf-8")
    write_predictions(comparison.answers, place / "test.npz")
    ours = comparison.fitted.get("edo")
    if isinstance(ours, EDOEnsemble):
        ours.save(folder / "ensemble")
    inputs = {role: Input(str(path), digest(path)) for role, path in (predictions or {}).items()}
    for role, (path, how) in (annotations or {}).items():
        inputs[role] = Input(str(path), digest(path), how)
    RunRecord(
        kind="compare",
        inputs=inputs,
        seed=int(comparison.facts["seed"]),
        command=as_typed(arguments),
    ).save(folder)
