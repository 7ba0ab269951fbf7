"""Resuming: which jobs of a plan are finished in a folder, and which are still to be run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from edokit._errors import InputError, examples, option, warn
from edokit._io.atomic import discard, remove_leftovers
from edokit.members.card import Card, changed_files, read_card
from edokit.members.layout import CARD, EXISTING, MANIFEST, MEMBERS
from edokit.members.plan import TrainingJob, TrainingPlan

# Cards of finished jobs by `TrainingJob.path`.
Cards = Mapping[str, Card]


def open_folder(plan: TrainingPlan, out: Path) -> list[TrainingJob]:
    """Prepare a folder for the jobs of a plan, and return those that are not finished.

    Members trained with other data or settings are refused or, with ``overwrite``, replaced. A
    folder of added models (`add_member`) is refused, too: they have no predictions of the splits.
    """
    cards = member_cards(out)
    added = [name for name, card in cards.items() if card["recipe"] == EXISTING]
    if added:
        raise InputError(
            f"{out} holds models that were added to it: {examples(added)}",
            f"choose another {option('out')} folder; {option('members')} can be given several times"
            " where members predict",
            code="existing-file",
        )
    if out.is_dir():
        remove_leftovers(out)
    waiting = unfinished_jobs(plan, out, cards)
    if waiting:
        (out / MANIFEST).unlink(missing_ok=True)  # it describes other members, and is written last
    return waiting


def member_cards(out: Path) -> Cards:
    """Cards of the finished jobs in a folder, by `TrainingJob.path`."""
    root = out / MEMBERS
    paths = sorted(chain(root.glob(f"[!.]*/{CARD}"), root.glob(f"[!.]*/fold-*/{CARD}")))
    return {path.parent.relative_to(root).as_posix(): read_card(path.parent) for path in paths}


def unfinished_jobs(plan: TrainingPlan, out: Path, cards: Cards) -> list[TrainingJob]:
    """The jobs of a plan that are not finished in a folder with these cards."""
    different = _different_jobs(plan, cards)
    if different and not plan.options.overwrite:
        raise InputError(
            f"{out} holds other members, trained on other data or with other settings:"
            f" {examples(different)}",
            f"choose another {option('out')} folder, or replace them with"
            f" {option('overwrite', True)}",
            code="other-settings",
        )
    for path in different:
        discard(out / MEMBERS / path)
    unfinished = []
    for job in plan.jobs:
        folder = out / job.folder
        if job.path in cards and job.path not in different:
            changed = changed_files(folder, cards[job.path]["sha256"])
            if not changed:
                continue
            # For example an incomplete copy from another machine.
            warn(f"{folder} is damaged ({examples(changed)}) and is trained again")
        discard(folder)  # without a card it was left by an interrupted removal
        unfinished.append(job)
    return unfinished


def _different_jobs(plan: TrainingPlan, cards: Cards) -> list[str]:
    """Finished jobs of the plan's members whose data or settings are not those of the plan."""
    fingerprints = {job.path: plan.fingerprint(job) for job in plan.jobs}
    members = {job.member for job in plan.jobs}
    different = []
    for path, card in cards.items():
        member = path.partition("/")[0]
        if member in members and fingerprints.get(path) != card["fingerprint"]:
            different.append(path)
    return different
