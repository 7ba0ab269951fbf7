"""From an ensemble and files to pooled answers: what `edo predict` pools, and for whom.

Libraries are imported when something is read: the command line shows these options at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError, option

if TYPE_CHECKING:
    from edokit.bundle import Bundle
    from edokit.ensemble import EDOEnsemble, Pooled
    from edokit.members.texts import Texts
    from edokit.panels import Panel, PanelComparison
    from edokit.predictions import Predictions


@dataclass(frozen=True)
class TextSource:
    """A file of texts, and how it is read.

    Parameters
    ----------
    path : Path
        What `read_texts` reads.
    pairs : bool, default=False
        Whether the first line of a text is labelled and the rest is context.
    columns : mapping of str to str, optional
        Other column names, as in `read_texts`; those of annotators, too.
    split : sequence of str, default=()
        Only these splits.
    options : mapping, optional
        Further arguments of `read_texts`.
    """

    path: Path
    pairs: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    split: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> Texts:
        """All texts."""
        from edokit.members import read_texts

        return read_texts(self.path, columns=self.columns, **self._keywords())

    def read_for(self, people: Path) -> tuple[Texts, dict[str, tuple[str, ...]]]:
        """All texts, and the annotators of each item."""
        from edokit.members import read_annotators, read_texts

        columns = dict(self.columns)
        if not self.split:
            # The column of the annotators is in their own table, not among the texts.
            columns.pop("annotator", None)
        texts = read_texts(self.path, columns=columns, **self._keywords())
        return texts, read_annotators(people, columns=self.columns or None, items=texts.items)

    def parts(self, rows: int) -> Iterator[Texts]:
        """Texts, so many at a time."""
        from edokit.members import read_text_parts

        return read_text_parts(self.path, rows, columns=self.columns, **self._keywords())

    def by_item(self) -> dict[str, str]:
        """The text of each item, its context included."""
        from edokit.members.recipe import joined

        texts = self.read()
        return dict(zip(texts.items, map(joined, texts.texts), strict=True))

    def attributes(self, members: Path, people: Path | None) -> dict[str, dict[str, str]]:
        """Attributes by annotator, as far as the members use them and the file has them."""
        from edokit.members.score import attributes_of_members
        from edokit.members.texts import read_attributes

        if people is None or not (names := attributes_of_members(members)):
            return {}
        return read_attributes(people, names, columns=self.columns or None)

    def _keywords(self) -> dict[str, Any]:
        return {"pairs": self.pairs, "split": ",".join(self.split) or None, **self.options}


@dataclass(frozen=True, kw_only=True)
class PoolInputs:
    """What an ensemble pools: its members' predictions, or texts that its members predict.

    Parameters
    ----------
    predictions : Path, optional
        Its members' predictions: .npz, Parquet or shards.
    members : Path, optional
        Or its members themselves (a folder of `edo train`; a bundle has them)
    texts : Path, optional
        with texts: item and text columns, or a text per line.
    pairs : bool, default=False
        The first line of a text is labelled, the rest is context.
    max_length : int, default=100000
        Characters that a text may have, with its context.
    judges : Path, optional
        The annotators of each item (item and annotator columns, or a source of annotations):
        members that know annotators predict for these.
    annotators : Path, optional
        Who the annotators are: with --panel or --as, annotations (or a table with annotator) that
        have their attributes; else those to predict, a row per item and annotator, and one without
        annotator, the anonymous answer.
    """

    predictions: Path | None = None
    members: Path | None = None
    texts: Path | None = None
    pairs: bool = False
    max_length: int = 100_000
    judges: Path | None = None
    annotators: Path | None = None

    def check(self, ensemble: Path, *, bundled: bool, for_panel: bool, texts_shown: bool) -> None:
        """Refuse too few or too many of these files; see `Predictor`."""
        by_members = self.members is not None or (bundled and self.predictions is None)
        incomplete = by_members and self.texts is None
        unused = self.texts is not None and not by_members and not texts_shown
        double = bundled and self.members is not None
        if (self.predictions is None) != by_members or double or unused or incomplete:
            names = ("predictions", "members", "texts")
            files = [option(name) for name in names if getattr(self, name) is not None]
            either = f"{option('predictions')}, or {option('members')} with {option('texts')}"
            raise InputError(
                f"{' and '.join(files) or 'nothing'} can't be pooled",
                f"a bundle holds its members: pass {option('texts')} alone"
                if bundled
                else f"pass either {either}; {option('texts')} alone are for a bundle, and"
                f" {ensemble} has no bundle.json",
            )
        if self.judges is not None and not by_members:
            raise InputError(
                f"{option('judges')} is for members that predict now ({option('members')}), but"
                f" {option('predictions')} is given",
                "leave it out, or give it to `edo score`, which makes predictions",
            )
        if self.annotators is None or for_panel:
            return
        if not by_members or self.judges is not None:
            other = option("judges" if by_members else "predictions")
            raise InputError(
                f"{option('annotators')} and {other} are given, but no {option('panel')}",
                "leave one of them out, or name the panel",
            )


@dataclass(frozen=True, kw_only=True)
class Viewpoint:
    """Whose answers are asked for, and in which form.

    Parameters
    ----------
    panel : list of Path, optional
        What this panel would answer: a file with an annotator per line, a table with annotator (and
        weight), or one with attribute, value, share (and size). Two panels (or persons) are
        compared.
    as_annotator : list of str, optional
        What this person would answer.
    level : float, default=0.9
        Level of the intervals of a panel's votes.
    answer_for : str, optional
        Answers for a metric instead of the pool: ce, md, w1 (ordinal scales) or f1, by a step that
        was fitted with the ensemble.
    """

    panel: list[Path] | None = None
    as_annotator: list[str] | None = None
    level: float = 0.9
    answer_for: str | None = None

    def panels(self, annotators: Path | None = None) -> list[Panel]:
        """The panels and persons; their attributes are in a file of annotators, if anywhere."""
        from edokit.panels import Panel, read_panel

        if not self.panel and not self.as_annotator:
            return []
        people = None if annotators is None else _people(annotators)
        panels = [read_panel(path, people) for path in self.panel or ()]
        persons = self.as_annotator or ()
        return panels + [Panel((person,), name=f"annotator {person!r}") for person in persons]


def _people(path: Path) -> Any:
    """Annotators with their attributes: annotations, or a table of annotators."""
    from edokit._io.tables import TABLE_SUFFIXES, read_table
    from edokit.datasets import read_annotations
    from edokit.members.texts import read_attributes

    tabular = path.suffix.lower() in TABLE_SUFFIXES
    columns = read_table(path).column_names if tabular else ["label"]
    if "annotator" in columns and not {"item", "label"} & {*columns}:
        return read_attributes(path, [name for name in columns if name != "annotator"])
    return read_annotations(path)


class Predictor:
    """An ensemble with what it pools.

    Parameters
    ----------
    folder : Path
        A fitted ensemble, or a bundle.
    inputs : PoolInputs
        Predictions, or members and texts.
    texts : TextSource, optional
        The texts of these inputs.
    viewpoint : Viewpoint, optional
        Whose answers are asked for.
    texts_shown : bool, default=False
        Whether people are shown the texts, even if no member predicts them.
    **loading
        Arguments of `LoadedMembers`: ``device``, ``trust``.

    Raises
    ------
    InputError
        If there is too little or too much to pool, or a file can't be read.
    """

    def __init__(
        self,
        folder: Path,
        inputs: PoolInputs,
        texts: TextSource | None = None,
        viewpoint: Viewpoint | None = None,
        *,
        texts_shown: bool = False,
        **loading: Any,
    ) -> None:
        from edokit.bundle import Bundle, is_bundle
        from edokit.ensemble import EDOEnsemble

        bundled = is_bundle(folder)
        viewpoint = viewpoint or Viewpoint()
        for_panel = bool(viewpoint.panel or viewpoint.as_annotator)
        inputs.check(folder, bundled=bundled, for_panel=for_panel, texts_shown=texts_shown)
        self.folder, self.inputs, self.viewpoint = folder, inputs, viewpoint
        self._texts = texts if inputs.predictions is None else None
        self._loading = loading
        self._bundle: Bundle | None = None
        if bundled:
            self._bundle = Bundle.load(folder, max_length=inputs.max_length, **loading)
        self.ensemble: EDOEnsemble = (
            EDOEnsemble.load(folder) if self._bundle is None else self._bundle.ensemble
        )
        if viewpoint.answer_for is not None:
            self.ensemble.answer_step(viewpoint.answer_for)  # refused before anything is read

    def files(self) -> list[Path | None]:
        """The files that are read."""
        inputs = self.inputs
        files = (inputs.predictions, inputs.texts, inputs.judges, inputs.annotators)
        return [self.folder / "ensemble.json", *files, *(self.viewpoint.panel or ())]

    def write(
        self,
        out: Path,
        panels: Sequence[Panel] = (),
        texts: TextSource | None = None,
        **review: Any,
    ) -> dict[str, Any]:
        """Write pooled probabilities, of a panel if one is given, as `predict_to_file` does.

        Parameters
        ----------
        out : Path
            The table.
        panels : sequence of Panel, default=()
            At most one.
        texts : TextSource, optional
            Texts of the items to review.
        **review
            Other arguments of `predict_to_file`.
        """
        from edokit.ensemble import predict_to_file

        answers: Any = self._answers(panels)
        return predict_to_file(
            self.ensemble,
            answers,
            out,
            panel=panels[0] if panels else None,
            answer_for=self.viewpoint.answer_for,
            level=self.viewpoint.level,
            texts=None if texts is None else texts.by_item,
            **review,
        )

    def compare(
        self, panels: Sequence[Panel], out: Path, *, quote_formulas: bool = False
    ) -> PanelComparison:
        """Compare two panels, and write the table of all items."""
        from edokit._io.tables import write_tables
        from edokit.ensemble import compare_panels

        answers: Any = self._answers(panels)
        view: dict[str, Any] = {
            "answer_for": self.viewpoint.answer_for,
            "level": self.viewpoint.level,
        }
        comparison = compare_panels(self.ensemble, answers, *panels, **view)
        write_tables([comparison.to_table()], out, quote_formulas=quote_formulas)
        return comparison

    def _answers(self, panels: Sequence[Panel]) -> Path | Iterable[Predictions | Pooled] | None:
        """Predictions of pairs for two panels or for annotators, else pooled answers."""
        if self._texts is None:
            return self.inputs.predictions
        bundle, rows = self._members()
        annotators = None if panels else self.inputs.annotators
        people = annotators or self.inputs.judges
        if people is not None:
            texts, by_item = self._texts.read_for(people)
            parts = iter([texts])
        else:
            parts, by_item = self._texts.parts(rows), None
        named = self.inputs.annotators or self.inputs.judges
        attributes = self._texts.attributes(bundle.members.folder, named)
        asked: Any = by_item if annotators is not None else None
        if len(panels) == 2:
            asked = tuple(dict.fromkeys(name for panel in panels for name in panel.annotators))
        if asked is not None:
            return (bundle.pairs(part, asked, attributes) for part in parts)
        return bundle.describe_parts(
            parts,
            annotators=by_item,
            attributes=attributes,
            panel=panels[0] if panels else None,
            answer_for=self.viewpoint.answer_for,
            level=self.viewpoint.level,
        )

    def _members(self) -> tuple[Bundle, int]:
        """The members, and how many texts they take at a time."""
        from edokit.bundle import ROWS, Bundle
        from edokit.members import LoadedMembers

        if self._bundle is not None:
            return self._bundle, ROWS
        assert self._texts is not None
        assert self.inputs.members is not None
        # Members that predict once only need not all be in memory.
        keep = self._texts.path.suffix.lower() == ".parquet"
        needed = self.ensemble.needed_members()
        loaded = LoadedMembers(self.inputs.members, needed, keep=keep, **self._loading)
        bundle = Bundle(self.ensemble, loaded, max_length=self.inputs.max_length)
        return bundle, ROWS if keep else sys.maxsize
