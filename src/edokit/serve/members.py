"""The members in a process of their own, so that the one that speaks HTTP never waits for them."""

from __future__ import annotations

import json
import signal
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, EDOWarning, warn

if TYPE_CHECKING:
    from edokit._types import Floats
    from edokit.bundle import Bundle


@dataclass(frozen=True)
class Question:
    """Texts, or pairs of text and context, and whose answer is asked for."""

    texts: list[Any]
    annotators: list[tuple[str, ...]] | None = None
    """Those of each text."""
    panel: tuple[str, ...] | None = None
    """Those of all texts."""
    answer_for: str | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """What all questions of a batch have in common."""
        pairs = isinstance(self.texts[0], tuple)
        return self.annotators is None, self.panel, self.answer_for, pairs

    def parts(self, size: int) -> list[Question]:
        """The question in parts of at most so many texts."""
        if len(self.texts) <= size:
            return [self]
        found = []
        for start in range(0, len(self.texts), size):
            own = slice(start, start + size)
            whose = None if self.annotators is None else self.annotators[own]
            found.append(replace(self, texts=self.texts[own], annotators=whose))
        return found

    @classmethod
    def joined(cls, parts: Sequence[Question]) -> Question:
        """Questions of one kind as one."""
        whose = None
        if parts[0].annotators is not None:
            whose = [names for part in parts for names in part.annotators or ()]
        texts = [text for part in parts for text in part.texts]
        return replace(parts[0], texts=texts, annotators=whose)


@dataclass(frozen=True)
class About:
    """What is known of a bundle without its members."""

    version: str
    classes: list[str]
    annotators: frozenset[str]
    metrics: tuple[str, ...]
    pairs: bool | None
    """Whether texts need contexts; None: both will do."""


class Answers:
    """A bundle that answers questions with plain values.

    Parameters
    ----------
    bundle : Bundle
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self.about = About(
            bundle.version,
            list(bundle.classes),
            frozenset(bundle.known_annotators),
            tuple(bundle.ensemble.fitted_.answers or ()),
            bundle.members.manifest["data"].get("pairs"),
        )
        if bundle.seconds_per_text is not None:  # else texts are sent elsewhere, at a cost
            self(Question([("warm-up", "")] if self.about.pairs else ["warm-up"]))

    def __call__(self, question: Question) -> list[dict[str, Any]]:
        """Probabilities, entropy, spread and label of each text."""
        from edokit.panels import Panel

        found = self._bundle.describe(
            question.texts,
            annotators=question.annotators,
            panel=None if question.panel is None else Panel(question.panel),
            answer_for=question.answer_for,
        )
        names: Sequence[Any] = found.labels.tolist()
        if found.scale.is_multi_label:
            names = [json.loads(name) for name in names]
        columns: dict[str, Sequence[Any]] = {
            "probabilities": self._by_class(
                found.probabilities if found.answers is None else found.answers
            ),
            "entropy": found.entropy.tolist(),
            "spread": found.spread.tolist(),
            "label": names,
        }
        if found.medians is not None:
            columns["median"] = found.medians.tolist()
        for end, shares in zip(("low", "high"), found.votes or (), strict=False):
            columns[end] = self._by_class(shares)
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _by_class(self, shares: Floats) -> list[dict[str, float]]:
        return [dict(zip(self.about.classes, row, strict=True)) for row in shares.tolist()]


class MembersProcess:
    """The process that loads a bundle and answers one question at a time.

    Parameters
    ----------
    folder : str or Path
        The folder of the bundle.
    **how
        Arguments of `Bundle.load`.
    """

    def __init__(self, folder: str | Path, **how: Any) -> None:
        self._given = folder, how
        self._line: Connection[Any, Any] | None = None
        self._process: Any = None
        self._lock, self._stopped = threading.Lock(), False

    @property
    def pid(self) -> int | None:
        """The id of the process, once there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> About:
        """Load the bundle; an error of it is raised here."""
        context = get_context("spawn")
        self._line, other = context.Pipe()
        process = context.Process(target=_answer, args=(other, *self._given), daemon=True)
        with self._lock:
            if not self._stopped:
                process.start()
                self._process = process
        other.close()
        about: About
        about, notes = self._received()
        for note in notes:
            warn(note)
        return about

    def ask(self, question: Question) -> list[str]:
        """The answer to each text, as JSON."""
        found: list[str] = self._received(question)
        return found

    def wait(self) -> MembersEndedError:
        """Wait for its end, and return what to say about it."""
        wait([self._process.sentinel])
        return self._ended()

    def stop(self) -> None:
        """End it, whatever it does."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def _received(self, *sent: Question) -> Any:
        assert self._line is not None
        try:
            for question in sent:
                self._line.send(question)
            found = self._line.recv()
        except (EOFError, OSError):
            raise self._ended() from None
        if isinstance(found, EDOError):
            raise found
        return found

    def _ended(self) -> MembersEndedError:
        if self._process is not None:
            self._process.join(5)
        code = getattr(self._process, "exitcode", None)
        return MembersEndedError(
            f"the process of the members ended with exit code {code}",
            "look whether this machine has enough memory, and start again",
        )


class MembersEndedError(EDOError):
    """The process of the members is gone."""


def _answer(line: Connection[Any, Any], folder: str | Path, how: dict[str, Any]) -> None:
    """What the process does until the other one ends it, or is gone."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    with suppress(EOFError, OSError):  # the other one is gone
        _answer_all(line, folder, how)


def _answer_all(line: Connection[Any, Any], folder: str | Path, how: dict[str, Any]) -> None:
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            from edokit.bundle import Bundle

            answers = Answers(Bundle.load(folder, **how))
        shown = [str(note.message) for note in notes if issubclass(note.category, EDOWarning)]
        line.send((answers.about, list(dict.fromkeys(shown))))
    except Exception as error:
        line.send(reported(error))
        return
    # What is noted of a request may name people, and nobody reads it.
    warnings.simplefilter("ignore")
    while True:
        question = line.recv()
        try:
            rows = answers(question)
            found: Any = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
        except Exception as error:
            found = reported(error)
        line.send(found)


def reported(error: Exception) -> EDOError:
    """An error that may be shown: of others than our own what they say may quote a text."""
    if isinstance(error, EDOError):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = Path(place.filename).name
    return EDOError(f"unexpected {type(error).__name__} in line {place.lineno} of {name}")
