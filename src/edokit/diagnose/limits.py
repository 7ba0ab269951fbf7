"""What can't be known from the data, in words."""

from __future__ import annotations

from edokit._errors import counted
from edokit.annotations import Annotations
from edokit.diagnose.variance import Shares

_WORTH_SAYING = 0.01


def limits(
    annotations: Annotations,
    shares: Shares | None,
    alone: list[str],
    unplaced: int,
) -> list[str]:
    """Sentences; ``alone`` are declared groups of one person, ``unplaced`` people in no group."""
    said = []
    people = int((annotations.annotations_per_annotator > 0).sum())
    if annotations.repeated.any():
        said.append(
            f"{counted(int(annotations.repeated.sum()), 'further answer')} of someone to the same"
            " item: only the first one counts for structure."
        )
    if shares is None:
        return said
    said.append(
        "With one answer per annotator and item, a view of one person alone can't be told from"
        " noise; asking the same people again about some items would tell them apart."
    )
    if people < 4:
        said.append(
            f"With {people} annotators there are no two groups of two: how much variance belongs"
            " to groups by items can't be known."
        )
    if max(shares.item.hidden, shares.group_item.hidden) >= _WORTH_SAYING and people >= 2:
        more = f"up to {shares.item.hidden:.1%} of the variance more"
        said.append(
            f"These are {people} annotators: if what is left is views of their own, {more} belongs"
            " to items"
            + (
                f" and up to {shares.group_item.hidden:.1%} more to groups by items."
                if shares.group_item.share == shares.group_item.share
                else "."
            )
        )
    if alone:
        named = ", ".join(repr(name) for name in alone[:3])
        said.append(
            f"{len(alone)} declared groups are one person each ({named}"
            f"{', …' if len(alone) > 3 else ''}): their view can't be told from noise."
        )
    if unplaced:
        said.append(
            f"{unplaced} of {people} annotators answered too few contested items, or have no"
            " group: they are in none."
        )
    short = int((annotations.annotations_per_item == 2).sum())
    if short:
        said.append(
            f"{short} items have two answers: they count for the variance, but say nothing about"
            " who goes with whom."
        )
    return said
