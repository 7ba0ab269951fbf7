"""Members loaded from the folders of a training, ready to predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOError, InputError, errors_in, examples, option
from edokit._progress import Progress, no_progress
from edokit._types import Floats
from edokit.members.annotator_rows import AnnotatorRows
from edokit.members.card import changed_files, read_card
from edokit.members.collect import fold_details, soft_supervision
from edokit.members.contexts import Text, split_context
from edokit.members.familiarity import Familiarity
from edokit.members.layout import CARD, HAS_CONTEXTS, JOB_PREDICTIONS, MEMBERS
from edokit.members.manifest import ManifestContent, join_manifests, scale_of
from edokit.members.recipe import Member, predict_texts
from edokit.members.registry import find_recipe
from edokit.members.spending import current_session
from edokit.members.texts import Texts
from edokit.members.trust import refuse_code

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.predictions.core import Predictions


class LoadedMembers:
    """Members from the folders of trainings, ready to predict.

    Parameters
    ----------
    folders : str, Path or sequence of these
        One folder of members, or several.
    members : sequence of str, default=None
        Names of members, and of groups with per-annotator supervision, whose members become one in
        predictions by annotator. None: all members.
    device : str, default=None
    trust : sequence of str, default=()
        As in `score_members`.
    models : mapping of str to Path, default=None
        In a bundle, the folders of the pretrained models that members refer to, by name. Members
        with the same model share one in memory, and write no cache.
    keep : bool, default=True
        Keep members in memory between calls, instead of one at a time while it predicts.

    Attributes
    ----------
    manifest : dict
        That of all folders.
    folders : dict of str to Path
        The folder of each member, by name.
    pooled : list of str
        Groups in ``members``, whose members were trained on one annotator each.
    place : str
        The folders as messages name them.
    """

    def __init__(
        self,
        folders: str | Path | Sequence[str | Path],
        members: Sequence[str] | None = None,
        *,
        device: str | None = None,
        trust: Sequence[str] = (),
        models: Mapping[str, Path] | None = None,
        keep: bool = True,
    ) -> None:
        paths = [folders] if isinstance(folders, str | Path) else list(folders)
        self.manifest, folder_of = join_manifests([Path(path) for path in paths])
        self.place = " and ".join(str(path) for path in paths)
        self.classes: list[str] = self.manifest["data"]["classes"]
        self.scale = scale_of(self.manifest["data"])
        self._entries = {entry["name"]: entry for entry in self.manifest["members"]}
        names = list(dict.fromkeys(self._entries if members is None else members))
        self.folders: dict[str, Path] = {}
        self.pooled: list[str] = []
        unknown = []
        for name in names:
            if name in self._entries:
                self.folders[name] = folder_of[name]
                continue
            group_members = self._annotator_members(name)
            if not group_members:
                unknown.append(name)
                continue
            self.pooled.append(name)
            for member_name in group_members:
                self.folders[member_name] = folder_of[member_name]
        if unknown or not names:
            raise InputError(
                f"{self.place} has no member {examples(unknown) or 'to score with'}; its members"
                f" are {examples(self._entries, 10)}",
                "check the spelling, or name the folder of the members that the ensemble pools"
                f" ({option('members')} can be given several times)",
                code="unknown-member",
            )
        self._device = device
        self._trust = tuple(trust)
        self._models = models
        self._keep = keep
        self._kept: dict[str, list[tuple[Path, Member]]] = {}

    def _annotator_members(self, group: str) -> list[str]:
        """The members of a group that were trained on one annotator each."""
        return [
            name
            for name, entry in self._entries.items()
            if entry["group"] == group and _annotator_of(entry)
        ]

    @property
    def names(self) -> list[str]:
        """Names of the members."""
        return list(self.folders)

    def load(self) -> LoadedMembers:
        """Load all members that are not in memory yet."""
        for name in self.names:
            self.folds(name)
        return self

    def folds(self, name: str) -> Iterable[tuple[Path, Member]]:
        """The fitted folds of a member, or the member itself, each with its folder."""
        if not self._keep:
            return self._load(name)
        if name not in self._kept:
            self._kept[name] = list(self._load(name))
        return self._kept[name]

    def take_folds(self, name: str, folds: Sequence[tuple[Path, Member]]) -> None:
        """Use a member that is in memory already: its fitted folds, each with its folder."""
        self._kept[name] = list(folds)

    def _load(self, name: str) -> Iterator[tuple[Path, Member]]:
        folder = self.folders[name] / MEMBERS / name
        for fold in sorted(folder.glob("fold-*")) or [folder]:
            yield fold, load_member(fold, self._device, self._trust, self._models)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Addresses that members send texts to."""
        addresses: dict[str, None] = {}
        for name in self.names:
            for _, member in self.folds(name):
                if member.address:
                    addresses[member.address] = None
        return tuple(addresses)

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators that some of the members have learned."""
        annotators: dict[str, None] = {}
        for name in self.names:
            for _, member in self.folds(name):
                annotators |= dict.fromkeys(member.known_annotators)
            annotator = _annotator_of(self._entries[name])
            if annotator is not None:
                annotators[annotator] = None
        return tuple(annotators)

    @cached_property
    def familiarity(self) -> Familiarity | None:
        """How familiar texts are to these members, from the first folder that says it, or None."""
        for folder in dict.fromkeys(self.folders.values()):
            familiarity = Familiarity.load(folder)
            if familiarity is not None:
                return familiarity
        return None

    def load_familiarity(self) -> None:
        """Load the familiarity at once, for a caller that renames the folders afterwards."""
        _ = self.familiarity

    @property
    def has_annotator_members(self) -> bool:
        """Whether some of the members were trained on one annotator each."""
        return any(_annotator_of(self._entries[name]) for name in self.names)

    def predict(
        self,
        texts: Texts | Annotations | Sequence[Text],
        *,
        annotators: Mapping[str, Iterable[str]] | None = None,
        by_annotator: bool = False,
        progress: Progress = no_progress,
    ) -> Predictions:
        """Predict texts; parameters, result and errors as those of `score_members`."""
        from edokit.predictions.core import Predictions

        checked = Texts.from_texts(texts)
        self._check_contexts(checked)
        rows = None
        if annotators is not None or by_annotator:
            rows = AnnotatorRows(annotators or {}, checked.items, by_annotator)
        answers: dict[str, Floats] = {}
        info: dict[str, dict[str, Any]] = {}
        session = current_session()
        total = len(self.names)
        for done, name in enumerate(self.names):
            progress(done, total, name)
            # The session knows which member asks, and what its texts are called.
            session.member = name
            session.place = checked.place_of
            session.report = partial(progress, done, total)
            predicted, details = self._predict_member(name, checked.texts, rows)
            answers[name] = predicted
            info[name] = details
        progress(total, total, "")
        items = list(checked.items)
        row_annotators = None
        if rows is not None:
            if by_annotator:
                items = [items[position] for position in rows.positions]
                row_annotators = rows.annotators
                answers = self._pool_annotator_members(answers, rows)
            rows.warn_of_unknown_annotators()
        return Predictions.from_arrays(
            np.stack(list(answers.values()), axis=1),
            items=items,
            members=list(answers),
            classes=self.classes,
            groups=[self._group(name) for name in answers],
            annotators=row_annotators,
            layout="NKC",
            scale=self.scale,
            member_info={name: info[name] for name in answers if info.get(name)},
        )

    def _group(self, name: str) -> str:
        """The group of a member; a group that became one member is its own."""
        if name in self._entries:
            return str(self._entries[name]["group"])
        return name

    def _check_contexts(self, texts: Texts) -> None:
        """Raise an error if texts have a context that members do not read, or lack one."""
        default = self.manifest["data"][HAS_CONTEXTS]
        reads_context = [self._entries[name].get(HAS_CONTEXTS, default) for name in self.names]
        # None: an existing model, which reads texts with and without a context.
        declared = [reads for reads in reads_context if reads is not None]
        if not declared:
            return
        needs_context = any(declared)
        for item, text in zip(texts.items, texts.texts, strict=True):
            has_context = not isinstance(text, str)
            if has_context == needs_context:
                continue
            if has_context:
                difference = f"without context, but {texts.place(item)} has one"
            else:
                difference = f"with a context, but {texts.place(item)} has none"
            raise InputError(
                f"the members in {self.place} were trained on texts {difference}",
                "a context is the second of a pair of texts, or a column context of a table",
                code="contexts-differ",
            )

    def _predict_member(
        self, name: str, texts: Sequence[Text], rows: AnnotatorRows | None
    ) -> tuple[Floats, dict[str, Any]]:
        """Probabilities [N, C] of one member, the mean over its folds, and its details."""
        entry = self._entries[name]
        if entry.get(HAS_CONTEXTS) is False:  # contexts are for other members of this call
            texts, _ = split_context(texts)
        predicted = []
        details = []
        for folder, member in self.folds(name):
            with _model_errors(folder):
                if rows is None:
                    predicted.append(predict_texts(member, texts))
                else:
                    predicted.append(rows.predict(member, texts))
            details.append(member.details)  # they may count its predictions
        mean: Floats = np.mean(predicted, axis=0)
        if "classes" in entry:
            mean = mean[:, [entry["classes"].index(label) for label in self.classes]]
        supervision = entry.get("targets", {}).get("supervision")
        return mean, fold_details(details) | soft_supervision(supervision)

    def _pool_annotator_members(
        self, answers: Mapping[str, Floats], rows: AnnotatorRows
    ) -> dict[str, Floats]:
        """Replace the members of a group that were trained on one annotator each by one member."""
        pooled: dict[str, Floats] = {}
        by_group: dict[str, dict[str, Floats]] = {}
        for name, predicted in answers.items():
            entry = self._entries[name]
            annotator = _annotator_of(entry)
            if annotator is None:
                pooled[name] = predicted
                continue
            pooled[entry["group"]] = predicted  # replaced below; it keeps the order of the members
            by_group.setdefault(entry["group"], {})[annotator] = predicted
        for group, answers_by_annotator in by_group.items():
            pooled[group] = rows.pool(answers_by_annotator)
        return pooled


def _annotator_of(entry: ManifestContent) -> str | None:
    """The annotator on whose labels a member was trained, with per-annotator supervision."""
    targets = entry.get("targets")
    if not isinstance(targets, dict) or targets.get("annotator") is None:
        return None
    return str(targets["annotator"])


def load_member(
    folder: Path,
    device: str | None = None,
    trust: Sequence[str] = (),
    models: Mapping[str, Path] | None = None,
) -> Member:
    """One fitted member (or one fold of it) from its folder; see `LoadedMembers`."""
    card = read_card(folder)
    if not card["kept"]:
        raise InputError(
            f"the model of {folder} was not kept: it was trained with"
            f" {option('keep_models', False)}",
            "train it again without this option",
            code="missing-model",
        )
    if models is None:  # the files of a bundle have been compared with its own list
        needed_files = dict(card["sha256"])
        needed_files.pop(JOB_PREDICTIONS, None)
        changed = changed_files(folder, needed_files)
        if changed:
            raise InputError(
                f"the member in {folder} is damaged: {examples(changed)} is not what was trained",
                "copy the folder again, or train again",
                code="damaged-file",
            )
    refuse_code(str(folder), card["recipe"], trust)
    with errors_in(folder / CARD):
        recipe = find_recipe(card["recipe"])
    values = {"device": device, "trust": tuple(trust), "models": models}
    arguments: dict[str, Any] = {
        name: values[name] for name in recipe.capabilities.load_parameters()
    }
    with _model_errors(folder):
        member = recipe.load(folder, **arguments)
        if member.get_params()["n_classes"] != len(card["classes"]):
            raise ValueError("its classes are not those of its card")
    return member


@contextmanager
def _model_errors(folder: Path) -> Iterator[None]:
    """Turn whatever a model raises into one error.

    The message of a library may quote texts, so it is left out.
    """
    try:
        yield
    except (EDOError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the tokenizers is not an Exception
        raise InputError(
            f"the member in {folder} is damaged or made by other versions of its libraries: it"
            f" fails with {type(error).__name__}",
            "train it again",
            code="damaged-file",
        ) from error
