"""Bundles: an ensemble and its members in one folder that answers for raw text."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict

from edokit._errors import (
    InputError,
    are,
    check_number,
    counted,
    examples,
    in_bytes,
    local_path,
    one_of,
    option,
    warn,
)
from edokit._io.atomic import files_below, whole_content
from edokit._io.digests import digest_file, digest_json
from edokit._io.documents import Count, Document, read_model, write_json
from edokit._io.markup import markdown_text
from edokit._package import __version__
from edokit._types import Floats, Ints
from edokit.ensemble.escalation import Escalation
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.persistence import write_fitted
from edokit.ensemble.pooled import Pooled, check_no_people_class
from edokit.ensemble.views import PanelLike, make_panel
from edokit.members.card import read_card
from edokit.members.contexts import Text
from edokit.members.familiarity import POLICIES, TextRanks, UnfamiliarPolicy
from edokit.members.layout import CARD as MEMBER_CARD
from edokit.members.layout import FORMAT, HAS_CONTEXTS, JOB_PREDICTIONS, MANIFEST
from edokit.members.loaded import LoadedMembers
from edokit.members.manifest import FolderName, check_format, new_manifest
from edokit.members.pretrained import (
    check_model,
    copy_model,
    link_root,
    local_folder,
    public_name,
)
from edokit.members.recipe import Member
from edokit.members.texts import Texts
from edokit.objective.pools import sharpen
from edokit.panels import Panel
from edokit.predictions.core import ANONYMOUS
from edokit.runs.folder import BUNDLE, REPLACE, output_folder
from edokit.scales import Scale

if TYPE_CHECKING:
    import numpy.typing as npt

    from edokit.predictions.core import Predictions
    from edokit.rows import Rows


ENSEMBLE = "ensemble"
MEMBERS = "members"
MODELS = "models"
CARD = "README.md"
# Characters that a text may have, unless another limit is given.
MAX_LENGTH = 100_000
# The number of texts that are predicted at once.
PART_SIZE = 2048
NO_FAMILIARITY = "its members were trained by an earlier version, or elsewhere"


class BundledFile(Document):
    """A file of a bundle."""

    model_config = ConfigDict(extra="forbid")
    size: Count
    sha256: str


class BundleContents(Document):
    """The content of ``bundle.json``."""

    kind: Literal["edo-bundle"] = "edo-bundle"
    format: Annotated[int, AfterValidator(check_format)] = FORMAT
    edokit: str
    models: dict[str, FolderName]
    files: dict[str, BundledFile]

    @property
    def version(self) -> str:
        digests = [[name, file.sha256] for name, file in sorted(self.files.items())]
        return digest_json(digests)[:12]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())


class Bundle:
    """A fitted ensemble with its members, which predicts raw texts.

    Load one with `edokit.load`, make one with `Bundle.create` or ``edo bundle``. Members are in
    memory as long as the bundle is.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    members : LoadedMembers
        The members that carry weight in it.
    max_length : int, default=100000
        Characters that a text may have, its context included.

    Attributes
    ----------
    folder : Path or None
        Where it was loaded from.

    Examples
    --------
    >>> bundle = edokit.load("bundle")  # doctest: +SKIP
    >>> bundle.predict_proba(["a first text", "another"])  # doctest: +SKIP
    array([[0.91, 0.09],
           [0.35, 0.65]])
    """

    def __init__(
        self, ensemble: EDOEnsemble, members: LoadedMembers, *, max_length: int = MAX_LENGTH
    ) -> None:
        check_number("max_length", max_length, 1, whole=True)
        self.ensemble = ensemble
        self.members = members
        self.max_length = max_length
        self.folder: Path | None = None
        self._contents = BundleContents(edokit=__version__, models={}, files={})
        # Weights were learned on pairs of an item and an annotator if the members of annotators are
        # pooled as one, or if the anonymous answers have weights of their own.
        has_anonymous = any(name.endswith(ANONYMOUS) for name in ensemble.members_)
        self._is_learned_on_pairs = bool(members.pooled) or has_anonymous
        # If they were learned on items, only the members that know an annotator answer for one.
        self._is_learned_on_items = not ensemble.fitted_.is_fitted_on_pairs

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes [C], the columns of ``predict_proba``."""
        return self.ensemble.fitted_.classes

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.ensemble.fitted_.scale

    @property
    def version(self) -> str:
        """Digest of ensemble and members: bundles of one version predict the same."""
        return self._contents.version

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators whom the ensemble, or a member of it, knows apart."""
        people = self.ensemble.people_
        if people is not None:
            return people.annotators
        return self.members.known_annotators

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self._contents.size

    def predict_proba(self, texts: Sequence[Text], **view: Any) -> Floats:
        """Pooled probabilities (N, C), columns as in ``classes``.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
            N texts, or pairs (text, context) where the members were trained on them.
        **view
            Whose answers, for which metric, and what unfamiliar texts get: ``annotators``,
            ``panel``, ``answer_for``, ``unfamiliar`` and ``escalate``, as for ``describe``.

        Returns
        -------
        ndarray of shape (N, C)
            For multi-label data, the probability of each label (N, L), which need not sum to one.

        Raises
        ------
        InputError
            If a text is empty, too long or no string, or a context is missing: the message names
            its position.
        """
        if view.get("unfamiliar") is None:
            self._warn_of_unreadable(Texts.from_texts(texts))
        return self.describe(texts, **view).answer

    def predict(self, texts: Sequence[Text], **view: Any) -> npt.NDArray[Any]:
        """The likeliest class of each text (N,); parameters as ``predict_proba``.

        For multi-label data, an indicator matrix (N, L): 1 for labels above one half.
        """
        hard = self.scale.hard(self.predict_proba(texts, **view))
        return self.scale.labels(hard, self.ensemble.classes_)

    def describe(
        self,
        texts: Sequence[Text],
        *,
        annotators: Sequence[str | Iterable[str]] | None = None,
        **view: Any,
    ) -> Pooled:
        """Pooled probabilities with their entropy, the spread of the members, and labels.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
            As for ``predict_proba``.
        annotators : sequence of str or of iterables of str, default=None
            For each text the annotator, or annotators, whose answer is to be predicted: the mean
            over them. Annotators who are not known get the anonymous answer.
        **view
            As for ``describe_parts``: ``panel``, ``answer_for``, ``unfamiliar`` and ``escalate``.

        Returns
        -------
        Pooled
            ``probabilities``, ``entropy``, ``spread``, ``labels`` and ``familiarity`` of the N
            texts, in their order; ``to_table`` makes a table of them.
        """
        checked = Texts.from_texts(texts)
        by_item = None
        if annotators is not None:
            by_item = _by_item(annotators, checked.items)
        parts = self.describe_parts(checked.parts(PART_SIZE), annotators=by_item, **view)
        return Pooled.concatenate(list(parts))

    def describe_parts(
        self,
        parts: Iterable[Texts],
        *,
        annotators: Mapping[str, Iterable[str]] | None = None,
        panel: PanelLike | None = None,
        answer_for: str | None = None,
        unfamiliar: UnfamiliarPolicy | None = None,
        escalate: Escalation | float | str | None = None,
    ) -> Iterator[Pooled]:
        """As ``describe``, for texts that come in parts, one part at a time.

        Parameters
        ----------
        parts : iterable of Texts
            The texts.
        annotators : mapping of str to iterable of str, default=None
            The annotators of each item, as for ``describe``.
        panel : Panel, mapping or sequence of str, default=None
            Or a panel whose answer is to be predicted for every text: names of annotators, or
            levels of attributes, as in ``{"race": "Black"}``, for all who have them.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Answers for this metric, as in `EDOEnsemble.predict_proba`.
        unfamiliar : {"answer", "constant", "people"}, default=None
            What texts get that are unlike those of the fit: the ensemble's answer, the constant
            answer (the mean distribution of the fit), or people's decision. None: a text that can't
            be read, as in another script, gets the constant answer, others are answered.
        escalate : Escalation, float or str, default=None
            Hand items to people, so that at most this share of the answers, such as 0.05 or
            ``"5%"``, would be overruled by a majority of annotators, with 95 % confidence; or what
            `EDOEnsemble.escalation` returned. Unfamiliar texts are handed over, too, unless
            ``unfamiliar`` says otherwise.
        """
        self._check_policy(unfamiliar)
        if annotators is not None and panel is not None:
            raise InputError(
                f"both {option('annotators')} and {option('panel')} are given",
                "leave one of them out",
                code="conflicting-options",
            )
        if escalate is not None:
            yield from self._escalate(
                parts, escalate, annotators, panel, answer_for=answer_for, unfamiliar=unfamiliar
            )
            return
        if answer_for is not None:
            self.ensemble.answer_step(answer_for)  # refused before anything is predicted
        people = self.ensemble.people_
        if panel is not None:
            panel = make_panel(panel, people)
        if people is not None:
            yield from self._describe_for_people(parts, annotators, panel, answer_for, unfamiliar)
            return
        by_annotator = self._is_learned_on_pairs or panel is not None
        if annotators is not None and not self.members.has_annotator_members:
            by_annotator = by_annotator or self._is_learned_on_items
        for part in parts:
            if panel is not None:
                annotators = dict.fromkeys(part.items, panel.annotators)
            part.check_lengths(self.max_length)
            ranks = self._rank(part)
            predictions = self.members.predict(
                part, by_annotator=by_annotator, annotators=annotators
            )
            predictions = self._with_constant(predictions, part, ranks, unfamiliar)
            pooled = self.ensemble.describe(predictions, answer_for=answer_for, only_knowing=True)
            if panel is not None:
                pooled = pooled.panel(panel)
            elif by_annotator:
                pooled = pooled.mean_over_annotators()
            yield _with_ranks(pooled, part, ranks, unfamiliar)

    def _escalate(
        self,
        parts: Iterable[Texts],
        escalate: Escalation | float | str,
        annotators: Mapping[str, Iterable[str]] | None,
        panel: PanelLike | None,
        *,
        answer_for: str | None,
        unfamiliar: UnfamiliarPolicy | None,
    ) -> Iterator[Pooled]:
        """The anonymous answers, of which the less confident ones are handed to people."""
        if annotators is not None or panel is not None:
            raise InputError(
                f"{option('escalate')} promises something about the annotators of the fit, not"
                " about single annotators or a panel",
                "leave it out, or leave them out",
                code="conflicting-options",
            )
        escalation = escalate
        if not isinstance(escalation, Escalation):
            escalation = self.ensemble.escalation(escalation)
        if unfamiliar is None and self.members.familiarity is not None:
            unfamiliar = "people"  # what is promised holds for texts like those of the fit
        for pooled in self.describe_parts(parts, answer_for=answer_for, unfamiliar=unfamiliar):
            yield escalation.decide(pooled)

    def _describe_for_people(
        self,
        parts: Iterable[Texts],
        annotators: Mapping[str, Iterable[str]] | None,
        panel: Panel | None,
        answer_for: str | None,
        unfamiliar: UnfamiliarPolicy | None,
    ) -> Iterator[Pooled]:
        """The anonymous answers of all members, shifted by the effects of people."""
        for part in parts:
            part.check_lengths(self.max_length)
            ranks = self._rank(part)
            predictions = self._with_constant(self.members.predict(part), part, ranks, unfamiliar)
            pooled = self.ensemble.describe(
                predictions, answer_for=answer_for, annotators=annotators, panel=panel
            )
            if annotators is not None:
                pooled = pooled.mean_over_annotators()
            yield _with_ranks(pooled, part, ranks, unfamiliar)

    def for_annotators(
        self,
        texts: Texts,
        annotators: Mapping[str, Iterable[str]],
        unfamiliar: UnfamiliarPolicy | None = None,
    ) -> Pooled:
        """What each annotator of each item would answer, and the anonymous answers."""
        self._check_policy(unfamiliar)
        texts.check_lengths(self.max_length)
        ranks = self._rank(texts)
        predictions = self._with_constant(self.members.predict(texts), texts, ranks, unfamiliar)
        pooled = self.ensemble.describe(predictions, annotators=annotators)
        return _with_ranks(pooled, texts, ranks, unfamiliar)

    def _check_policy(self, unfamiliar: UnfamiliarPolicy | None) -> None:
        """Refuse an unknown policy, and any where the familiarity of texts is not known."""
        if unfamiliar is None:
            return
        one_of("unfamiliar", unfamiliar, POLICIES)
        if self.members.familiarity is None:
            raise InputError(
                f"{option('unfamiliar', unfamiliar)} needs to know which texts are unfamiliar, but"
                f" {NO_FAMILIARITY}",
                "leave it out, or train the members again",
                code="missing-familiarity",
            )
        if unfamiliar == "people":
            check_no_people_class(self.classes)

    def _rank(self, texts: Texts) -> TextRanks | None:
        """How familiar texts are, where the members know it."""
        familiarity = self.members.familiarity
        if familiarity is None:
            return None
        return familiarity.rank(texts.texts)

    def _warn_of_unreadable(self, texts: Texts) -> None:
        """Warn of texts that get the constant answer, which a probability alone does not show."""
        ranks = self._rank(texts)
        if ranks is None or ranks.is_readable.all():
            return
        unreadable = int((~ranks.is_readable).sum())
        warn(
            f"{are(unreadable, len(texts.items), ('gets', 'get'), 'text')} the constant answer: the"
            " members know next to none of the character sequences in such a text;"
            f" {option('unfamiliar')} says what unfamiliar texts get"
        )

    def _with_constant(
        self,
        predictions: Predictions,
        texts: Texts,
        ranks: TextRanks | None,
        unfamiliar: UnfamiliarPolicy | None,
    ) -> Predictions:
        """Predictions in which every member gives some texts the constant answer."""
        if ranks is None or unfamiliar == "answer":
            return predictions
        is_replaced = ~ranks.is_readable
        if unfamiliar == "constant":
            is_replaced = ranks.unfamiliar
        if not is_replaced.any():
            return predictions
        fitted = self.ensemble.fitted_
        constant = np.asarray(fitted.constant.shares, dtype=np.float64)
        rows = fitted.scale.rows(constant[None])
        # The pool of constants, after its temperature, is to be the constant.
        flattened = fitted.scale.from_rows(sharpen(rows, 1 / fitted.temperature), len(constant))
        columns = [fitted.classes.index(name) for name in predictions.classes]
        probabilities = np.array(predictions.probabilities, dtype=np.float64)
        positions = _text_positions(texts, predictions.rows)
        probabilities[is_replaced[positions]] = flattened[:, None, columns]
        return replace(predictions, probabilities=probabilities)

    def pairs(
        self, texts: Texts, annotators: Sequence[str] | Mapping[str, Iterable[str]]
    ) -> Predictions:
        """The members' predictions for these annotators, and the anonymous predictions.

        The annotators are those of every text, or of each text by its item.
        """
        if not isinstance(annotators, Mapping):
            annotators = dict.fromkeys(texts.items, tuple(annotators))
        texts.check_lengths(self.max_length)
        return self.members.predict(texts, by_annotator=True, annotators=annotators)

    def __repr__(self) -> str:
        names = ", ".join(self.classes)
        return f"Bundle {self.version}: {counted(len(self.members.names), 'member')}, {names}"

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | None = None,
        trust: Sequence[str] = (),
        max_length: int = MAX_LENGTH,
    ) -> Bundle:
        """Load a bundle; nothing in it is executed.

        Parameters
        ----------
        folder : str or Path
            A folder that ``edo bundle``, `Bundle.create` or ``edo run`` made.
        device : str, default=None
            Where members that use torch compute. None: a GPU where there is one.
        trust : sequence of str, default=()
            Packages beside scikit-learn whose types may be loaded and whose recipes may be
            imported, and addresses of servers that members may ask.
        max_length : int, default=100000
            Characters that a text may have, its context included.

        Returns
        -------
        Bundle

        Raises
        ------
        InputError
            If it is not a bundle, was made by a newer version, or files are missing or changed.
        """
        folder = bundle_folder(local_path(folder))
        return cls._load(folder, folder, max_length, device=device, trust=trust)

    @classmethod
    def _load(
        cls, folder: Path, home: Path, max_length: int = MAX_LENGTH, **options: Any
    ) -> Bundle:
        """Load a bundle whose files may be links to files below the folder ``home``."""
        if not (folder / BUNDLE).exists():
            problem = "is not a folder, or does not exist"
            if folder.is_dir():
                problem = "has none"
            raise InputError(
                f"a bundle is a folder with {BUNDLE}, but '{folder}' {problem}",
                "make one with `edo bundle`",
                code="wrong-folder",
            )
        contents = _read(folder)
        _check_files(folder, home, contents.files)
        ensemble = EDOEnsemble.load(folder / ENSEMBLE)
        models = _model_folders(folder, contents, home)
        member_names = ensemble.needed_members()
        members = LoadedMembers(folder / MEMBERS, member_names, models=models, **options).load()
        _check_classes(members, ensemble, f"make the bundle {folder} again with `edo bundle`")
        bundle = cls(ensemble, members, max_length=max_length)
        bundle.folder = folder
        bundle._contents = contents
        return bundle

    @classmethod
    def create(
        cls,
        ensemble: EDOEnsemble | str | Path,
        members: str | Path | Sequence[str | Path],
        out: str | Path,
        *,
        device: str | None = None,
        trust: Sequence[str] = (),
        overwrite: bool = False,
    ) -> Bundle:
        """Put an ensemble and the members that carry weight in it into one folder.

        Parameters
        ----------
        ensemble : EDOEnsemble, str or Path
            A fitted ensemble, or the folder of one.
        members : str, Path or sequence of these
            A folder of members that ``edo train`` made, or several that hold them.
        out : str or Path
            The folder of the bundle. Another bundle in it is not replaced.
        device : str, default=None
            Where the time per text is measured, and where the bundle that is returned computes.
        trust : sequence of str, default=()
            As in `Bundle.load`.
        overwrite : bool, default=False
            Replace another bundle in `out`, and what EDO did not write.

        Returns
        -------
        Bundle
            The bundle, loaded.

        Raises
        ------
        InputError
            If members are missing or do not fit the ensemble, or `out` holds something else;
            nothing is written then.
        """
        out = local_path(out)
        if isinstance(members, str | Path):
            members = [members]
        sources = [Path(source) for source in members]
        saved: Path | None = None
        fitted = ensemble
        if isinstance(fitted, str | Path):
            saved = Path(fitted)
            fitted = EDOEnsemble.load(saved)
        if not isinstance(fitted, EDOEnsemble):
            raise InputError(
                "a bundle is made of an EDOEnsemble and trained members, not of"
                f" {type(fitted).__name__}",
                "train the pipelines of an EDOClassifier as members: the recipe sklearn with"
                " features=texts; or keep it with its own save",
                code="unsupported-type",
            )
        guard = output_folder(out, "bundle", saved, *sources, overwrite=overwrite)
        with guard, whole_content(out, BUNDLE) as folder:
            write_fitted(fitted.fitted_, folder / ENSEMBLE)
            ensemble_card = (folder / ENSEMBLE / CARD).read_text(encoding="utf-8")
            (folder / ENSEMBLE / CARD).unlink()  # it becomes a part of the bundle's card
            member_names = fitted.needed_members()
            trained = LoadedMembers(sources, member_names, device=device, trust=trust, keep=False)
            _check_classes(trained, fitted, "name the folder of the members that it was fitted on")
            copied = _copy_members(trained, folder)
            files = {
                name: _listed_file(path, copied.digests.get(name))
                for name, path in _files(folder, folder).items()
            }
            contents = BundleContents(edokit=__version__, models=copied.encoders, files=files)
            write_json(contents.model_dump(), folder / BUNDLE)
            if not overwrite:
                _refuse_other_version(out, contents.version)
            models = _model_folders(folder, contents, home=folder)
            bundled = LoadedMembers(
                folder / MEMBERS, member_names, device=device, trust=trust, models=models
            )
            for name, loaded_models in copied.models.items():
                bundled.take_folds(name, loaded_models)
            bundled.load()  # members that use a model in the bundle; the others are taken above
            bundled.load_familiarity()  # before the folder gets its final name
            # Refitting the caller's estimator must not change the bundle.
            bundle = cls(copy(fitted), bundled)
            bundle._contents = contents
            (folder / CARD).write_text(_card(bundle, ensemble_card), encoding="utf-8")
        bundle.folder = out
        bundle.members.place = str(out / MEMBERS)
        return bundle

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        **options: Any,
    ) -> Bundle:
        """Load a bundle from a folder or from the Hugging Face hub.

        Parameters
        ----------
        pretrained_model_name_or_path : str or Path
            A folder, or a hub id such as ``org/name``. One that is not on this machine yet is
            downloaded only if the environment has ``EDO_DOWNLOAD=1``.
        revision : str, default=None
            Branch, tag or commit on the hub.
        **options
            ``device``, ``trust`` and ``max_length``, as in `Bundle.load`.

        Returns
        -------
        Bundle

        Raises
        ------
        InputError
            If there is no such bundle, or it is damaged.
        """
        folder = Path(pretrained_model_name_or_path)
        if not folder.is_dir():
            folder = local_folder(str(folder), (BUNDLE,), revision=revision)
        return cls._load(folder, link_root(folder), **options)


def _with_ranks(
    pooled: Pooled, texts: Texts, ranks: TextRanks | None, unfamiliar: UnfamiliarPolicy | None
) -> Pooled:
    """The answers with the familiarity of their texts; unchanged if that is not known."""
    if ranks is None:
        return pooled
    positions = _text_positions(texts, pooled.rows)
    flags = ranks.unfamiliar[positions]
    for_people = None
    if unfamiliar == "people":
        for_people = flags
    unreadable = None
    if unfamiliar != "answer":
        unreadable = ~ranks.is_readable[positions]
    return replace(
        pooled,
        familiarity=ranks.familiarity[positions],
        unfamiliar=flags,
        unreadable=unreadable,
        for_people=for_people,
    )


def _text_positions(texts: Texts, rows: Rows) -> Ints:
    """The position of each row's text [N]."""
    position_of = {item: position for position, item in enumerate(texts.items)}
    positions = np.array([position_of[str(item)] for item in rows.items], dtype=np.int64)
    return positions[rows.item_codes]


@dataclass
class _CopiedMembers:
    """Members that were copied into a bundle, and the pretrained models that they need."""

    encoders: dict[str, str] = field(default_factory=dict)
    """The folder of each pretrained model that the bundle holds, by name."""
    digests: dict[str, str] = field(default_factory=dict)
    """Digests of copied files by their names in the bundle, from the cards of the members."""
    models: dict[str, list[tuple[Path, Member]]] = field(default_factory=dict)
    """Members that predict as they were loaded: each fold with its folder in the bundle."""


def _copy_members(trained: LoadedMembers, out: Path) -> _CopiedMembers:
    """Copy members, without their predictions, and the encoders that they need.

    Every model is loaded once, which compares its files with the digests on its card; these
    digests describe the copy, too.

    A bundle must not show paths of this machine. So members whose pretrained model was given as a
    folder are saved again, with the last part of the folder as the name of the model. All other
    members are copied, because skops never writes an estimator the same way twice.
    """
    copied = _CopiedMembers()
    public_names: dict[str, str] = {}
    for name, home in trained.folders.items():
        models: list[tuple[Path, Member]] = []
        needs_encoder = False
        for source, member in trained.folds(name):
            target = out / MEMBERS / source.relative_to(home)
            card = read_card(source)
            model = _pretrained_model(member)
            if model is not None and model not in public_names:
                public_names[model] = _bundle_model(member, model, out / MODELS, copied.encoders)
            if model is None or public_names[model] == model:
                digests = _copy_files(source, target, card["sha256"])
            else:
                _rename_model(member, public_names[model])
                target.mkdir(parents=True)
                member.save(target)
                digests = {file: digest_file(path) for file, path in files_below(target).items()}
            if model is not None:
                card["options"][str(member.capabilities.pretrained)] = public_names[model]
            write_json({**card, "sha256": digests}, target / MEMBER_CARD)
            prefix = target.relative_to(out).as_posix()
            copied.digests |= {f"{prefix}/{file}": digest for file, digest in digests.items()}
            models.append((target, member))
            if model is not None and public_names[model] in copied.encoders:
                needs_encoder = True  # it is loaded again, with the encoder in the bundle
        if not needs_encoder:
            copied.models[name] = models
    if trained.familiarity is not None:
        trained.familiarity.save(out / MEMBERS)
    _write_manifest(trained, out / MEMBERS / MANIFEST)
    return copied


def _pretrained_model(member: Member) -> str | None:
    """The pretrained model that a member computes with on this machine, by hub id or folder."""
    option_name = member.capabilities.pretrained
    if option_name is None:
        return None
    model: str | None = member.get_params()[option_name]
    return model


def _rename_model(member: Member, name: str) -> None:
    """Refer to the pretrained model by another name, in the option that the recipe declares."""
    setattr(member, str(member.capabilities.pretrained), name)


def _copy_files(source: Path, target: Path, card_digests: Mapping[str, str]) -> dict[str, str]:
    """Copy the files of a member without card and predictions; the digest of each by name."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(MEMBER_CARD, JOB_PREDICTIONS))
    digests: dict[str, str] = {}
    for name, path in files_below(target).items():
        # Only files that the user added are not on the card.
        digests[name] = card_digests.get(name) or digest_file(path)
    return digests


def _write_manifest(trained: LoadedMembers, path: Path) -> None:
    """Write the manifest of the members in a bundle."""
    manifest = new_manifest(trained.classes, trained.scale)
    data = trained.manifest["data"]
    manifest["data"] = {**data, "source": Path(str(data.get("source") or "")).name}
    manifest["members"] = [
        member for member in trained.manifest["members"] if member["name"] in trained.folders
    ]
    manifest["versions"] = trained.manifest.get("versions", {})
    write_json(manifest, path)


def _bundle_model(member: Member, model: str, out: Path, encoders: dict[str, str]) -> str:
    """Copy a pretrained model unless the member's own files hold it; its name in the bundle.

    ``encoders`` gets the folder of the copy.
    """
    name = public_name(model)
    if not member.capabilities.separate_model:
        return name
    folder_name = copy_model(model, out, member.onnx_file)
    if name in encoders and encoders[name] != folder_name:
        name += f"-{folder_name}"  # two folders have the same last part
    encoders[name] = folder_name
    return name


def _card(bundle: Bundle, ensemble: str) -> str:
    """The card: that of the ensemble, what its members are, size and time, and how to use it."""
    ensemble_card = ensemble.removeprefix("# An EDO ensemble\n")
    ensemble_text, _, members_section = ensemble_card.partition("## Members")
    contents = bundle._contents
    data = bundle.members.manifest["data"]
    items = data.get("items")
    if not isinstance(items, dict):
        items = {}
    endpoints = ""
    if bundle.members.endpoints:
        addresses = ", ".join(map(markdown_text, bundle.members.endpoints))
        endpoints = f"**Texts are sent to** {addresses}.\n"
    annotators_note = ""
    if bundle.known_annotators:
        annotators = counted(len(bundle.known_annotators), "annotator")
        annotators_note = (
            f"\nIt knows {annotators} by name, and answers for each of them: the names are in its"
            " files.\n"
        )
    context_note = ""
    if data.get(HAS_CONTEXTS):
        context_note = " (with a column `context`)"
    template = (Path(__file__).parent / "bundle_card.md").read_text(encoding="utf-8")
    return template.format(
        ensemble_text=ensemble_text.rstrip("\n") + "\n",
        version=bundle.version,
        size=in_bytes(contents.size),
        files=len(contents.files),
        edokit=__version__,
        endpoints=endpoints,
        context_note=context_note,
        source=markdown_text(str(data.get("source") or "texts")),
        items=", ".join(f"{count} {markdown_text(str(name))}" for name, count in items.items()),
        annotators=data.get("annotators", "some"),
        members="\n".join(_member_rows(bundle)),
        annotators_note=annotators_note,
        members_section=members_section,
    )


def _member_rows(bundle: Bundle) -> list[str]:
    """Rows of the card's table of members: name, recipe and pretrained model."""
    entries = {entry["name"]: entry for entry in bundle.members.manifest["members"]}
    rows = []
    for name in bundle.members.names:
        _, member = next(iter(bundle.members.folds(name)))
        recipe = entries[name].get("recipe", "")
        model = member.get_params().get("model") or ""
        cells = [markdown_text(str(cell)) for cell in (name, recipe, model)]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def load(folder: str | Path, **options: Any) -> Bundle | EDOEnsemble:
    """Load a bundle, or a saved ensemble.

    Parameters
    ----------
    folder : str or Path
        A folder made by `edo bundle`, by `edo fit` or ``EDOEnsemble.save``, or ``RUN/ensemble`` of
        a search.
    **options
        Of a bundle, further arguments of `Bundle.load`: ``device``, ``trust``, ``max_length``.

    Returns
    -------
    Bundle or EDOEnsemble
        A bundle predicts texts; a fitted ensemble pools predictions of its members.

    Raises
    ------
    InputError
        If there is neither, or a damaged one.
    """
    if is_bundle(folder):
        return Bundle.load(folder, **options)
    if options:
        raise InputError(
            f"{examples(options)} is for bundles, but {folder} has no {BUNDLE}",
            "leave it out",
            code="inapplicable-option",
        )
    return EDOEnsemble.load(folder)


def is_bundle(folder: str | Path) -> bool:
    """Whether a folder is a bundle, even a damaged one, or a run that has one."""
    return os.path.lexists(bundle_folder(Path(folder)) / BUNDLE)


def bundle_folder(folder: Path) -> Path:
    """The folder itself, or the bundle of a run in it."""
    inside = folder / "bundle"
    if (inside / BUNDLE).exists() and not (folder / BUNDLE).exists():
        return inside
    return folder


def _read(folder: Path) -> BundleContents:
    """Read ``bundle.json``."""
    hint = "check that it is the right file, or make it again with `edo bundle`"
    return read_model(folder / BUNDLE, BundleContents, title="an EDO bundle", hint=hint)


def _model_folders(folder: Path, contents: BundleContents, home: Path) -> dict[str, Path]:
    """The folder of each pretrained model in a bundle, by name; each is checked."""
    models = {name: folder / MODELS / place for name, place in contents.models.items()}
    for place in models.values():
        check_model(place, home)
    return models


def _check_classes(members: LoadedMembers, ensemble: EDOEnsemble, hint: str) -> None:
    """Refuse members and an ensemble with different classes."""
    if sorted(members.classes) != sorted(ensemble.fitted_.classes):
        raise InputError(
            f"the members in {members.place} predict {examples(members.classes)}, but the ensemble"
            f" pools {examples(ensemble.fitted_.classes)}",
            hint,
            code="classes-differ",
        )


def _refuse_other_version(out: Path, version: str) -> None:
    """Refuse to replace a bundle of another version."""
    if (out / BUNDLE).exists() and _read(out).version != version:
        raise InputError(
            f"{out} holds a bundle of another ensemble or other members",
            REPLACE,
            code="existing-file",
        )


def _files(folder: Path, home: Path) -> dict[str, Path]:
    """The files that ``bundle.json`` lists: all but the card, which people may edit."""
    return {
        f"{part}/{name}": path
        for part in (ENSEMBLE, MEMBERS, MODELS)
        for name, path in files_below(folder / part, home).items()
    }


def _listed_file(path: Path, digest: str | None) -> BundledFile:
    """The entry of a file in ``bundle.json``; its digest is computed unless it is known."""
    if digest is None:
        digest = digest_file(path)
    return BundledFile(size=path.stat().st_size, sha256=digest)


def _check_files(folder: Path, home: Path, files: Mapping[str, BundledFile]) -> None:
    """Refuse a bundle unless its files are those that were bundled."""
    paths = _files(folder, home)
    damaged = files.keys() ^ paths.keys()
    if not damaged:
        damaged = {name for name, path in paths.items() if digest_file(path) != files[name].sha256}
    if damaged:
        raise InputError(
            f"the bundle {folder} is damaged: these files are missing, changed or not part of it:"
            f" {examples(sorted(damaged))}",
            "copy or download the bundle again, or make it again with `edo bundle`",
            code="damaged-file",
        )


def _by_item(
    annotators: Sequence[str | Iterable[str]], items: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The annotators of each text by its item."""
    if isinstance(annotators, str) or len(annotators) != len(items):
        count = str(len(annotators))
        if isinstance(annotators, str):
            count = "one string"
        raise InputError(
            f"{option('annotators')} must be one entry per text, but are {count} for"
            f" {counted(len(items), 'text')}",
            f"name those of each text, or ask a panel about all: {option('panel', ['ann', 'ben'])}",
            code="lengths-differ",
        )
    by_item: dict[str, tuple[str, ...]] = {}
    for item, entry in zip(items, annotators, strict=True):
        if isinstance(entry, str):
            by_item[item] = (entry,)
        else:
            by_item[item] = tuple(entry)
    return by_item
