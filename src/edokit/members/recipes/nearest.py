"""Members that look up the answers to the most similar texts.

For a text i, an answer to text j of the training has the weight w = max(cosine, 0)^power. Three
figures summarise the answers: their weighted shares of the classes, the weighted mean of what had
been expected of these answers, and their effective number n = (Σw)² / Σw². They move a prior h to

    p ∝ h · (n · share + strength · h) / (n · expected + strength · h).

This is done twice. The nearest answers of all annotators move the mean shares to the anonymous
answer. An annotator's own nearest answers move the anonymous answer, shifted by the annotator's
shrunken effects, to the annotator's answer. Power and strength minimise the cross-entropy of texts
of the training, each left out in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

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
    required_annotations,
    warn_of_equal_targets,
)
from edokit.members.recipes.encoder import EncoderMember
from edokit.members.recipes.linear import BLOCK_WEIGHTS, TFIDF, TfIdf, counts_of
from edokit.scales import NOMINAL, Scale, unordered_scale

_FILE = "nearest.npz"
_POWERS = (1.0, 2.0, 3.0, 4.0, 6.0)
_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_SAMPLE = 1000  # texts of the training that choose between them
_BLOCK = 512  # texts at a time
# Pieces in more than a tenth of the texts, and in more than a hundred of them, are left out: they
# say little, and take most of the time.
_COMMON_DIVISOR = 10
_COMMON_LEAST = 100
_TINY = 1e-300
_SPARSE = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix
# Names of the fields of a lookup in files, in the order of the fields.
_LOOKUP = ("texts", "whose", "labels", "expected", "power", "strength")
_ARRAYS = (*_SPARSE, "multi_label", "annotators", "effects", "model", *TFIDF)


class NearestAnswers(NamedTuple):
    """The answers of P annotators to texts, weighted by the similarity of the texts.

    Attributes
    ----------
    number : ndarray of shape (P, 1)
        Effective number of answers.
    shares, expected : ndarray of shape (P, C)
        Their weighted shares of the classes, and the weighted mean of what had been expected.
    """

    number: Floats
    shares: Floats
    expected: Floats


@dataclass(frozen=True, eq=False)
class Lookup:
    """M answers to texts of the training, and what had been expected of them.

    Attributes
    ----------
    texts, annotators : ndarray of int of shape (M,)
        The text and the annotator of each answer; all annotators are 0 if they count as one.
    labels, expected : ndarray of shape (M, C)
        Each answer as shares of the classes, and what had been expected.
    power, strength : float
        How fast the weight of answers falls with distance, and the number of answers that have as
        much weight as the prior.
    """

    texts: Ints
    annotators: Ints
    labels: Floats
    expected: Floats
    power: float = 1.0
    strength: float = 1.0

    def tuned(self, cosines: Floats, rows: Ints, held_out: Ints, scale: Scale) -> Lookup:
        """The lookup with the power and strength that minimise the cross-entropy of some answers.

        ``held_out`` [P] are these answers, and ``rows`` [P] their texts among the cosines [B, N],
        which are 0 for a text and itself.
        """
        labels = scale.rows(self.labels[held_out])
        prior = self.expected[held_out]
        best = self
        lowest_loss = np.inf
        for power in _POWERS:
            lookup = replace(self, power=power)
            nearest = lookup._nearest(cosines, rows, self.annotators[held_out])
            for strength in _STRENGTHS:
                candidate = replace(lookup, strength=strength)
                p = candidate._moved(prior, nearest, scale)
                loss = -(labels * np.log(p)).sum()
                if loss < lowest_loss:
                    lowest_loss = loss
                    best = candidate
        return best

    def answers(
        self, cosines: Floats, rows: Ints, annotators: Ints, prior: Floats, scale: Scale
    ) -> Floats:
        """Probabilities [P, C] of annotators [P] for rows [P] of the cosines, given a prior."""
        moved = self._moved(prior, self._nearest(cosines, rows, annotators), scale)
        return np.asarray(scale.from_rows(moved, prior.shape[1]))

    def _nearest(self, cosines: Floats, rows: Ints, annotators: Ints) -> NearestAnswers:
        """The nearest answers of annotators [P] for rows [P] of the cosines."""
        ones = np.ones((len(self.texts), 1))
        n_classes = self.labels.shape[1]
        weights = cosines**self.power
        values = np.hstack([ones, self.labels, self.expected])
        sums = self._sums(weights, values)[rows, annotators]
        sums_of_squares = self._sums(weights**2, ones)[rows, annotators]
        totals = sums[:, :1]
        means = sums[:, 1:] / np.maximum(totals, _TINY)
        return NearestAnswers(
            number=totals**2 / np.maximum(sums_of_squares, _TINY),
            shares=means[:, :n_classes],
            expected=means[:, n_classes:],
        )

    def _sums(self, weights: Floats, values: Floats) -> Floats:
        """Weighted sums [B, A, D] of values [M, D] over the answers of each annotator."""
        width = values.shape[1]
        n_annotators = int(self.annotators.max()) + 1
        # One product with a sparse table [N, A · D], in which each annotator has D columns.
        columns = self.annotators[:, None] * width + np.arange(width)
        coordinates = (np.repeat(self.texts, width), columns.ravel())
        shape = (weights.shape[1], n_annotators * width)
        table = sparse.csr_matrix((values.ravel(), coordinates), shape)
        return np.asarray(weights @ table).reshape(len(weights), n_annotators, width)

    def _moved(self, prior: Floats, nearest: NearestAnswers, scale: Scale) -> Floats:
        """The prior [P, C] as rows of the scale, moved by the nearest answers."""
        h = scale.rows(prior)
        n = np.repeat(nearest.number, len(h) // len(prior), axis=0)
        share = n * scale.rows(nearest.shares) + self.strength * h
        expected = n * scale.rows(nearest.expected) + self.strength * h
        moved = h * share / expected
        return np.asarray(moved / moved.sum(axis=1, keepdims=True))


@dataclass(eq=False)
class NearestMember(Member):
    """The nearest answers of all annotators and, for a known annotator, the annotator's own.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of multi-label data.
    model : str, default=None
        A sentence encoder (a hub id or folder) that says which texts are near. None: TF-IDF.
    annotators : bool, default=False
        Whether to look up each annotator's own answers, too.
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
    _anonymous_lookup: Lookup = field(init=False, repr=False)
    _annotator_lookup: Lookup = field(init=False, repr=False)
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
            limit = max(n // _COMMON_DIVISOR, _COMMON_LEAST)
            self._tfidf = TfIdf.fit(counts, BLOCK_WEIGHTS, most=limit)
        else:
            self._encoder._corpus = data.corpus
        self._vectors = self._embed(texts)
        targets = data.targets(0)
        shares = np.tile(data.scale.smoothed(targets.sum(axis=0), n, 1.0), (n, 1))
        if not np.ptp(targets, axis=0).any():
            warn_of_equal_targets(n)
            targets = shares
        # Every step-th text is held out to choose power and strength.
        step = -(-n // _SAMPLE)
        sample = np.arange(0, n, step)
        cosines = self._cosines_to_others(sample)
        # The targets count as the answers of one annotator.
        untuned_lookup = Lookup(np.arange(n), np.zeros(n, dtype=np.int64), targets, shares)
        self._anonymous_lookup = untuned_lookup.tuned(cosines, sample // step, sample, data.scale)
        self._annotator_lookup = self._anonymous_lookup
        self._effects = AnnotatorEffects((), np.zeros((0, c + 1)))
        if self.annotators:
            annotations = required_annotations(data)
            blocks = np.split(np.arange(n), range(_BLOCK, n, _BLOCK))
            anonymous = np.concatenate(
                [self._anonymous(self._cosines_to_others(rows)) for rows in blocks]
            )
            self._effects = AnnotatorEffects.fit(anonymous, annotations, data.scale)
            items = np.asarray(annotations.item_codes, dtype=np.int64)
            codes = np.asarray(annotations.annotator_codes, dtype=np.int64)
            expected = self._effects.answers(anonymous[items], codes, data.scale)
            lookup = Lookup(items, codes, label_shares(annotations, c), expected)
            pairs = np.flatnonzero(items % step == 0)
            self._annotator_lookup = lookup.tuned(cosines, items[pairs] // step, pairs, data.scale)
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        distinct, row_of = distinct_texts(with_context(texts, context))
        positions, codes = pairs_of_texts(annotators, len(texts), self.known_annotators)
        vectors = self._embed(distinct)
        rows = row_of[positions]
        answers = np.empty((len(rows), self.n_classes))
        for start in range(0, len(distinct), _BLOCK):
            cosines = self._cosines(vectors[start : start + _BLOCK])
            pairs = np.flatnonzero(rows // _BLOCK == start // _BLOCK)
            answers[pairs] = self._anonymous(cosines)[rows[pairs] - start]
            known_pairs = pairs[codes[pairs] >= 0]
            if len(known_pairs):
                known_codes = codes[known_pairs]
                prior = self._effects.answers(answers[known_pairs], known_codes, self._scale)
                answers[known_pairs] = self._annotator_lookup.answers(
                    cosines, rows[known_pairs] - start, known_codes, prior, self._scale
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
        for name, lookup in (
            ("everybody", self._anonymous_lookup),
            ("own", self._annotator_lookup),
        ):
            for key, part in zip(_LOOKUP, fields(Lookup), strict=True):
                arrays[f"{name} {key}"] = getattr(lookup, part.name)
        write_arrays(folder / _FILE, **{key: np.array(value) for key, value in arrays.items()})

    @classmethod
    def load(cls, folder: Path, *, models: Mapping[str, Path] | None = None) -> NearestMember:
        """Read what ``save`` wrote; with ``models``, its encoder is among them."""
        keys = [f"everybody {key}" for key in _LOOKUP]
        keys += [f"own {key}" for key in _LOOKUP]
        arrays: dict[str, Any] = read_arrays(folder / _FILE, (*_ARRAYS, *keys))
        names = tuple(arrays["annotators"].tolist())
        parts = [arrays[part] for part in _SPARSE]
        model = None
        if "model" in arrays:
            model = str(arrays["model"])
        member = cls(arrays["effects"].shape[1] - 1, model=model, annotators=bool(names))
        member._scale = unordered_scale(bool(arrays["multi_label"]))
        member._vectors = sparse.csr_matrix(tuple(parts[:3]), parts[3])
        if model is None:
            member._tfidf = TfIdf(*(arrays[name] for name in TFIDF))
        else:
            member._vectors = member._vectors.toarray()
            member._encoder.use_encoder(models)
        member._effects = AnnotatorEffects(names, arrays["effects"])
        member._anonymous_lookup = Lookup(*(arrays[f"everybody {key}"] for key in _LOOKUP))
        member._annotator_lookup = Lookup(*(arrays[f"own {key}"] for key in _LOOKUP))
        return member

    def _embed(self, texts: Sequence[Text]) -> Any:
        """Vectors [N, F] of length one."""
        if self.model is not None:
            return normalize(self._encoder._features(texts)).astype(np.float32)
        features = self._tfidf.transform(counts_of(texts, self._corpus))
        return normalize(features).astype(np.float32)

    def _cosines(self, vectors: Any) -> Floats:
        """Cosines [B, N] of vectors with the texts of the training; 0 if negative."""
        cosines = vectors @ self._vectors.T
        if self.model is None:
            cosines = cosines.toarray()
        return np.asarray(np.maximum(cosines, 0.0), dtype=np.float64)

    def _cosines_to_others(self, rows: Ints) -> Floats:
        """Cosines [B, N] of texts of the training; 0 of each with itself."""
        cosines = self._cosines(self._vectors[rows])
        cosines[np.arange(len(rows)), rows] = 0.0
        return cosines

    def _anonymous(self, cosines: Floats) -> Floats:
        """Anonymous answers [B, C] from cosines [B, N]."""
        rows = np.arange(len(cosines))
        # The same mean shares are expected of all answers.
        mean_shares = self._anonymous_lookup.expected[:1].repeat(len(cosines), axis=0)
        codes = np.zeros_like(rows)
        return self._anonymous_lookup.answers(cosines, rows, codes, mean_shares, self._scale)
