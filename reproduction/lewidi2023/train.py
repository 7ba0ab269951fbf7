"""Train the pools from scratch, with the options of the committed manifests or others."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from edokit._errors import EDOWarning, InputError, one_of
from edokit._io.atomic import whole_file
from edokit._io.documents import read_json
from edokit._progress import Progress, no_progress
from edokit.datasets.lewidi import read_lewidi
from edokit.members import Group, train_members
from reproduction.lewidi2023.plans import PoolPlan
from reproduction.lewidi2023.protocol import protocol_plans, with_clean_texts
from reproduction.lewidi2023.study import DATASETS

MEMBERS = 20
SINGLES = 5
PROTOCOLS = ("ours", "paper")
RECIPES = ("as-committed", "linear", "encoder", "transformer")
_ON_TORCH = ("encoder", "transformer")


def committed_plans(predictions: Path, datasets: Sequence[str] = DATASETS) -> list[PoolPlan]:
    """The pools of the manifests beside the committed predictions.

    Those of a model that is a folder on somebody's machine, and not here, are left out with a note.
    """
    plans = []
    absent: dict[str, list[str]] = {}
    for dataset in datasets:
        for path in sorted(predictions.glob(f"{dataset}/*/manifest.json")):
            manifest = read_json(path)
            models = {str(group["options"].get("model", "/")) for group in manifest["groups"]}
            if missing := [name for name in sorted(models) if _nowhere(name)]:
                absent.setdefault(missing[0], []).append(f"{dataset}/{path.parent.name}")
                continue
            groups = [
                Group(
                    _recipe(group["recipe"], group["options"]),
                    int(group["members"]),
                    group["name"],
                    group["supervision"],
                    group["draw"],
                    _options(group["recipe"], group["options"]),
                )
                for group in manifest["groups"]
            ]
            plans.append(
                PoolPlan(
                    dataset, path.parent.name, groups, manifest["seed"], manifest.get("cross_fit")
                )
            )
    for model, pools in absent.items():
        warnings.warn(
            f"left out, since their model {model!r} is a folder that is not here:"
            f" {', '.join(pools)}; benchmarks/lewidi2023/README.md says how to make it",
            EDOWarning,
            stacklevel=2,
        )
    if not plans:
        raise InputError(
            f"training as committed needs manifests, but {predictions} has none",
            "choose a recipe: --recipe linear, or --recipe transformer --backbone NAME",
            code="wrong-folder",
        )
    return plans


Options = Mapping[str, str | int | float | bool | None]
"""Options of a recipe by name."""
CONSTANTS: Options = {
    "annotator_dropout": 0.2,
    "annotator_shrinkage": 10.0,
    "anonymous_weight": 0.5,
    "criterion": "ce",
    "link": "softmax",
}
"""Options of earlier builds whose values are constants today."""
OF_REGRESSIONS: Options = {"loss": "ce", "annotators": False}
"""The constants of the recipes ``linear`` and ``encoder``."""
KNOWING = {"linear": "benchmarks.knowing:KnowingLinear"}
"""By recipe, the class that learns annotators in its place."""


def _recipe(recipe: str, written: Options) -> str:
    """The recipe of a group in a manifest, by its name of today."""
    if written.get("annotators"):
        return KNOWING.get(recipe, recipe)
    return recipe


def _options(recipe: str, written: Options) -> dict[str, str | int | float | bool | None]:
    """Options of a manifest by their names of today: ``annotators`` was a head per annotator."""
    constants = {**CONSTANTS}
    if recipe != "transformer":
        constants |= OF_REGRESSIONS
        if written.get("annotators"):
            constants["annotators"] = True  # what its recipe of today always learns
    options = {}
    for name, value in written.items():
        if name in constants and value == constants[name]:
            continue
        if name == "annotator_heads":
            name = "annotators"
        options[name] = value
    return options


def _nowhere(model: str) -> bool:
    """Whether this is neither a hub id, which names its owner, too, nor a folder that is here."""
    return "/" not in model and not Path(model).is_dir()


def recipe_plans(
    recipe: str,
    annotators: Mapping[str, int],
    *,
    backbone: str | None = None,
    members: int = MEMBERS,
    options: Mapping[str, Any] | None = None,
) -> list[PoolPlan]:
    """The paper's pools with one recipe: random-select, per-annotator and soft members.

    ``annotators`` says how many each dataset has; at most ten get a member. With ``transformer``
    the recipe's defaults are the paper's settings, and ``backbone`` is a hub id or a folder.
    """
    one_of("the recipe", recipe, RECIPES[1:])
    if recipe != "linear" and backbone is None:
        raise InputError(
            f"the recipe {recipe!r} needs a backbone, but got none",
            "name a hub id or a folder: --backbone google-bert/bert-base-uncased",
            code="missing-option",
        )
    backbone_options: dict[str, Any] = {**(options or {})}
    if backbone is not None:
        backbone_options["model"] = backbone
    plans = []
    for dataset, count in annotators.items():
        jobs = [
            ("random-select", Group(recipe, members, "random-select", options=backbone_options)),
            (
                "per-annotator",
                Group(
                    recipe,
                    min(count, 10),
                    "per-annotator",
                    "per-annotator",
                    options=backbone_options,
                ),
            ),
            (
                "soft-ce",
                Group(recipe, min(SINGLES, members), "soft-ce", "soft", options=backbone_options),
            ),
        ]
        if recipe == "transformer":
            distance = {**backbone_options, "loss": "md"}
            group = Group(recipe, min(SINGLES, members), "soft-md", "soft", options=distance)
            jobs.append(("soft-md", group))
        plans += [PoolPlan(dataset, name, [group]) for name, group in jobs]
    return plans


def plans_for(
    data: Path,
    predictions: Path | None,
    *,
    datasets: Sequence[str] | None = None,
    recipe: str | None = None,
    backbone: str | None = None,
    members: int = MEMBERS,
    options: Mapping[str, Any] | None = None,
    protocol: str = "ours",
) -> list[PoolPlan]:
    """As committed, unless a recipe or a backbone is named; all datasets that are there."""
    for dataset in datasets or ():
        one_of("the dataset", dataset, DATASETS)
    one_of("the protocol", protocol, PROTOCOLS)
    present = [dataset for dataset in datasets or DATASETS if (data / dataset).is_dir()]
    if protocol == "paper":
        if backbone is None or recipe not in (None, "transformer"):
            raise InputError(
                "the paper's protocol fine-tunes a transformer, but no backbone was named",
                "name a hub id or a folder: --backbone google-bert/bert-base-uncased",
                code="missing-option",
            )
        fewest = {dataset: _fewest_annotators(data / dataset) for dataset in present}
        return protocol_plans(fewest, backbone, options=options)
    if recipe is not None or backbone is not None:
        counts = {
            dataset: len(read_lewidi(data / dataset, split="train").annotators)
            for dataset in present
        }
        return recipe_plans(
            recipe or "transformer", counts, backbone=backbone, members=members, options=options
        )
    if options:
        raise InputError(
            "options belong to a recipe, but none was named",
            "add --recipe, or --backbone",
            code="missing-option",
        )
    if predictions is None:
        raise InputError(
            "training as committed needs the manifests of benchmarks/lewidi2023, but they are not"
            " here",
            "choose a recipe: --recipe linear, or --backbone NAME",
            code="wrong-folder",
        )
    return committed_plans(predictions, present)


def _fewest_annotators(folder: Path) -> int:
    """Annotators of the least annotated training item."""
    return int(read_lewidi(folder, split="train").annotations_per_item.min())


def _report(progress: Progress, pool: str, done: int, total: int, task: str) -> None:
    """Pass on what the training of a pool reports, with the name of the pool."""
    progress(done, total, f"{pool} {task}")


def train_pools(
    data: Path,
    plans: Sequence[PoolPlan],
    out: Path,
    *,
    device: str | None = None,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Train every pool and write its predictions like the committed ones; returns that folder.

    Members are kept in ``out/members`` until all are there; started again, training goes on.
    """
    predictions = out / "predictions"
    for plan in plans:
        if plan.clean_texts:
            annotations = with_clean_texts(read_lewidi(data / plan.dataset))
        else:
            annotations = read_lewidi(data / plan.dataset, user_first=True)
        folder = out / "members" / plan.dataset / plan.name
        with warnings.catch_warnings():
            # TF-IDF members that stand in for several of soft labels predict the same.
            warnings.filterwarnings("ignore", "all members of a group", EDOWarning)
            trained = train_members(
                annotations,
                plan.groups,
                out=folder,
                random_state=plan.seed,
                cross_fit=plan.cross_fit,
                device=device if any(g.recipe in _ON_TORCH for g in plan.groups) else None,
                jobs=jobs,
                keep_models=False,
                # The committed pool of eight members on ConvAbuse breaks the paper's K ≤ min A_i.
                ignore_annotator_limit=True,
                source=plan.dataset,
                progress=partial(_report, progress, f"{plan.dataset} {plan.name}"),
            )
        if trained.failed:
            reason = trained.failed[0].reason
            raise InputError(
                f"every member must be trained, but {len(trained.failed)} of {plan.dataset}"
                f" {plan.name} failed ({reason})",
                "the others are saved; start again to try these again",
                code="failed-member",
            )
        target = predictions / plan.dataset / plan.name
        for name in ("fit", "dev", "test"):
            source = folder / "predictions" / f"{name}.npz"
            if source.is_file():
                with whole_file(target / f"{name}.npz") as temporary:
                    shutil.copyfile(source, temporary)
        with whole_file(target / "manifest.json") as temporary:
            shutil.copyfile(folder / "manifest.json", temporary)
    return predictions
