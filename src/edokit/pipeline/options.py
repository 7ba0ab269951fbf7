"""How thorough a run is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from edokit._errors import InputError, one_of, option

Quality = Literal["auto", "fast", "good", "best"]
QUALITIES = ("auto", "fast", "good", "best")


@dataclass(frozen=True)
class RunOptions:
    """How thorough a run is.

    Parameters
    ----------
    quality : {"auto", "fast", "good", "best"}, default="auto"
        ``fast`` trains TF-IDF members, ``auto`` also members on a sentence encoder if one is on
        this machine, ``good`` more members and says why an encoder is missing, ``best`` also
        fine-tunes transformers where there is a GPU.
    time : str, default=None
        How long it may take, such as ``"90s"``, ``"10m"`` or ``"2h"``: the pool is cut to fit.
    encoder : str, default=None
        The sentence encoder: a folder, a short name such as ``"minilm"`` or a hub id that has been
        downloaded. None: the known one on this machine that reads the script of the texts.
    transformer : str, default="microsoft/mpnet-base"
        The transformer of ``best``: a folder, or a hub id that has been downloaded.
    by : list of str, default=None
        Attributes of the annotators, such as ``["gender"]``, whose levels are compared: do groups
        differ, and which items divide them?
    random_state : int, default=0
        Seed of members, folds and intervals.
    jobs : int, default=None
        Members that train at a time, as for `edokit.train_members`.
    overwrite : bool, default=False
        Replace a run on other annotations, and files that EDO did not write.
    no_people : bool, default=False
        Do not estimate how annotators and their attributes differ from the pool.
    no_texts : bool, default=False
        Write a page without the texts of the items.

    Examples
    --------
    >>> from edokit import RunOptions
    >>> RunOptions(time="10m").seconds
    600.0
    """

    quality: Quality = "auto"
    time: str | None = None
    encoder: str | None = None
    transformer: str = "microsoft/mpnet-base"
    by: list[str] | None = None
    random_state: int = 0
    jobs: int | None = None
    overwrite: bool = False
    no_people: bool = False
    no_texts: bool = False

    def __post_init__(self) -> None:
        one_of("quality", self.quality, QUALITIES)
        _ = self.seconds  # an invalid time is refused here

    @property
    def seconds(self) -> float | None:
        """The time in seconds."""
        if self.time is None:
            return None
        seconds = 0.0
        with suppress(ValueError):
            seconds = pd.Timedelta(self.time).total_seconds()
        if not seconds >= 1:
            problem = "is not a time of at least one second"
            if str(self.time).strip().replace(".", "", 1).isdecimal():
                problem = "has no unit"
            raise InputError(
                f"{option('time', self.time)} {problem}",
                f"write {option('time', '10m')}, {option('time', '90s')} or"
                f" {option('time', '1h30m')}",
                code="invalid-number",
            )
        return seconds
