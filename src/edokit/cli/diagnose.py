"""`edo diagnose`: what kind of disagreement is in the annotations."""

from __future__ import annotations

from typing import Annotated

from edokit.cli import console, options


def diagnose(
    annotations: options.AnnotationsSource,
    /,
    *,
    group_by: str | None = None,
    permutations: int = 99,
    random_state: int = 0,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Show coverage, agreement and groups of annotators: structure or noise? Advice.

    Parameters
    ----------
    group_by : str, optional
        Groups declared by this attribute of the annotators; else found.
    permutations : int, default=99
        Permutations of the test; 0: no test.
    random_state : int, default=0
        Seed of the permutations.
    """
    from edokit.analysis.diagnose import diagnose as run_diagnosis
    from edokit.pipeline.text import reading_flags

    with console.progress() as bars:
        diagnosis = run_diagnosis(
            reading.annotations(annotations),
            groups=group_by,
            permutations=permutations,
            random_state=random_state,
            progress=console.add_stages(bars, "permuting labels"),
        )
    flags = reading_flags({k: v for k, v in options.keywords(reading).items() if k != "split"})
    diagnosis = diagnosis.with_source(annotations, flags)
    console.print_result(diagnosis.to_dict(), lambda: console.print_lines(diagnosis.lines()), json)
