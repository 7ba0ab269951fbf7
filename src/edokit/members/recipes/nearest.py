"""Members that look up the nearest answers: everybody's, and those of the annotator asked for.

An answer to text j counts max(cosine, 0)^power for text i. The share of answers so weighted rests
on n = (Σw)² / Σw² of them. It moves what was known before, h, by how it differs from what had been
expected of the same answers: p ∝ h · (n · share + strength · h) / (n · expected + strength · h).
This happens twice. Everybody's nearest answers move the mean shares to the anonymous answer. The
annotator's own move the anonymous answer, with the annotator's shrunken effects, to theirs. Powers
and strengths have the lowest cross-entropy of texts of the training, each left out in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from edokit._progress import Progress
from edokit._types import Floats, Ints
from edokit.annotator_effects import AnnotatorEffects, label_shares, mean_over_pairs, pairs_of_texts
from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.contexts import Context, Text, distinct_texts, with_context
from edokit.members.recipe import (
    Annotators,
    Capabilities,
    Member,
    MemberData,
    known_labels,
    warn_of_equal_targets,
)
from edokit.members.recipes.encoder import EncoderMember
from edokit.members.recipes.linear import BLOCK_WEIGHTS, TFIDF, TfIdf, counts_of
from edokit.scales import NOMINAL, Scale

_FILE = "nearest.npz"
_POWERS = (1.0, 2.0, 3.0, 4.0, 6.0)
_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_SAMPLE = 1000  # texts of the training that choose between them
_BLOCK = 512  # texts at a time
# Pieces of text that a tenth of many texts share say little, and take most of the time.
_COMMON = 10
_FEW = 100
_TINY = 1e-300
_SPARSE = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix
_ARRAYS = (*_SPARSE, "multi_label", "annotators", "effects", "model", *TFIDF)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Answers to texts of the training, each annotator's, or everybody's as if they were one.

    Attributes
    ----------
    texts, whose : ndarray of shape (M,)
        The text and the annotator of each answer.
    labels, expected : ndarray of shape (M, C)
        Each answer, and what had been expected.
    power, strength : float
        How fast answers count less with distance, and for how many answers the prior counts.
    """

    texts: Ints
    whose: Ints
    labels: Floats
    expected: Floats
    power: float = 1.0
    strength: float = 1.0

    def chosen(self, near: Floats, rows: Ints, held_out: Ints, scale: Scale) -> Lookup:
        """With the power and strength that have the lowest cross-entropy of held-out answers [P].

        ``rows`` are their rows of the cosines [B, N], which are 0 for a text and itself.
        """
        labels = self.labels[held_out]
        prior = self.expected[held_out]
        losses = {}
        for power in _POWERS:
            nearest = replace(self, power=power)._nearest(near, rows, self.whose[held_out])
            for strength in _STRENGTHS:
                lookup = replace(self, power=power, strength=strength)
                p = lookup._moved(prior, nearest, scale)
                losses[lookup] = -(scale.rows(labels) * np.log(p)).sum()
        return min(losses, key=losses.__getitem__)

    def answers(self, near: Floats, rows: Ints, whose: Ints, prior: Floats, scale: Scale) -> Floats:
        """Probabilities [P, C] of annotators [P] for rows [P] of the cosines, given a prior."""
        moved = self._moved(prior, self._nearest(near, rows, whose), scale)
        return np.asarray(scale.from_rows(moved, prior.shape[1]))

    def _nearest(self, near: Floats, rows: Ints, whose: Ints) -> tuple[Floats, ...]:
        """How many answers count [P, 1], their share and what was expected of them [P, C]."""
        ones = np.ones((len(self.texts), 1))
        weights = near**self.power
        sums = self._sums(weights, np.hstack([ones, self.labels, self.expected]))[rows, whose]
        squares = self._sums(weights**2, ones)[rows, whose]
        totals = sums[:, :1]
        share, expected = np.split(sums[:, 1:] / np.maximum(totals, _TINY), 2, axis=1)
        return totals**2 / np.maximum(squares, _TINY), share, expected

    def _sums(self, weights: Floats, values: Floats) -> Floats:
        """Weighted sums [B, A, D] of values [M, D] over the answers of each annotator."""
        d = values.shape[1]
        annotators = int(self.whose.max()) + 1
        columns = self.whose[:, None] * d + np.arange(d)
        places = np.repeat(self.texts, d), columns.ravel()
        table = sparse.csr_matrix((values.ravel(), places), (weights.shape[1], annotators * d))
        return np.asarray(weights @ table).reshape(len(weights), annotators, d)

    def _moved(self, prior: Floats, nearest: tuple[Floats, ...], scale: Scale) -> Floats:
        """The prior [P, C] as rows of the scale, moved by the nearest answers."""
        h = scale.rows(prior)
        n = np.repeat(nearest[0], len(h) // len(prior), axis=0)
        share, expected = (n * scale.rows(shares) + self.strength * h for shares in nearest[1:])
        moved = h * share / expected
        return np.asarray(moved / moved.sum(axis=1, keepdims=True))


@dataclass(eq=False)
class NearestMember(Member):
    """The nearest answers of everybody and, for a known annotator, the annotator's own.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of multi-label data.
    model : str, default=None
        A sentence encoder (a hub id or folder) that says which texts are near. None: TF-IDF.
    annotators : bool, default=False
        Look up each annotator's own answers, too.
    """

    capabilities = Capabilities(
        multi_label=True, people="annotators", pretrained="model", separate_model=True
    )

    n_classes: int
    _: KW_ONLY
    model: str | None = None
    annotators: bool = False
    _tfidf: TfIdf = field(init=False, repr=False)  # without a model
    _encoder: EncoderMember = field(init=False, repr=False)
    _corpus: tuple[Text, ...] = field(default=(), init=False, repr=False)
    _vectors: Any = field(init=False, repr=False)  # [N, F] of the texts of the training
    _scale: Scale = field(default=NOMINAL, init=False, repr=False)
    _everybody: Lookup = field(init=False, repr=False)
    _own: Lookup = field(init=False, repr=False)
    _effects: AnnotatorEffects = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.model is not None:
            self._encoder = EncoderMember(self.n_classes, model=self.model)

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators whose answers it has."""
        return self._effects.annotators

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> NearestMember:
        """Keep the targets of epoch 0 and the annotations; ``random_state`` plays no part."""
        texts = with_context(data.texts, data.context)
        n = len(data.texts)
        c = self.n_classes
        self._scale = data.scale
        self._corpus = data.corpus
        if self.model is None:
            counts = counts_of(texts, data.corpus)
            limit = max(n // _COMMON, _FEW)
            self._tfidf = TfIdf.fit(counts, BLOCK_WEIGHTS, most=limit)
        else:
            self._encoder._corpus = data.corpus
        self._vectors = self._embed(texts)
        targets = data.targets(0)
        shares = np.tile(data.scale.smoothed(targets.sum(axis=0), n, 1.0), (n, 1))
        if not np.ptp(targets, axis=0).any():
            warn_of_equal_targets(n)
            targets = shares
        step = -(-n // _SAMPLE)
        sample = np.arange(0, n, step)
        near = self._left_out(sample)
        everybody = Lookup(np.arange(n), np.zeros(n, dtype=np.int64), targets, shares)
        self._everybody = self._own = everybody.chosen(near, sample // step, sample, data.scale)
        self._effects = AnnotatorEffects((), np.zeros((0, c + 1)))
        if self.annotators:
            annotations = known_labels(data)
            blocks = np.split(np.arange(n), range(_BLOCK, n, _BLOCK))
            anonymous = np.concatenate([self._anonymous(self._left_out(rows)) for rows in blocks])
            self._effects = AnnotatorEffects.fit(anonymous, annotations, data.scale)
            items = np.asarray(annotations.item_codes, dtype=np.int64)
            whose = np.asarray(annotations.annotator_codes, dtype=np.int64)
            expected = self._effects.answers(anonymous[items], whose, data.scale)
            lookup = Lookup(items, whose, label_shares(annotations, c), expected)
            pairs = np.flatnonzero(items % step == 0)
            self._own = lookup.chosen(near, items[pairs] // step, pairs, data.scale)
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        distinct, row_of = distinct_texts(with_context(texts, context))
        positions, whose = pairs_of_texts(annotators, len(texts), self.known_annotators)
        vectors = self._embed(distinct)
        rows = row_of[positions]
        answers = np.empty((len(rows), self.n_classes))
        for start in range(0, len(distinct), _BLOCK):
            near = self._near(vectors[start : start + _BLOCK])
            pairs = np.flatnonzero(rows // _BLOCK == start // _BLOCK)
            answers[pairs] = self._anonymous(near)[rows[pairs] - start]
            pairs = pairs[whose[pairs] >= 0]
            if len(pairs):
                prior = self._effects.answers(answers[pairs], whose[pairs], self._scale)
                answers[pairs] = self._own.answers(
                    near, rows[pairs] - start, whose[pairs], prior, self._scale
                )
        return mean_over_pairs(answers, positions)

    @property
    def onnx_file(self) -> Path | None:
        """The ONNX file of its encoder, where it computes with onnxruntime."""
        if self.model is None:
            return None
        return self._encoder.onnx_file

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays; a sentence encoder is not copied."""
        vectors = sparse.csr_matrix(self._vectors)
        arrays: dict[str, Any] = {part: getattr(vectors, part) for part in _SPARSE}
        arrays |= {"multi_label": self._scale.is_multi_label, **vars(self._effects)}
        if self.model is None:
            arrays |= vars(self._tfidf)
        else:
            arrays["model"] = self.model
        for name, lookup in (("everybody", self._everybody), ("own", self._own)):
            arrays |= {f"{name} {key}": value for key, value in vars(lookup).items()}
        write_arrays(folder / _FILE, **{key: np.array(value) for key, value in arrays.items()})

    @classmethod
    def load(cls, folder: Path, *, models: Mapping[str, Path] | None = None) -> NearestMember:
        """Read what ``save`` wrote; with ``models``, its encoder is among them."""
        parts_of_lookup = [key.name for key in fields(Lookup)]
        keys = [f"everybody {key}" for key in parts_of_lookup]
        keys += [f"own {key}" for key in parts_of_lookup]
        arrays: dict[str, Any] = read_arrays(folder / _FILE, (*_ARRAYS, *keys))
        names = tuple(arrays["annotators"].tolist())
        parts = [arrays[part] for part in _SPARSE]
        model = None
        if "model" in arrays:
            model = str(arrays["model"])
        member = cls(arrays["effects"].shape[1] - 1, model=model, annotators=bool(names))
        member._scale = Scale("multi-label") if arrays["multi_label"] else NOMINAL
        member._vectors = sparse.csr_matrix(tuple(parts[:3]), parts[3])
        if model is None:
            member._tfidf = TfIdf(*(arrays[name] for name in TFIDF))
        else:
            member._vectors = member._vectors.toarray()
            member._encoder.use_encoder(models)
        member._effects = AnnotatorEffects(names, arrays["effects"])
        member._everybody = Lookup(*(arrays[f"everybody {key}"] for key in parts_of_lookup))
        member._own = Lookup(*(arrays[f"own {key}"] for key in parts_of_lookup))
        return member

    def _embed(self, texts: Sequence[Text]) -> Any:
        """Vectors [N, F] of length one."""
        if self.model is not None:
            return normalize(self._encoder._features(texts)).astype(np.float32)
        features = self._tfidf.transform(counts_of(texts, self._corpus))
        return normalize(features).astype(np.float32)

    def _near(self, vectors: Any) -> Floats:
        """Cosines [B, N] of vectors with the texts of the training; 0 if negative."""
        cosines = vectors @ self._vectors.T
        if self.model is None:
            cosines = cosines.toarray()
        return np.asarray(np.maximum(cosines, 0.0), dtype=np.float64)

    def _left_out(self, rows: Ints) -> Floats:
        """Cosines [B, N] of texts of the training; 0 of each with itself."""
        near = self._near(self._vectors[rows])
        near[np.arange(len(rows)), rows] = 0.0
        return near

    def _anonymous(self, near: Floats) -> Floats:
        """Anonymous answers [B, C] from cosines [B, N]."""
        rows = np.arange(len(near))
        shares = self._everybody.expected[:1].repeat(len(near), axis=0)
        return self._everybody.answers(near, rows, np.zeros_like(rows), shares, self._scale)
