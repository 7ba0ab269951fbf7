"""The queue: requests wait in it, within bounds, and share batches."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edokit._errors import EDOError, InputError, counted
from edokit.serve.members import About, MembersEndedError, MembersProcess, Question


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


@dataclass(eq=False)
class _Waiting:
    """A question in the queue."""

    question: Question
    answer: asyncio.Future[list[str]]
    arrived: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self.question.texts)


class Worker:
    """The thread that hands questions to the members, batch by batch.

    Parameters
    ----------
    members : MembersProcess
    limits : Limits
    observe : callable
        Called with the texts and the seconds of each batch.
    """

    def __init__(
        self,
        members: MembersProcess,
        limits: Limits,
        observe: Callable[[int, float], None] = lambda texts, seconds: None,
    ) -> None:
        self._members, self._limits, self._observe = members, limits, observe
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._texts = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settled: Callable[[], None] = lambda: None
        self.about: About | None = None
        self.failure: BaseException | None = None
        self.stopping = False
        """Whether the server is about to end; what still arrives is answered."""
        self._closed = False

    def start(self, settled: Callable[[], None] = lambda: None) -> None:
        """Start it in a running event loop, which calls ``settled`` when members are loaded.

        It is called again if they are lost.
        """
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

    async def ask(self, question: Question) -> list[str]:
        """Answers to the texts, in their order, as JSON."""
        assert self._loop is not None
        size = len(question.texts)
        with self._changed:
            if self.failure is not None:
                raise self.failure
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
            self.about = self._members.start()
            threading.Thread(target=self._watch, name="edo-watch", daemon=True).start()
        except BaseException as error:
            self.failure = error
        self._post(self._settled)
        while batch := self._next():
            start = time.perf_counter()
            found = self._answers(batch)
            self._observe(sum(map(len, batch)), time.perf_counter() - start)
            self._post(_deliver, batch, found)
        if self.failure is not None:
            with self._changed:
                left, self._queue = list(self._queue), deque()
            self._post(_deliver, left, [self.failure] * len(left))
            self._post(self._settled)

    def _watch(self) -> None:
        ended = self._members.wait()
        with self._changed:
            self.failure = self.failure or ended
            self._changed.notify()

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)

    def _next(self) -> list[_Waiting]:
        """The next batch: questions of one kind, oldest first; empty at the end."""
        most, delay = self._limits.max_batch, self._limits.max_delay_ms / 1e3
        with self._changed:
            while not self._queue and not self._closed and self.failure is None:
                self._changed.wait()
            if not self._queue or self.failure is not None:
                return []
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
                if size + len(one) > most or (
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
        try:
            answers = self._members.ask(Question.joined([one.question for one in batch]))
        except MembersEndedError as error:
            self.failure = error
            return [error] * len(batch)
        except EDOError as error:
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
