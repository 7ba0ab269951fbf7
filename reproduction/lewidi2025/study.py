"""Both tasks on dev: constant answers, uniform means and learned weights, on held-out items."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from edokit import Annotations, EDOEnsemble, Objective, Predictions, read_predictions
from edokit._errors import EDOWarning, InputError
from edokit._types import Codes, Floats, Ints
from edokit.metrics import ce_items, md_items, w1_items
from edokit.metrics.formulas import decisions
from edokit.rows import Rows
from edokit.scales import Scale
from reproduction.lewidi2025.data import DATASETS, read_labelled
from reproduction.lewidi2025.scores import lewidi2025_b_items

FOLDS = 5
KNOWN = " (known)"
"""Ends the name of a pool whose answers are those for the annotators of an item."""
ALL = "all"
ALL_ANONYMOUS = "all, annotators unknown"
OBJECTIVES: Mapping[str, Objective | None] = {
    "uniform": None,
    "EDO, CE": Objective(),
    "EDO, RPS": Objective(f1=0.0, ce_weight=0.0, rps=1.0),
    "EDO, W1": Objective(f1=0.0, ce_weight=0.0, w1=1.0),
}
"""Weights by name: None are equal ones, others are learned by this objective."""
CONSTANT = "constant"


@dataclass(frozen=True)
class Row:
    """One way to answer, and what it scores on each dev item."""

    pool: str
    method: str
    answer_for: str | None
    score: Floats
    """The official score of each item [N], lower is better."""
    ce: Floats | None = None
    """CE of each item [N], where there is a distribution."""

    @property
    def mean(self) -> float:
        """The official score."""
        return float(self.score.mean())


@dataclass(frozen=True)
class Study:
    """The dev set of one dataset, and what members predict for it and for test.

    Attributes
    ----------
    cross_fitted : bool, default=False
        Whether to study members that were cross-fitted on train and dev (``fit.npz``): items of
        both are then judged, each by members that have not seen it.
    """

    data: Path
    predictions: Path
    name: str
    folds: int = FOLDS
    cross_fitted: bool = False
    step: Callable[[str], None] = field(default=lambda what: None, compare=False)

    @cached_property
    def labels(self) -> dict[str, Annotations]:
        """Annotations of train, and of the items that are judged, called dev."""
        labelled = read_labelled(self.data, self.name)
        train = labelled.split("train")
        if self.cross_fitted:
            return {"train": train, "dev": labelled}
        return {"train": train, "dev": labelled.split("dev")}

    @property
    def title(self) -> str:
        """The dataset, and which of its members are studied."""
        if self.cross_fitted:
            return f"{self.name}, cross-fitted"
        return self.name

    def files(self, ending: str) -> list[Path]:
        """Files of the pools that are studied: ``dev.npz``, ``test-pairs.npz`` and so on."""
        judged = "fit" if self.cross_fitted else "dev"
        folders = [path.parent for path in (self.predictions / self.name).glob(f"*/{judged}.npz")]
        paths = [folder / ending.replace("dev", judged) for folder in sorted(folders)]
        return [path for path in paths if path.is_file()]

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.labels["dev"].scale

    def pools(self, split: str) -> dict[str, Predictions]:
        """Predictions for items, by pool, those of dev in the order of the annotations.

        Members that know annotators give two pools: answers for nobody in particular, and the
        mean of those for the annotators of each item.
        """
        paths = self.files(f"{split}.npz")
        if not paths:
            raise InputError(
                f"{self.predictions / self.name} holds no predictions ({split}.npz in a folder per"
                " pool)",
                "name another folder with --predictions DIR",
                code="wrong-folder",
            )
        predictions = {path.parent.name: read_predictions(path) for path in paths}
        items = predictions[paths[0].parent.name].items
        if split == "dev":
            items = self.labels["dev"].items
        anonymous = {name: self._ready(pool).align(items) for name, pool in predictions.items()}
        known = {
            name + KNOWN: _renamed(pairs.panel_means(), KNOWN).align(items)
            for name, pairs in self.pairs(split).items()
        }
        pools = {**anonymous}
        if len(anonymous) > 1:
            pools[ALL_ANONYMOUS] = join([*anonymous.values()])
        pools |= known
        if known:
            pools[ALL] = join([*anonymous.values(), *known.values()])
        return pools

    def pairs(self, split: str) -> dict[str, Predictions]:
        """Predictions for pairs of an item and an annotator, by pool."""
        return {
            path.parent.name: self._ready(read_predictions(path))
            for path in self.files(f"{split}-pairs.npz")
        }

    def _ready(self, pool: Predictions) -> Predictions:
        return pool.order_classes(self.labels["dev"].classes).on_scale(self.scale)

    def task_a(self) -> Iterator[Row]:
        """The distribution of answers of each item."""
        dev = self.labels["dev"]
        train = self.labels["train"]
        constant = Predictions.from_arrays(
            np.tile(train.soft_labels.mean(axis=0), (len(dev.items), 1, 1)),
            layout="NKC",
            items=dev.items,
            classes=dev.classes,
            scale=self.scale,
            invalid="normalize",
        )
        for answer_for, p in self.held_out(constant, dev, "uniform").items():
            yield self._row_a(CONSTANT, "training-set mean", answer_for, p)
        for pool, predictions in self.pools("dev").items():
            for method in self.objectives():
                self.step(f"{self.name}, {pool}, {method}")
                for answer_for, p in self.held_out(predictions, dev, method).items():
                    yield self._row_a(pool, method, answer_for, p)

    def objectives(self) -> list[str]:
        """The objectives that the scale has."""
        ordinal = self.scale.positions is not None
        return [name for name in OBJECTIVES if ordinal or name.partition(", ")[2] in ("", "CE")]

    def members(self) -> Iterator[Row]:
        """Each member alone."""
        for pool, predictions in self.pools("dev").items():
            if pool in (ALL, ALL_ANONYMOUS):
                continue
            for k, name in enumerate(predictions.members):
                p = np.asarray(predictions.probabilities[:, k], dtype=np.float64)
                yield self._row_a(pool, name, None, p)

    def _row_a(self, pool: str, method: str, answer_for: str | None, p: Floats) -> Row:
        q = np.asarray(self.labels["dev"].soft_labels)
        scale = self.scale
        p = np.asarray(p)
        rows = scale.rows(p)
        soft = scale.rows(q)
        distances = scale.per_item(item_distances(rows, soft, scale), len(q))
        ce = scale.per_item(ce_items(rows, soft), len(q))
        return Row(pool, method, answer_for, distances, ce)

    def task_b(self) -> Iterator[Row]:
        """The answer of each annotator of an item."""
        dev = self.labels["dev"]
        dev_pairs = dev.pairs()
        yield self._row_b(CONSTANT, "most frequent answer", self.usual_answers(dev_pairs))
        for pool, predictions in self.pools("dev").items():
            if not pool.endswith(KNOWN) and pool != ALL:
                p = spread(predictions, dev_pairs.rows).uniform
                yield self._row_b(pool, "uniform", decisions(p, self.scale))
        for pool, predictions in self.pair_pools("dev", dev_pairs.rows).items():
            for method in ("uniform", "EDO, CE"):
                self.step(f"{self.name}, task B, {pool}, {method}")
                p = self.held_out(predictions, dev_pairs, method)[None]
                yield self._row_b(pool, method, decisions(p, self.scale))

    def pair_pools(self, split: str, asked: Rows) -> dict[str, Predictions]:
        """Pools of pairs in the order of ``asked``; the last has anonymous answers, too."""
        pair_pools = {
            pool + KNOWN: _renamed(pairs.pairs().align(asked), KNOWN)
            for pool, pairs in self.pairs(split).items()
        }
        if not pair_pools:
            return {}
        everybody = self.pools(split)
        anonymous = everybody.get(ALL_ANONYMOUS) or next(iter(everybody.values()))
        return {**pair_pools, ALL: join([*pair_pools.values(), spread(anonymous, asked)])}

    def usual_answers(self, asked: Annotations) -> Codes:
        """Each annotator's most frequent answer in train; for sets no label (the task's rule)."""
        train = self.labels["train"]
        scale = self.scale
        if scale.is_multi_label or train.label_codes is None:
            return np.zeros((len(asked.items), len(train.classes)), dtype=np.int32)
        counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
        everybody: Counter[int] = Counter()
        # In the order of the file: ties go to the answer that was given first.
        for annotator_code, code in zip(train.annotator_codes, train.label_codes, strict=True):
            counts[str(train.annotators[annotator_code])][int(code)] += 1
            everybody[int(code)] += 1
        people = asked.rows.annotator_names
        assert people is not None
        usual_answers = []
        for name in people:
            annotator_counts = counts.get(str(name), everybody)
            usual_answers.append(annotator_counts.most_common(1)[0][0])
        return np.array(usual_answers, dtype=np.int32)

    def _row_b(self, pool: str, method: str, decided: Codes) -> Row:
        """The mean error of an item's annotators, for each item."""
        dev = self.labels["dev"]
        dev_pairs = dev.pairs()
        row_of = {item: row for row, item in enumerate(dev.items)}
        code = np.array([row_of[item] for item in dev_pairs.items])
        given_labels = decisions(np.asarray(dev_pairs.soft_labels), self.scale)
        scores = lewidi2025_b_items(code, decided, given_labels, self.scale, len(dev.classes))
        return Row(pool, method, None, scores)

    def held_out(
        self, pool: Predictions, labels: Annotations, method: str
    ) -> dict[str | None, Floats]:
        """Answers for rows that neither weights nor steps were fitted on, in folds by item.

        The keys are metrics that answers are made for; None stands for the probabilities.
        """
        fold = folds_by_item(pool.rows, self.folds)
        metric = DATASETS[self.name]
        answer_rows: dict[str | None, Floats] = {
            answer_for: np.empty((len(pool), len(pool.classes))) for answer_for in (None, metric)
        }
        for held_out_fold in range(self.folds):
            learn = np.flatnonzero(fold != held_out_fold)
            test_rows = np.flatnonzero(fold == held_out_fold)
            ensemble = fit(pool.take(learn), labels.take(learn), method)
            for answer_for, p in answer_rows.items():
                p[test_rows] = answers(ensemble, pool.take(test_rows), answer_for)
        return answer_rows


def fit(pool: Predictions, labels: Annotations, method: str) -> EDOEnsemble:
    """Weights of members: equal ones, or learned by an objective."""
    objective = OBJECTIVES[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        if objective is None:
            equal = np.full(len(pool.members), 1 / len(pool.members))
            return EDOEnsemble.from_weights(equal, pool, labels)
        return EDOEnsemble(objective=objective).fit(pool, labels)


def answers(ensemble: EDOEnsemble, pool: Predictions, answer_for: str | None) -> Floats:
    """The answers of an ensemble, made for a metric unless ``answer_for`` is None."""
    with warnings.catch_warnings():
        # A warning says that few items choose a step badly; the page shows how badly.
        warnings.simplefilter("ignore", EDOWarning)
        return ensemble.predict_proba(pool, answer_for=answer_for)


def item_distances(p: Floats, q: Floats, scale: Scale) -> Floats:
    """The distance of each row in task A: Wasserstein-1 on ordinal scales, else Manhattan."""
    if scale.positions is None:
        return md_items(p, q)
    return w1_items(p, q)


def folds_by_item(rows: Rows, count: int) -> Ints:
    """The fold of each row; rows of one item are in one fold."""
    shuffled = np.random.default_rng(0).permutation(len(rows.items))
    fold: Ints = (shuffled % count)[rows.item_ranks]
    return fold


def spread(pool: Predictions, asked: Rows) -> Predictions:
    """A row for each pair, with the answer for its item."""
    rows = pool.rows.positions(asked.by_item())[asked.item_codes]
    return replace(pool, probabilities=pool.probabilities[rows], rows=asked)


def join(pools: Sequence[Predictions]) -> Predictions:
    """One pool of the members of all, whose items are in the same order."""
    members: list[str] = []
    groups: list[str] = []
    for pool in pools:
        members += pool.members
        groups += pool.groups or pool.members
    joined = replace(
        pools[0],
        probabilities=np.concatenate([pool.probabilities for pool in pools], axis=1),
        members=tuple(members),
        groups=tuple(groups),
    )
    joined.check_names()
    return joined


def asked_pairs(items: Sequence[str], annotators: Sequence[Sequence[str]]) -> Rows:
    """The pairs of items and their annotators, in this order."""
    item_names: list[str] = []
    annotator_names: list[str] = []
    for item, names in zip(items, annotators, strict=True):
        item_names += [item] * len(names)
        annotator_names += names
    return Rows.from_names(item_names, annotator_names)


def _renamed(pool: Predictions, ending: str) -> Predictions:
    return replace(pool, members=tuple(name + ending for name in pool.members))


def chosen(rows: Sequence[Row]) -> Row:
    """What dev prefers, constant answers aside.

    Distributions: the pool and weights with the lowest CE, which is proper and less noisy than a
    distance, and the step for the metric of the task if it lowers that. Else the lowest score.
    """
    learned = [row for row in rows if row.pool != CONSTANT]
    with_ce = [row for row in learned if row.ce is not None and not row.answer_for]
    if not with_ce:
        return min(learned, key=lambda row: row.mean)
    best = min(with_ce, key=_mean_ce)
    best_rows = [row for row in learned if row.pool == best.pool and row.method == best.method]
    return min(best_rows, key=lambda row: row.mean)


def _mean_ce(row: Row) -> float:
    assert row.ce is not None
    return float(row.ce.mean())


def interval(values: Floats, samples: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over items."""
    samples_of_items = np.random.default_rng(0).integers(len(values), size=(samples, len(values)))
    low, high = np.quantile(values[samples_of_items].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)
