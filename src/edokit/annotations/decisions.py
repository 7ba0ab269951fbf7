"""All decisions that a table of annotations leaves open, found in one go."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

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
    read: Callable[[Mapping[str, Any]], Result], arguments: Mapping[str, Any]
) -> Result:
    """Read with these arguments; where decisions are open, raise one error that lists them all.

    A decision hides those behind it: an empty label comes before a scale. So what is refused is
    read again with the first choice of every decision, until nothing is open. What is read like
    this is thrown away.

    Parameters
    ----------
    read : callable
        Reads by arguments of `read_annotations`; raises `OpenDecisionsError` for a decision.
    arguments : mapping of str to object
        The arguments that were given.

    Raises
    ------
    OpenDecisionsError
        With all decisions.
    """
    try:
        return read(arguments)
    except OpenDecisionsError as error:
        first = error
    decisions = list(first.decisions)
    path = first.path
    trial = with_remedy(arguments, first.remedy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        while decisions[-1].can_be_tried and len(decisions) < _MOST_DECISIONS:
            try:
                read(trial)
                break
            except OpenDecisionsError as error:
                further = with_remedy(trial, error.remedy)
                decisions += error.decisions
                path = path or error.path
                if further == trial:
                    break
                trial = further
            except NothingLeftError:  # follows from a first choice, says nothing of the table
                break
            except InputError as error:
                # A column may have been proposed for the wrong role, of which nothing follows.
                if "columns" not in first.remedy:
                    decisions.append(Decision(error._message, error._hint, code=error.code))
                break
    raise OpenDecisionsError(decisions, path, arguments) from None
