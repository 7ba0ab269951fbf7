"""What trained members say about new texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError, examples
from edokit._types import Floats
from edokit.members.collect import MEMBERS, read_card
from edokit.members.end_to_end import FOLDER, EndToEndMembers
from edokit.members.judges import Judges
from edokit.members.manifest import read_manifest
from edokit.members.recipe import Member, Text
from edokit.members.registry import find_recipe, recipe_names
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
    judges: Mapping[str, Iterable[str]] | None = None,
    step: Callable[[int, int, str], None] = lambda done, total, member: None,
) -> Predictions:
    """Predictions of all members in a folder that `edo train` made, or of the named ones.

    Members trained in folds answer with the mean over their folds. ``trust`` names packages, beside
    scikit-learn, whose types may be loaded and whose recipes may be imported. ``judges`` are the
    annotators known to judge an item: members with a head per annotator then answer for these.
    """
    from edokit.predictions import Predictions

    folder = Path(folder)
    manifest = read_manifest(folder)
    listed = {member["name"]: member for member in manifest["members"]}
    names = list(listed if members is None else members)
    unknown = [name for name in names if name not in listed]
    if unknown or not names:
        raise InputError(
            f"members must be among those of {folder} ({examples(listed, 10)}), but got"
            f" {examples(unknown) or 'none'}",
            "check the spelling",
        )
    asked = texts.checked() if isinstance(texts, Texts) else Texts.of(texts)
    told = None if judges is None else Judges(judges, asked.items)
    if "end_to_end" in manifest:
        step(0, len(names), f"{len(listed)} heads")
        places = [list(listed).index(name) for name in names]
        answers = _heads(folder / FOLDER, asked.texts, len(listed), device)[:, places]
        if told is not None:
            told.set_aside(names)
    else:
        each = []
        for done, name in enumerate(names):
            step(done, len(names), name)
            each.append(_answers(folder / MEMBERS / name, asked.texts, device, trust, told))
        answers = np.stack(each, axis=1)
    step(len(names), len(names), "")
    for note in told.notes() if told is not None else ():
        warnings.warn(note, EDOWarning, stacklevel=2)
    return Predictions.from_arrays(
        answers,
        items=asked.items,
        members=names,
        classes=manifest["data"]["classes"],
        groups=[listed[name]["group"] for name in names],
        layout="NKC",
    )


def load_member(folder: Path, device: str | None = None, trust: Sequence[str] = ()) -> Member:
    """One fitted member (or one fold of it) from its folder."""
    card = read_card(folder)
    if card is None:
        raise InputError(
            f"the folder of a member must hold member.json, but {folder} does not", "train again"
        )
    if not card.get("kept", True):
        raise InputError(
            f"the member in {folder} must have been kept to judge new texts, but it was trained"
            " with --forget-models",
            "train it again without this option",
        )
    name = card.get("recipe")
    if not isinstance(name, str):
        raise InputError(f"member.json in {folder} must name a recipe, but does not", "train again")
    package = name.partition(":")[0].partition(".")[0]
    if name not in recipe_names() and package not in trust:
        raise InputError(
            f"a recipe outside of edokit is only imported when you trust it, but {folder} asks for"
            f" {name!r}",
            f"if you do, add --trust {package}",
        )
    recipe: Any = find_recipe(name)
    taken = inspect.signature(recipe.load).parameters
    context = {"device": device, "trust": tuple(trust)}
    more = {key: value for key, value in context.items() if key in taken}
    member: Member = recipe.load(folder, **more)
    return member


def _answers(
    place: Path,
    texts: Sequence[Text],
    device: str | None,
    trust: Sequence[str],
    judges: Judges | None,
) -> Floats:
    """Probabilities [N, C] of one member, the mean over its folds."""
    each = []
    for fold in sorted(place.glob("fold-*")) or [place]:
        member = load_member(fold, device, trust)
        if judges is None:
            each.append(member.predict_proba(texts))
        else:
            each.append(judges.ask(place.name, member, texts))
    total: Floats = np.mean(each, axis=0)
    return total


def _heads(place: Path, texts: Sequence[Text], members: int, device: str | None) -> Floats:
    """Probabilities [N, K, C] of members that were trained end to end."""
    trained = EndToEndMembers.load(place, device=device)
    if trained.n_members != members:
        raise InputError(
            f"{place} must hold the {members} members of the manifest, but holds"
            f" {trained.n_members}",
            "train again",
        )
    return trained.predict_members(texts)
