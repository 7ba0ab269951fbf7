"""Predictions of trained members on new texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
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
    warn,
)
from edokit._types import Floats, Ints
from edokit.annotator_effects import Attributes
from edokit.members.folder import fold_details, read_manifest, scale_of
from edokit.members.jobs import CARD, END_TO_END, MEMBERS, file_digests, finished_card
from edokit.members.recipe import Member, Text, find_recipe, refuse_code
from edokit.members.recipes import _endpoint as endpoints
from edokit.members.texts import Texts
from edokit.scales import check_same_scale

if TYPE_CHECKING:
    from edokit.predictions import Predictions


def score_members(
    folder: str | Path,
    texts: Texts | Sequence[Text],
    members: Sequence[str] | None = None,
    *,
    device: str | None = None,
    trust: Sequence[str] = (),
    annotators: Mapping[str, Iterable[str]] | None = None,
    by_annotator: bool = False,
    budget: float | None = None,
    attributes: Attributes | None = None,
    step: Callable[[int, int, str], None] = lambda done, total, member: None,
) -> Predictions:
    """Predict texts with the members in a folder that `train_members` or ``edo train`` made.

    Parameters
    ----------
    folder : str or Path
        Folder with ``manifest.json`` and the trained members.
    texts : Texts or sequence of str or of (str, str)
        Texts with their item ids; without ids they are named 0, 1, 2, ….
    members : sequence of str, default=None
        Names of members. None: all of them.
    device : str, default=None
        Where recipes that use torch compute. None: a GPU where there is one.
    trust : sequence of str, default=()
        Packages beside scikit-learn whose types may be loaded and whose recipes may be imported.
    annotators : mapping of str to iterable of str, default=None
        Annotators known to label an item, by item: members that know annotators then predict the
        labels of these.
    by_annotator : bool, default=False
        Predict a row for each pair of an item and one of its ``annotators``, then the anonymous
        answer of each item (annotator ``""``). The members of a group with per-annotator
        supervision are then one member, named like the group: the one trained on an annotator's
        labels predicts for that annotator, their mean for any other and anonymously.
    budget : float, default=None
        What the requests of members that ask a server may cost together, in the unit of their
        prices. If it does not suffice, that is an error; all answers are kept.
    attributes : mapping of str to mapping of str to str, default=None
        Attributes by annotator, as in ``{"ann": {"age": "29"}}``: members that were trained with
        these answer by them for annotators that they do not know.
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
    with endpoints.session(budget=budget):
        how: Any = {"annotators": annotators, "by_annotator": by_annotator, "step": step}
        return loaded.predict(texts, attributes=attributes, **how)


class LoadedMembers:
    """Members of a folder that `train_members` or ``edo train`` made, ready to predict.

    Parameters
    ----------
    folder : str or Path
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
    """

    def __init__(
        self,
        folder: str | Path,
        members: Sequence[str] | None = None,
        *,
        device: str | None = None,
        trust: Sequence[str] = (),
        models: Mapping[str, Path] | None = None,
        keep: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self.classes = self.manifest["data"]["classes"]
        self.scale = scale_of(self.manifest["data"])
        self._listed = {member["name"]: member for member in self.manifest["members"]}
        names = list(self._listed if members is None else members)
        self.pooled = [name for name in names if name not in self._listed and self._of_group(name)]
        """Groups that were named, whose members know an annotator each."""
        unknown = [name for name in names if name not in {*self._listed, *self.pooled}]
        if unknown or not names:
            raise InputError(
                f"{self.folder} has no member {examples(unknown) or 'to score with'}; its members"
                f" are {examples(self._listed, 10)}",
                "check the spelling, or name the folder of the members that the ensemble pools",
            )
        each = (self._of_group(name) if name in self.pooled else [name] for name in names)
        self.names = list(dict.fromkeys(chain.from_iterable(each)))
        self._context: dict[str, Any] = {"device": device, "trust": tuple(trust), "models": models}
        self._keep = keep
        self._kept: dict[str, list[Any]] = {}
        self._folds = cache(_folds)

    def load(self) -> LoadedMembers:
        """Load what is not in memory yet."""
        for name in [END_TO_END] if self._end_to_end else self.names:
            self._models(name)
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """Pretrained models that members need and do not hold."""
        return tuple(dict.fromkeys(chain.from_iterable(one.models for one in self._each())))

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Addresses that members send texts to."""
        return tuple(dict.fromkeys(one.endpoint for one in self._each() if one.endpoint))

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators that some of the members have learned apart."""
        found: dict[str, None] = {}
        for name in self.names:
            whose = _annotator_of(self._listed[name])
            models: Iterable[Any] = () if self._end_to_end else self._models(name)
            found |= dict.fromkeys(chain.from_iterable(one.known_annotators for one in models))
            found |= {} if whose is None else {whose: None}
        return tuple(found)

    def unknown_annotators(self, attributes: Attributes) -> list[str]:
        """Annotators whom no member knows, nor predicts by these attributes of theirs."""
        known, each = set(self.known_annotators), list(self._each())
        strangers = (one for one in _checked_attributes(attributes).items() if one[0] not in known)
        return [
            name for name, own in strangers if not any(one.seen_attributes(own) for one in each)
        ]

    def predict(
        self,
        texts: Texts | Sequence[Text],
        *,
        annotators: Mapping[str, Iterable[str]] | None = None,
        by_annotator: bool = False,
        attributes: Attributes | None = None,
        step: Callable[[int, int, str], None] = lambda done, total, member: None,
    ) -> Predictions:
        """Predict texts; parameters, result and errors as those of `score_members`."""
        from edokit.predictions import Predictions

        names, classes = list(self.names), self.classes
        checked = texts.checked() if isinstance(texts, Texts) else Texts.of(texts)
        self._check_contexts(checked)
        if by_annotator and annotators is None:
            raise InputError(
                "a prediction for each annotator needs to know the annotators of the items",
                "name them by item: annotators={'item': ['annotator']}",
                parameters=("annotators",),
            )
        known, info = None, dict[str, dict[str, Any]]()
        if annotators is not None:
            known = _ItemAnnotators(annotators, checked.items, by_annotator, attributes)
        if self._end_to_end:
            step(0, len(names), f"{len(self._listed)} heads")
            (heads,) = self._models(END_TO_END)
            columns = [list(self._listed).index(name) for name in names]
            with _of(self.folder / END_TO_END):
                predicted = heads.predict_proba(checked.texts)[:, columns]
            if known is not None:
                predicted = predicted[known.rows]
                known.unused.update(dict.fromkeys(names, True))
        else:
            each = []
            for done, name in enumerate(names):
                step(done, len(names), name)
                asks = endpoints.current_session()
                asks.member, asks.report = name, partial(step, done, len(names))
                asks.place = checked.place_of
                answer, info[name] = self._predict(name, checked.texts, known)
                each.append(answer)
                rows = len(checked.texts) if known is None else len(known.rows)
                if answer.shape != (rows, len(classes)):
                    raise InputError(
                        f"the member in {self.folder / MEMBERS / name} predicts an array of shape"
                        f" {answer.shape} for {counted(rows, 'text')} and"
                        f" {len(classes)} classes",
                        "train it again",
                    )
            predicted = np.stack(each, axis=1)
        step(len(names), len(names), "")
        groups = [str(self._listed[name]["group"]) for name in names]
        items, whose = list(checked.items), None
        if known is not None and by_annotator:
            items, whose = [items[row] for row in known.rows], known.annotators
            trained_on = [_annotator_of(self._listed[name]) for name in names]
            predicted, names, groups = known.pool_annotators(predicted, names, groups, trained_on)
        if known is not None:
            known.warn()
        return Predictions.from_arrays(
            predicted,
            items=items,
            members=names,
            classes=classes,
            groups=groups,
            annotators=whose,
            layout="NKC",
            scale=self.scale,
            member_info={name: info[name] for name in names if info.get(name)},
        )

    @property
    def _end_to_end(self) -> bool:
        return "end_to_end" in self.manifest

    def _each(self) -> Iterable[Any]:
        """Every member and fold, but for those that were trained end to end."""
        return chain(*(() if self._end_to_end else map(self._models, self.names)))

    def _of_group(self, group: str) -> list[str]:
        """The members of a group that know one annotator each."""
        listed = self._listed.items()
        return [name for name, one in listed if one["group"] == group and _annotator_of(one)]

    def _check_contexts(self, texts: Texts) -> None:
        paired = self.manifest["data"].get("pairs")
        for item, text in zip(texts.items, texts.texts, strict=True):
            if paired is not None and paired == isinstance(text, str):
                raise InputError(
                    f"the members in {self.folder} were trained on texts"
                    f" {'with a' if paired else 'without'} context, but {texts.place(item)} has"
                    f" {'none' if paired else 'one'}",
                    "name its column, columns={'context': 'NAME'}, or choose pairs=True if it is in"
                    " the lines after the text"
                    if paired
                    else "leave the context out",
                    parameters=("columns", "pairs"),
                )

    def _models(self, name: str) -> Iterable[Any]:
        """A member, or its folds, or all members that were trained end to end."""
        if not self._keep:
            return self._load(name)
        if name not in self._kept:
            self._kept[name] = list(self._load(name))
        return self._kept[name]

    def _load(self, name: str) -> Iterator[Any]:
        if self._end_to_end:
            yield self._heads()
            return
        for fold in self._folds(self.folder / MEMBERS / name):
            card = {**finished_card(fold), "classes": self.classes}
            with errors_in(fold):
                check_same_scale(scale_of(card), f"member in {fold}", self.scale, "others")
            yield load_member(fold, **self._context)

    def _heads(self) -> Any:
        from edokit.members.recipes._end_to_end import EndToEndMembers

        folder = self.folder / END_TO_END
        with _of(folder):
            heads: EndToEndMembers = EndToEndMembers.load(folder, device=self._context["device"])
        if heads.n_members != len(self._listed):
            raise InputError(
                f"{folder} holds {heads.n_members} members, but the manifest lists"
                f" {len(self._listed)}",
                "train again",
            )
        return heads

    def _predict(
        self, name: str, texts: Sequence[Text], known: _ItemAnnotators | None
    ) -> tuple[Floats, dict[str, Any]]:
        """Probabilities [N, C] of one member, the mean over its folds, and its details."""
        each, details = [], []
        folds = self._folds(self.folder / MEMBERS / name)
        for fold, member in zip(folds, self._models(name), strict=True):
            with _of(fold):
                if known is None:
                    each.append(np.asarray(member.predict_proba(texts), dtype=float))
                else:
                    each.append(known.predict(name, member, texts))
                details.append({"details": member.details})  # after it has answered
        with _of(self.folder / MEMBERS / name):
            mean: Floats = np.mean(each, axis=0)
        return mean, fold_details(details)


def attributes_of_members(folder: str | Path) -> tuple[str, ...]:
    """The attributes of annotators that the members in a folder were trained with."""
    return tuple(read_manifest(Path(folder))["data"].get("attributes") or ())


def _folds(folder: Path) -> list[Path]:
    """The folders of a member's folds, or its own."""
    return sorted(folder.glob("fold-*")) or [folder]


def _annotator_of(member: Mapping[str, Any]) -> str | None:
    """Whose labels a member was trained on, if it was one annotator's."""
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
    card = finished_card(folder)
    if not card.get("kept", True):
        raise InputError(
            f"the model of {folder} was not kept: it was trained with --forget-models",
            "train it again without this option",
        )
    in_bundle = models is not None and "sha256" in card
    name = card.get("recipe")
    if name is None:
        raise InputError(f"{folder / CARD} names no recipe", "train again")
    # The files of a bundle have been compared with its own list.
    now = card["sha256"] if in_bundle else file_digests(folder)
    changed = [
        file for file, digest in (card.get("sha256") or {}).items() if now.get(file) != digest
    ]
    if changed:
        raise InputError(
            f"the member in {folder} is damaged: {examples(changed)} is not what was trained",
            "copy the folder again, or train again",
        )
    refuse_code(str(folder), name, {}, trust)
    with errors_in(folder / CARD):
        recipe: Any = find_recipe(name)
    taken = inspect.signature(recipe.load).parameters
    context = {"device": device, "trust": tuple(trust), "models": models}
    with _of(folder):
        member: Member = recipe.load(
            folder, **{key: context[key] for key in context if key in taken}
        )
    return member


@contextmanager
def _of(folder: Path) -> Iterator[None]:
    """A model that somebody else wrote may fail in any way; all of them are one error.

    What the libraries say may quote texts, so it is left out.
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


def _checked_attributes(attributes: Attributes) -> dict[str, dict[str, str]]:
    """Attributes with values as texts, as files have them; gaps are left out."""
    if not isinstance(attributes, Mapping) or not all(
        isinstance(own, Mapping) for own in attributes.values()
    ):
        raise InputError(
            "attributes are no mapping of annotators to their attributes",
            "write {'ann': {'age': '29'}}",
            parameters=("attributes",),
        )
    return {
        str(name): {str(key): str(value) for key, value in own.items() if value is not None}
        for name, own in attributes.items()
    }


class _ItemAnnotators:
    """Annotators known to label each of N texts, and where they could not be used.

    Rows are texts or, ``by_annotator``, pairs of a text and one of its annotators, and each text
    once for nobody in particular.
    """

    def __init__(
        self,
        known: Mapping[str, Iterable[str]],
        items: Sequence[str],
        by_annotator: bool = False,
        attributes: Attributes | None = None,
    ) -> None:
        nobody = by_annotator and not known  # the anonymous answers alone
        if not nobody and not any(item in known for item in items):
            raise InputError(
                f"annotators are given for {examples(known) or 'no item'}, for none of the"
                f" {counted(len(items), 'text')} ({examples(items)})",
                "use the same item ids in both files",
            )
        each = [tuple(dict.fromkeys(map(str, known.get(item, ())))) for item in items]
        if by_annotator and not nobody and (silent := sum(not names for names in each)):
            warn(
                f"{are(silent, len(each), HAVE, 'text')} no annotator: the anonymous answer alone"
                " is given"
            )
        self._row = "pair" if by_annotator else "text"
        self.rows: Ints = np.arange(len(items))
        """The text of each row."""
        if by_annotator:
            self.rows = np.append(np.repeat(self.rows, list(map(len, each))), self.rows)
            each = [*((name,) for names in each for name in names), *[()] * len(items)]
        self._annotators = each
        self._attributes = _checked_attributes(attributes or {})
        self._known: set[str] = set()
        self._by_attributes: dict[str, dict[str, None]] = {}
        self._unknown = np.zeros(len(each), dtype=bool)
        self.unused: dict[str, bool] = {}
        """Whether a member, by name, knows no annotators."""

    def predict(self, name: str, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities of each row: of its annotators, if the member knows some."""
        heads, more = set(member.known_annotators), {}
        if member.known_attributes:
            for annotator in self._attributes.keys() - heads:
                if used := member.seen_attributes(self._attributes[annotator]):
                    heads.add(annotator)
                    self._by_attributes.setdefault(annotator, {}).update(dict.fromkeys(used))
            more = {"attributes": self._attributes}
        self.unused[name] = not heads
        if not heads:
            return np.asarray(member.predict_proba(texts))[self.rows]
        self._known |= heads
        self._unknown |= [heads.isdisjoint(names) for names in self._annotators]
        by_annotator: Any = member
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # once for all members, see notes
            found: Floats = by_annotator.predict_proba(
                [texts[row] for row in self.rows], annotators=self._annotators, **more
            )
        return found

    @property
    def annotators(self) -> list[str]:
        """The annotator of each row, where rows are pairs."""
        return [names[0] if names else "" for names in self._annotators]

    def pool_annotators(
        self,
        predicted: Floats,
        names: Sequence[str],
        groups: Sequence[str],
        trained_on: Sequence[str | None],
    ) -> tuple[Floats, list[str], list[str]]:
        """Members that are one annotator each as one member per group, named like the group.

        It predicts with the annotator's own member, for others with the mean of all of them.
        """
        columns: list[Floats] = []
        kept: list[str] = []
        kept_groups: list[str] = []
        for group in dict.fromkeys(groups):
            own = [k for k, name in enumerate(groups) if name == group]
            those = {trained_on[k]: k for k in own if trained_on[k] is not None}
            if not those:
                columns += [predicted[:, k] for k in own]
                kept += [names[k] for k in own]
            else:
                mine = np.array([those.get(name, -1) for name in self.annotators])
                mean = predicted[:, list(those.values())].mean(axis=1, keepdims=True)
                rows = np.arange(len(mine))
                answers = np.where((mine < 0)[:, None], mean[:, 0], predicted[rows, mine])
                columns.append(answers)
                kept.append(group)
                self._known |= {str(name) for name in those}
                self._unknown |= mine < 0
                for k in those.values():
                    self.unused.pop(names[k], None)
                self.unused[group] = False
            kept_groups += [group] * (len(kept) - len(kept_groups))
        return np.stack(columns, axis=1), kept, kept_groups

    def warn(self) -> None:
        """Say what could not be used."""
        without = [name for name, unused in self.unused.items() if unused]
        if without:
            warn(
                f"{are(len(without), len(self.unused), ('knows', 'know'), 'member')} no annotators"
                f" apart and predict as always: {examples(without)} (those that do are trained"
                " with the option annotators=true, or with supervision per-annotator)"
            )
        if len(without) == len(self.unused):
            return
        named = {name for names in self._annotators for name in names}
        if described := sorted(named & {*self._by_attributes}):
            used = dict.fromkeys(chain.from_iterable(self._by_attributes[one] for one in described))
            warn(
                f"{are(len(described), len(named), noun='annotator')} unknown to members, and"
                f" answered by {' and '.join(used)}: {examples(described)}"
            )
        if self._row == "pair":
            asked = {name for names in self._annotators for name in names}
            if strangers := sorted(asked - self._known):
                warn(
                    f"{are(len(strangers), len(asked), noun='annotator')} unknown to all members,"
                    f" and answered anonymously: {examples(strangers)}"
                )
            # Known to some, at least: the anonymous rows are no pairs.
            pairs = [bool(names) for names in self._annotators]
            self._unknown &= [not self._known.isdisjoint(names) for names in self._annotators]
            self._unknown = self._unknown[pairs]
        if self._unknown.any():
            warn(
                f"for {int(self._unknown.sum())} of {counted(len(self._unknown), self._row)} some"
                " members know none of the annotators; there they predict as always"
            )
