"""All decisions that a table of annotations leaves open, collected in one error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from edokit._errors import (
    Decision,
    EDOWarning,
    InputError,
    NothingLeftError,
    OpenDecisionsError,
    with_remedy,
)

_MOST_DECISIONS = 20
Result = TypeVar("Result")


def read_or_ask_all(
    read: Callable[[Mapping[str, object]], Result], arguments: Mapping[str, object]
) -> Result:
    """Read with these arguments; if decisions are open, raise one error that lists all of them.

    Reading stops at the first open decision: an empty label, for example, is refused before the
    scale is checked. The table is therefore read again with the first remedy of each decision,
    until no decision is open. These trial results are discarded.

    Parameters
    ----------
    read : callable
        Reads with arguments of `read_annotations`; raises `OpenDecisionsError` for a decision.
    arguments : mapping of str to object
        The arguments of the caller.

    Raises
    ------
    OpenDecisionsError
        With all decisions.
    """
    try:
        return read(arguments)
    except OpenDecisionsError as error:
        first_error = error
    decisions = list(first_error.decisions)
    path = first_error.path
    trial = with_remedy(arguments, first_error.remedy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        while decisions[-1].can_be_tried and len(decisions) < _MOST_DECISIONS:
            try:
                read(trial)
                break
            except OpenDecisionsError as error:
                decisions += error.decisions
                path = path or error.path
                next_trial = with_remedy(trial, error.remedy)
                if next_trial == trial:
                    break
                trial = next_trial
            except NothingLeftError:  # a consequence of a trial remedy, not of the table
                break
            except InputError as error:
                message = error._message.removeprefix(f"{path}: ")  # stands above all decisions
                decision = Decision(message, error._hint, code=error.code)
                # If columns were proposed, this error may follow from a wrong proposal. It is known
                # already if `read` has listed all decisions.
                if "columns" not in first_error.remedy and decision not in decisions:
                    decisions.append(decision)
                break
    raise OpenDecisionsError(decisions, path, arguments) from None
