"""The folder of a training: which jobs are finished, their predictions, and the manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, errors_in, examples, warn
from edokit._io.atomic import digest_of, discard, files_below
from edokit._io.schema import (
    checked,
    distinct,
    flag,
    listed,
    loose,
    mapping,
    needs,
    number,
    plain,
    read_document,
    record,
    text,
)
from edokit.members.groups import Group, folder_name
from edokit.members.jobs import (
    CARD,
    END_TO_END,
    FORMAT,
    JOB_PREDICTIONS,
    MANIFEST,
    MEMBERS,
    PAIRS,
    PREDICTIONS,
    Outcome,
    Plan,
    TrainingJob,
    finished_card,
    read_card,
    sizes_of,
    versions,
)
from edokit.members.pretrained import copy_renamed, public_name, renamed
from edokit.members.recipe import are_pairs, find_recipe, known_options, read_arrays, write_arrays
from edokit.members.training_data import FIT, TrainingData
from edokit.scales import NOMINAL, Declared, Scale

if TYPE_CHECKING:
    from edokit.predictions import Predictions


_SCALAR = (str, int, float, bool)


def unfinished_jobs(plan: Plan, out: Path, *, overwrite: bool = False) -> list[TrainingJob]:
    """The jobs that are not finished; members trained otherwise are refused or replaced."""
    missing: list[TrainingJob] = []
    other: dict[str, Path] = {}
    for job in plan.jobs:
        folder = out / job.folder
        card = read_card(folder)
        if card is None:
            missing.append(job)
            # Trained in folds and now without, or the reverse.
            if job.fold is None and any(map(read_card, folder.glob("fold-*"))):
                other[job.path] = folder
            elif job.fold is not None and read_card(folder.parent) is not None:
                other[job.path] = folder.parent
            else:
                # A folder without a card is what is left of one that was being removed.
                discard(folder)
        elif card.get("fingerprint") != plan.fingerprint(job):
            other[job.path] = folder
        elif not _is_complete(folder, card.get("files", {})):
            # Such as a copy from another machine that broke off.
            warn(f"{folder} has lost a file or a part of one and is trained again")
            discard(folder)
            missing.append(job)
    if other and not overwrite:
        were = "was" if len(other) == 1 else "were"
        how = f"{len(other)} {were} trained on other data or with other settings: {examples(other)}"
        raise _others_in(out, how)
    if plan.end_to_end:
        return list(plan.jobs) if other else missing  # replaced when the new is finished
    for folder in dict.fromkeys(other.values()):
        discard(folder)
    return unfinished_jobs(plan, out) if other else missing


def check_kind(plan: Plan, out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds members of the other kind, unless they are to be replaced."""
    other, how = (MEMBERS, "one by one") if plan.end_to_end else (END_TO_END, "end to end")
    if (out / other).is_dir() and not overwrite:
        raise _others_in(out, f"they were trained {how}")


def _others_in(out: Path, how: str) -> InputError:
    return InputError(
        f"{out} holds other members: {how}",
        "choose another out folder, or replace them with overwrite=True",
        parameters=("out", "overwrite"),
    )


def other_members(plan: Plan, out: Path) -> list[str]:
    """Members that are finished here, but are not part of the plan."""
    root = out / MEMBERS
    cards = chain(root.glob(f"*/{CARD}"), root.glob(f"*/fold-*/{CARD}"))
    found = {card.relative_to(root).parts[0] for card in cards}
    planned = {job.member for job in plan.jobs}
    return sorted(name for name in found - planned if not name.startswith("."))


def collect_predictions(
    plan: Plan, out: Path, failed: Sequence[str] = ()
) -> dict[str, Predictions]:
    """Predictions of all members but the failed ones, by name.

    With folds, ``fit`` holds for each item the prediction of the fit that it was held out from,
    and the others hold the mean over the folds' fits. Names that end in ``-pairs`` are of pairs of
    an item and an annotator, and anonymous answers, by the members that know annotators.
    """
    from edokit.predictions import Predictions

    of_member: dict[str, list[TrainingJob]] = {}
    for job in plan.jobs:
        if job.member not in failed:
            of_member.setdefault(job.member, []).append(job)
    gathered: dict[str, list[Any]] = {}
    rows: dict[str, list[tuple[int, str | None]]] = {}
    jobs_of: dict[str, list[TrainingJob]] = {}
    for jobs in of_member.values():
        stored = [_stored(plan, job, out / job.folder / JOB_PREDICTIONS) for job in jobs]
        for name in stored[0]:
            if not all(name in arrays for arrays in stored):
                continue
            asked = [arrays[name][0] for arrays in stored]
            each = [arrays[name][1] for arrays in stored]
            if name.removesuffix(PAIRS) == FIT and plan.folds is not None:
                every = list(chain.from_iterable(asked))
                order = sorted(range(len(every)), key=lambda row: every[row][0])
                rows[name] = [every[row] for row in order]
                predicted = np.concatenate(each)[order]
            else:
                rows[name], predicted = asked[0], np.mean(each, axis=0)
            gathered.setdefault(name, []).append(predicted)
            jobs_of.setdefault(name, []).append(jobs[0])
    info: dict[str, Any] = {}
    for member, jobs in of_member.items():
        info[member] = fold_details([_checked_card(out / job.folder) for job in jobs])
    return {
        name: Predictions.from_arrays(
            predicted[0] if plan.end_to_end else np.stack(predicted, axis=1),
            items=[plan.data.items[i] for i, _ in rows[name]],
            members=[member for job in jobs_of[name] for member in job.members],
            classes=plan.data.classes,
            groups=[job.group for job in jobs_of[name] for _ in job.members],
            annotators=[whose for _, whose in rows[name]] if name.endswith(PAIRS) else None,
            layout="NKC",
            scale=plan.data.scale,
            member_info={job.member: info[job.member] for job in jobs_of[name] if info[job.member]},
        )
        for name, predicted in gathered.items()
    }


def fold_details(cards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cards of a member's folds have in common; an item costs what all of them cost."""
    from edokit.predictions.core import combined_info

    each = [
        {key: one for key, one in (card.get("details") or {}).items() if isinstance(one, _SCALAR)}
        for card in cards
    ]
    return combined_info([{"": one} for one in each], [1.0] * len(each), [""]).get("", {})


def _stored(plan: Plan, job: TrainingJob, path: Path) -> dict[str, tuple[list[Any], Any]]:
    """What a finished job predicted, by split: the rows that the plan has there, and arrays."""
    arrays, found = read_arrays(path), dict[str, tuple[list[Any], Any]]()
    for name, positions in plan.rows(job).predict.items():
        ids = [plan.data.items[i] for i in positions]
        known = arrays.get(f"{name} items")
        whole = known is not None and known.tolist() == ids
        asked: dict[str, list[Any]] = {name: [(int(i), None) for i in positions]}
        if f"{name}{PAIRS}" in arrays:
            asked[f"{name}{PAIRS}"] = plan.pairs(positions)
        for part, rows in asked.items():
            shape = (len(rows), *([job.heads] if job.heads else []), len(plan.data.classes))
            predicted = arrays.get(part)
            if (
                not whole
                or predicted is None
                or predicted.shape != shape
                or predicted.dtype.kind != "f"
                or not np.isfinite(predicted).all()
            ):
                raise InputError(
                    f"{path} is damaged: it does not hold probabilities of shape {shape} for the"
                    f" items of {part!r}",
                    "remove the folder that it is in and train again",
                )
            found[part] = rows, predicted
        if f"{name}{PAIRS}" in found:  # with the anonymous answer of each item
            pairs, predicted = found[f"{name}{PAIRS}"]
            both = [*pairs, *((int(i), "") for i in positions)]
            found[f"{name}{PAIRS}"] = both, np.concatenate([predicted, found[name][1]])
    return found


def make_manifest(
    plan: Plan,
    groups: Sequence[Group],
    predictions: Mapping[str, Predictions],
    failed: Sequence[Outcome],
    out: Path,
    *,
    random_state: int,
    source: str = "",
    ensemble: Any = None,
) -> dict[str, Any]:
    """Groups, members with their metrics, those of the uniform mean, failures, versions.

    ``ensemble`` is the one that was trained end to end with its members.
    """
    data = plan.data
    listed_groups = []
    for group in groups:
        default = {} if plan.end_to_end else known_options(find_recipe(group.recipe))
        listed_groups.append({**asdict(group), "options": {**default, **group.options}})
    labelled = {
        name: table
        for name, table in predictions.items()
        if table.annotators is None and str(table.items[0]) not in data.asked
    }
    scores = {
        name: [_scores(data, table, table.probabilities[:, k]) for k in range(len(table.members))]
        for name, table in labelled.items()
    }
    listed = next(iter(predictions.values())).members if predictions else ()
    members = [
        _member(plan, name, out, {split: table[k] for split, table in scores.items()})
        for k, name in enumerate(listed)
    ]
    manifest = {
        "format": FORMAT,
        "data": {
            "source": source,
            "digest": data.digest,
            "items": dict(Counter(data.splits)),
            "classes": list(data.classes),
            "scale": data.scale.to_text(data.classes),
            "pairs": are_pairs(data.texts),
            "annotators": len(data.annotators),
            **({"attributes": list(data.attributes)} if data.attributes else {}),
        },
        "seed": random_state,
        "cross_fit": None if plan.folds is None else int(plan.folds.max()) + 1,
        "groups": listed_groups,
        "members": members,
        "mean": {split: _scores(data, t, t.uniform) for split, t in labelled.items()},
        "failed": [{"name": one.job.path, "reason": one.reason} for one in failed],
        "predictions": {name: f"{PREDICTIONS}/{name}.npz" for name in predictions},
        "seconds": round(sum(member.get("seconds", 0.0) for member in members), 3),
        "versions": versions(),
    }
    if ensemble is not None:
        card = finished_card(out / END_TO_END)
        manifest |= {
            "pool": {
                split: _scores(data, table, ensemble.predict_proba(table))
                for split, table in labelled.items()
            },
            "end_to_end": {
                "folder": END_TO_END,
                "preset": plan.jobs[0].options["preset"],
                **{key: card[key] for key in ("size", "best_epoch", "history", "notes")},
                "hardware": card["hardware"],
            },
            "seconds": card["seconds"],
            "versions": card["versions"],
        }
    return manifest


def write_training(
    out: Path, predictions: Mapping[str, Predictions], manifest: dict[str, Any]
) -> None:
    """Write predictions, and the manifest last."""
    from edokit._io import write_json
    from edokit.predictions import write_predictions

    path, same = out / MANIFEST, False
    with suppress(OSError, ValueError):
        same = json.dumps(json.loads(path.read_text(encoding="utf-8"))) == json.dumps(manifest)
    if path.is_file() and not same:
        path.unlink()  # it does not describe what is written now
    for name, table in predictions.items():
        write_predictions(table, out / PREDICTIONS / f"{name}.npz")
    write_json(manifest, path)


def _named(value: Any, at: str) -> Any:
    """Members, each name once."""
    members = listed(record({"name": folder_name, "group": text}))(value, at)
    needs(len({one["name"] for one in members}) == len(members), at, "holds a name twice")
    return members


_MANIFEST = record(
    {
        "members": _named,
        "data": record(
            {"classes": distinct(listed(text, least=2))},
            {"scale": text, "pairs": flag, "attributes": listed(text)},
        ),
    },
    {"format": number(0, whole=True), "end_to_end": mapping(loose)},
)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of members."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(
            f"{folder} holds no {MANIFEST}, so it is no folder of trained members"
            if folder.exists()
            else f"there is no folder {folder}",
            "name a folder that `edo train` finished (start it again and it goes on)",
        )
    what = "a manifest of trained members"
    manifest: dict[str, Any] = read_document(path, _MANIFEST, what, "train again")
    written = manifest.get("format") or 0
    if written > FORMAT:
        raise InputError(
            f"{path} has the format {written!r}; this version reads {FORMAT} and older",
            "install a newer edokit",
        )
    with errors_in(path):
        scale_of(manifest["data"])
    return manifest


def scale_of(described: Mapping[str, Any]) -> Scale:
    """The answer scale in a manifest or a member's card; old ones name none and are nominal."""
    return Declared(described.get("scale") or NOMINAL).on(described["classes"])


def copy_members(
    folder: Path,
    manifest: Mapping[str, Any],
    names: Sequence[str],
    out: Path,
    models: Mapping[str, str],
) -> None:
    """Copy these members, all of those that were trained end to end, without their predictions.

    Others are to read the copy: pretrained models that were given as folders are named in it as in
    ``models``, or by the last part of the folder.
    """
    from edokit._io import write_json

    whole = "end_to_end" in manifest
    kept = [one for one in manifest["members"] if whole or one["name"] in set(names)]
    folders = [END_TO_END] if whole else [f"{MEMBERS}/{one['name']}" for one in kept]
    needed = {one["group"] for one in kept}
    groups = [one for name, one in groups_of(manifest).items() if name in needed]
    # What a server calls its model is no folder of this machine.
    given = (one["options"].get("model") for one in groups if not find_recipe(one["recipe"]).remote)
    called = {name: public_name(name) for name in given if isinstance(name, str)} | {**models}
    for place in folders:
        for card in sorted((folder / place).rglob(CARD)):
            _copy_job(card.parent, out / card.parent.relative_to(folder), called)
    about = {**manifest["data"], "source": Path(str(manifest["data"].get("source") or "")).name}
    made = {
        **{key: value for key, value in manifest.items() if key not in ("mean", "pool")},
        "data": about,
        "groups": renamed(groups, called),
        "members": kept,
        "failed": [],
        "predictions": {},
    }
    write_json(made, out / MANIFEST)


def groups_of(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a manifest says of its groups, by name."""
    listed = manifest.get("groups")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {str(one.get("name")): one for one in found}


def _copy_job(folder: Path, out: Path, called: Mapping[str, str]) -> None:
    """Copy a finished job without its predictions, with pretrained models as they are called."""
    card = finished_card(folder)
    out.mkdir(parents=True)
    names = files_below(folder)
    for name in (JOB_PREDICTIONS, CARD):
        names.pop(name, None)
    was = {"files": lambda path: path.stat().st_size, "sha256": digest_of}
    for name, path in names.items():
        copy_renamed(path, out / name, called)
        if path.suffix == ".npz":
            _rename_in_arrays(out / name, called)
        for key, of in was.items() if path.suffix in (".json", ".npz") else ():
            # A file that was damaged before is none that was trained, and is refused as ever.
            if name in card.get(key, {}) and card[key][name] == of(path):
                card[key][name] = of(out / name)
    for key in was:
        if key in card:
            card[key] = {name: card[key][name] for name in card[key] if name in names}
    text = json.dumps(renamed(card, called), ensure_ascii=False, indent=2) + "\n"
    (out / CARD).write_text(text, encoding="utf-8")


def _rename_in_arrays(path: Path, called: Mapping[str, str]) -> None:
    arrays = read_arrays(path)
    texts = {
        name: one.item() for name, one in arrays.items() if one.dtype.kind == "U" and one.size == 1
    }
    other = {
        name: np.array(called[one]) for name, one in texts.items() if called.get(one, one) != one
    }
    if other:
        write_arrays(path, **{**arrays, **other})


def _is_complete(folder: Path, listed: Any) -> bool:
    """Whether the files of a finished job are still those that its card lists."""
    return isinstance(listed, dict) and listed.items() <= sizes_of(folder).items()


def _scores(data: TrainingData, table: Predictions, probabilities: Any) -> dict[str, float | None]:
    """Metrics of probabilities [N, C] of the table's items."""
    from edokit.metrics import compute_metrics, main_metrics

    row_of = {item: row for row, item in enumerate(data.items)}
    rows = [row_of[str(item)] for item in table.items]
    labels, names = (data.soft_labels[rows], data.hard[rows]), main_metrics(data.scale)
    return compute_metrics(probabilities, *labels, metrics=names, scale=data.scale)


_FINISHED = record(
    {
        "items": number(0, whole=True),
        "seconds": number(0),
        **dict.fromkeys(("versions", "hardware", "history", "notes"), loose),
    },
    {"weights": listed(number(0, 1)), "details": mapping(plain)},
    only=False,
)
_DESCRIBED = ("a finished member", "remove its folder and train again")


def _checked_card(folder: Path) -> dict[str, Any]:
    card: dict[str, Any] = checked(finished_card(folder), _FINISHED, folder / CARD, *_DESCRIBED)
    return card


def _member(plan: Plan, name: str, out: Path, scores: dict[str, Any]) -> dict[str, Any]:
    jobs = [job for job in plan.jobs if name in job.members]
    cards = [_checked_card(out / job.folder) for job in jobs]
    first, card = jobs[0], cards[0]
    member: dict[str, Any] = {
        "name": name,
        "group": first.group,
        "recipe": first.recipe,
        "targets": {"supervision": first.supervision, "draw": first.draw},
        "metrics": scores,
        "kept": all(card.get("kept", True) for card in cards),
    }
    if first.heads:
        k = first.members.index(name)
        return member | {
            "recipe": "transformer",
            "seed": first.head_seeds[k],
            "items": card["items"],
            "weight": card["weights"][k],
        }
    if first.annotator is not None:
        member["targets"]["annotator"] = first.annotator
    member |= {
        "seed": first.seed if first.fold is None else [job.seed for job in jobs],
        "items": card["items"] if first.fold is None else [card["items"] for card in cards],
        "seconds": round(sum(card["seconds"] for card in cards), 3),
        "versions": card["versions"],
        "hardware": card["hardware"],
    }
    if about := fold_details(cards):
        member["details"] = about
    for key in ("history", "notes"):
        listed = [card[key] for card in cards]
        if any(listed):
            member[key] = listed[0] if first.fold is None else listed
    return member
