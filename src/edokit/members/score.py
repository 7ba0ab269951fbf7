"""What trained members say about new texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import EDOWarning, InputError, counted, examples, headings
from edokit._types import Floats
from edokit.members.end_to_end import END_TO_END, EndToEndMembers
from edokit.members.folder import MEMBERS, read_card, read_manifest
from edokit.members.recipe import Member, Text, find_recipe, recipe_names
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
        answers = _heads(folder / END_TO_END, asked.texts, len(listed), device)[:, places]
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


def read_judges(
    path: str | Path, *, columns: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Annotators by item, from a table with ``item`` and ``annotator`` columns or from any source
    of annotations; what they answered is not looked at."""
    from edokit._io import TABLE_SUFFIXES

    path = Path(path)
    if path.suffix.lower() in TABLE_SUFFIXES:
        items, people = _read_annotator_table(path, columns or {})
    else:
        from edokit.datasets import read_annotations

        told = read_annotations(path, columns=columns or None)
        items, people = told.items[told.item_codes], told.annotators[told.annotator_codes]
    judges: dict[str, dict[str, None]] = {}
    for item, annotator in zip(items, people, strict=True):
        judges.setdefault(str(item), {})[str(annotator)] = None
    return {item: tuple(names) for item, names in judges.items()}


class Judges:
    """Who judges each of N texts, and which members and texts it could not be used for."""

    def __init__(self, known: Mapping[str, Iterable[str]], items: Sequence[str]) -> None:
        if not any(item in known for item in items):
            raise InputError(
                f"judges must be named for some of the {len(items)} texts' items"
                f" ({examples(items)}), but are named for {examples(known) or 'none'}",
                "use the same item ids in both files",
            )
        self._judges = [tuple(map(str, known.get(item, ()))) for item in items]
        self._strangers = np.zeros(len(items), dtype=bool)
        self._members: dict[str, bool] = {}

    def ask(self, name: str, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]: of those who judge each text, if the member can tell them apart."""
        known = set(member.known_annotators)
        self._members[name] = bool(known)
        if not known:
            return member.predict_proba(texts)
        self._strangers |= [known.isdisjoint(judges) for judges in self._judges]
        asked: Any = member
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # told once for all members, see notes
            answers: Floats = asked.predict_proba(texts, annotators=self._judges)
        return answers

    def set_aside(self, names: Iterable[str]) -> None:
        """These members answer as always."""
        self._members.update(dict.fromkeys(names, False))

    def notes(self) -> list[str]:
        """What could not be used, in words."""
        alike = [name for name, told in self._members.items() if not told]
        lines = []
        if alike:
            lines.append(
                f"{len(alike)} of {counted(len(self._members), 'member')} cannot tell annotators"
                f" apart and answer as always: {examples(alike)} (train with"
                " --option annotator_heads=true)"
            )
        if self._strangers.any() and len(alike) < len(self._members):
            lines.append(
                f"for {int(self._strangers.sum())} of {counted(len(self._strangers), 'text')} some"
                " members know none of the judges; there they average over all annotators"
            )
        return lines


def _read_annotator_table(path: Path, columns: Mapping[str, str]) -> tuple[Any, Any]:
    from edokit._io import read_table
    from edokit._names import encode

    table = read_table(path)
    found = []
    for role in ("item", "annotator"):
        # The texts' table may call its items by another name than this one.
        names = [name for name in (columns.get(role, role), role) if name in table.column_names]
        if not names:
            raise InputError(
                f"{path} must have a column for the {role}, but {columns.get(role, role)!r} is not"
                f" among {headings(table.column_names)}",
                f"map it with --column {role}=NAME",
            )
        encoded = encode(table[names[0]], names[0])
        if (encoded.codes < 0).any():
            raise InputError(
                f"every row of {path} must name its {role}, but row"
                f" {int((encoded.codes < 0).argmax()) + 1} does not",
                "fill the gap or drop the row",
            )
        found.append(encoded.names[encoded.codes])
    return found[0], found[1]
