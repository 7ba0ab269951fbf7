"""Declared groups of annotators, and what groups are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edokit._errors import HAVE, InputError, are, examples
from edokit._names import class_order
from edokit._types import Ints
from edokit.annotations import Annotations
from edokit.diagnose.answers import Answers
from edokit.diagnose.views import pair_agreement

_SHOWN = 20
Declared = str | Mapping[Any, Any] | Sequence[Any]


def declared_groups(annotations: Annotations, groups: Declared) -> tuple[Ints, list[str]]:
    """The group of each annotator [A], -1 for none, and the groups' names.

    ``groups`` names an attribute of the annotators, maps annotators to groups, or lists a group
    for each of them. Empty text and None are no group.
    """
    people = [str(name) for name in annotations.annotators]
    if isinstance(groups, str):
        if groups not in annotations.attributes:
            known = ", ".join(map(repr, sorted(annotations.attributes))) or "none"
            raise InputError(
                f"groups must be declared by an attribute of the annotators ({known}), but got"
                f" {groups!r}",
                "give the table a column with one value per annotator, or leave groups out",
            )
        values: list[Any] = list(annotations.attributes[groups])
    elif isinstance(groups, Mapping):
        given = {str(name): value for name, value in groups.items()}
        missing = [name for name in people if name not in given]
        if missing:
            raise InputError(
                f"groups must name a group for every annotator, but"
                f" {are(len(missing), len(people), HAVE)} none: {examples(missing)}",
                "add them; None stands for no group",
            )
        values = [given[name] for name in people]
    else:
        values = list(groups)
        if len(values) != len(people):
            raise InputError(
                f"groups must be one per annotator ({len(people)}), but got {len(values)}",
                "give them in the order of annotations.annotators",
            )
    names = ["" if value is None else str(value) for value in values]
    known_names = class_order({name for name in names if name})
    if not known_names:
        raise InputError(
            "groups must put somebody into a group, but everybody is in none",
            "give groups, or leave them out to have them looked for",
        )
    where = {name: code for code, name in enumerate(known_names)}
    return np.array([where.get(name, -1) for name in names], dtype=np.int64), list(known_names)


def describe_groups(
    annotations: Annotations, answers: Answers, group: Ints, names: list[str]
) -> list[dict[str, Any]]:
    """Size, base rates, and agreement within and across, group by group.

    ``within`` and ``between`` are shares of agreeing pairs beyond the mean pair of the same item.
    """
    rows = (
        annotations.label_probabilities
        if annotations.label_probabilities is not None
        else np.eye(len(annotations.classes))[annotations.answers]
    )
    own = group[annotations.annotator_codes]
    overall = rows[own >= 0].mean(axis=0) if (own >= 0).any() else rows.mean(axis=0)
    within, between = pair_agreement(answers, group, len(names))
    described = []
    for code, name in enumerate(names):
        here = own == code
        shares = rows[here].mean(axis=0) if here.any() else None
        members = np.flatnonzero(group == code)
        described.append(
            {
                "name": name,
                "annotators": len(members),
                "annotations": int(here.sum()),
                "shares": None
                if shares is None
                else dict(zip(annotations.classes, shares.tolist(), strict=True)),
                "within": within[code],
                "between": between[code],
                "members": [str(annotations.annotators[a]) for a in members[:_SHOWN]],
                "character": _character(
                    annotations.classes, shares, overall, within[code], between[code]
                ),
            }
        )
    return described


def _character(
    classes: tuple[str, ...],
    shares: Any,
    overall: Any,
    within: float | None,
    between: float | None,
) -> str:
    """What sets a group apart, in words."""
    if shares is None:
        return "nobody answered"
    said = []
    apart = shares - overall
    c = int(np.argmax(np.abs(apart)))
    if abs(apart[c]) >= 0.02:
        if len(classes) == 2 and apart[c] < 0:
            c = 1 - c
        more = "more" if apart[c] > 0 else "less"
        said.append(
            f"{more} often {classes[c]!r} than the groups together"
            f" ({shares[c]:.0%} against {overall[c]:.0%})"
        )
    if within is not None and between is not None and within < between:
        said.append("its people agree less with each other than with the others: less steady")
    return "; ".join(said) or "about the same base rates as the groups together"
