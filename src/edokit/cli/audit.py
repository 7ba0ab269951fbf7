"""`edo audit`: is a jury several judges or one, and can it replace annotators?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from edokit.analysis.audit.options import AuditOptions
from edokit.cli import console, options


def audit(
    *,
    predictions: options.PredictionsPath,
    annotations: options.AnnotationsPath,
    ensemble: Path | None = None,
    auditing: Annotated[AuditOptions, options.FLAT] = AuditOptions(),
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Show whether a jury is several judges or one, and whether it can replace annotators.

    The effective number of independent judges, what each member adds, and the jury beside people by
    division of votes. With --replace, the alternative annotator test.

    Parameters
    ----------
    ensemble : Path, optional
        With --replace, one more candidate; it should not have been fitted on these items.
    """
    from edokit.analysis.audit import audit as run_audit

    result = run_audit(
        predictions, annotations, auditing, ensemble=ensemble, **options.given_arguments(reading)
    )
    console.print_answer(result, json)
