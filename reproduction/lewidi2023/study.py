"""What the reproduction reads: annotations, the members' predictions, and the seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
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

DATASETS = ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement")
MOST_KEPT_WHOLE = 10
"""Pools of at most so many members are not divided between seeds."""
EVERYTHING = "everything"
"""The name of all pools of a dataset joined into one."""
ANNOTATORS = "annotators"
"""The pool of members that know annotators: in columns of its own, and in no other pool."""
WITH_ANNOTATORS = "everything and annotators"
"""The name of that pool and all others joined into one."""
KNOWN = " (known)"
"""Ends the name of a pool whose answers are means over those for the annotators of each item."""
_DEVELOPMENT = ("train", "dev")


@dataclass(frozen=True)
class Missing:
    """Something that is not there, and why."""

    reason: str


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
        sampled = self.select(draw_members(self.fit, seed))
        return replace(sampled, fit=_without_seeds(sampled.fit), test=_without_seeds(sampled.test))

    @property
    def dev(self) -> Bools:
        """Which of the items to fit on belong to dev [N]: what pools are chosen by."""
        splits = self.fit_labels.annotations.splits
        assert splits is not None
        marked: Bools = splits == "dev"
        return marked

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
    members = []
    groups = []
    for group_names, part in zip(pools, parts, strict=True):
        inner = part.groups or ("",) * len(part.members)
        members += [f"{group_names.name}/{name}" for name in part.members]
        groups += [
            group_names.name if group in ("", group_names.name) else f"{group_names.name}/{group}"
            for group in inner
        ]
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
    """The seed that a group of members was trained for; None: for all."""
    name = group.rpartition("/")[2]
    if not name.startswith(SEED_GROUP):
        return None
    return int(name.removeprefix(SEED_GROUP))


def _without_seeds(predictions: Predictions) -> Predictions:
    """The same members in groups that do not name a seed."""
    groups = predictions.groups
    if groups is None or all(_trained_for(group) is None for group in groups):
        return predictions
    kept_rows = []
    for group in groups:
        seedless = group if _trained_for(group) is None else group.rpartition("/")[0]
        kept_rows.append(seedless)
    return Predictions.from_arrays(
        predictions.probabilities,
        items=predictions.items,
        members=predictions.members,
        classes=predictions.classes,
        groups=kept_rows if all(kept_rows) else None,
        layout="NKC",
    )


@dataclass
class Study:
    """The data, the committed predictions and how many seeds; results are computed once."""

    data: Path | None
    predictions: Path | None
    seeds: int = 5
    step: Callable[[str], None] = lambda what: None
    jobs: int = 1
    """Processes for what takes long."""
    trials: int = 50
    """Of each search."""
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives, computed at the first call."""
        if key not in self._known:
            self.step(" ".join(map(str, key)) if isinstance(key, tuple) else str(key))
            self._known[key] = make()
        cached: T = self._known[key]
        return cached

    def each(self, what: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
        """``what`` of each tuple of arguments, in several processes where they were granted."""
        listed = list(arguments)
        if self.jobs < 2 or len(listed) < 2:
            return [what(*one) for one in listed]
        from joblib import Parallel, delayed

        results: list[T] = Parallel(n_jobs=self.jobs)(delayed(what)(*one) for one in listed)
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
        """The members of this name."""
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
            annotator_pools = (
                [ANNOTATORS, ANNOTATORS + KNOWN][: 1 + knows_annotators]
                if base_name != EVERYTHING
                else []
            )
            pool_names = [*self.pools[dataset], *annotator_pools]
            return joined(
                dataset, [self.pool(dataset, pool_name) for pool_name in pool_names], name
            )
        folder = self.predictions / dataset / base_name
        crossed = (folder / "fit.npz").is_file()
        end = "-pairs.npz" if knows_annotators else ".npz"
        fitted = folder / f"{'fit' if crossed else 'dev'}{end}"
        test = folder / f"test{end}"
        if not (fitted.is_file() and test.is_file()):
            return Missing(f"there are no predictions of the pool {dataset}/{name}")
        fit_labels = self.labels(dataset, *(_DEVELOPMENT if crossed else ("dev",)))
        test_labels = self.labels(dataset, "test")
        assert isinstance(fit_labels, Labels)
        assert isinstance(test_labels, Labels)
        return Pool(
            dataset,
            name,
            _read(fitted, fit_labels),
            _read(test, test_labels),
            fit_labels,
            test_labels,
            crossed,
        )

    @cached_property
    def pools(self) -> dict[str, list[str]]:
        """The pools that are there, by dataset, without the one in columns of its own."""
        if self.predictions is None:
            return {dataset: [] for dataset in DATASETS}
        return {
            dataset: sorted(
                place.parent.name
                for place in self.predictions.glob(f"{dataset}/*/test.npz")
                if place.parent.name != ANNOTATORS
            )
            for dataset in DATASETS
        }

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
    predictions = read_predictions(path)
    return (
        (predictions if predictions.annotators is None else predictions.panel_means())
        .align(labels.annotations.items)
        .order_classes(labels.annotations.classes)
    )


def find_data(given: Path | None) -> Path | None:
    """The folder of LeWiDi 2023: as given, else EDO_LEWIDI2023, else that of `edo data get`."""
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
    """The folder of members' predictions: as given, else the committed ones of a clone."""
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
