"""From an ensemble and files to pooled answers: what `edo predict` pools, and for whom.

Libraries are imported when something is read: the command line shows these options at once.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from edokit._errors import InputError, check_number, one_of, option

if TYPE_CHECKING:
    from edokit.analysis.fit_items import FitItems
    from edokit.annotations.core import Annotations
    from edokit.bundle import Bundle
    from edokit.ensemble.escalation import Against, Escalation
    from edokit.ensemble.estimator import EDOEnsemble
    from edokit.ensemble.panel_table import PanelTable
    from edokit.ensemble.people import PeopleEffects
    from edokit.ensemble.pooled import Pooled
    from edokit.ensemble.reviews import Review
    from edokit.members.familiarity import UnfamiliarPolicy
    from edokit.members.texts import Texts
    from edokit.panels import Panel, PanelComparison
    from edokit.predictions.core import Predictions

_TEXT_ROLES = ("item", "text", "context", "annotator")
"""Columns of a table of texts, or of who labels them."""


@dataclass(frozen=True)
class TextSource:
    """A file of texts, and how it is read.

    Parameters
    ----------
    path : Path
        What `read_texts` reads.
    columns : mapping of str to str, optional
        Other column names, as in `read_texts`; those of annotators, too.
    split : sequence of str, default=()
        Only these splits.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    split: Sequence[str] = ()

    def with_columns_of(self, fit: Path) -> TextSource:
        """The same file, in which columns may be called as in the table of a fit."""
        from edokit.analysis.fit_items import fit_columns

        columns = fit_columns(fit, self.path, {})
        if not self.split:  # other roles belong to tables of annotations
            columns = {role: name for role, name in columns.items() if role in _TEXT_ROLES}
        return replace(self, columns={**columns, **self.columns})

    def read(self) -> Texts:
        """All texts."""
        from edokit.members.texts import read_texts

        return read_texts(self.path, columns=self.columns, split=",".join(self.split) or None)

    def read_annotators(
        self, people: Path | None, items: Sequence[str]
    ) -> Mapping[str, Sequence[str]] | None:
        """The annotators of each of these items, if there is a file of them."""
        from edokit.members.texts import read_annotators

        if people is None:
            return None
        return read_annotators(people, columns=self.columns or None, items=items)

    def by_item(self) -> dict[str, str]:
        """The text of each item, its context included."""
        from edokit.members.contexts import join_context

        texts = self.read()
        return dict(zip(texts.items, map(join_context, texts.texts), strict=True))


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """What is pooled, whose answers are asked for, and what is written beside them.

    Parameters
    ----------
    predictions : Path, optional
        The members' predictions: .npz, Parquet or shards. Without them, give --texts.
    members : list of Path, optional
        With --texts, a folder of members that `edo train` made (repeatable); not needed for a
        bundle, which has its members.
    texts : Path, optional
        Texts to predict: item and text columns, or a text per line.
    max_length : int, default=100000
        Characters that a text may have, with its context.
    judges : Path, optional
        The annotators of each item (item and annotator columns, or a source of annotations):
        members that know annotators predict for these.
    annotators : Path, optional
        Who the annotators are: with --panel or --as, annotations (or a table with annotator) that
        have their attributes, where the ensemble does not know them; else those to predict, a row
        per item and annotator, and one without annotator, the anonymous answer.
    panel : list of str, optional
        What this panel would answer: all people with a level of an attribute (race=Black,
        "age=18-24,25-29"), or a file: an annotator per line, a table with annotator (and weight),
        or one with attribute, value, share (and size). Repeatable: several panels and persons are
        written below each other, with the anonymous answer.
    as_annotator : list of str, optional
        What this person would answer.
    by : str, optional
        What the people with each level of this attribute would answer, one panel a level.
    answer_for : str, optional
        Answers for a metric instead of the pool: ce, md, w1 (ordinal scales) or f1, by a step that
        was fitted with the ensemble.
    review : int, optional
        Also write this number of items that most need annotators next to --out, for Label Studio.
    again : bool, default=False
        With --review: the items of the fit compete with the new ones, where another label is worth
        more than a first one.
    annotations : Path, optional
        A source with the texts of the items to review.
    sort : str, optional
        Write the rows in order of this column, e.g. expected or at_least_4: numbers from high to
        low, names in alphabetical order.
    unfamiliar : str, optional
        What texts unlike those of the fit get: answer, constant (the mean distribution of the fit)
        or people (the column decision). By default those that can't be read get the constant
        answer, and others are answered.
    escalate : str, optional
        Hand items to people, so that at most this share of the answers, e.g. 5%, would be overruled
        (with 95 % confidence): the column decision has the label or people, and the items for
        people are also written beside --out, for Label Studio.
    against : str, default="majority"
        With --escalate: overruled by a majority of annotators, or by an annotator drawn at random.
    raw : bool, default=False
        In a CSV, put no ' before text that a spreadsheet would run as a formula.
    """

    predictions: Path | None = None
    members: list[Path] | None = None
    texts: Path | None = None
    max_length: int = 100_000
    judges: Path | None = None
    annotators: Path | None = None
    panel: list[str] | None = None
    as_annotator: list[str] | None = None
    by: str | None = None
    answer_for: str | None = None
    review: int | None = None
    again: bool = False
    annotations: Path | None = None
    sort: str | None = None
    unfamiliar: str | None = None
    escalate: str | None = None
    against: str = "majority"
    raw: bool = False

    @property
    def n_panels(self) -> int:
        """The number of panels and persons that are asked for."""
        return len(self.panel or ()) + len(self.as_annotator or ())

    @property
    def files(self) -> list[Path | None]:
        """The files that are read."""
        files = (self.predictions, self.texts, self.judges, self.annotators, self.annotations)
        panels = [Path(panel) for panel in self.panel or () if Path(panel).exists()]
        return [*files, *panels]

    def check(self, ensemble: Path, *, bundled: bool) -> None:
        """Refuse options that do not belong together; ``bundled``: the ensemble has its members."""
        self._check_sources(ensemble, bundled)
        if self.judges and self.predictions:
            raise InputError(
                f"{option('judges')} is for members that predict now, but"
                f" {option('predictions')} is given",
                "leave it out, or give it to `edo score`, which makes predictions",
                code="inapplicable-option",
            )
        if self.annotators is not None and not self.n_panels:
            for name, path in (("predictions", self.predictions), ("judges", self.judges)):
                if path is not None:
                    raise InputError(
                        f"{option('annotators')} and {option(name)} are given, but no"
                        f" {option('panel')}",
                        "leave one of them out, or name the panel",
                        code="conflicting-options",
                    )
        self._check_review()
        if self.again:
            self._check_again()
        if self.unfamiliar is not None:
            self._check_unfamiliar(self.unfamiliar)
        if self.escalate is not None:
            self._check_escalation(self.escalate)
        elif self.against != "majority":
            raise InputError(
                f"{option('against', self.against)} is about {option('escalate')}, which is not"
                " given",
                f"add {option('escalate', '5%')}, or leave it out",
                code="missing-option",
            )

    def _check_review(self) -> None:
        """Refuse texts to review without a review, and a review of several answers."""
        if self.review is None and self.escalate is None and self.annotations:
            raise InputError(
                f"{option('annotations')} are texts to review, without {option('review', 'N')}",
                "add the number of items to review, or leave them out",
                code="missing-option",
            )
        if self.review and (self.n_panels > 1 or self.by is not None):
            raise InputError(
                f"several panels and persons are given with {option('review')}",
                "give one and ask for a review, or leave the review out",
                code="conflicting-options",
            )
        if self.review is not None:
            check_number("review", self.review, 1, whole=True)

    def _check_again(self) -> None:
        """Refuse ``again`` where answers are not those of all annotators."""
        if self.review is None:
            raise InputError(
                f"{option('again')} is about items to review, without {option('review', 'N')}",
                "add the number of items to review, or leave it out",
                code="missing-option",
            )
        if self.n_panels or self.judges is not None or self.annotators is not None:
            raise InputError(
                f"{option('again')} ranks items by what all annotators would answer, but single"
                " annotators are asked for",
                "leave one of them out",
                code="conflicting-options",
            )
        if self.escalate is not None or self.unfamiliar == "people":
            raise InputError(
                f"{option('again')} and items that are handed to people can't be in one queue",
                "leave one of them out",
                code="conflicting-options",
            )

    def _check_unfamiliar(self, policy: str) -> None:
        """Refuse an unknown policy, and one where answers are not those to texts."""
        from edokit.members.familiarity import POLICIES

        one_of("unfamiliar", policy, POLICIES)
        if self.predictions is not None:
            raise InputError(
                f"{option('unfamiliar', policy)} is about texts, but {option('predictions')} is"
                " given",
                f"leave it out, or give {option('texts')} to a bundle",
                code="inapplicable-option",
            )
        if policy == "people" and (self.n_panels > 1 or self.by is not None):
            raise InputError(
                f"{option('unfamiliar', policy)} decides about one answer an item, but several"
                " panels are given",
                "give one panel, or none",
                code="conflicting-options",
            )

    def _check_escalation(self, limit: str) -> None:
        """Refuse what no promise can be made about."""
        from edokit.ensemble.escalation import parse_share

        parse_share(limit)
        views = {
            "panel": self.panel,
            "as_annotator": self.as_annotator,
            "by": self.by,
            "judges": self.judges,
            "annotators": self.annotators,
        }
        for name, view in views.items():
            if view is not None:
                raise InputError(
                    f"{option('escalate', limit)} promises something about all annotators, but"
                    f" {option(name)} asks for the view of some",
                    "leave one of them out",
                    code="conflicting-options",
                )

    def _check_sources(self, ensemble: Path, bundled: bool) -> None:
        """Refuse anything but predictions, or texts with the members that predict them."""
        names = ("predictions", "members", "texts")
        sources = [name for name in names if getattr(self, name) is not None]
        allowed_sources = [["predictions"]]
        if bundled:
            allowed_sources.append(["texts"])
        else:
            allowed_sources.append(["members", "texts"])
        if self.review is not None or self.escalate is not None:
            allowed_sources.append(["predictions", "texts"])  # people are shown the texts
        if sources in allowed_sources:
            return
        if sources == ["texts"]:
            raise _missing_bundle(ensemble)
        message = "there is nothing to pool"
        if sources:
            message = f"{' and '.join(map(option, sources))} can't be combined"
            if len(sources) == 1:
                message = f"{option(sources[0])} alone can't be pooled"
        if bundled:
            hint = (
                f"a bundle holds its members: pass {option('texts')} alone, or"
                f" {option('predictions')} alone"
            )
        else:
            hint = (
                f"pass either {option('predictions')}, or {option('members')} with"
                f" {option('texts')}; {option('texts')} alone are for a bundle"
            )
        raise InputError(message, hint, code="conflicting-options")

    def panels(
        self, people: PeopleEffects | None, columns: Mapping[str, str] | None = None
    ) -> list[Panel]:
        """The panels and persons; ``people`` are those whom the ensemble knows.

        ``columns`` are the names of columns of the tables that are read.
        """
        from edokit.ensemble.views import level_panels
        from edokit.panels import Panel

        panels = [self._panel(text, people, columns or {}) for text in self.panel or ()]
        for person in self.as_annotator or ():
            panels.append(Panel.for_person(person))
        if self.by is not None:
            panels += level_panels(self.by, people)
        return panels

    def _panel(self, text: str, people: PeopleEffects | None, columns: Mapping[str, str]) -> Panel:
        """The panel of a file, or of the people who have levels of attributes."""
        from edokit.ensemble.views import panel_of_levels, parse_levels
        from edokit.panels import read_panel

        if "=" in text and not Path(text).exists():
            return panel_of_levels(parse_levels(text), people)
        if people is not None and text in map(str, people.annotators) and not Path(text).exists():
            raise InputError(
                f"{option('panel', text)} names a person, not a panel or a file",
                f"for one person, write {option('as_annotator', text)}",
                code="wrong-declaration",
            )
        if self.annotators is not None:
            return read_panel(Path(text), _read_people(self.annotators, columns))
        if people is not None:
            return read_panel(Path(text), people.attributes_by_person())
        return read_panel(Path(text), None)


def _read_people(path: Path, columns: Mapping[str, str]) -> Annotations | dict[str, dict[str, str]]:
    """Annotators with their attributes: annotations, or any table of annotators."""
    from edokit._io.tables import READABLE_SUFFIXES, read_table
    from edokit.datasets.people import read_people
    from edokit.datasets.read import read_annotations

    if path.suffix.lower() not in READABLE_SUFFIXES:
        return read_annotations(path)
    present = read_table(path).column_names
    if all(columns.get(role, role) in present for role in ("item", "annotator", "label")):
        return read_annotations(path, columns=columns)
    people = read_people(path, columns)
    levels: dict[str, dict[str, str]] = {}
    for person, row in people.iterrows():
        levels[str(person)] = {str(name): str(value) for name, value in row.items()}
    return levels


def _missing_bundle(folder: Path) -> InputError:
    """The error for texts alone, with the command that makes a bundle where its parts are there."""
    from edokit.analysis.fit_items import ensemble_folder
    from edokit.members.layout import MANIFEST

    members = folder / "members"
    hint = (
        f"name their folder with {option('members')}, or their answers with"
        f" {option('predictions')}; `edo run` trains members that read texts"
    )
    missing = "no bundle of an ensemble and its members"
    if (members / MANIFEST).is_file():
        missing = "members and an ensemble, but no bundle of them"
        ensemble = str(ensemble_folder(folder))
        bundle = str(folder / "bundle")
        words = ["edo", "bundle", ensemble, "--members", str(members), "--out", bundle]
        hint = f"make one: {shlex.join(words)}"
    return InputError(
        f"'{folder}' has {missing}, which {option('texts')} alone needs",
        hint,
        code="conflicting-options",
    )


def _check_panel(panel: Panel, known_annotators: Sequence[str]) -> None:
    """Refuse a panel, or a person, if the members know none of its annotators."""
    from edokit.panels import unknown_hint

    known_names = set(known_annotators)
    if not known_names.isdisjoint(panel.annotators):
        return
    hint = unknown_hint(known_annotators)
    # Somebody may have given several names, separated by commas, as one.
    names: list[str] = []
    for annotator in panel.annotators:
        names += [name.strip() for name in annotator.split(",")]
    if len(names) > len(panel.annotators) and not known_names.isdisjoint(names):
        hint = (
            "for several people as one panel, put their names into a file, one per line:"
            f" {option('panel', 'FILE')}"
        )
    raise InputError(f"the ensemble does not know {panel}", hint, code="unknown-annotator")


class Predictor:
    """An ensemble with what it pools.

    Parameters
    ----------
    folder : Path
        A fitted ensemble, or a bundle.
    options : PredictOptions
        What is pooled, and for whom.
    make_source : callable
        Makes the `TextSource` of a file of texts.
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
        options: PredictOptions,
        make_source: Callable[[Path], TextSource],
        **loading: Any,
    ) -> None:
        from edokit.bundle import Bundle, is_bundle
        from edokit.ensemble.estimator import EDOEnsemble

        if not folder.is_dir():
            raise InputError(
                f"there is no folder '{folder}'",
                "name a folder that `edo run`, `edo fit` or `edo bundle` made",
                code="missing-file",
            )
        bundled = is_bundle(folder)
        options.check(folder, bundled=bundled)
        self.options = options
        self._folder = folder
        self._make_source = make_source
        self._loading = loading
        self._bundle: Bundle | None = None
        self.ensemble: EDOEnsemble
        if bundled:
            self._bundle = Bundle.load(folder, max_length=options.max_length, **loading)
            self.ensemble = self._bundle.ensemble
        else:
            self.ensemble = EDOEnsemble.load(folder)
        people = self.ensemble.people_
        columns: Mapping[str, str] = {}
        if options.annotators is not None:
            columns = make_source(options.annotators).columns
        self.panels = options.panels(people, columns)
        if people is None and len(self.panels) > 2:
            raise InputError(
                f"{len(self.panels)} panels and persons are given, but the ensemble was fitted"
                " without people",
                "compare two at a time, or fit it again",
                code="missing-people",
            )
        if options.answer_for is not None:
            self.ensemble.answer_step(options.answer_for)  # refused before anything is read
        self.escalation: Escalation | None = None
        if options.escalate is not None:
            against = cast("Against", options.against)  # checked there
            self.escalation = self.ensemble.escalation(options.escalate, against)

    @property
    def _unfamiliar(self) -> UnfamiliarPolicy | None:
        return cast("UnfamiliarPolicy | None", self.options.unfamiliar)  # checked with the options

    def _text_source(self, path: Path) -> TextSource:
        """A file of texts, whose columns may be called as in the table of the fit."""
        return self._make_source(path).with_columns_of(self._folder)

    @property
    def lists_panels(self) -> bool:
        """Whether the answers of several panels are written below each other."""
        has_several = len(self.panels) > 1 or self.options.by is not None
        return has_several and self.ensemble.people_ is not None

    def write(self, out: Path) -> dict[str, Any]:
        """Write pooled probabilities, of a panel if one is given, as `predict_to_file` does."""
        from edokit.analysis.labels.again import review_again
        from edokit.ensemble.reviews import predict_to_file

        answers: Any = self._answers()
        texts = None
        hands_over = self.escalation is not None or self.options.unfamiliar == "people"
        if self.options.review is not None or hands_over:
            texts = self._texts_for_people()
        queue: list[Review] | None = None
        labelled_items: Sequence[str] = ()
        if self.options.again and self.options.review is not None:
            fit_items = self._fit_items()
            queue = review_again(fit_items, self.options.review)
            labelled_items = [str(item) for item in fit_items.labels.items]
            fit_texts = fit_items.labels.whole_texts
            if texts is not None and fit_texts is not None:
                texts = dict(zip(labelled_items, fit_texts, strict=True)) | texts
        return predict_to_file(
            self.ensemble,
            answers,
            out,
            panel=self._panel,
            texts=texts,
            review=self.options.review,
            sort=self.options.sort,
            raw=self.options.raw,
            answer_for=self.options.answer_for,
            queue=queue,
            labelled_items=labelled_items,
        )

    def _fit_items(self) -> FitItems:
        """The labelled items that the ensemble was fitted on."""
        from edokit.analysis.fit_items import read_fit_items

        return read_fit_items(self._folder, self.ensemble)

    def write_panels(self, out: Path) -> PanelTable:
        """Write the anonymous answer and that of every panel, a row per item and panel."""
        from edokit._io.tables import write_tables
        from edokit.ensemble.panel_table import PanelTable
        from edokit.ensemble.reviews import sorted_tables

        table = PanelTable(self.ensemble, self.panels, self.options.answer_for)
        tables = sorted_tables(table.tables(self._anonymous_answers()), self.options.sort)
        write_tables(tables, out, raw=self.options.raw)
        return table

    def _anonymous_answers(self) -> Iterator[Pooled]:
        """The pool's answers for nobody in particular, in parts."""
        from edokit.bundle import PART_SIZE
        from edokit.predictions.shards import read_shards

        if self.options.texts is not None:
            texts = self._text_source(self.options.texts).read()
            parts: Iterable[Texts] = [texts]
            if self._bundle is not None:
                parts = texts.parts(PART_SIZE)
            bundle = self._bundle or self._unbundled()
            yield from bundle.describe_parts(parts, unfamiliar=self._unfamiliar)
            return
        assert self.options.predictions is not None
        for shard in read_shards(self.options.predictions):
            yield self.ensemble.describe(shard)

    def compare(self, out: Path) -> PanelComparison:
        """Compare two panels, and write the table of all items."""
        from edokit._io.tables import write_tables
        from edokit.ensemble.reviews import compare_panels, sorted_tables

        answers: Any = self._answers()
        comparison = compare_panels(
            self.ensemble, answers, *self.panels, answer_for=self.options.answer_for
        )
        tables = sorted_tables([comparison.to_table()], self.options.sort)
        write_tables(tables, out, raw=self.options.raw)
        return comparison

    @property
    def _panel(self) -> Panel | None:
        """The panel, if there is one."""
        if self.panels:
            return self.panels[0]
        return None

    def _texts_for_people(self) -> dict[str, str] | None:
        """The texts of the items that go to people, by item."""
        path = self.options.annotations or self.options.texts
        if path is None:
            return None
        return self._text_source(path).by_item()

    def _answers(self) -> Path | Iterable[Predictions | Pooled] | None:
        """Predictions of pairs for two panels or for annotators, else pooled answers."""
        options = self.options
        if options.predictions is None and options.texts is not None:
            return self._answers_to_texts(options.texts)
        if self.ensemble.people_ is not None and self._panel is not None:
            return self._panel_answers(self._panel)
        if self.escalation is not None:
            return self._escalated_answers(self.escalation)
        return options.predictions

    def _answers_to_texts(self, path: Path) -> Iterable[Predictions | Pooled]:
        """Answers to the texts of a file, by the members."""
        from edokit.bundle import PART_SIZE

        options = self.options
        panels = self.panels
        source = self._text_source(path)
        people = options.judges
        answers_each_annotator = options.annotators is not None and not panels
        if answers_each_annotator:
            people = options.annotators
        texts = source.read()
        by_item = source.read_annotators(people, texts.items)
        # Members that are not in a bundle predict one after the other, each all texts.
        parts: Iterable[Texts] = [texts]
        if people is None and self._bundle is not None:
            parts = texts.parts(PART_SIZE)
        bundle = self._bundle or self._unbundled()
        for panel in panels:
            _check_panel(panel, bundle.known_annotators)
        if len(panels) == 2:
            annotators = tuple(dict.fromkeys((*panels[0].annotators, *panels[1].annotators)))
            return (bundle.pairs(part, annotators) for part in parts)
        if answers_each_annotator and by_item is not None:
            if self.ensemble.people_ is not None:
                return (bundle.for_annotators(part, by_item, self._unfamiliar) for part in parts)
            return (bundle.pairs(part, by_item) for part in parts)
        return bundle.describe_parts(
            parts,
            annotators=by_item,
            panel=self._panel,
            answer_for=options.answer_for,
            unfamiliar=self._unfamiliar,
            escalate=self.escalation,
        )

    def _escalated_answers(self, escalation: Escalation) -> Iterator[Pooled]:
        """Answers to predictions of the members, shard by shard, with what is for people."""
        from edokit.predictions.shards import read_shards

        assert self.options.predictions is not None
        for shard in read_shards(self.options.predictions):
            if shard.rows.people:
                raise InputError(
                    f"{option('escalate')} decides about items, but {self.options.predictions} is"
                    " of pairs of an item and an annotator",
                    "give predictions of items",
                    code="pairs-for-items",
                )
            answer_for = self.options.answer_for
            yield escalation.decide(self.ensemble.describe(shard, answer_for=answer_for))

    def _panel_answers(self, panel: Panel) -> Iterator[Pooled]:
        """What a panel would answer, from predictions of the members, shard by shard."""
        from edokit.predictions.shards import read_shards

        assert self.options.predictions is not None
        answer_for = self.options.answer_for
        for shard in read_shards(self.options.predictions):
            if shard.rows.people:  # answers for annotators are in the file
                pooled = self.ensemble.describe(shard, answer_for=answer_for, only_knowing=True)
                yield pooled.panel(panel)
            else:
                yield self.ensemble.describe(shard, answer_for=answer_for, panel=panel)

    def _unbundled(self) -> Bundle:
        """The ensemble with its members from their folders."""
        from edokit.bundle import Bundle
        from edokit.members.loaded import LoadedMembers

        loaded = LoadedMembers(
            self.options.members or [],
            self.ensemble.needed_members(),
            keep=False,
            **self._loading,
        )
        return Bundle(self.ensemble, loaded, max_length=self.options.max_length)
