"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

from typing import Annotated

from edokit.cli import console, options


def diagnose(
    annotations: options.AnnotationsSource,
    /,
    *,
    by: options.Names = None,
    group_by: str | None = None,
    permutations: int | None = None,
    random_state: int = 0,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Show coverage, agreement and groups of annotators: structure or noise? Advice.

    Parameters
    ----------
    by : list of str, optional
        Do groups differ? Compare the levels of these attributes of annotators on the same items,
        e.g. gender,age.
    group_by : str, optional
        Groups declared by this attribute of the annotators; else found.
    permutations : int, optional
        Permutations at most; 0: no test. By default as many as a clear verdict takes.
    random_state : int, default=0
        Seed of the permutations.
    """
    from edokit.analysis.diagnose import diagnose as run_diagnosis
    from edokit.pipeline.text import reading_flags

    with console.progress() as bars:
        diagnosis = run_diagnosis(
            reading.annotations(annotations),
            groups=group_by,
            by=by,
            permutations=permutations,
            random_state=random_state,
            progress=console.add_stages(bars, "permuting labels"),
        )
    flags = reading_flags({k: v for k, v in options.keywords(reading).items() if k != "split"})
    diagnosis = diagnosis.with_source(annotations, flags)
    console.print_result(diagnosis.to_dict(), lambda: console.print_lines(diagnosis.lines()), json)
