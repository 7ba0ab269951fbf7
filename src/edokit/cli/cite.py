"""`edo cite`: what to cite for a run, in BibTeX."""

from __future__ import annotations

from pathlib import Path

from edokit.cli import console, options
from edokit.runs.citations import citations


def cite(run: Path, /, *, json: options.Json = False) -> None:
    """Print BibTeX of EDO, of its paper, and of the packages and models that a run used.

    Parameters
    ----------
    run : Path
        The folder of a run.
    """
    references = citations(run)
    bibtex = "\n\n".join(reference.to_bibtex() for reference in references)
    records = [
        {"key": reference.key, "kind": reference.kind, **reference.fields}
        for reference in references
    ]
    console.print_result({"references": records}, bibtex, json)
