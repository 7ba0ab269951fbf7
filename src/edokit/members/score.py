"""Predictions of trained members on new texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import (
    HAVE,
    EDOError,
    EDOWarning,
    InputError,
    are,
    counted,
    errors_in,
    examples,
    option,
    warn,
)
from edokit._types import Floats, Ints
from edokit.members.folder import fold_details, join_manifests, scale_of, soft_supervision
from edokit.members.jobs import CARD, JOB_PREDICTIONS, MEMBERS, changed_files, read_card
from edokit.members.recipe import (
    Member,
    Text,
    find_recipe,
    predict_texts,
    refuse_code,
    split_context,
)
from edokit.members.spending import current_session, session
from edokit.members.texts import Texts

if TYPE_CHECKING:
    from edokit.predictions.core import Predictions

# Called with the number of members done, of all members, and the name of the next.
Step = Callable[[int, int, str], None]


def score_members(
    folder: str | Path | Sequence[str | Path],
    texts: Texts | Sequence[Text],
    members: Sequence[str] | None = None,
    *,
    device: str | None = None,
    trust: Sequence[str] = (),
    annotators: Mapping[str, Iterable[str]] | None = None,
    by_annotator: bool = False,
    budget: float | None = None,
    step: Step = lambda done, total, member: None,
) -> Predictions:
    """Predict texts with trained members.

    Parameters
    ----------
    folder : str, Path or sequence of these
        Folder that `train_members` or ``edo train`` wrote, or several of them.
    texts : Texts or sequence of str or of (str, str)
        Texts with their item ids; without ids they are named 0, 1, 2, ….
    members : sequence of str, default=None
        Names of members. None: all of them.
    device : str, default=None
        Where recipes that use torch compute. None: a GPU if there is one.
    trust : sequence of str, default=()
        Packages beside scikit-learn whose types may be loaded and whose recipes may be imported.
    annotators : mapping of str to iterable of str, default=None
        Annotators known to label an item, by item: members that know annotators then predict the
        labels of these.
    by_annotator : bool, default=False
        Predict a row for each pair of an item and one of its ``annotators``, then the anonymous
        answer of each item (annotator ``""``). The members of a group with per-annotator
        supervision become one member, named like the group: the one trained on an annotator's
        labels predicts for that annotator, their mean for everybody else and anonymously.
    budget : float, default=None
        What the requests of members that ask a server may cost together, in the unit of their
        prices. It is an error if they cost more; all answers are kept.
    step : callable, default=no-op
        Called with the number of members done, of all members, and the name of the next.

    Returns
    -------
    Predictions
        Probabilities of all members; those trained in folds give the mean over their folds. Rows
        are items or, ``by_annotator``, pairs of an item and an annotator, and anonymous answers.

    Raises
    ------
    InputError
        If the folder holds no such members, or a text is missing.

    Examples
    --------
    >>> predictions = score_members("members", ["a first text", "another"])  # doctest: +SKIP
    """
    loaded = LoadedMembers(folder, members, device=device, trust=trust, keep=False)
    with session(budget=budget):
        return loaded.predict(texts, annotators=annotators, by_annotator=by_annotator, step=step)


class LoadedMembers:
    """Members of folders that `train_members` or ``edo train`` made, ready to predict.

    Parameters
    ----------
    folders : str, Path or sequence of these
        One folder of members, or several.
    members : sequence of str, default=None
        Names of members, and of groups with per-annotator supervision, each of which is then one
        member. None: all members.
    device : str, default=None
    trust : sequence of str, default=()
        As in `score_members`.
    models : mapping of str to Path, default=None
        Where pretrained models are that members name but do not hold. Such members keep theirs in
        memory, one for all of them, and write no cache.
    keep : bool, default=True
        Keep members in memory between calls, instead of one at a time while it predicts.

    Attributes
    ----------
    manifest : dict
        That of all folders.
    folders : dict of str to Path
        The folder of each member, by name.
    pooled : list of str
        Groups that were named, whose members know an annotator each.
    place : str
        The folders, in messages.
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
        self.place = " and ".join(map(str, paths))
        self.classes = self.manifest["data"]["classes"]
        self.scale = scale_of(self.manifest["data"])
        self._listed = {member["name"]: member for member in self.manifest["members"]}
        names = list(self._listed if members is None else members)
        voices = {name: self._voices_of(name) for name in names if name not in self._listed}
        self.pooled = [name for name in voices if voices[name]]
        unknown = [name for name in names if name not in {*self._listed, *self.pooled}]
        if unknown or not names:
            raise InputError(
                f"{self.place} has no member {examples(unknown) or 'to score with'}; its members"
                f" are {examples(self._listed, 10)}",
                "check the spelling, or name the folder of the members that the ensemble pools"
                f" ({option('members')} can be given several times)",
            )
        member_names = chain.from_iterable(voices.get(name) or [name] for name in names)
        self.folders = {name: folder_of[name] for name in dict.fromkeys(member_names)}
        self._context: dict[str, Any] = {"device": device, "trust": tuple(trust), "models": models}
        self._keep = keep
        self._kept: dict[str, list[tuple[Path, Member]]] = {}

    @property
    def names(self) -> list[str]:
        """Names of the members."""
        return list(self.folders)

    def load(self) -> LoadedMembers:
        """Load all members that are not in memory yet."""
        for name in self.names:
            self.models(name)
        return self

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Addresses that members send texts to."""
        fits = chain.from_iterable(map(self.models, self.names))
        addresses = (model.get_params().get("base_url") for _, model in fits)
        return tuple(dict.fromkeys(filter(None, addresses)))

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators that some of the members have learned."""
        annotators: dict[str, None] = {}
        for name in self.names:
            for _, model in self.models(name):
                annotators |= dict.fromkeys(model.known_annotators)
            if (annotator := _annotator_of(self._listed[name])) is not None:
                annotators[annotator] = None
        return tuple(annotators)

    @property
    def has_voices(self) -> bool:
        """Whether some of the members were trained on one annotator each."""
        return any(_annotator_of(self._listed[name]) for name in self.names)

    def predict(
        self,
        texts: Texts | Sequence[Text],
        *,
        annotators: Mapping[str, Iterable[str]] | None = None,
        by_annotator: bool = False,
        step: Step = lambda done, total, member: None,
    ) -> Predictions:
        """Predict texts; parameters, result and errors as those of `score_members`."""
        from edokit.predictions.core import Predictions

        checked = Texts.of(texts)
        self._check_contexts(checked)
        rows = None
        if annotators is not None or by_annotator:
            rows = _AnnotatorRows(annotators or {}, checked.items, by_annotator)
        answers: dict[str, Floats] = {}
        info: dict[str, dict[str, Any]] = {}
        requests, total = current_session(), len(self.names)
        for done, name in enumerate(self.names):
            step(done, total, name)
            # The session knows which member asks, and what its texts are called.
            requests.member, requests.place = name, checked.place_of
            requests.report = partial(step, done, total)
            answers[name], info[name] = self._predict_member(name, checked.texts, rows)
        step(total, total, "")
        items, row_annotators = list(checked.items), None
        if rows is not None:
            if by_annotator:
                items, row_annotators = [items[row] for row in rows.texts], rows.annotators
                answers = self._pool_voices(answers, rows)
            rows.warn()
        return Predictions.from_arrays(
            np.stack(list(answers.values()), axis=1),
            items=items,
            members=list(answers),
            classes=self.classes,
            groups=[str(self._listed[n]["group"]) if n in self._listed else n for n in answers],
            annotators=row_annotators,
            layout="NKC",
            scale=self.scale,
            member_info={name: info[name] for name in answers if info.get(name)},
        )

    def _pool_voices(
        self, answers: Mapping[str, Floats], rows: _AnnotatorRows
    ) -> dict[str, Floats]:
        """Make one member, named like the group, of those trained on one annotator each."""
        pooled: dict[str, Floats] = {}
        voices: dict[str, dict[str, Floats]] = {}
        for name, predicted in answers.items():
            entry = self._listed[name]
            if (annotator := _annotator_of(entry)) is None:
                pooled[name] = predicted
                continue
            pooled[entry["group"]] = predicted  # its place among the members
            voices.setdefault(entry["group"], {})[annotator] = predicted
        return pooled | {group: rows.spoken_by(voices[group]) for group in voices}

    def _predict_member(
        self, name: str, texts: Sequence[Text], rows: _AnnotatorRows | None
    ) -> tuple[Floats, dict[str, Any]]:
        """Probabilities [N, C] of one member, the mean over its folds, and its details."""
        entry, predicted, details = self._listed[name], [], []
        if entry.get("pairs") is False:  # others in the same call read contexts
            texts = split_context(texts)[0]
        for folder, model in self.models(name):
            with _errors_of(folder):
                answers = (
                    predict_texts(model, texts) if rows is None else rows.predict(model, texts)
                )
            predicted.append(answers)
            details.append({"details": model.details})  # they may count its predictions
        mean: Floats = np.mean(predicted, axis=0)
        if "classes" in entry:
            mean = mean[:, [entry["classes"].index(label) for label in self.classes]]
        noted = soft_supervision(entry.get("targets", {}).get("supervision"))
        return mean, fold_details(details) | noted

    def _voices_of(self, group: str) -> list[str]:
        """The members of a group that were trained on one annotator each."""
        return [
            name
            for name, member in self._listed.items()
            if member["group"] == group and _annotator_of(member)
        ]

    def _check_contexts(self, texts: Texts) -> None:
        pairs = self.manifest["data"]["pairs"]
        reading = {self._listed[name].get("pairs", pairs) for name in self.names} - {None}
        for item, text in zip(texts.items, texts.texts, strict=True):
            has_context = not isinstance(text, str)
            if reading and has_context != (True in reading):
                raise InputError(
                    f"the members in {self.place} were trained on texts"
                    f" {'without' if has_context else 'with a'} context, but {texts.place(item)}"
                    f" has {'one' if has_context else 'none'}",
                    "a context is the second of a pair of texts, or a column context of a table",
                )

    def models(self, name: str) -> Iterable[tuple[Path, Member]]:
        """A member, or its folds, each with its folder."""
        if not self._keep:
            return self._load(name)
        if name not in self._kept:
            self._kept[name] = list(self._load(name))
        return self._kept[name]

    def take_models(self, name: str, models: Sequence[tuple[Path, Member]]) -> None:
        """Use a member that is in memory already: its folds, each with its folder."""
        self._kept[name] = list(models)

    def _load(self, name: str) -> Iterator[tuple[Path, Member]]:
        folder = self.folders[name] / MEMBERS / name
        for fold in sorted(folder.glob("fold-*")) or [folder]:
            yield fold, load_member(fold, **self._context)


def _annotator_of(member: Mapping[str, Any]) -> str | None:
    """The annotator on whose labels a member was trained, with per-annotator supervision."""
    targets = member.get("targets")
    annotator = targets.get("annotator") if isinstance(targets, dict) else None
    return None if annotator is None else str(annotator)


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
        )
    if models is None:  # the files of a bundle have been compared with its own list
        # Its predictions are not needed.
        files = {name: sha for name, sha in card["sha256"].items() if name != JOB_PREDICTIONS}
        changed = changed_files(folder, {"sha256": files})
        if changed:
            raise InputError(
                f"the member in {folder} is damaged: {examples(changed)} is not what was trained",
                "copy the folder again, or train again",
            )
    refuse_code(str(folder), card["recipe"], trust)
    with errors_in(folder / CARD):
        recipe: Any = find_recipe(card["recipe"])
    context = {"device": device, "trust": tuple(trust), "models": models}
    accepted = inspect.signature(recipe.load).parameters
    with _errors_of(folder):
        member: Member = recipe.load(
            folder, **{key: value for key, value in context.items() if key in accepted}
        )
        if member.get_params()["n_classes"] != len(card["classes"]):
            raise ValueError("it has other classes than its card")
    return member


@contextmanager
def _errors_of(folder: Path) -> Iterator[None]:
    """Turn whatever a model raises into one error.

    The message of a library may quote texts, so it is left out.
    """
    try:
        yield
    except (EDOError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the tokenizers is no Exception
        raise InputError(
            f"the member in {folder} is damaged or made by other versions of its libraries: it"
            f" fails with {type(error).__name__}",
            "train it again",
        ) from error


class _AnnotatorRows:
    """Rows to predict when annotators are known: texts or, ``by_annotator``, each text with each
    of its annotators, and each text once for nobody in particular.

    ``texts`` has the text of each row.
    """

    def __init__(
        self,
        annotators: Mapping[str, Iterable[str]],
        items: Sequence[str],
        by_annotator: bool = False,
    ) -> None:
        # Without annotators, by_annotator asks for anonymous answers alone.
        if not (by_annotator and not annotators) and not any(item in annotators for item in items):
            raise InputError(
                f"annotators are given for {examples(annotators) or 'no item'}, for none of the"
                f" {counted(len(items), 'text')} ({examples(items)})",
                "use the same item ids in both files",
            )
        names = [tuple(dict.fromkeys(map(str, annotators.get(item, ())))) for item in items]
        self.texts: Ints = np.arange(len(items))
        if annotators and (unnamed := sum(not text_names for text_names in names)):
            warn(
                f"{are(unnamed, len(names), HAVE, 'text')} no annotator and only an anonymous"
                " prediction"
            )
        if by_annotator:
            self.texts = np.append(np.repeat(self.texts, list(map(len, names))), self.texts)
            names = [*((name,) for name in chain.from_iterable(names)), *[()] * len(items)]
        self._names = names
        self._known: set[str] = set()

    @property
    def annotators(self) -> list[str]:
        """The annotator of each row, by annotator."""
        return [names[0] if names else "" for names in self._names]

    def predict(self, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities of each row, for its annotators if the member knows some."""
        if not member.known_annotators:
            return predict_texts(member, texts)[self.texts]
        self._known |= {*member.known_annotators}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # `warn` reports all members at once
            rows = [texts[row] for row in self.texts]
            answers = predict_texts(member, rows, annotators=self._names)
        # To strangers exactly the anonymous answer, whatever else is in a batch on a GPU.
        known = {*member.known_annotators}
        strangers = [row for row, names in enumerate(self._names) if known.isdisjoint(names)]
        answers[strangers] = answers[self.texts[strangers] - len(texts)]
        return answers

    def spoken_by(self, voices: Mapping[str, Floats]) -> Floats:
        """Each row by its annotator's own member, and by the mean of all for everybody else."""
        self._known |= {*voices}
        mean = np.mean(list(voices.values()), axis=0)
        return np.array([voices.get(name, mean)[row] for row, name in enumerate(self.annotators)])

    def warn(self) -> None:
        """Report annotators that made no difference."""
        if not self._known:
            warn(
                "the members know no annotators, so that only the text counts (to learn annotators,"
                " train with the option annotators=true or with supervision per-annotator)"
            )
            return
        requested = {name for names in self._names for name in names}
        if strangers := sorted(requested - self._known):
            warn(
                f"{are(len(strangers), len(requested), noun='annotator')} unknown to all members,"
                f" and answered anonymously: {examples(strangers)}"
            )
