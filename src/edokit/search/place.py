"""The folder of an earlier search: which one it holds, and what of it is still true."""

from __future__ import annotations

import warnings
from pathlib import Path
from shlex import quote
from typing import Any

from edokit._errors import EDOWarning, InputError
from edokit._io import read_json
from edokit.search.plan import Plan
from edokit.search.result import SUMMARY, SearchResult
from edokit.search.study import METRICS, differences


def check_search(folder: Path, plan: Plan) -> None:
    """Refuse a folder whose results are those of another search, which would be replaced."""
    there = _summary(folder)
    study = there.get("study")
    if not isinstance(study, str):
        return
    if study != plan.name:
        raise InputError(
            f"a folder holds the results of one search, but {folder} holds those of the study"
            f" {study!r} and not {plan.name!r}",
            f"choose another --out, or go on with --study {quote(study)}",
        )
    # Whether the data are the same is known to the study.
    asked = plan.shape({})
    names = [name for name in ("space", "solver", "population", "seed") if name in there]
    other = differences(there, {name: asked[name] for name in names})
    if other:
        raise InputError(
            f"a search can be continued only as it was begun, but the one in {folder} has"
            f" {'; '.join(other)}",
            "choose another --out, or search as before",
        )


def earlier_test(folder: Path, found: SearchResult) -> dict[str, float | None] | None:
    """What an earlier search of this folder found on test, if its choice is still the choice.

    What is no longer true is dropped with a note.
    """
    there = _summary(folder)
    test, before, now = there.get("test"), there.get("chosen"), found.summary()["chosen"]
    if not isinstance(test, dict) or not all(isinstance(test.get(name), float) for name in METRICS):
        return None
    if isinstance(before, dict) and all(before.get(name) == now[name] for name in _ENSEMBLE):
        return test
    warnings.warn(
        "the earlier result on test is dropped, since another trial is chosen now;"
        " --test-predictions judges this one",
        EDOWarning,
        stacklevel=2,
    )
    return None


_ENSEMBLE = ("settings", "weights")


def _summary(folder: Path) -> dict[str, Any]:
    """What is kept of the search; nothing if it can't be read, for then it will be made anew."""
    try:
        there = read_json(folder / "search" / SUMMARY)
    except InputError:
        return {}
    return there if isinstance(there, dict) else {}
