"""Predictions of trained members on new texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError, counted, examples, warn
from edokit._types import Floats
from edokit.members.folder import read_manifest
from edokit.members.jobs import CARD, END_TO_END, MEMBERS, finished_card
from edokit.members.recipe import Member, Text, find_recipe, refuse_code
from edokit.members.texts import Texts

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
        Annotators known to label an item, by item: members with a head per annotator then predict
        the labels of these.
    step : callable, default=no-op
        Called with the number of members done, of all members, and the name of the next.

    Returns
    -------
    Predictions
        Probabilities of all members; those trained in folds give the mean over their folds.

    Raises
    ------
    InputError
        If the folder holds no such members, or a text is missing.

    Examples
    --------
    >>> predictions = score_members("members", ["a first text", "another"])  # doctest: +SKIP
    """
    from edokit.predictions import Predictions

    folder = Path(folder)
    manifest = read_manifest(folder)
    listed = {member["name"]: member for member in manifest["members"]}
    names = list(listed if members is None else members)
    unknown = [name for name in names if name not in listed]
    if unknown or not names:
        raise InputError(
            f"{folder} has no member {examples(unknown) or 'to score with'}; its members are"
            f" {examples(listed, 10)}",
            "check the spelling",
        )
    checked = texts.checked() if isinstance(texts, Texts) else Texts.of(texts)
    known = None if annotators is None else _ItemAnnotators(annotators, checked.items)
    if "end_to_end" in manifest:
        from edokit.members.recipes._end_to_end import EndToEndMembers

        step(0, len(names), f"{len(listed)} heads")
        heads: EndToEndMembers = EndToEndMembers.load(folder / END_TO_END, device=device)
        if heads.n_members != len(listed):
            raise InputError(
                f"{folder / END_TO_END} holds {heads.n_members} members, but the manifest lists"
                f" {len(listed)}",
                "train again",
            )
        columns = [list(listed).index(name) for name in names]
        predicted = heads.predict_proba(checked.texts)[:, columns]
        if known is not None:
            known.unused.update(dict.fromkeys(names, True))
    else:
        each = []
        for done, name in enumerate(names):
            step(done, len(names), name)
            each.append(_member(folder / MEMBERS / name, checked.texts, device, trust, known))
        predicted = np.stack(each, axis=1)
    step(len(names), len(names), "")
    if known is not None:
        known.warn()
    return Predictions.from_arrays(
        predicted,
        items=checked.items,
        members=names,
        classes=manifest["data"]["classes"],
        groups=[listed[name]["group"] for name in names],
        layout="NKC",
    )


def load_member(folder: Path, device: str | None = None, trust: Sequence[str] = ()) -> Member:
    """One fitted member (or one fold of it) from its folder."""
    card = finished_card(folder)
    if not card.get("kept", True):
        raise InputError(
            f"the model of {folder} was not kept: it was trained with --forget-models",
            "train it again without this option",
        )
    name = card.get("recipe")
    if not isinstance(name, str):
        raise InputError(f"{folder / CARD} names no recipe", "train again")
    refuse_code(str(folder), name, {}, trust)
    recipe: Any = find_recipe(name)
    taken = inspect.signature(recipe.load).parameters
    context = {"device": device, "trust": tuple(trust)}
    member: Member = recipe.load(folder, **{key: context[key] for key in context if key in taken})
    return member


def _member(
    folder: Path,
    texts: Sequence[Text],
    device: str | None,
    trust: Sequence[str],
    known: _ItemAnnotators | None,
) -> Floats:
    """Probabilities [N, C] of one member, the mean over its folds."""
    each = []
    for fold in sorted(folder.glob("fold-*")) or [folder]:
        member = load_member(fold, device, trust)
        if known is None:
            each.append(member.predict_proba(texts))
        else:
            each.append(known.predict(folder.name, member, texts))
    mean: Floats = np.mean(each, axis=0)
    return mean


class _ItemAnnotators:
    """Annotators known to label each of N texts, and where they could not be used."""

    def __init__(self, known: Mapping[str, Iterable[str]], items: Sequence[str]) -> None:
        if not any(item in known for item in items):
            raise InputError(
                f"annotators are given for {examples(known) or 'no item'}, for none of the"
                f" {counted(len(items), 'text')} ({examples(items)})",
                "use the same item ids in both files",
            )
        self._annotators = [tuple(map(str, known.get(item, ()))) for item in items]
        self._unknown = np.zeros(len(items), dtype=bool)
        self.unused: dict[str, bool] = {}
        """Whether a member, by name, has no head per annotator."""

    def predict(self, name: str, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]: of each text's annotators, if the member has heads for them."""
        heads = set(member.known_annotators)
        self.unused[name] = not heads
        if not heads:
            return member.predict_proba(texts)
        self._unknown |= [heads.isdisjoint(names) for names in self._annotators]
        by_annotator: Any = member
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # once for all members, see notes
            found: Floats = by_annotator.predict_proba(texts, annotators=self._annotators)
        return found

    def warn(self) -> None:
        """Say what could not be used."""
        without = [name for name, unused in self.unused.items() if unused]
        if without:
            warn(
                f"{len(without)} of {counted(len(self.unused), 'member')} have no head per"
                f" annotator and predict as always: {examples(without)} (train with"
                " annotator_heads=true)"
            )
        if self._unknown.any() and len(without) < len(self.unused):
            warn(
                f"for {int(self._unknown.sum())} of {counted(len(self._unknown), 'text')} some"
                " members know none of the annotators; there they average over all annotators"
            )
