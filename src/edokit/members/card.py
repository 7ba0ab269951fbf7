"""The card of a member, or of one fold of it: ``member.json``, written when it is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from edokit._errors import InputError
from edokit._io.atomic import files_below
from edokit._io.digests import digest_file
from edokit._io.documents import Count, Document, Json, Names, read_json, to_model, write_json
from edokit._package import member_versions
from edokit.members.layout import CARD, FORMAT
from edokit.members.recipe import Member
from edokit.scales import Scale

# The content of a card.
Card = dict[str, Any]


class MemberCard(Document):
    """The fields of ``member.json`` that are needed to use the member."""

    format: Count
    recipe: str
    options: dict[str, Json]
    fingerprint: str
    classes: Names
    scale: str
    kept: bool
    sha256: dict[str, str]
    seconds: Annotated[float, Field(ge=0)]
    details: dict[str, Json] = Field(default_factory=dict)


def card_fields(member: Member, classes: Sequence[str], scale: Scale) -> Card:
    """The fields that the cards of all saved members have, trained here or added."""
    return {
        "format": FORMAT,
        "details": dict(member.details),
        "classes": list(classes),
        "scale": scale.to_text(tuple(classes)),
        "versions": member_versions(),
    }


def read_card(folder: Path) -> Card:
    """The card in the folder of a finished job."""
    path = folder / CARD
    if not os.path.lexists(path):
        raise InputError(
            f"{folder} has no {CARD}: it is not a trained member",
            "train again",
            code="wrong-folder",
        )
    card: Card = read_json(path)
    hint = "remove this folder and train again"
    to_model(card, MemberCard, path, title="the card of a trained member", hint=hint)
    return card


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write the card of a job, with digests of its files: a damaged model is not loaded.

    It is replaced in one step, so that a kill leaves the old card or the new one.
    """
    digests = {
        name: digest_file(path) for name, path in files_below(folder).items() if name != CARD
    }
    write_json({**card, "sha256": digests}, folder / CARD)


def changed_files(folder: Path, digests: Mapping[str, str]) -> list[str]:
    """Files of a job that are missing or differ from these digests, which its card has."""
    changed = []
    for name, digest in digests.items():
        path = folder / name
        if not os.path.isfile(path) or digest_file(path) != digest:
            changed.append(name)
    return changed
