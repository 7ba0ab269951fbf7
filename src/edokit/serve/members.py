"""The members in a process of their own, so that the one that speaks HTTP never waits for them."""

from __future__ import annotations

import json
import signal
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
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
        self.pid: int | None = None

    def start(self) -> About:
        """Load the bundle; an error of it is raised here."""
        context = get_context("spawn")
        self._line, other = context.Pipe()
        self._process = context.Process(target=_answer, args=(other, *self._given), daemon=True)
        self._process.start()
        self.pid = self._process.pid
        other.close()
        about: About
        about, notes = self._received()
        for note in notes:
            warn(note)
        return about

    def ask(self, question: Question) -> list[str]:
        """The answer to each text, as JSON."""
        assert self._line is not None
        self._line.send(question)
        found: list[str] = self._received()
        return found

    def close(self) -> None:
        """Let it end."""
        if self._line is not None:
            self._line.close()
            self._process.join(5)

    def _received(self) -> Any:
        assert self._line is not None
        try:
            found = self._line.recv()
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            raise MembersEndedError(
                f"the process of the members ended with exit code {code}",
                "check the memory of this machine",
            ) from None
        if isinstance(found, EDOError):
            raise found
        return found


class MembersEndedError(EDOError):
    """The process of the members is gone."""


def _answer(line: Connection[Any, Any], folder: str | Path, how: dict[str, Any]) -> None:
    """What the process does until the other one closes the line."""
    for stop in (signal.SIGINT, signal.SIGTERM):  # the other one ends it
        signal.signal(stop, signal.SIG_IGN)
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            from edokit.bundle import Bundle

            answers = Answers(Bundle.load(folder, **how))
        shown = [str(note.message) for note in notes if issubclass(note.category, EDOWarning)]
        line.send((answers.about, list(dict.fromkeys(shown))))
    except Exception as error:
        line.send(_reported(error))
        return
    # What is noted of a request may name people, and nobody reads it.
    warnings.simplefilter("ignore")
    while True:
        try:
            question = line.recv()
        except (EOFError, OSError):
            return
        try:
            rows = answers(question)
            found: Any = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
        except Exception as error:
            found = _reported(error)
        line.send(found)


def _reported(error: Exception) -> EDOError:
    """An error that may be shown: of others than our own what they say may quote a text."""
    if isinstance(error, EDOError):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = Path(place.filename).name
    return EDOError(f"unexpected {type(error).__name__} in line {place.lineno} of {name}")
