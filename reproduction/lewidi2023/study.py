"""What the reproduction reads: annotations, the members' predictions, and the seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from edokit._errors import InputError
from edokit._io.documents import read_json
from edokit._types import Bools, Floats
from edokit.annotations.core import Annotations
from edokit.datasets.lewidi import read_lewidi
from edokit.predictions.core import Predictions
from edokit.predictions.shards import read_predictions
from reproduction.lewidi2023.plans import SEED_GROUP
from reproduction.outcomes import Labels

T = TypeVar("T")
Key = tuple[str, ...]
"""The name of a step, which is the key of its result."""

DATASETS = ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement")
MOST_KEPT_WHOLE = 10
"""The largest pool whose members are all used in every seed."""
EVERYTHING = "everything"
"""The name of all pools of a dataset joined into one."""
ANNOTATORS = "annotators"
"""The pool of members that learned annotators; it has its own columns and is in no other pool."""
WITH_ANNOTATORS = "everything and annotators"
"""The name of the pool that joins `ANNOTATORS` and all others."""
KNOWN = " (known)"
"""Ends the name of a pool whose answers are means over those for the annotators of each item."""


@dataclass(frozen=True)
class Missing:
    """The reason why something is missing."""

    reason: str

    @property
    def note(self) -> str:
        """The reason as a cell of a table."""
        return f"not available: {self.reason}"


@dataclass(frozen=True)
class Pool:
    """Members of one dataset: their predictions of the items to fit on and of the test items."""

    dataset: str
    name: str
    fit: Predictions
    test: Predictions
    fit_labels: Labels
    test_labels: Labels
    cross_fitted: bool = False
    """Whether the items to fit on are train and dev, with out-of-fold predictions."""

    def sampled(self, seed: int) -> Pool:
        """The members of one seed: its own, or half of each group where there are more than ten."""
        members = self.select(draw_members(self.fit, seed))
        return replace(members, fit=_without_seeds(members.fit), test=_without_seeds(members.test))

    @property
    def dev(self) -> Bools:
        """Which of the items to fit on belong to dev [N]: what pools are chosen by."""
        splits = self.fit_labels.annotations.splits
        assert splits is not None
        is_dev: Bools = splits == "dev"
        return is_dev

    def on_dev(self) -> Pool:
        """The same members with dev alone to fit on."""
        if not self.cross_fitted:
            return self
        labels = Labels.from_annotations(self.fit_labels.annotations.take(self.dev))
        return replace(self, fit=self.fit.take(self.dev), fit_labels=labels, cross_fitted=False)

    def select(self, members: list[str]) -> Pool:
        """These members alone."""
        return replace(self, fit=self.fit.select(members), test=self.test.select(members))


def joined(dataset: str, pools: Sequence[Pool | Missing], name: str = EVERYTHING) -> Pool | Missing:
    """The members of several pools as one, each group named after its pool.

    Where some were cross-fitted and others not, all are fitted on dev.
    """
    present = [pool for pool in pools if isinstance(pool, Pool)]
    if len(present) < 2:
        return Missing(f"{dataset} has fewer than two pools to join")
    if len({pool.cross_fitted for pool in present}) > 1:
        present = [pool.on_dev() for pool in present]
    return Pool(
        dataset,
        name,
        _side_by_side(present, [pool.fit for pool in present]),
        _side_by_side(present, [pool.test for pool in present]),
        present[0].fit_labels,
        present[0].test_labels,
        present[0].cross_fitted,
    )


def _side_by_side(pools: Sequence[Pool], parts: Sequence[Predictions]) -> Predictions:
    """The members of all parts, with the name of their pool in front of their own."""
    members = []
    groups = []
    for pool, part in zip(pools, parts, strict=True):
        members += [f"{pool.name}/{name}" for name in part.members]
        for group in part.groups or ("",) * len(part.members):
            if group in ("", pool.name):
                groups.append(pool.name)
            else:
                groups.append(f"{pool.name}/{group}")
    return Predictions.from_arrays(
        np.concatenate([part.probabilities for part in parts], axis=1),
        items=parts[0].items,
        members=members,
        classes=parts[0].classes,
        groups=groups,
        layout="NKC",
    )


def draw_members(predictions: Predictions, seed: int) -> list[str]:
    """The members of a seed, in the order of the pool.

    Where groups were trained for one seed each, those of this seed; else ten of twenty: half of
    each group, rounded up.
    """
    members = list(predictions.members)
    groups = predictions.groups or ("",) * len(members)
    trained_for = [_trained_for(group) for group in groups]
    if any(number is not None for number in trained_for):
        return [
            name
            for name, number in zip(members, trained_for, strict=True)
            if number in (None, seed)
        ]
    if len(members) <= MOST_KEPT_WHOLE:
        return members
    rng = np.random.default_rng([2023, seed])
    kept_members: set[str] = set()
    for group in dict.fromkeys(groups):
        inside = [
            name
            for name, member_group in zip(members, groups, strict=True)
            if member_group == group
        ]
        order = rng.permutation(len(inside))[: (len(inside) + 1) // 2]
        kept_members.update(inside[k] for k in order)
    return [name for name in members if name in kept_members]


def _trained_for(group: str) -> int | None:
    """The seed that a group of members was trained for, or None if it is for all seeds."""
    name = group.rpartition("/")[2]
    if not name.startswith(SEED_GROUP):
        return None
    return int(name.removeprefix(SEED_GROUP))


def _without_seeds(predictions: Predictions) -> Predictions:
    """The same members in groups that do not name a seed."""
    groups = predictions.groups
    if groups is None or all(_trained_for(group) is None for group in groups):
        return predictions
    seedless = [_without_seed(group) for group in groups]
    return Predictions.from_arrays(
        predictions.probabilities,
        items=predictions.items,
        members=predictions.members,
        classes=predictions.classes,
        groups=seedless if all(seedless) else None,
        layout="NKC",
    )


def _without_seed(group: str) -> str:
    """The name of a group without its seed; "" if it consists of the seed alone."""
    if _trained_for(group) is None:
        return group
    return group.rpartition("/")[0]


@dataclass
class Study:
    """The data, the committed predictions and the number of seeds; caches its results."""

    data: Path | None
    predictions: Path | None
    seeds: int = 5
    step: Callable[[str], None] = lambda task: None
    """Called with the name of each step before it is computed."""
    jobs: int = 1
    """Number of processes for slow steps."""
    trials: int = 50
    """Number of trials of each search."""
    _cache: dict[Key, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Key, compute: Callable[[], T]) -> T:
        """The result of ``compute``, which is called once for each key."""
        if key not in self._cache:
            self.step(" ".join(key))
            self._cache[key] = compute()
        cached: T = self._cache[key]
        return cached

    def each(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """The results of calls with these arguments, in several processes if there are `jobs`."""
        if self.jobs < 2 or len(calls) < 2:
            return [function(*arguments) for arguments in calls]
        from joblib import Parallel, delayed

        results: list[T] = Parallel(n_jobs=self.jobs)(
            delayed(function)(*arguments) for arguments in calls
        )
        return results

    def annotations(self, dataset: str) -> Annotations | Missing:
        """All splits of a dataset."""

        def read() -> Annotations | Missing:
            if self.data is None:
                return Missing("no data was given")
            folder = self.data / dataset
            if not folder.is_dir():
                return Missing(f"the data has no folder {dataset}")
            return read_lewidi(folder)

        return self.once(("reading", dataset), read)

    def labels(self, dataset: str, *splits: str) -> Labels | Missing:
        """The labels of the items of these splits."""
        annotations = self.annotations(dataset)
        if isinstance(annotations, Missing):
            return annotations
        return self.once(
            ("labels", dataset, *splits),
            lambda: Labels.from_annotations(annotations.split(*splits)),
        )

    def pool(self, dataset: str, name: str) -> Pool | Missing:
        """The pool of this name."""
        return self.once(("pool", dataset, name), lambda: self._pool(dataset, name))

    def _pool(self, dataset: str, name: str) -> Pool | Missing:
        annotations = self.annotations(dataset)
        if isinstance(annotations, Missing):
            return annotations
        if self.predictions is None:
            return Missing("no predictions were given")
        base_name = name.removesuffix(KNOWN)
        knows_annotators = name.endswith(KNOWN)
        if base_name in (EVERYTHING, WITH_ANNOTATORS):
            pool_names = [*self.pools[dataset]]
            if base_name == WITH_ANNOTATORS:
                pool_names.append(ANNOTATORS)
                if knows_annotators:
                    pool_names.append(ANNOTATORS + KNOWN)
            return joined(
                dataset, [self.pool(dataset, pool_name) for pool_name in pool_names], name
            )
        folder = self.predictions / dataset / base_name
        cross_fitted = (folder / "fit.npz").is_file()
        ending = "-pairs.npz" if knows_annotators else ".npz"
        fit_path = folder / f"dev{ending}"
        fit_splits: tuple[str, ...] = ("dev",)
        if cross_fitted:
            fit_path = folder / f"fit{ending}"
            fit_splits = ("train", "dev")
        test_path = folder / f"test{ending}"
        if not (fit_path.is_file() and test_path.is_file()):
            return Missing(f"there are no predictions of the pool {dataset}/{name}")
        fit_labels = self.labels(dataset, *fit_splits)
        test_labels = self.labels(dataset, "test")
        assert isinstance(fit_labels, Labels)
        assert isinstance(test_labels, Labels)
        return Pool(
            dataset,
            name,
            _read(fit_path, fit_labels),
            _read(test_path, test_labels),
            fit_labels,
            test_labels,
            cross_fitted,
        )

    @cached_property
    def pools(self) -> dict[str, list[str]]:
        """The names of each dataset's pools, without `ANNOTATORS`."""
        if self.predictions is None:
            return {dataset: [] for dataset in DATASETS}
        names_by_dataset = {}
        for dataset in DATASETS:
            names = [path.parent.name for path in self.predictions.glob(f"{dataset}/*/test.npz")]
            names_by_dataset[dataset] = sorted(name for name in names if name != ANNOTATORS)
        return names_by_dataset

    @property
    def has_members_for_each_seed(self) -> bool:
        """Whether there are pools whose groups were trained for one seed each."""
        if self.predictions is None:
            return False
        for path in self.predictions.glob("*/*/manifest.json"):
            if any(_trained_for(group["name"]) is not None for group in read_json(path)["groups"]):
                return True
        return False

    def constant(self, dataset: str) -> Floats | Missing:
        """The training set's mean distribution as the prediction of every test item [N, C]."""
        train = self.labels(dataset, "train")
        test = self.labels(dataset, "test")
        if isinstance(train, Missing):
            return train
        assert isinstance(test, Labels)
        return np.tile(train.soft.mean(axis=0), (len(test.soft), 1))


def _read(path: Path, labels: Labels) -> Predictions:
    """Predictions for the items of the labels, in their order."""
    predictions = read_predictions(path)
    if predictions.annotators is not None:
        predictions = predictions.panel_means()
    aligned = predictions.align(labels.annotations.items)
    return aligned.order_classes(labels.annotations.classes)


def find_data(given: Path | None) -> Path | None:
    """The given folder, else that of EDO_LEWIDI2023, else that of `edo data get lewidi2023`."""
    if given is not None:
        if not any((given / dataset).is_dir() for dataset in DATASETS):
            raise InputError(
                f"the data must hold folders {', '.join(DATASETS)}, but {given} has none of them",
                f"get it with `edo data get lewidi2023 {given}`",
                code="wrong-folder",
            )
        return given
    for place in (os.environ.get("EDO_LEWIDI2023"), "lewidi2023"):
        if place and any((Path(place) / dataset).is_dir() for dataset in DATASETS):
            return Path(place)
    return None


def find_predictions(given: Path | None) -> Path | None:
    """The given folder, else the committed predictions of a clone."""
    if given is not None:
        if not any(given.glob("*/*/test.npz")):
            raise InputError(
                "the predictions must lie as <dataset>/<pool>/test.npz with dev.npz (or fit.npz),"
                f" but {given} has none",
                "name the folder benchmarks/lewidi2023 of a clone, or train members with --train",
                code="wrong-folder",
            )
        return given
    inside = Path("benchmarks") / "lewidi2023"
    for place in (inside, Path(__file__).resolve().parents[2] / inside):
        if any(place.glob("*/*/test.npz")):
            return place
    return None
