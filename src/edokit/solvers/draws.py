"""Everything random in a fit: three streams of numbers that depend on the seed alone."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats, Ints


class Draws:
    """The shuffles and the Gumbel noise of one seed, drawn in the order in which a fit asks.

    Streams are separate: how many numbers one has given does not move the others.
    """

    def __init__(self, seed: int) -> None:
        streams = np.random.SeedSequence(seed).spawn(3)
        self._order, self._sizes, self._members = (np.random.default_rng(s) for s in streams)

    def shuffle(self, items: int) -> Ints:
        """[N] the items in random order, for one epoch."""
        return self._order.permutation(items)

    def size_noise(self, steps: int, sizes: int) -> Floats:
        """[steps, M] Gumbel noise for the draw of a size at each step."""
        return _gumbel(self._sizes, (steps, sizes))

    def member_noise(self, steps: int, batch: int, members: int) -> Floats:
        """[steps, n, K] Gumbel noise for the draw of a member per item at each step."""
        return _gumbel(self._members, (steps, batch, members))


def _gumbel(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    # The logarithm of an exponential variable; much faster than rng.gumbel. An exponential of
    # exactly 0 (one draw in 2^53 or rarer) would be infinite noise.
    exponential = np.maximum(rng.standard_exponential(shape), np.finfo(np.float64).tiny)
    return -np.log(exponential)
