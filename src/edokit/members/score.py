"""What trained members say about new texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit.errors import InputError, examples
from edokit.members.collect import MEMBERS, read_card
from edokit.members.manifest import read_manifest
from edokit.members.recipe import Floats, Member, Text
from edokit.members.registry import RECIPES, find_recipe
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
    step: Callable[[int, int, str], None] = lambda done, total, member: None,
) -> Predictions:
    """Predictions of all members in a folder that `edo train` made, or of the named ones.

    Members trained in folds answer with the mean over their folds. ``trust`` names packages, beside
    scikit-learn, whose types may be loaded and whose recipes may be imported.
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
    answers = []
    for done, name in enumerate(names):
        step(done, len(names), name)
        answers.append(_answers(folder / MEMBERS / name, asked.texts, device, trust))
    step(len(names), len(names), "")
    return Predictions.from_arrays(
        np.stack(answers, axis=1),
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
    name = str(card["recipe"])
    package = name.partition(":")[0].partition(".")[0]
    if name not in RECIPES and package not in trust:
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
    place: Path, texts: Sequence[Text], device: str | None, trust: Sequence[str]
) -> Floats:
    """Probabilities [N, C] of one member, the mean over its folds."""
    folds = sorted(place.glob("fold-*")) or [place]
    total: Floats = np.mean(
        [load_member(fold, device, trust).predict_proba(texts) for fold in folds], axis=0
    )
    return total
