"""The queue in which requests wait, and the thread that answers them in batches."""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, check_number, counted
from edokit.panels import Panel
from edokit.serve.requests import About, Question, RefusedError

if TYPE_CHECKING:
    from edokit.bundle import Bundle
    from edokit.ensemble.escalation import Escalation
    from edokit.members.familiarity import UnfamiliarPolicy

# Batches of a long request hold this many times the texts of other batches.
_LONG_REQUEST_FACTOR = 4
# The texts of this many requests of the largest size may wait for the members.
_WAITING_REQUESTS = 8
# A JSON object for each text.
AnswerRecords = list[dict[str, Any]]


@dataclass(frozen=True)
class Limits:
    """How much a server takes at once.

    Parameters
    ----------
    max_batch : int, default=64
        Texts of several requests that the members predict at once. A request with more texts is
        answered in batches four times as large, which take less time per text.
    max_texts : int, default=1024
        Texts of one request. Eight times as many may wait for the members; beyond them requests are
        refused with 503.
    max_length : int, default=100000
        Characters of one text, its context included.
    max_bytes : int, default=4 MiB
        Bytes of the body of a request. Requests that together hold more than 64 times as many are
        refused with 503.
    """

    max_batch: int = 64
    max_texts: int = 1024
    max_length: int = 100_000
    max_bytes: int = 4 << 20

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            check_number(name, limit, 1, 2**31)


class Answerer:
    """A bundle that answers questions.

    Parameters
    ----------
    bundle : Bundle
        The bundle, with its members in memory.
    unfamiliar : {"answer", "constant", "people"}, default=None
        What unfamiliar texts get, as in `Bundle.describe_parts`.
    escalation : Escalation, default=None
        Which items are handed to people.
    """

    def __init__(
        self,
        bundle: Bundle,
        unfamiliar: UnfamiliarPolicy | None = None,
        escalation: Escalation | None = None,
    ) -> None:
        self._bundle = bundle
        self._unfamiliar: UnfamiliarPolicy | None = unfamiliar
        self._escalation = escalation
        self.about = About(
            bundle.version,
            list(bundle.classes),
            frozenset(bundle.known_annotators),
            tuple(bundle.ensemble.fitted_.answers or ()),
            bundle.members.manifest["data"].get("pairs"),
            bundle.ensemble.people_,
            escalation,
            bundle.scale.kind,
            tuple(bundle.members.endpoints),
        )
        if not bundle.members.endpoints:  # else texts are sent elsewhere, at a cost
            self(Question([("warm-up", "")] if self.about.has_contexts else ["warm-up"]))

    def __call__(self, question: Question) -> AnswerRecords:
        """Answer the texts of a question, in their order."""
        escalation = None
        if question.is_anonymous:  # its promise is about the anonymous answer
            escalation = self._escalation
        pooled = self._bundle.describe(
            question.texts,
            annotators=question.annotators,
            panel=None if question.panel is None else Panel(question.panel),
            answer_for=question.answer_for,
            unfamiliar=self._unfamiliar,
            escalate=escalation,
        )
        return pooled.to_records()


def without_texts(error: BaseException) -> EDOError:
    """An error that may be shown: the message of another package's error may quote a text."""
    if isinstance(error, EDOError):
        return error
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = Path(place.filename).name
    return EDOError(
        f"unexpected {type(error).__name__} in line {place.lineno} of {name}", code="internal-error"
    )


@dataclass(eq=False)
class _WaitingQuestion:
    """A question in the queue."""

    question: Question
    answer: asyncio.Future[AnswerRecords]

    def __len__(self) -> int:
        return len(self.question.texts)


class Batcher:
    """Answers the questions that wait in batches, one after the other, in one thread.

    Parameters
    ----------
    load : callable
        Loads the bundle and returns what answers questions.
    limits : Limits
        How many texts wait and share a batch.

    Attributes
    ----------
    observe : callable
        Called with the number of texts of each batch.
    waiting : int
        Texts in the queue.
    about : About or None
        What may be asked, once the bundle is loaded.
    stopping : bool
        Whether the server is about to end; requests that still arrive are answered.
    """

    def __init__(self, load: Callable[[], Answerer], limits: Limits) -> None:
        self._load = load
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="members")
        self._queue: deque[_WaitingQuestion] = deque()
        self._arrival = asyncio.Event()
        self.observe: Callable[[int], None] = lambda texts: None
        self.waiting = 0
        self.about: About | None = None
        self.stopping = False

    async def start(self) -> About:
        """Load the bundle in the thread, and answer from then on.

        An error of loading it is raised here.
        """
        loop = asyncio.get_running_loop()
        self._answers = await loop.run_in_executor(self._thread, self._load)
        self.about = self._answers.about
        self._task = loop.create_task(self._work())
        return self.about

    def close(self) -> None:
        """End the thread once it is idle."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Question) -> AnswerRecords:
        """Answers to the texts, in their order."""
        size = len(question.texts)
        step = self._limits.max_batch
        if size > step:
            step *= _LONG_REQUEST_FACTOR  # of one request: nobody else waits in the same batch
        limit = _WAITING_REQUESTS * self._limits.max_texts
        if self.waiting + size > limit:
            message = f"{counted(self.waiting, 'text')} wait already, with room for {limit}"
            raise RefusedError(
                503, message, "try again in a moment", retry_after="1", code="busy-server"
            )
        loop = asyncio.get_running_loop()
        parts = [question[start : start + step] for start in range(0, size, step)]
        queued = [_WaitingQuestion(part, loop.create_future()) for part in parts]
        self._queue.extend(queued)
        self.waiting += size
        self._arrival.set()
        answers = [await waiting.answer for waiting in queued]
        return list(chain.from_iterable(answers))

    async def _work(self) -> None:
        """Answer batch after batch while questions wait."""
        while True:
            await self._arrival.wait()
            while self._queue:
                await self._answer(self._next_batch())
            self._arrival.clear()

    def _next_batch(self) -> list[_WaitingQuestion]:
        """The questions of the next batch: of one kind, oldest first."""
        batch: list[_WaitingQuestion] = []
        skipped: list[_WaitingQuestion] = []
        size = 0
        limit = self._limits.max_batch
        kind = self._queue[0].question.kind
        while self._queue and size < limit:
            waiting = self._queue.popleft()
            fits = not batch or size + len(waiting) <= limit
            if fits and waiting.question.kind == kind:
                batch.append(waiting)
                size += len(waiting)
            else:
                skipped.append(waiting)
        self._queue.extendleft(reversed(skipped))
        self.waiting -= size
        return batch

    async def _answer(self, batch: list[_WaitingQuestion]) -> None:
        """Answer a batch; if it fails, answer its questions one by one, so that only one fails."""
        loop = asyncio.get_running_loop()
        question = Question.joined([waiting.question for waiting in batch])
        try:
            rows = await loop.run_in_executor(self._thread, self._answers, question)
        except Exception as error:
            if len(batch) > 1:
                for waiting in batch:  # the error is that of one of them, and no other's
                    await self._answer([waiting])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(without_texts(error))
            return
        self.observe(len(rows))
        start = 0
        for waiting in batch:
            stop = start + len(waiting)
            if not waiting.answer.done():  # else its client is gone
                waiting.answer.set_result(rows[start:stop])
            start = stop
