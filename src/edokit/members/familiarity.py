"""How alike a text is to the texts that members learned from.

A text is represented by its *pieces*, all runs of four characters. The rarer its pieces are among
the texts of the fit, the more surprising a text is; its familiarity is its rank among texts of the
fit that were held out. Other measures were compared in ``benchmarks/familiarity.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._types import Bools, Floats, HardLabels, Ints, Reals
from edokit.folds import merge_groups
from edokit.members.arrays import NamedArrays, read_arrays, write_arrays
from edokit.members.contexts import Text, split_context
from edokit.members.layout import FAMILIARITY

if TYPE_CHECKING:
    from edokit.members.training_data import TrainingData

UNFAMILIAR = 0.01
"""A text is unfamiliar if it ranks below this share of the held-out texts."""
UnfamiliarPolicy = Literal["answer", "constant", "people"]
"""What unfamiliar texts get: the usual answer, the constant answer, or a decision by people."""
POLICIES: tuple[UnfamiliarPolicy, ...] = ("answer", "constant", "people")

_LENGTH = 4
"""Characters of a piece."""
_FOLDS = 5
_MAX_TEXTS = 20_000
"""Largest number of texts; more are sampled, since ranks need no more and time stays bounded."""
_MAX_PIECES = 1 << 18
_READABLE = 0.5
"""A text can't be read if its share of known pieces is below this part of what all but 1 % of the
held-out texts have."""
_ARRAYS = ("pieces", "counts", "n_texts", "surprises", "readable_share")


def text_pieces(text: str) -> npt.NDArray[np.uint32]:
    """Return the distinct runs of four characters of a text as hashes.

    Case and the kind of blanks do not count.
    """
    padded = f" {' '.join(text.casefold().split())} "
    starts = range(max(1, len(padded) - _LENGTH + 1))
    pieces = {padded[start : start + _LENGTH] for start in starts}
    hashes = (zlib.crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces)
    return np.fromiter(hashes, dtype=np.uint32, count=len(pieces))


@dataclass(frozen=True, eq=False)
class TextRanks:
    """How familiar some texts are.

    Attributes
    ----------
    familiarity : ndarray of shape (n_texts,)
        The share of held-out texts of the fit that are less familiar, from 0 to 1.
    is_readable : ndarray of bool of shape (n_texts,)
        Whether enough of the text's pieces are known; if not, members answer by chance.
    """

    familiarity: Floats
    is_readable: Bools

    @property
    def unfamiliar(self) -> Bools:
        """Which texts rank below 1 % of the held-out ones [N], and those that can't be read."""
        return (self.familiarity < UNFAMILIAR) | ~self.is_readable


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How often each piece occurs in the texts of a fit, and how surprising held-out texts were.

    Attributes
    ----------
    pieces : ndarray of shape (n_pieces,)
        Hashes of the known pieces, ascending.
    counts : ndarray of shape (n_pieces,)
        In how many texts each of them occurs.
    n_texts : int
        Number of texts.
    surprises : ndarray of shape (n_texts,)
        Surprise of each text when its fold was held out, ascending.
    readable_share : float
        Texts of which a smaller share of the pieces is known can't be read.

    Examples
    --------
    >>> posts = [f"the {when} bus to {place} was late" for when in ("early", "last", "next")
    ...          for place in ("town", "the sea", "the hills", "school", "work", "market")]
    >>> ranks = Familiarity.fit(posts).rank(["the next bus to the sea was late", "遅いバス"])
    >>> ranks.unfamiliar
    array([False,  True])
    """

    pieces: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint32]
    n_texts: int
    surprises: npt.NDArray[np.float32]
    readable_share: float

    @classmethod
    def fit(cls, texts: Sequence[Text], groups: Sequence[object] | None = None) -> Familiarity:
        """Count the pieces of texts, and rank each text by those of the others.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
            The texts of the fit; contexts do not count.
        groups : sequence of object, default=None
            Texts of one group are held out together; equal texts always are.
        """
        strings, _ = split_context(texts)
        rows = np.arange(len(strings))
        if len(strings) > _MAX_TEXTS:
            rows = np.random.default_rng(0).choice(len(strings), _MAX_TEXTS, replace=False)
        sampled_texts = [strings[row] for row in rows]
        sampled_groups = None
        if groups is not None:
            sampled_groups = [str(groups[int(row)]) for row in rows]
        folds = _fold_numbers(sampled_texts, sampled_groups)
        pieces = [text_pieces(text) for text in sampled_texts]
        distinct_pieces, places = np.unique(np.concatenate(pieces), return_inverse=True)
        lengths = np.array([len(part) for part in pieces])
        text_of_piece = np.repeat(np.arange(len(pieces)), lengths)
        counts = np.bincount(places)
        floor = _frequency_floor(len(pieces))
        surprises = np.empty(len(pieces))
        shares = np.empty(len(pieces))
        for fold in range(_FOLDS):
            in_fold = folds == fold
            held_out = in_fold[text_of_piece]
            counts_of_others = counts - np.bincount(places[held_out], minlength=len(counts))
            piece_counts = counts_of_others[places[held_out]]
            held_out_texts = text_of_piece[held_out]
            rarity = _rarity(piece_counts, int((~in_fold).sum()), floor)
            sums = np.bincount(held_out_texts, rarity, minlength=len(pieces))
            n_known = np.bincount(held_out_texts, piece_counts > 0, minlength=len(pieces))
            surprises[in_fold] = sums[in_fold] / lengths[in_fold]
            shares[in_fold] = n_known[in_fold] / lengths[in_fold]
        frequent = np.argsort(-counts, kind="stable")[:_MAX_PIECES]
        sorted_places = np.sort(frequent)
        return cls(
            pieces=distinct_pieces[sorted_places],
            counts=counts[sorted_places].astype(np.uint32),
            n_texts=len(pieces),
            surprises=np.sort(surprises).astype(np.float32),
            readable_share=_READABLE * float(np.quantile(shares, UNFAMILIAR)),
        )

    def rank(self, texts: Sequence[Text]) -> TextRanks:
        """Return how familiar texts are.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
            New texts; contexts do not count.
        """
        strings, _ = split_context(texts)
        surprises = np.empty(len(strings), dtype=np.float32)
        is_readable = np.empty(len(strings), dtype=bool)
        floor = _frequency_floor(self.n_texts)
        for row, text in enumerate(strings):
            counts = self._piece_counts(text_pieces(text))
            surprises[row] = _rarity(counts, self.n_texts, floor).mean()
            is_readable[row] = np.count_nonzero(counts) >= self.readable_share * len(counts)
        less_surprising = np.searchsorted(self.surprises, surprises, side="left")
        as_surprising = np.searchsorted(self.surprises, surprises, side="right") - less_surprising
        familiarity = 1.0 - (less_surprising + as_surprising / 2) / len(self.surprises)
        return TextRanks(familiarity, is_readable)

    def _piece_counts(self, pieces: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """In how many texts of the fit each piece occurs."""
        places = np.searchsorted(self.pieces, pieces)
        places[places == len(self.pieces)] = 0
        return np.where(self.pieces[places] == pieces, self.counts[places], np.uint32(0))

    def save(self, folder: Path) -> None:
        """Write plain arrays into a folder of members."""
        with whole_file(folder / FAMILIARITY) as temporary:
            write_arrays(
                temporary,
                pieces=self.pieces,
                counts=self.counts,
                n_texts=np.array(self.n_texts),
                surprises=self.surprises,
                readable_share=np.array(self.readable_share),
            )

    @classmethod
    def load(cls, folder: Path) -> Familiarity | None:
        """Return what `save` wrote; None for a folder of an earlier version, which has none."""
        path = folder / FAMILIARITY
        if not path.exists():
            return None
        arrays = read_arrays(path, _ARRAYS)
        if not _are_consistent(arrays):
            raise InputError(
                f"{path} is damaged: its arrays do not match", "train again", code="damaged-file"
            )
        return cls(
            pieces=arrays["pieces"],
            counts=arrays["counts"],
            n_texts=int(arrays["n_texts"]),
            surprises=arrays["surprises"],
            readable_share=float(arrays["readable_share"]),
        )


def measure_familiarity(data: TrainingData) -> Familiarity | None:
    """Return the familiarity of the texts of train and dev; None if there are none.

    Groups of items are held out together.
    """
    from edokit.members.training_data import DEV, TRAIN

    rows = data.where(TRAIN, *DEV)
    if not len(rows):
        return None
    groups = None
    item_groups = data.annotations.item_groups
    if item_groups is not None:
        # An item without a group is one of its own.
        groups = [item_groups[row] or data.texts[row] for row in rows]
    return Familiarity.fit([data.texts[row] for row in rows], groups)


def _fold_numbers(texts: Sequence[str], groups: Sequence[str] | None) -> Ints:
    """The fold of each text; texts of one group, and equal texts, share a fold."""
    keys = texts
    if groups is not None:
        keys = groups
        _, first_rows, group_codes = np.unique(groups, return_index=True, return_inverse=True)
        _, text_codes = np.unique(texts, return_inverse=True)
        merged = merge_groups(group_codes, text_codes)
        if merged is not group_codes:  # equal texts are in several groups
            _, first_rows, group_codes = np.unique(merged, return_index=True, return_inverse=True)
            keys = [groups[row] for row in first_rows[group_codes]]
    hashes = [zlib.crc32(key.encode("utf-8", "replace")) for key in keys]
    return np.array(hashes) % _FOLDS


def _frequency_floor(n_texts: int) -> float:
    """The number added to all frequencies of pieces, so that none is 0.

    It is the same for held-out texts, which are compared with fewer others, and for new texts, so
    that a text of unknown pieces is as surprising in both cases.
    """
    return 0.5 / max(n_texts * (_FOLDS - 1) / _FOLDS, 1.0)


def _rarity(counts: Reals | HardLabels, n_texts: int, floor: float) -> Floats:
    """Surprise of pieces that occur in ``counts`` of the texts: minus their log-frequency."""
    return np.asarray(-np.log(counts / max(n_texts, 1) + floor))


def _are_consistent(arrays: NamedArrays) -> bool:
    """Whether all arrays are there, with shapes and types that go together."""
    if any(name not in arrays for name in _ARRAYS):
        return False
    pieces = arrays["pieces"]
    types = {
        "pieces": np.uint32,
        "counts": np.uint32,
        "n_texts": np.int64,
        "surprises": np.float32,
        "readable_share": np.float64,
    }
    if any(arrays[name].dtype != kind for name, kind in types.items()):
        return False
    if pieces.ndim != 1 or not len(pieces) or arrays["counts"].shape != pieces.shape:
        return False
    if arrays["surprises"].ndim != 1 or not len(arrays["surprises"]):
        return False
    return arrays["n_texts"].ndim == 0 and arrays["readable_share"].ndim == 0
