"""How long computations report their progress: one protocol for the whole package."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the number of steps done, the number of all steps, and the current task.

    Examples
    --------
    >>> def show(done, total, task):
    ...     print(f"{done}/{total} {task}")
    >>> show(2, 5, "uniform")
    2/5 uniform
    """

    def __call__(self, done: int, total: int, task: str, /) -> None:
        """Report that ``done`` of ``total`` steps are done, and ``task`` is next."""


def no_progress(done: int, total: int, task: str, /) -> None:
    """Report nothing."""
