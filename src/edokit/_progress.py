"""How long computations report their progress: one protocol for the whole package."""

from __future__ import annotations

import html
import sys
import time
from importlib import import_module
from typing import Any, Protocol

# Seconds between two updates; the first and the last are always shown.
_PAUSE = 0.1


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


class ProgressBar:
    """A progress bar in a notebook or a terminal; elsewhere it shows nothing.

    Pass a new one as ``progress`` to `edokit.run`, `edokit.train_members`, `edokit.search` and
    others. In a notebook the bar is an element of the cell's output and needs no widgets; in a
    terminal it is a line on stderr.

    Examples
    --------
    >>> import edokit
    >>> bar = edokit.ProgressBar()
    >>> edokit.run("annotations.csv", "run", progress=bar)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        # What IPython returned for the first update, by which later ones replace it.
        self._display: Any = None
        self._shown_at = 0.0

    def __call__(self, done: int, total: int, task: str, /) -> None:
        """Show that ``done`` of ``total`` steps are done, and ``task`` is next."""
        current_time = time.monotonic()
        if 0 < done < total and current_time - self._shown_at < _PAUSE:
            return
        self._shown_at = current_time
        if _in_notebook():
            self._show_in_notebook(done, total, task)
        elif sys.stderr.isatty():
            _show_in_terminal(done, total, task)

    def _show_in_notebook(self, done: int, total: int, task: str) -> None:
        words = f"{done} of {total} {task}"
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
        content = {"text/html": f"{bar} {html.escape(words)}", "text/plain": words}
        if self._display is None:
            display = import_module("IPython.display").display
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    # The shell of a terminal has no kernel.
    return getattr(ipython.get_ipython(), "kernel", None) is not None


def _show_in_terminal(done: int, total: int, task: str) -> None:
    width = 30
    filled = width * done // max(total, 1)
    # Names of members may hold characters that steer a terminal.
    words = "".join(character for character in task if character.isprintable())
    end = "\n" if done >= total else ""
    # The last code erases what is left of a longer line.
    line = f"\r{'━' * filled}{'─' * (width - filled)} {done}/{total} {words[:60]}\x1b[K"
    sys.stderr.write(line + end)
    sys.stderr.flush()
