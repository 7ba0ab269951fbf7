"""Whether probabilities are probabilities: finite, not negative, summing to one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples, one_of
from edokit._types import Strings
from edokit.predictions.shapes import Array

TOLERANCE = 1e-3
"""How far probabilities may be from summing to one and still count as rounded."""
EXACT = 1e-6
"""How far they may be and stay as they are."""
LOGITS_HINT = ", or say that they are logits with logits=True (--logits)"
# Numbers that are looked at together while they stay in the cache.
_BLOCK = 2**18
# Up to so many classes numpy adds up one after the other, and slowly along so short an axis.
_FEW_CLASSES = 7


class Invalid(str, Enum):
    """What happens to probabilities that do not sum to one."""

    ERROR = "error"
    NORMALIZE = "normalize"


def policy_for(invalid: str) -> Invalid:
    """The policy of that name."""
    one_of("invalid", invalid, [policy.value for policy in Invalid])
    return Invalid(invalid)


def checked(
    array: Array,
    items: Strings,
    members: Sequence[str],
    policy: Invalid,
    where: str = "",
    logits_hint: str = LOGITS_HINT,
) -> Array:
    """[N, K, C] with rows that sum to one; anything that is no probability is refused.

    Each row is judged and divided by its sum on its own, so that shards give the same numbers as
    the whole.
    """
    result = array
    step = max(1, _BLOCK // max(1, array.shape[1] * array.shape[2]))
    for start in range(0, len(array), step):
        block = array[start : start + step]
        with np.errstate(invalid="ignore", over="ignore"):
            total = _totals(block)
        rule, bad = _fault(block, total, policy)
        if rule:
            n, k = (int(axis[0]) for axis in np.nonzero(bad))
            shown = examples((f"{value:g}" for value in block[n, k]), 10).replace("'", "")
            hint = "correct the predictions"
            if rule.startswith("sum"):
                hint += (
                    f", or divide by the sum with invalid='normalize' (--normalize){logits_hint}"
                )
            raise InputError(
                f"probabilities must be {rule}, but item {items[start + n]!r} of member"
                f" {members[k]!r}{where} has ({shown})",
                hint,
            )
        rounded = np.abs(total - 1) > EXACT
        if rounded.any():
            if result is array:
                result = array.copy()
            result[start : start + step][rounded] = block[rounded] / total[rounded][:, None]
    return result


def _totals(block: Array) -> npt.NDArray[np.float64]:
    """[n, K] what the classes sum to, in float64: many rounded numbers of float32 do not add up."""
    classes = block.shape[2]
    if classes == 0 or classes > _FEW_CLASSES:
        return np.asarray(block.sum(axis=2, dtype=np.float64))
    total = block[:, :, 0].astype(np.float64)
    for c in range(1, classes):
        total += block[:, :, c]
    return total


def _fault(
    block: Array, total: npt.NDArray[np.float64], policy: Invalid
) -> tuple[str, npt.NDArray[np.bool_]]:
    """The first rule that some rows [n, K] break, and which rows; no rule if all are well."""
    finite = np.isfinite(total)
    if not finite.all():
        return "finite", ~finite
    if block.min() < 0:
        return "not negative", np.asarray((block < 0).any(axis=2))
    if (total == 0).any():
        return "not all zero", total == 0
    off = np.abs(total - 1) > TOLERANCE
    if policy is Invalid.ERROR and off.any():
        return f"summing to 1 (within {TOLERANCE:g})", off
    return "", off
