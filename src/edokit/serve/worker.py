"""The thread that owns the members: requests wait in a bounded queue and share batches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, InputError, counted
from edokit.panels import Panel

if TYPE_CHECKING:
    from edokit._types import Floats
    from edokit.bundle import Bundle


@dataclass(frozen=True)
class Limits:
    """How much a server takes at once.

    Parameters
    ----------
    max_batch : int, default=64
        Texts that the members predict at once.
    max_delay_ms : float, default=0
        How long a batch that is not full waits for more texts. While the members work, requests
        gather without it.
    max_texts : int, default=1024
        Texts of one request.
    max_length : int, default=100000
        Characters of one text, its context included.
    max_bytes : int, default=4 MiB
        Bytes of the body of a request.
    max_queue : int, default=8192
        Texts that wait for the members; beyond them requests are refused with 503.
    """

    max_batch: int = 64
    max_delay_ms: float = 0.0
    max_texts: int = 1024
    max_length: int = 100_000
    max_bytes: int = 4 << 20
    max_queue: int = 8192

    def __post_init__(self) -> None:
        if self.max_queue < self.max_texts:
            raise InputError(
                f"max_queue={self.max_queue} is below max_texts={self.max_texts}: the largest"
                " request would never be taken",
                "raise one or lower the other",
                parameters=("max_queue", "max_texts"),
            )


class RefusedError(EDOError):
    """A request that is refused: the status, what is wrong, and what to do."""

    def __init__(self, status: int, message: str, hint: str = "", **headers: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Served:
    """A bundle, and what requests are checked against.

    Parameters
    ----------
    bundle : Bundle
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self.version, self.classes = bundle.version, list(bundle.classes)
        self.annotators = frozenset(bundle.known_annotators)
        self.metrics = tuple(bundle.ensemble.fitted_.answers or ())
        self.pairs: bool | None = bundle.members.manifest["data"].get("pairs")
        if bundle.seconds_per_text is not None:  # else texts are sent elsewhere, at a cost
            self.answers(Question([("warm-up", "")] if self.pairs else ["warm-up"]))

    def answers(self, question: Question) -> list[dict[str, Any]]:
        """Plain values for each text: probabilities, entropy, spread, label."""
        panel = None if question.panel is None else Panel(question.panel)
        found = self._bundle.describe(
            question.texts,
            annotators=question.annotators,
            panel=panel,
            answer_for=question.answer_for,
        )
        shown = found.probabilities if found.answers is None else found.answers
        names: Sequence[Any] = found.labels.tolist()
        if found.scale.is_multi_label:
            names = [json.loads(name) for name in names]
        columns: dict[str, Sequence[Any]] = {
            "probabilities": self._by_class(shown),
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
        return [dict(zip(self.classes, row, strict=True)) for row in shares.tolist()]


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


@dataclass(eq=False)
class _Waiting:
    """A question in the queue."""

    question: Question
    answer: asyncio.Future[list[dict[str, Any]]]
    arrived: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self.question.texts)


class Worker:
    """The thread that loads the members and predicts, batch by batch.

    Parameters
    ----------
    load : callable
        Returns the bundle.
    limits : Limits
    observe : callable
        Called with the texts and the seconds of each batch.
    """

    def __init__(
        self,
        load: Callable[[], Bundle],
        limits: Limits,
        observe: Callable[[int, float], None] = lambda texts, seconds: None,
    ) -> None:
        self._load, self._limits, self._observe = load, limits, observe
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._texts = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settled: Callable[[], None] = lambda: None
        self.served: Served | None = None
        self.failure: BaseException | None = None
        self.stopping = False
        """Whether the server is about to end; what still arrives is answered."""
        self._closed = False

    def start(self, settled: Callable[[], None] = lambda: None) -> None:
        """Start the thread, in a running event loop, which calls ``settled`` when it has loaded."""
        self._loop, self._settled = asyncio.get_running_loop(), settled
        threading.Thread(target=self._work, name="edo-members", daemon=True).start()

    def drain(self) -> None:
        """Answer what still arrives, without waiting for full batches."""
        with self._changed:
            self.stopping = True
            self._changed.notify()

    def close(self) -> None:
        """Let the thread end once the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    async def ask(self, question: Question) -> list[dict[str, Any]]:
        """Answers to the texts, in their order."""
        assert self._loop is not None
        size = len(question.texts)
        with self._changed:
            if self._texts + size > self._limits.max_queue:
                raise RefusedError(
                    503,
                    f"{counted(self._texts, 'text')} wait already, with room for"
                    f" {self._limits.max_queue}",
                    "try again in a moment",
                    retry_after="1",
                )
            parts = question.parts(self._limits.max_batch)
            asked = [_Waiting(part, self._loop.create_future()) for part in parts]
            self._queue.extend(asked)
            self._texts += size
            self._changed.notify()
        if len(asked) == 1:
            return await asked[0].answer
        answers = await asyncio.gather(*(part.answer for part in asked))
        return [answer for part in answers for answer in part]

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return self._texts

    def _work(self) -> None:
        assert self._loop is not None
        try:
            self.served = Served(self._load())
        except BaseException as error:
            self.failure = error
        self._post(self._settled)
        while self.failure is None and (batch := self._next()) is not None:
            if batch:
                start = time.perf_counter()
                found = self._answers(batch)
                self._observe(sum(map(len, batch)), time.perf_counter() - start)
                self._post(_deliver, batch, found)

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)

    def _next(self) -> list[_Waiting] | None:
        """The next batch: questions of one kind, oldest first; None once the server stops."""
        most, delay = self._limits.max_batch, self._limits.max_delay_ms / 1e3
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            if not self._queue:
                return None
            while self._texts < most and not self.stopping:
                left = self._queue[0].arrived + delay - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch: list[_Waiting] = []
            others: list[_Waiting] = []
            size = 0
            while self._queue and size < most:
                one = self._queue.popleft()
                if one.answer.cancelled():
                    self._texts -= len(one)
                elif size + len(one) > most or (
                    batch and one.question.kind != batch[0].question.kind
                ):
                    others.append(one)
                else:
                    batch.append(one)
                    size += len(one)
            self._queue.extendleft(reversed(others))
            self._texts -= size
            return batch

    def _answers(self, batch: list[_Waiting]) -> list[Any]:
        """The answers to each question, or the error of a question, which is no other's."""
        assert self.served is not None
        try:
            answers = self.served.answers(Question.joined([one.question for one in batch]))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [answer for one in batch for answer in self._answers([one])]
        found, start = [], 0
        for one in batch:
            found.append(answers[start : start + len(one)])
            start += len(one)
        return found


def _deliver(batch: list[_Waiting], found: list[Any]) -> None:
    for one, answer in zip(batch, found, strict=True):
        if one.answer.done():  # its client is gone
            continue
        if isinstance(answer, Exception):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)
