"""A card of disagreement: sections of sentences and tables, in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.latex import latex, latex_text
from edokit._io.markup import Table, markdown_text
from edokit._package import __version__
from edokit.analysis.diagnose.result import Diagnosis
from edokit.analysis.plan.result import Plan

SUFFIXES = (".md", ".tex")


@dataclass(frozen=True)
class CardSection:
    """A part of a card.

    Attributes
    ----------
    title : str
    sentences : sequence of str
        Plain text.
    tables : sequence of Table
    """

    title: str
    sentences: Sequence[str]
    tables: Sequence[Table] = ()


@dataclass(frozen=True, eq=False)
class DisagreementCard:
    """Who labelled a dataset and how they disagree, as `edokit.disagreement_card` returns it.

    Attributes
    ----------
    diagnosis : Diagnosis
    levels : mapping of str to mapping of str to int
        For each attribute of the annotators, how many have each level.
    best_possible : mapping of str to float or None
        For each metric, the best value that any model can reach on these soft labels.
    plan : Plan or None
        How the soft labels improve with annotators per item; None where no item has labels of two
        annotators.
    name : str
        Name of the dataset; may be empty.
    """

    diagnosis: Diagnosis
    levels: Mapping[str, Mapping[str, int]]
    best_possible: Mapping[str, float | None]
    plan: Plan | None
    name: str = ""

    def __repr__(self) -> str:
        return f"DisagreementCard({self.diagnosis.items} items)"

    def __str__(self) -> str:
        return self.markdown()

    @property
    def title(self) -> str:
        """The heading."""
        if self.name:
            return f"Disagreement in {self.name}"
        return "Disagreement"

    def sections(self) -> list[CardSection]:
        """Return the sections in order.

        Returns
        -------
        list of CardSection
        """
        from edokit.analysis.card.text import sections

        return sections(self)

    def markdown(self) -> str:
        """Return the card in Markdown.

        Returns
        -------
        str
        """
        parts = [f"# {markdown_text(self.title)}\n"]
        for section in self.sections():
            parts.append(f"## {section.title}\n")
            if section.sentences:
                parts.append(" ".join(map(markdown_text, section.sentences)) + "\n")
            parts += [table.markdown() for table in section.tables]
        parts.append(f"Made by `edo diagnose --card`, edokit {__version__}.\n")
        return "\n".join(parts)

    def latex(self) -> str:
        """Return the card in LaTeX, to be included in a paper; needs ``booktabs``.

        Returns
        -------
        str
        """
        parts = [
            f"% made by edo diagnose --card, edokit {__version__}; needs \\usepackage{{booktabs}}",
            f"\\section*{{{latex_text(self.title)}}}",
        ]
        for section in self.sections():
            parts.append(f"\\subsection*{{{latex_text(section.title)}}}")
            parts.append(" ".join(map(latex_text, section.sentences)))
            parts += [latex(table) for table in section.tables]
        return "\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers behind the card as plain values.

        Returns
        -------
        dict
            ``levels``, ``best_possible`` and ``plan``; `diagnosis` has its own ``to_dict``.
        """
        return {
            "levels": {name: dict(levels) for name, levels in self.levels.items()},
            "best_possible": dict(self.best_possible),
            "plan": None if self.plan is None else self.plan.to_dict(),
        }

    def write(self, path: str | Path) -> Path:
        """Write the card as Markdown (.md) or LaTeX (.tex).

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Path
        """
        path = Path(path)
        content = self.latex() if check_card_path(path) == ".tex" else self.markdown()
        with whole_file(path) as temporary:
            temporary.write_text(content, encoding="utf-8")
        return path


def check_card_path(path: Path) -> str:
    """The ending of a card's name; others than .md and .tex are refused."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{path}: a card is written as Markdown or LaTeX",
            "end the name in .md or .tex",
            code="unknown-ending",
        )
    return suffix
