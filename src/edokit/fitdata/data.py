"""`FitData`: predictions and labels as a fit reads them, in memory.

`edokit.fitdata.sharded` has the subclass for data in shards on disk.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from edokit._errors import InputError, counted, option
from edokit._io.digests import digest_parts
from edokit._io.documents import Json
from edokit._parallel import LOCAL
from edokit._progress import Progress
from edokit._types import Floats, HardLabels, Ints, Reals
from edokit.fitdata.layout import Layout
from edokit.fitdata.reading import ClassLabels, ReadOptions, ShardOptions
from edokit.metrics import MetricSums, metrics_of
from edokit.metrics.compute import DeferredMetrics, checked_metrics
from edokit.metrics.formulas import (
    cross_entropy,
    is_correct,
    manhattan,
    ranked_probability,
    wasserstein,
)
from edokit.objective.loss import CrossEntropy, Expansion, PoolTerm
from edokit.objective.pools import (
    average_groups,
    group_names,
    log_probabilities,
    member_rows,
    pool,
    sharpen,
    slices,
    softmax,
)
from edokit.objective.settings import CE, ObjectiveSettings, Pool
from edokit.objective.summaries import Problem, Summaries
from edokit.rows import Rows, lowest
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, check_same_scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations, Ties
    from edokit.fitdata.sharded import ShardedData
    from edokit.predictions.core import Predictions
    from edokit.predictions.shards import Shards
    from edokit.runs.inputs import Input

# Most pooled probabilities in memory at a time, over all weight vectors of a search.
_SCORES_BLOCK = 2**22


class Arrays(NamedTuple):
    """Predictions P [n, K, C], soft labels q [n, C] and hard labels y [n], row by row.

    An item is one row; for multi-label data it is a row per label, and these are adjacent.
    """

    P: Reals
    q: Floats
    y: HardLabels

    @classmethod
    def from_items(cls, P: Reals, q: Floats, y: ArrayLike, scale: Scale) -> Arrays:
        """Convert arrays with one entry per item to rows."""
        return cls(scale.rows(P), scale.rows(q), scale.row_codes(np.asarray(y)))

    def take(self, rows: Ints) -> Arrays:
        """Return the rows at these positions."""
        return Arrays(self.P[rows], self.q[rows], self.y[rows])


class AnnotationCounts(NamedTuple):
    """The numbers of annotations and annotators behind the labels of fit data."""

    annotations: int
    annotators: int


@dataclass(eq=False, repr=False)
class FitData:
    """Predictions of K members about N items of C classes, with their soft and hard labels.

    The arrays are rows of distributions for every answer scale (`Scale.rows`): an item is one row;
    for multi-label data with L labels it is L rows with two classes.

    Solvers, fit and search read data only through this class, so that arrays in memory and shards
    on disk take the same path. `from_arrays`, `from_predictions` and `open` create it.

    Attributes
    ----------
    members : tuple of str
        Names of the members, in the order of all weights.
    classes : tuple of str
        Names of the classes, in the order of all probabilities; for multi-label data, the labels.
    scale : Scale
        The answer scale.
    groups : tuple of str or None
        The group (recipe) each member belongs to, where known.
    counts : AnnotationCounts or None
        Annotations and annotators behind the labels, where known.
    all_rows : Rows or None
        The ids of the items, where they are in memory. A part of the data keeps those of the whole.
    positions : ndarray of int or None
        The positions of the items among ``all_rows``; None where these are all of them.
    layout : Layout
        Which rows of the arrays belong together. By default it follows from the scale and the ids.
    class_labels : tuple or None
        Class labels [C] in the type that the user gave; None where they are the names.
    inputs : mapping of str to Input
        The files that the data were read from, by role.
    annotations : Annotations or None
        Who gave which label, where the annotators have names and the data are in memory. A part of
        the data keeps those of the whole; `as_whole` selects its own.
    per_annotator_members : int
        Number of members that learned from a single annotator each; 0 where that is unknown.
    fewest_annotators : int
        Number of annotators of the least annotated item, where there are such members; else 0.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.4, 0.6]]])
    >>> data = FitData.from_arrays(P, np.eye(2), np.array([0, 1]))
    >>> len(data), data.members
    (2, ('0', '1'))
    >>> data.evaluate(np.array([0.5, 0.5]))["f1"]
    1.0
    """

    arrays: Arrays | None
    members: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    counts: AnnotationCounts | None = None
    all_rows: Rows | None = None
    scale: Scale = NOMINAL
    positions: Ints | None = None
    layout: Layout = None  # type: ignore[assignment]
    class_labels: ClassLabels | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)
    annotations: Annotations | None = None
    per_annotator_members: int = 0
    fewest_annotators: int = 0

    def __post_init__(self) -> None:
        if self.layout is None:
            groups = None
            are_pairs = False
            if self.all_rows is not None:
                groups = self.all_rows.clusters
                are_pairs = self.all_rows.are_pairs
            self.layout = Layout.from_scale(self.scale, self.classes, groups, are_pairs=are_pairs)
        self.prepared: dict[Hashable, Any] = {}
        """A cache for solvers, which call several times with the same data."""
        self._known_sums: dict[tuple[bool, bool], Summaries] = {}
        self._rows_of_all: dict[Pool, Floats] = {}
        self._rows_of_selection: dict[Pool, tuple[bytes, Floats]] = {}

    def __repr__(self) -> str:
        return f"FitData({counted(len(self), 'item')}, {counted(len(self.members), 'member')})"

    @staticmethod
    def from_arrays(
        P: ArrayLike,
        q: ArrayLike,
        y: ArrayLike,
        *,
        members: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        scale: ScaleLike = NOMINAL,
    ) -> FitData:
        """Return fit data from arrays.

        Parameters
        ----------
        P : array of shape (n_items, n_members, n_classes)
            Predicted probabilities.
        q : array of shape (n_items, n_classes)
            Soft labels.
        y : array of shape (n_items,)
            Hard labels, as positions of the classes; for multi-label data, 0 or 1 for each label
            (n_items, n_classes).
        members, classes : sequence of str, optional
            Names; 0, 1, … by default.
        groups : sequence of str, optional
            The group of each member.
        scale : Scale or str, default=nominal
            The answer scale; ``ordinal`` takes the names of the classes for positions.

        Returns
        -------
        FitData
        """
        _, n_members, n_classes = np.shape(P)
        if classes is None:
            classes = [str(code) for code in range(n_classes)]
        if members is None:
            members = [str(number) for number in range(n_members)]
        if groups is not None:
            groups = tuple(groups)
        answer_scale = DeclaredScale(scale).resolve(classes)
        probabilities = np.asarray(P, dtype=np.float64)
        soft_labels = np.asarray(q, dtype=np.float64)
        return FitData(
            Arrays.from_items(probabilities, soft_labels, y, answer_scale),
            tuple(members),
            tuple(classes),
            groups,
            scale=answer_scale,
        )

    @staticmethod
    def from_predictions(
        predictions: Predictions,
        annotations: Annotations,
        *,
        ties: Ties = "first",
        random_state: int = 0,
    ) -> FitData:
        """Return fit data from predictions and annotations of the same items.

        Parameters
        ----------
        predictions : Predictions
            What each member predicts for each item.
        annotations : Annotations
            Labels of the same items in the same order, about the same classes, on the same
            scale.
        ties : {"first", "error", "random"}, default="first"
            How items get a hard label whose annotators are evenly split.
        random_state : int, default=0
            For ``ties="random"``.

        Returns
        -------
        FitData
        """
        scale = predictions.scale
        check_same_scale(scale, "predictions", annotations.scale, "annotations")
        counts = AnnotationCounts(len(annotations), len(annotations.annotators))
        y = annotations.majority_codes(ties, random_state)
        q = annotations.shares
        P = np.asarray(predictions.probabilities, dtype=np.float64)
        arrays = Arrays(scale.rows(P), scale.rows(q), scale.row_codes(y))
        layout = _layout(annotations, predictions.classes)
        per_annotator_members = 0
        if not layout.are_pairs:  # the limit K ≤ min A_i is about items
            for name in predictions.members:
                supervision = predictions.member_info.get(name, {}).get("supervision")
                if supervision == "per-annotator":
                    per_annotator_members += 1
        fewest_annotators = 0
        if per_annotator_members:
            fewest_annotators = int(annotations.annotations_per_item.min())
        return FitData(
            arrays,
            members=predictions.members,
            classes=predictions.classes,
            groups=predictions.groups,
            counts=counts,
            all_rows=predictions.rows,
            scale=scale,
            layout=layout,
            per_annotator_members=per_annotator_members,
            fewest_annotators=fewest_annotators,
        )

    @staticmethod
    def open(
        predictions: Shards | str | Path,
        annotations: Annotations | str | Path,
        *,
        split: str | Sequence[str] | None = None,
        jobs: int | None = None,
        engine: str = LOCAL,
        scratch: str | Path | None = None,
        ties: Ties = "first",
        random_state: int = 0,
        progress: Progress | None = None,
        **options: Any,
    ) -> ShardedData:
        """Open shards of predictions with the annotations of their items, in a ``with`` block.

        Opening reads every shard once, checks it, matches it with the annotations by item id, and
        writes it as plain arrays into a cache. Later passes read the cache; closing removes it.

        Parameters
        ----------
        predictions : Shards, str or Path
            The shards, or their folder.
        annotations : Annotations, str or Path
            A table that fits into memory, or a folder with a file for each shard, of the same name.
        split : str or sequence of str, optional
            Only annotations of this split, or of these.
        jobs : int, optional
            Number of shards that are processed at a time; by default one per core, but no more than
            fit into 2 GiB of memory.
        engine : str, default="local"
            ``local``, or ``dask://host:port``.
        scratch : str or Path, optional
            The folder for the cache.
        ties, random_state
            As in `from_predictions`.
        progress : callable, optional
            Called with the shards done, the number of shards, and what is being done.
        **options
            Further arguments of `read_annotations`, such as ``classes`` and ``scale``; and
            ``learn`` ({"items", "pairs", "pairs+anonymous"}): what is learned from predictions for
            pairs of an item and an annotator.

        Returns
        -------
        FitData
        """
        from edokit.fitdata.sharded import ShardedData

        shards = ShardOptions(jobs=jobs, engine=engine, scratch=scratch, progress=progress)
        reading = ReadOptions.from_arguments(
            options, split=split, ties=ties, seed=random_state, shards=shards
        )
        return ShardedData.from_shards(predictions, annotations, reading)

    def close(self) -> None:
        """Remove the cache of shards from the disk, if there is one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def in_memory(self) -> FitData:
        """These data in memory: all items, or a random sample if they do not fit."""
        return self

    @property
    def sample(self) -> Arrays:
        """Rows in memory: of all items, or of a random sample if they do not fit."""
        assert self.arrays is not None
        return self.arrays

    def __len__(self) -> int:
        """The number of items N; of rows for pairs of an item and an annotator, that of pairs."""
        return len(self.sample.y) // self.rows_per_item

    @property
    def rows(self) -> Rows | None:
        """The ids of the items, where they are in memory."""
        if self.all_rows is None or self.positions is None:
            return self.all_rows
        return self.all_rows.take(self.positions)

    @property
    def n_items(self) -> int:
        """The number of distinct items: for pairs, an item counts once."""
        if self.all_rows is None:
            return len(self)
        return self.all_rows.count_items(self.positions)

    @property
    def n_fold_units(self) -> int:
        """The number of units that folds keep together: item groups if they are named, else items.

        An item without a group is a unit of its own.
        """
        if self.layout.groups is None:
            return len(self)
        return len(np.unique(self.layout.groups))

    @property
    def rows_per_item(self) -> int:
        """One; for multi-label data, one per label."""
        return self.layout.rows_per_item

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels of multi-label data; empty for other scales."""
        return self.layout.labels

    @property
    def row_classes(self) -> tuple[str, ...]:
        """Names of the classes of a row [C]."""
        return self.layout.row_classes

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is smaller than the data."""
        return len(self.sample.y) < len(self) * self.rows_per_item

    def summaries(self, settings: ObjectiveSettings | None = None) -> Summaries:
        """Sums over all items, computed once.

        With ``settings``, sums that belong to terms without weight may be None.
        """
        if settings is None or settings.div or settings.needs_order:
            return self._sums(True, True)
        return self._sums(False, settings.ce is not CE.MEAN and settings.ce_weight > 0)

    def member_ce(self) -> Floats:
        """[K] cross-entropy of each member alone."""
        return np.asarray(self._sums(False, True).member_ce())

    def _sums(self, distances: bool, log_losses: bool) -> Summaries:
        """Sums over all items, from the cache if it has them with what is needed."""
        for (has_distances, has_log_losses), sums in self._known_sums.items():
            if has_distances >= distances and has_log_losses >= log_losses:
                return sums
        sums = Summaries.from_arrays(
            *self.sample, distances=distances, log_losses=log_losses, steps=self.layout.steps
        )
        self._known_sums[distances, log_losses] = sums
        return sums

    def problem(
        self,
        settings: ObjectiveSettings,
        *,
        all_terms: bool = True,
        with_items: bool = True,
        members: Ints | None = None,
    ) -> Problem:
        """The problem of minimising the joint loss with these settings.

        Sums are of all items; the items whose pool is evaluated are those of the sample. Without
        ``all_terms``, sums that belong to terms without weight may be None. Without ``with_items``,
        the problem lacks the items, and so the pool's cross-entropy. ``members`` are the positions
        of the members to use, in this order; None for all of them.
        """
        sums = self.summaries(None if all_terms else settings)
        class_weights = None
        if settings.class_weights:
            class_weights = sums.class_weights(self.row_classes)
        if members is not None:
            sums = sums.select(members)
        q = self.sample.q
        rows = np.zeros((sums.members, 0))
        if with_items:
            rows = self._member_rows(settings.pool, members)
        else:
            q = q[:0]
        return Problem(sums, rows, q, class_weights, settings.pool, self.layout.steps)

    def _member_rows(self, kind: Pool, members: Ints | None = None) -> Floats:
        """[K, n·C] the rows of the sample that a pool adds up, for these members in this order.

        The rows of all members are cached, and those of the latest selection of members.
        """
        if members is None:
            if kind not in self._rows_of_all:
                self._rows_of_all[kind] = self._make_rows(kind, None)
                self._rows_of_selection.pop(kind, None)  # may be as large as the data
            return self._rows_of_all[kind]
        selection = members.tobytes()
        known_selection, rows = self._rows_of_selection.get(kind, (None, None))
        if rows is None or known_selection != selection:
            rows = self._make_rows(kind, members)
            self._rows_of_selection[kind] = (selection, rows)
        return rows

    def _make_rows(self, kind: Pool, members: Ints | None) -> Floats:
        """The rows that `_member_rows` returns; None for all members."""
        if kind is Pool.LOG:
            return np.asarray(log_probabilities(self._member_rows(Pool.LINEAR, members)))
        return np.asarray(member_rows(self.sample.P, members))

    def expansions(
        self,
        weights: Floats,
        members: Ints | None = None,
        term: PoolTerm = CrossEntropy(),  # noqa: B008
    ) -> list[Expansion]:
        """Value, gradient and Hessian of a term for each of these weight vectors [T, k].

        ``members`` [k] are the positions of the members that have these weights; None for all.
        """
        P, q, _ = self.sample
        if members is not None:
            P = P[:, members]
        return [Expansion.from_term(term, P, q, v) for v in weights]

    def evaluate(
        self, weights: Floats, pool: Pool | str = Pool.LINEAR, temperature: float = 1.0
    ) -> Mapping[str, float | None]:
        """The metrics of the pool with these weights [K].

        In memory, they are computed when they are first read. For shards, ``entropy_correlation``
        is None: it is not a sum over shards.
        """
        p, q, y = self.per_item(pooled(self.sample.P, weights, str(pool), temperature))
        order: Literal["C", "F"] = "C"
        if p.shape[1] <= 2:
            # numpy sums over two columns several times as fast in this order, to the same digits.
            order = "F"
        # Copied, since the metrics are computed later, and users may change their arrays meanwhile.
        p = np.array(p, order=order)
        q = np.array(q, order=order)
        y = np.array(y)
        names = metrics_of(self.scale)
        return DeferredMetrics(partial(checked_metrics, names, p, q, y, self.scale))

    def per_item(self, rows: Floats) -> tuple[Floats, Floats, HardLabels]:
        """Predictions [n, C] by row of the sample, its soft and its hard labels, each by item."""
        layout = self.layout
        _, q, y = self.sample
        return layout.item_shares(rows), layout.item_shares(q), layout.item_labels(y)

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        """The sums from which a search compares weight vectors [T, K], in one pass."""
        _, q, y = self.sample
        classes = q.shape[1]
        width = self.rows_per_item
        names = ["f1", "ce", "md", "ce_squares"]
        if self.layout.steps is not None:
            names = ["f1", "ce", "md", "rps", "w1", "ce_squares", "rps_squares"]
        totals = {name: np.zeros(len(weights)) for name in names}
        for kind in dict.fromkeys(pools):
            trials = np.flatnonzero([pool_of_trial is kind for pool_of_trial in pools])
            rows = self._member_rows(kind)
            items = max(1, _SCORES_BLOCK // (len(weights) * classes * width))
            for s in slices(len(y), items * width):
                block = rows[:, s.start * classes : s.stop * classes]
                pooled_rows = (weights[trials] @ block).reshape(len(trials), -1, classes)
                if kind is Pool.LOG:
                    pooled_rows = softmax(pooled_rows)
                for trial, p in zip(trials, pooled_rows, strict=True):
                    for name, total in self._score_sums(p, q[s], y[s]).items():
                        totals[name][trial] += total
        return Scores(len(self), totals)

    def _score_sums(self, p: Floats, q: Floats, y: HardLabels) -> dict[str, float]:
        """The sums from which a search compares, for predictions p [n, C] of some rows."""
        item_means = self.layout.item_means
        ce = item_means(cross_entropy(p, q))
        sums = {
            "f1": item_means(is_correct(p, y)).sum(),
            "ce": ce.sum(),
            "ce_squares": np.square(ce).sum(),
            "md": item_means(manhattan(p, q)).sum(),
        }
        if self.layout.steps is not None:
            positions = np.array(self.scale.positions)
            rps = ranked_probability(p, q, positions)
            sums["rps"] = rps.sum()
            sums["rps_squares"] = np.square(rps).sum()
            sums["w1"] = wasserstein(p, q, positions).sum()
        return sums

    def draw(self, count: int) -> FitData:
        """At most this many items, in memory, sorted by content, so that their order is the same
        for any order of the data.

        If there are more, the ids of the items decide which are drawn; without ids, the first are.
        """
        if len(self) <= count:
            return self._take(by_content(self.sample, self.members, self.rows_per_item))
        if self.all_rows is None:
            return self._take(np.arange(count)).draw(count)
        if self.positions is None:
            return self._take(self.all_rows.draw(count)).draw(count)
        return self._take(lowest(self.all_rows.keys[self.positions], count)).draw(count)

    def folds(self, count: int, random_state: int = 0) -> list[tuple[FitData, FitData]]:
        """Pairs of the data without a fold and the data of this fold, for ``count`` folds.

        Every item is held out once. Each hard label (for multi-label data, each set of labels) is
        spread evenly over the folds.
        """
        self._check_folds(count)
        folds = self.layout.folds(self.sample.y, count, random_state)
        parts = []
        for fold in range(count):
            training = np.flatnonzero(folds != fold)
            held_out = np.flatnonzero(folds == fold)
            parts.append((self._take(training), self._take(held_out)))
        return parts

    def _take(self, items: Ints) -> FitData:
        """The items at these positions."""
        if self.positions is None:
            positions = items
        else:
            positions = self.positions[items]
        layout = self.layout
        rows = items
        if layout.rows_per_item > 1:
            rows = layout.row_positions(items)
        if layout.groups is not None:
            layout = layout.take(items)
        return replace(self, arrays=self.sample.take(rows), positions=positions, layout=layout)

    def as_whole(self) -> FitData:
        """A part of other data as data of its own; data that are not a part come back unchanged.

        Ids, annotations and their counts are then those of these items alone.
        """
        if self.positions is None:
            return self
        annotations = None
        counts = None
        if self.annotations is not None:
            annotations = self.annotations.take(self.positions)
            counts = AnnotationCounts(len(annotations), len(annotations.annotators))
        return replace(
            self,
            all_rows=self.rows,
            positions=None,
            annotations=annotations,
            counts=counts,
        )

    def label_summaries(self) -> list[Summaries]:
        """The summaries of each label of multi-label data, each with two classes."""
        P, q, y = self.sample
        layout = self.layout.for_single_label()
        summaries = []
        for label in range(len(self.labels)):
            rows = slice(label, None, self.rows_per_item)
            data_of_label = replace(
                self,
                arrays=Arrays(P[rows], q[rows], y[rows]),
                classes=self.row_classes,
                scale=NOMINAL,
                layout=layout,
            )
            summaries.append(data_of_label._sums(distances=False, log_losses=False))
        return summaries

    def _check_folds(self, count: int) -> None:
        """Refuse more folds than there are units that folds keep together."""
        units = self.n_fold_units
        noun = "item"
        if self.layout.has_item_groups:
            noun = "group"
        if count > units:
            raise InputError(
                f"{count} folds are more than the {counted(units, noun)}",
                f"choose fewer: {option('folds')}",
                code="too-many-folds",
            )

    def grouped(self) -> FitData:
        """The same data with the mean of each group in place of its members."""
        names = self.member_groups()
        P, q, y = self.sample
        means = Arrays(average_groups(P, names), q, y)
        return replace(self, arrays=means, members=tuple(group_names(names)), groups=None)

    def member_groups(self) -> tuple[str, ...]:
        """The group of each member; a member without one is the only member of its own group."""
        if self.groups is None:
            raise InputError(
                f"{option('groups', True)} needs the group of each member, but these predictions"
                " have none",
                "name them (Predictions.grouped, `edo predictions join --group`), or leave"
                f" {option('groups')} out",
                code="missing-groups",
            )
        names = []
        for member, group in zip(self.members, self.groups, strict=True):
            names.append(group or f"member {member}")
        return tuple(names)

    def describe(self) -> dict[str, Json]:
        """Number of items, members, classes and a digest, which identify these data."""
        description: dict[str, Json] = {
            "items": len(self),
            "members": list(self.members),
            "classes": list(self.classes),
        }
        if self.scale != NOMINAL:
            description["scale"] = self.scale.to_text(self.classes)
        description["digest"] = self._digest()
        return description

    def _digest(self) -> str:
        """A digest of predictions and labels."""
        P, q, y = self.sample
        arrays = (P, q, y.astype(np.int64))
        return digest_parts(np.ascontiguousarray(array).tobytes() for array in arrays)


def _layout(annotations: Annotations, classes: Sequence[str]) -> Layout:
    """The layout of the rows of annotations, with these classes."""
    from edokit.datasets.item_groups import named_groups

    return Layout.from_scale(
        annotations.scale,
        classes,
        named_groups(annotations),
        has_item_groups=annotations.item_groups is not None,
        are_pairs=annotations.rows.are_pairs,
    )


def pooled(P: Reals, v: Floats, kind: str, temperature: float = 1.0) -> Floats:
    """[N, C] probabilities of the pool of P [N, K, C] with weights v [K], after sharpening."""
    return sharpen(np.asarray(pool(P, v, kind)), temperature)


def by_content(arrays: Arrays, members: Sequence[str], rows_per_item: int = 1) -> Ints:
    """[N] positions of the items, sorted by labels, then summed predictions, then predictions.

    The order does not depend on the order of items or members.
    """
    P, q, y = arrays
    sums = np.sort(P, axis=1).sum(axis=1)  # the same whatever the order of the members
    by_member = P[:, np.argsort(members)].reshape(len(y), -1)
    # Numbers of at least 0 are ordered as their bytes are, the most significant first.
    rows = np.concatenate([y[:, None], q, sums, by_member], axis=1).astype(">f8", order="C")
    rows = rows.reshape(len(y) // rows_per_item, -1)
    return np.argsort(rows.view(f"V{8 * rows.shape[1]}").ravel(), kind="stable")


class Scores(MetricSums):
    """What a search compares, as sums over items: an array [T] per name for T weight vectors."""

    def estimates(self) -> list[dict[str, float]]:
        """F1, CE, MD and the standard error of CE, for each weight vector.

        For ordinal scales also RPS with its standard error, and W1.
        """
        means = {}
        for name, total in self.sums.items():
            if total is not None:
                means[name] = total / self.items
        for name in ("ce", "rps"):
            if f"{name}_squares" in means:
                variance = np.maximum(means.pop(f"{name}_squares") - means[name] ** 2, 0.0)
                means[f"{name}_se"] = np.sqrt(variance / max(self.items - 1, 1))
        estimates: list[dict[str, float]] = [{} for _ in means["ce"]]
        for name, values in means.items():
            for estimate, value in zip(estimates, values.tolist(), strict=True):
                estimate[name] = value
        return estimates
