"""`ShardedData`: fit data larger than memory. All that a fit needs of them are sums over shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from edokit._errors import are, warn
from edokit._io.atomic import drop_folder
from edokit._io.digests import digest_text
from edokit._parallel import Workers, choose_jobs
from edokit._progress import Progress
from edokit._types import Bools, Floats, Ints, Reals
from edokit.annotations.core import PublishedLabelWarning, contradiction_message
from edokit.datasets.read import recognise
from edokit.fitdata.cache import (
    CachedShard,
    LabelCounts,
    LabelSource,
    find_annotations,
    make_folder,
    write_labels,
)
from edokit.fitdata.data import AnnotationCounts, Arrays, FitData, Scores, pooled
from edokit.fitdata.layout import Layout
from edokit.fitdata.reading import LabelsLike, ReadOptions, ShardOptions
from edokit.metrics import MetricSums
from edokit.objective.loss import CrossEntropy, Expansion, PoolTerm
from edokit.objective.pools import average_groups, group_names, one_thread, slices
from edokit.objective.settings import Pool
from edokit.objective.summaries import Summaries
from edokit.predictions.shards import Shards, check_not_repeated

Total = TypeVar("Total")
SAMPLE = 65_536
"""Most items in the sample that is held in memory."""
_SAMPLE_NUMBERS = 2**23
"""Most probabilities in the sample; the sample has at least 1,024 items."""
_BLOCK = 2**21
"""Most probabilities that are processed at a time."""


class Fold(NamedTuple):
    """The items of one fold, or all items outside that fold."""

    n_folds: int
    number: int
    is_held_out: bool
    """Whether these are the items of the fold; else they are the items outside it."""
    random_state: int


class View(NamedTuple):
    """Which items of the shards are visible, and whether groups of members are averaged."""

    fold: Fold | None = None
    """The visible items; None for all of them."""
    groups: tuple[str, ...] | None = None
    """The group of each member, if groups are averaged."""

    def is_shown(self, shard: CachedShard) -> Bools | None:
        """Whether the view shows each item of a shard [n]; None if it shows all of them."""
        fold = self.fold
        if fold is None:
            return None
        is_in_fold = shard.folds(fold.n_folds, fold.random_state) == fold.number
        return np.asarray(is_in_fold == fold.is_held_out)

    def arrays(self, shard: CachedShard) -> Arrays:
        """The arrays of the items of a shard that the view shows."""
        is_shown = self.is_shown(shard)
        if is_shown is None:
            return shard.arrays()
        rows = shard.layout().row_positions(np.flatnonzero(is_shown))
        return shard.arrays().take(rows)

    def units(self, P: Reals) -> Floats:
        """What is weighted, in float64: the members [n, K, C], or means of groups [n, G, C]."""
        members: Floats = np.asarray(P, dtype=np.float64)
        if self.groups is None:
            return members
        return np.asarray(average_groups(members, self.groups))


def _add_lists(totals: list[Total], addends: list[Total]) -> list[Total]:
    """Add two lists entry by entry; an empty list of totals counts as zeros."""
    if not totals:
        return addends
    return [a + b for a, b in zip(totals, addends, strict=True)]  # type: ignore[operator]


class ShardedData(FitData):
    """Items in shards with their labels; views of it (folds, groups) share one cache."""

    def __init__(
        self,
        cached: Sequence[CachedShard],
        shards: Shards,
        workers: Workers,
        progress: Progress | None = None,
    ) -> None:
        base = cached[0]
        super().__init__(
            None,
            members=shards.members,
            classes=base.classes,
            groups=shards.groups,
            scale=base.scale,
        )
        self._cached = list(cached)
        self._shards = shards
        self._workers = workers
        self._progress = progress
        self._view = View()
        self._summaries: Summaries | None = None
        self._length = 0
        self._n_groups = 0
        self._passes = [0]

    @classmethod
    def from_shards(
        cls, predictions: Shards | str | Path, annotations: LabelsLike, reading: ReadOptions
    ) -> ShardedData:
        """Return the shards of predictions with the annotations of their items."""
        shards = predictions
        if not isinstance(shards, Shards):
            shards = Shards.open(shards, learn=reading.learn)
        if reading.scale is not None:
            shards = shards.on_scale(reading.scale)
        reading = replace(reading, learn=shards.learn)
        source, order = find_annotations(annotations, shards, reading)
        if isinstance(source, tuple) and reading.format is None:
            # All files have the format of the first: recognising it takes longer than reading some.
            reading = replace(reading, format=recognise(source[0]).name)
        options = reading.shards or ShardOptions()
        reading = replace(reading, shards=None)  # workers get the rest; progress stays here
        workers = Workers(choose_jobs(options.jobs, shards.sizes), options.engine)
        folder = make_folder(options.scratch)
        try:
            cached = []
            for number in range(len(shards.files)):
                file = None
                if isinstance(source, tuple):
                    file = source[number]
                cached.append(CachedShard(number, shards, order, folder, file, reading))
            data = cls(cached, shards, workers, options.progress)
            data._write(source)
        except BaseException:
            workers.close()
            drop_folder(folder)
            raise
        return data

    def close(self) -> None:
        """Remove the cache."""
        self._workers.close()
        drop_folder(self._cached[0].folder)

    def __repr__(self) -> str:
        return f"FitData({self._shards!r})"

    def __len__(self) -> int:
        if self._view.fold is None:
            return self._length
        return self.summaries().items // self.rows_per_item

    @property
    def n_items(self) -> int:
        if not self.layout.are_pairs:
            return len(self)
        n_items = 0
        for shard in self._cached:
            owners = shard.owners()
            assert owners is not None
            is_shown = self._view.is_shown(shard)
            if is_shown is not None:
                owners = owners[is_shown]
            n_items += len(np.unique(owners))  # all pairs of an item are in one shard
        return n_items

    @property
    def jobs(self) -> int:
        """Number of shards that are processed at a time on this machine."""
        return self._workers.jobs

    @property
    def passes(self) -> int:
        """How often all views together have read the shards since these were cached."""
        return self._passes[0]

    def total(self, work: Callable[..., Any], *arguments: Any, task: str) -> list[Any]:
        """Add up what ``work(block, *arguments)`` returns for each block of items, a `FitData`.

        ``work`` returns one addend or a list of them. It must be a function of a module or class,
        since it is sent to other processes. ``task`` is shown as progress.
        """
        self._passes[0] += 1
        totals: list[Any] = []
        tasks = [(shard, self._view) for shard in self._cached]
        for sums in self._run(partial(shard_total, work=work, arguments=arguments), tasks, task):
            if sums:  # a shard may lack items of a fold
                totals = _add_lists(totals, sums)
        return totals

    def _run(self, work: Callable[..., Any], tasks: Sequence[Any], task: str) -> Iterator[Any]:
        """Yield the results of the workers in the order of the tasks, and report progress."""
        for number, result in enumerate(self._workers.run(work, tasks), start=1):
            yield result
            if self._progress is not None:
                self._progress(number, len(tasks), task)

    def _sums(self, distances: bool, log_losses: bool) -> Summaries:
        if self._summaries is None:
            self._summaries = self.total(_summaries, task="summing up")[0]
        return self._summaries

    def expansions(
        self,
        weights: Floats,
        members: Ints | None = None,
        term: PoolTerm = CrossEntropy(),  # noqa: B008
    ) -> list[Expansion]:
        return self.total(FitData.expansions, weights, members, term, task="fitting")

    def evaluate(
        self, weights: Floats, pool: Pool | str = Pool.LINEAR, temperature: float = 1.0
    ) -> Mapping[str, float | None]:
        (sums,) = self.total(_metric_sums, weights, str(pool), temperature, task="evaluating")
        values: dict[str, float | None] = sums.values()
        return values

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        (scores,) = self.total(FitData.scores, weights, tuple(pools), task="evaluating")
        return scores  # type: ignore[no-any-return]

    @property
    def sample(self) -> Arrays:
        return self.in_memory.sample

    @cached_property
    def in_memory(self) -> FitData:
        """A sample in memory: the items with the lowest keys, in the order of the shards.

        A key is a hash of the ids, so the sample is random; it holds all items if there are few.
        """
        numbers = len(self._shards.members) * self._shards.numbers_per_item
        return self._drawn(min(SAMPLE, max(1024, _SAMPLE_NUMBERS // numbers)))

    def _drawn(self, count: int) -> FitData:
        """The items with the lowest keys of all shards, as far as the view shows them."""
        lowest_keys = np.empty(0, dtype=np.uint64)
        for keys in self._workers.run(partial(_lowest_keys, count=count), self._cached):
            lowest_keys = np.sort(np.concatenate([lowest_keys, keys]))[:count]
        tasks = [(shard, lowest_keys[-1], self._view) for shard in self._cached]
        parts = list(self._workers.run(_items_up_to_key, tasks))
        P = np.concatenate([part.arrays.P for part in parts])
        q = np.concatenate([part.arrays.q for part in parts])
        y = np.concatenate([part.arrays.y for part in parts])
        groups = None
        if parts[0].groups is not None:
            groups = np.concatenate([part.groups for part in parts])
        return FitData(
            Arrays(self._view.units(P), q, y),
            members=self.members,
            classes=self.classes,
            groups=self.groups,
            counts=self.counts,
            scale=self.scale,
            layout=replace(self.layout, groups=groups),
        )

    def draw(self, count: int) -> FitData:
        items = self._drawn(count)
        return items.draw(len(items))

    def folds(self, count: int, random_state: int = 0) -> list[tuple[FitData, FitData]]:
        if self._view.fold is not None:
            raise NotImplementedError("a fold of shards cannot be divided into further folds")
        self._check_folds(count)
        if self.layout.has_item_groups:
            self._deal_groups(count, random_state)
        parts: list[tuple[FitData, FitData]] = []
        for number in range(count):
            training = Fold(count, number, is_held_out=False, random_state=random_state)
            held_out = Fold(count, number, is_held_out=True, random_state=random_state)
            parts.append((self._with_view(fold=training), self._with_view(fold=held_out)))
        return parts

    @property
    def n_fold_units(self) -> int:
        if self.layout.has_item_groups:
            return self._n_groups
        return self.n_items

    def _deal_groups(self, count: int, random_state: int) -> None:
        """Write the fold of each item, dealing item groups of all shards as those in memory are."""
        if self._cached[0].has_folds(count, random_state):
            return
        width = self.rows_per_item
        first_labels = np.zeros((self._n_groups, width), dtype=np.int32)
        is_seen = np.zeros(self._n_groups, dtype=bool)
        for shard in self._cached:
            groups = shard.groups()
            assert groups is not None
            numbers, first_items = np.unique(groups, return_index=True)
            is_new = ~is_seen[numbers]
            labels = shard.arrays().y.reshape(-1, width)
            first_labels[numbers[is_new]] = labels[first_items[is_new]]
            is_seen[numbers] = True
        folds = self.layout.folds(first_labels.reshape(-1), count, random_state)
        for shard in self._cached:
            shard.write_folds(count, random_state, folds[shard.groups()])

    def grouped(self) -> ShardedData:
        return self._with_view(groups=self.member_groups())

    def label_summaries(self) -> list[Summaries]:
        return self.total(FitData.label_summaries, task="summing up")

    def _digest(self) -> str:
        sums = self.summaries()
        numbers = []
        for total in (sums.class_counts, sums.soft_counts, sums.hits, sums.log_losses):
            # The last digits of a sum depend on the machine.
            numbers.append(" ".join(f"{value:.9e}" for value in np.ravel(total)))
        return digest_text("".join(numbers))

    def _with_view(
        self, *, fold: Fold | None = None, groups: tuple[str, ...] | None = None
    ) -> ShardedData:
        """The same shards with another view: one of their folds, or groups of members."""
        view = View(fold or self._view.fold, groups or self._view.groups)
        data = ShardedData(self._cached, self._shards, self._workers, self._progress)
        data.counts = self.counts
        data.layout = self.layout
        data._length = self._length
        data._n_groups = self._n_groups
        data._passes = self._passes
        data._view = view
        if view.groups is not None:
            data.members = tuple(group_names(view.groups))
            data.groups = None
        return data

    def _write(self, source: LabelSource) -> None:
        """Read all shards once: check, match with labels, write the cache, sum up, and warn."""
        counts = []
        if not isinstance(source, tuple):
            counts = write_labels(source, self._cached)
        for length, label_counts, summaries in self._run(write_shard, self._cached, "reading"):
            self._length += length
            if label_counts is not None:
                counts.append(label_counts)
            if self._summaries is None:
                self._summaries = summaries
            else:
                self._summaries = self._summaries + summaries
        check_not_repeated(
            [shard.keys() for shard in self._cached],
            [shard.name for shard in self._cached],
            self._shards.read_rows,
        )
        if self._cached[0].owners() is not None:
            self.layout = replace(self.layout, are_pairs=True)
        if any(shard.has_item_groups for shard in counts):
            self._number_groups()
        annotators = np.unique(np.concatenate([shard.annotators for shard in counts]))
        self.counts = AnnotationCounts(sum(shard.annotations for shard in counts), len(annotators))
        contradicted = sum(shard.contradicted for shard in counts)
        tied = sum(shard.tied for shard in counts)
        if contradicted:
            warn(contradiction_message(contradicted, self._length), PublishedLabelWarning)
        if tied and self._cached[0].reading.ties == "first":
            count = are(tied, self._length, noun="item")
            warn(f"{count} tied; {self.scale.tie_rule}")

    def _number_groups(self) -> None:
        """Number the item groups of all shards as those in memory are numbered."""
        keys = np.concatenate([shard.group_keys() for shard in self._cached])
        distinct, numbers = np.unique(keys, return_inverse=True)
        ends = np.cumsum([len(shard.group_keys()) for shard in self._cached])
        for shard, groups in zip(self._cached, np.split(numbers, ends[:-1]), strict=True):
            shard.write_groups(groups)
        self._n_groups = len(distinct)
        self.layout = replace(self.layout, has_item_groups=True)


def write_shard(shard: CachedShard) -> tuple[int, LabelCounts | None, Summaries]:
    """Write a shard into the cache; return its number of items, its label counts, and its sums.

    The label counts are None if labels were written before.
    """
    items, counts, arrays = shard.write()
    with one_thread():
        return items, counts, Summaries.from_arrays(*arrays, steps=shard.scale.steps)


def shard_total(
    task: tuple[CachedShard, View],
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> list[Any]:
    """Add up ``work(block, *arguments)`` over blocks of a shard's items, in float64."""
    shard, view = task
    arrays = view.arrays(shard)
    layout = Layout.from_scale(shard.scale, shard.classes)
    width = layout.rows_per_item
    totals: list[Any] = []
    # Shards already run in parallel; more threads within each would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        items = max(1, _BLOCK // max(1, arrays.P[:width].size))
        for s in slices(len(arrays.y), items * width):
            rows = Arrays(view.units(arrays.P[s]), arrays.q[s], arrays.y[s])
            block = FitData(rows, classes=shard.classes, scale=shard.scale, layout=layout)
            addends = work(block, *arguments)
            if not isinstance(addends, list):
                addends = [addends]
            totals = _add_lists(totals, addends)
    return totals


def _summaries(block: FitData) -> Summaries:
    """The sums over the items of a block."""
    return Summaries.from_arrays(*block.sample, steps=block.scale.steps)


def _metric_sums(
    block: FitData, weights: Floats, pool: str, temperature: float
) -> list[MetricSums]:
    """The sums of metrics of the pool over the items of a block."""
    rows = pooled(block.sample.P, weights, pool, temperature)
    return [MetricSums.from_arrays(*block.per_item(rows), scale=block.scale)]


def _lowest_keys(shard: CachedShard, count: int) -> NDArray[np.uint64]:
    """The lowest keys of a shard's items, in any order."""
    keys = shard.keys()
    if len(keys) > count:
        return np.partition(keys, count - 1)[:count]
    return np.asarray(keys)


class DrawnItems(NamedTuple):
    """Some items of a shard."""

    arrays: Arrays
    groups: Ints | None
    """Numbers of the items that folds keep together; None if each item is on its own."""


def _items_up_to_key(task: tuple[CachedShard, np.uint64, View]) -> DrawnItems:
    """The items of a shard that the view shows and whose key is at most the highest one."""
    shard, highest_key, view = task
    is_drawn = shard.keys() <= highest_key
    is_shown = view.is_shown(shard)
    if is_shown is not None:
        is_drawn = is_drawn & is_shown
    items = np.flatnonzero(is_drawn)
    layout = shard.layout().take(items)
    return DrawnItems(shard.arrays().take(layout.row_positions(items)), layout.groups)
