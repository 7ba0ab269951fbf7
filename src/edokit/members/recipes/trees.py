"""Members that are randomised trees on pieces of texts.

They err on other texts than a regression does. Each tree learns from a bounded number of items, so
that training time hardly grows with the data. Fitted trees are packed into plain arrays, and all of
them are followed at once: one text takes a fraction of what calling tree after tree takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from edokit._errors import InputError
from edokit._progress import Progress
from edokit._types import Floats, Ints
from edokit.members.arrays import NamedArrays, read_arrays, write_arrays
from edokit.members.contexts import Context, Text, distinct_texts, with_context
from edokit.members.recipe import (
    Annotators,
    Capabilities,
    Member,
    MemberData,
    warn_of_equal_targets,
)
from edokit.members.recipe_options import Range, check_values
from edokit.members.recipes.linear import BLOCK_WEIGHTS, TFIDF, Counts, TfIdf, counts_of
from edokit.scales import NOMINAL, Scale, unordered_scale

_FILE = "trees.npz"
_FOREST = ("features", "thresholds", "children", "roots", "leaves")
_ARRAYS = (*_FOREST, *TFIDF, "n_targets", "multi_label")
# Texts at a time, whose features are dense.
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class PackedTrees:
    """Fitted trees in plain arrays.

    A *place* is the number of a node or, for the leaf number l, the negative number ~l = −l − 1.

    Attributes
    ----------
    features : ndarray of shape (M,)
        The feature that each node compares.
    thresholds : ndarray of shape (M,)
        Values up to the threshold go left.
    children : ndarray of shape (M, 2)
        The places to the left and to the right of each node.
    roots : ndarray of shape (T,)
        The place where each tree begins.
    leaves : ndarray of shape (L, C)
        The shares at each leaf.
    """

    features: npt.NDArray[np.int32]
    thresholds: npt.NDArray[np.float32]
    children: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    leaves: npt.NDArray[np.float32]

    @classmethod
    def pack(cls, trees: Sequence[Any]) -> PackedTrees:
        """Pack the ``tree_`` of fitted scikit-learn regressors."""
        features = []
        thresholds = []
        children = []
        roots = []
        leaves = []
        n_nodes = 0
        n_leaves = 0
        for tree in trees:
            is_leaf = tree.children_left < 0
            # Nodes and leaves are numbered apart, each in their order.
            places = np.empty(len(is_leaf), dtype=np.int32)
            places[~is_leaf] = n_nodes + np.arange(np.count_nonzero(~is_leaf))
            places[is_leaf] = ~(n_leaves + np.arange(np.count_nonzero(is_leaf)))
            inner = np.flatnonzero(~is_leaf)
            features.append(tree.feature[inner])
            thresholds.append(_round_down(tree.threshold[inner]))
            pairs = np.column_stack([tree.children_left[inner], tree.children_right[inner]])
            children.append(places[pairs])
            roots.append(places[0])
            leaves.append(tree.value[is_leaf, :, 0])
            n_nodes += len(inner)
            n_leaves += int(np.count_nonzero(is_leaf))
        return cls(
            np.concatenate(features).astype(np.int32),
            np.concatenate(thresholds),
            np.concatenate(children),
            np.array(roots, dtype=np.int32),
            np.concatenate(leaves).astype(np.float32),
        )

    def predict(self, features: npt.NDArray[np.float32]) -> Floats:
        """The mean over trees of the shares at their leaves [N, C]; features [N, F] are dense."""
        n, width = features.shape
        n_trees = len(self.roots)
        values = features.ravel()
        children = self.children.ravel()
        places = np.tile(self.roots, n)
        waiting = np.flatnonzero(places >= 0)
        nodes = places[waiting]
        starts = waiting // n_trees * width
        while len(waiting):
            is_right = values[starts + self.features[nodes]] > self.thresholds[nodes]
            nodes = children[2 * nodes + is_right]
            places[waiting] = nodes
            inside = nodes >= 0
            waiting = waiting[inside]
            nodes = nodes[inside]
            starts = starts[inside]
        shares = self.leaves[~places].reshape(n, n_trees, -1)
        return np.asarray(shares.mean(axis=1, dtype=np.float64))

    def check(self, width: int) -> None:
        """Raise a ValueError unless every path leads down to a leaf."""
        nodes = len(self.features)
        if self.children.shape != (nodes, 2) or len(self.thresholds) != nodes:
            raise ValueError("its trees have nodes without children")
        if not len(self.roots):
            raise ValueError("it does not contain trees")
        places = np.concatenate([self.children.ravel(), self.roots])
        if (places >= nodes).any() or (places < -len(self.leaves)).any():
            raise ValueError("a tree in it leads nowhere")
        below = self.children > np.arange(nodes)[:, None]
        if not (below | (self.children < 0)).all():
            raise ValueError("a tree in it leads back to where it came from")
        if ((self.features < 0) | (self.features >= width)).any():
            raise ValueError("a tree in it asks for a feature that does not exist")


def _round_down(thresholds: Floats) -> npt.NDArray[np.float32]:
    """Thresholds rounded down to single precision, so that features compare as before."""
    rounded = thresholds.astype(np.float32)
    above = rounded > thresholds
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def _choose_pieces(tfidf: TfIdf, counts: Counts, targets: Floats, pieces: int) -> TfIdf:
    """Keep the most frequent columns, and as many others that explain most of the targets.

    A column explains a part of the variance of the targets: the number of its texts, times the
    squared distance of the mean of their targets from the mean of all.
    """
    contained = tfidf.transform(counts)
    contained.data[:] = 1.0
    n_texts = np.maximum(np.asarray(contained.sum(axis=0)).ravel(), 1.0)
    sums = np.asarray(contained.T @ (targets - targets.mean(axis=0)))
    scores = (sums**2).sum(axis=1) / n_texts
    frequent = np.argsort(-n_texts, kind="stable")[: -(-pieces // 2)]
    scores[frequent] = -1.0  # they are chosen already
    explaining = np.argsort(-scores, kind="stable")[: pieces // 2]
    columns = np.union1d(frequent, explaining)
    return replace(tfidf, columns=tfidf.columns[columns], idf=tfidf.idf[columns])


@dataclass(eq=False)
class TreesMember(Member):
    """Extremely randomised trees that learn the shares of answers.

    The points of an ordinal scale are treated as classes. For multi-label data, the trees learn the
    share of each label.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of multi-label data.
    trees : int, default=50
        Number of trees.
    pieces : int, default=4000
        Number of pieces of texts that are features: half of them the most frequent ones, half those
        that explain most of the targets.
    items : int, default=2000
        Largest number of items, drawn for each tree, from which it learns.
    fewest : int, default=4
        Smallest number of items in a leaf.
    tried : float, default=0.05
        The share of features among which the best split of a node is searched.
    """

    capabilities = Capabilities(multi_label=True)

    n_classes: int
    _: KW_ONLY
    trees: Annotated[int, Range(1)] = 50
    pieces: Annotated[int, Range(1)] = 4000
    items: Annotated[int, Range(1)] = 2000
    fewest: Annotated[int, Range(1)] = 4
    tried: Annotated[float, Range(0, 1, above=True)] = 0.05
    _forest: PackedTrees = field(init=False, repr=False)
    _tfidf: TfIdf = field(init=False, repr=False)
    _n: int = field(default=0, init=False, repr=False)  # targets that it learned from
    # The scale of the targets, of which only matters whether it is multi-label.
    _scale: Scale = field(default=NOMINAL, init=False, repr=False)
    _corpus: tuple[Text, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self)

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> TreesMember:
        """Learn from the targets of epoch 0."""
        from sklearn.tree import ExtraTreeRegressor

        texts = with_context(data.texts, data.context)
        targets = data.targets(0)
        self._corpus = data.corpus
        self._scale = data.scale
        self._n = len(targets)
        if not np.ptp(targets, axis=0).any():
            warn_of_equal_targets(self._n)
        counts = counts_of(texts, self._corpus)
        self._tfidf = _choose_pieces(TfIdf.fit(counts, BLOCK_WEIGHTS), counts, targets, self.pieces)
        features = self._tfidf.transform(counts)
        generator = np.random.default_rng(random_state)
        fitted = []
        with threadpool_limits(1):
            for _ in range(self.trees):
                rows: slice | Ints = slice(None)
                if self._n > self.items:
                    rows = generator.choice(self._n, self.items, replace=False)
                tree = ExtraTreeRegressor(
                    min_samples_leaf=self.fewest,
                    max_features=self.tried,
                    random_state=int(generator.integers(2**31)),
                )
                fitted.append(tree.fit(features[rows], targets[rows]).tree_)
        self._forest = PackedTrees.pack(fitted)
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]."""
        distinct, row_of = distinct_texts(with_context(texts, context))
        features = self._tfidf.transform(counts_of(distinct, self._corpus))
        parts = []
        for start in range(0, len(distinct), _BLOCK):
            dense = features[start : start + _BLOCK].toarray().astype(np.float32)
            parts.append(self._forest.predict(dense))
        # No class is impossible: its share is at least what one more target of it would give.
        least = 1 / (self._n + self.n_classes)
        shares = np.clip(np.concatenate(parts), least, 1 - least)
        return self._scale.normalized(shares)[row_of]

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays."""
        write_arrays(
            folder / _FILE,
            **vars(self._forest),
            **vars(self._tfidf),
            n_targets=np.array(self._n),
            multi_label=np.array(self._scale.is_multi_label),
        )

    @classmethod
    def load(cls, folder: Path) -> TreesMember:
        """Read what ``save`` wrote."""
        path = folder / _FILE
        arrays: NamedArrays = read_arrays(path, _ARRAYS)
        forest = PackedTrees(*(arrays[name] for name in _FOREST))
        member = cls(forest.leaves.shape[1])
        member._forest = forest
        member._tfidf = TfIdf(*(arrays[name] for name in TFIDF))
        member._n = int(arrays["n_targets"])
        member._scale = unordered_scale(bool(arrays["multi_label"]))
        try:
            forest.check(len(member._tfidf.columns))
        except ValueError as error:
            raise InputError(
                f"{path} is damaged: {error}", "train the member again", code="damaged-file"
            ) from error
        return member
