"""Predictions and people's answers that do not fit into memory: everything is a sum over shards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edokit._errors import EDOWarning, warn
from edokit._io import drop_folder
from edokit._parallel import LOCAL, Workers, how_many_jobs
from edokit._types import Floats
from edokit.annotations import Annotations, PublishedLabelWarning, Ties, contradiction_message
from edokit.fitdata.annotations import (
    AnnotationFiles,
    People,
    Reading,
    SortedAnnotations,
    find_people,
)
from edokit.fitdata.cache import Arrays, Part, Told, labels_of, make_folder
from edokit.fitdata.passes import (
    Fold,
    Groups,
    Sums,
    curvatures_of,
    draw,
    first_look,
    metrics_of,
    shard_total,
    summaries_of,
)
from edokit.objective.cross_entropy import Curvature
from edokit.objective.settings import Pool
from edokit.objective.summaries import Summaries
from edokit.predictions import Shards
from edokit.predictions.shards import check_once

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done, how many shards are done, and of how many."""

MEMORY = 2 * 2**30
"""Bytes that shards in flight may take, unless said otherwise."""
SAMPLE = 65_536
"""Items of the sample that serves as a start."""
_SAMPLE_NUMBERS = 2**23  # at most so many probabilities in it


class LabelledShards:
    """N items in shards with what people said about them. Open it in a ``with``.

    Opening reads every shard once: it is checked, matched with the annotations by item id, and
    laid down as plain arrays in a working copy, which later passes read and closing removes.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        shards: Shards,
        workers: Workers,
        progress: Progress | None = None,
        fold: Fold | None = None,
    ) -> None:
        self._parts, self._shards, self._workers = list(parts), shards, workers
        self._progress, self._fold = progress, fold
        self.classes: tuple[str, ...] = self._parts[0].classes
        """Class names [C], in the order of all arrays."""
        self.members = shards.members
        """Member names [K]."""
        self.groups = shards.groups
        """The recipe each member comes from [K]."""
        self.passes = 0
        """How often all shards were read since."""
        self.told: Told | None = None
        """Annotations, annotators and ties, where there were any to count."""
        self._sums: dict[tuple[str, ...] | None, Summaries] = {}

    @classmethod
    def open(
        cls,
        predictions: Shards | str | Path,
        annotations: Annotations | AnnotationFiles | SortedAnnotations | str | Path,
        *,
        classes: Sequence[str] | None = None,
        splits: Sequence[str] = (),
        jobs: int | None = None,
        engine: str = LOCAL,
        memory: int = MEMORY,
        scratch: str | Path | None = None,
        ties: Ties = "first",
        seed: int = 0,
        progress: Progress | None = None,
        **options: Any,
    ) -> LabelledShards:
        """Shards of predictions and the annotations of their items.

        ``annotations``: anything that fits into memory; a folder with a file for each shard, named
        like it; or one Parquet table whose items stand in the order of the shards. ``options`` are
        those of ``read_annotations``. At most ``jobs`` shards are worked on at a time (by default
        as many as there are cores, and as ``memory`` bytes can hold).
        """
        shards = predictions if isinstance(predictions, Shards) else Shards.open(predictions)
        reading = Reading(tuple(splits), options)
        people = find_people(annotations, shards, classes, reading, memory)
        per_item = 8 * len(shards.members) * len(shards.classes)
        sizes = [per_item * count for count in shards.counts]
        workers = Workers(how_many_jobs(jobs, memory, sizes), engine)
        folder, keep = make_folder(scratch, shards)
        try:
            if not keep:
                warnings.warn(
                    f"{folder.parent} has no room for a working copy of the predictions, so every"
                    " pass reads the shards themselves (slower); choose another place with scratch"
                    " (--scratch)",
                    EDOWarning,
                    stacklevel=2,
                )
            parts = [
                Part(
                    number,
                    shards.part(number),
                    people.classes,
                    folder,
                    keep,
                    people.files[number] if people.files else None,
                    reading,
                    ties,
                    seed,
                )
                for number in range(len(shards.files))
            ]
            data = cls(parts, shards, workers, progress)
            data._lay_down(people)
        except BaseException:
            workers.close()
            drop_folder(folder)
            raise
        return data

    def close(self) -> None:
        """Remove the working copy."""
        self._workers.close()
        drop_folder(self._parts[0].folder)

    def __enter__(self) -> LabelledShards:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LabelledShards({self._shards!r})"

    @cached_property
    def items(self) -> int:
        """N."""
        return self.summaries().items if self._fold is not None else len(self._shards)

    @property
    def jobs(self) -> int:
        """Shards that are worked on at a time on this machine."""
        return self._workers.jobs

    def folds(self, count: int, seed: int = 0) -> list[tuple[LabelledShards, LabelledShards]]:
        """Parts to learn from and to judge by; every item is judged once. They share the copy."""
        return [
            (self._only(Fold(count, k, False, seed)), self._only(Fold(count, k, True, seed)))
            for k in range(count)
        ]

    def total(
        self, work: Callable[..., list[Any]], *given: Any, what: str = "summing"
    ) -> list[Any]:
        """``work(P, q, y, *given)`` of all items: lists of things that add up, block by block.

        P [n, K, C] is in float64. ``work`` must be a function of a module, for it travels.
        """
        self.passes += 1
        done = Sums()
        tasks = [(part, self._fold) for part in self._parts]
        for number, sums in enumerate(
            self._workers.run(partial(shard_total, work=work, given=given), tasks), start=1
        ):
            done.add(sums)
            if self._progress is not None:
                self._progress(what, number, len(tasks))
        return done.total()

    def summaries(self, groups: Groups = None) -> Summaries:
        """Of all members, or of the groups' means; computed once."""
        key = None if groups is None else tuple(groups)
        if key not in self._sums:
            self._sums[key] = self.total(summaries_of, key, self._threads, what="summing up")[0]
        return self._sums[key]

    def curvatures(
        self,
        weights: Floats,
        *,
        units: NDArray[Any] | None = None,
        alpha: Floats | None = None,
        kind: Pool = Pool.LINEAR,
        groups: Groups = None,
    ) -> list[Curvature]:
        """Cross-entropy of the pools with these weights [T, k], its gradient and its Hessian.

        ``units`` [k] are the members (or groups) that the weights are of; all, if None.
        """
        names = None if groups is None else tuple(groups)
        return self.total(curvatures_of, weights, units, alpha, kind, names, what="fitting")

    def evaluate(
        self, weights: Floats, kind: Pool | str = Pool.LINEAR, groups: Groups = None
    ) -> list[dict[str, float | None]]:
        """The metrics of pools with these weights [T, K] (or of groups: [T, G]), in one pass."""
        names = None if groups is None else tuple(groups)
        sums = self.total(metrics_of, np.atleast_2d(weights), str(kind), names, what="judging")
        return [each.values() for each in sums]

    @cached_property
    def sample(self) -> Arrays:
        """Items drawn at random (all, if there are few), in their order; P in float64."""
        numbers = len(self.members) * len(self.classes)
        most = min(SAMPLE, max(1024, _SAMPLE_NUMBERS // numbers))
        total = len(self._shards)
        count = min(most, total)
        chosen = np.sort(np.random.default_rng([total, count]).choice(total, count, replace=False))
        ends = np.cumsum(self._shards.counts)
        tasks = []
        for part, end, size in zip(self._parts, ends, self._shards.counts, strict=True):
            first = end - size
            here = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, end)] - first
            if len(here):
                tasks.append((part, here, self._fold))
        drawn = list(self._workers.run(draw, tasks))
        P, q, y = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return Arrays(P.astype(np.float64, copy=False), q, y)

    @property
    def _threads(self) -> int | None:
        """For each shard: all cores, or one where others work beside."""
        return None if self._workers.alone else 1

    def _only(self, fold: Fold) -> LabelledShards:
        view = LabelledShards(self._parts, self._shards, self._workers, self._progress, fold)
        view.told = self.told
        return view

    def _lay_down(self, people: People) -> None:
        """The first pass: check, match, copy."""
        told = [] if people.files else labels_of(people, self._parts, self._shards)
        sums = Sums()
        work = partial(first_look, threads=self._threads)
        for number, (each, some) in enumerate(self._workers.run(work, self._parts), start=1):
            told += [] if each is None else [each]
            sums.add(some)
            if self._progress is not None:
                self._progress("reading", number, len(self._parts))
        self._sums[None] = sums.total()[0]
        names = [part.name for part in self._parts]
        check_once([part.ids for part in self._parts], names, self._shards.read_items)
        known = np.unique(np.concatenate([each.annotators for each in told]))
        counts = ([t.annotations, t.tied, t.contradicted] for t in told)
        annotations, tied, against = map(sum, zip(*counts, strict=True))
        self.told = Told(annotations, known, tied, against)
        if against:
            # Annotations that were read as one told of these by themselves.
            warn(contradiction_message(against, len(self._shards)), PublishedLabelWarning)
        if self.told.tied and self._parts[0].ties == "first":
            warnings.warn(
                f"{self.told.tied} of {len(self._shards)} items are tied; each takes the first of"
                " its tied classes (ties='first')",
                EDOWarning,
                stacklevel=3,
            )
