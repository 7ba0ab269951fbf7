"""The members in a process of their own, and the queue in which requests wait for them."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, EDOWarning, InputError, counted, warn

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


class MembersEndedError(EDOError):
    """The process of the members is gone."""


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
        slices = (slice(k, k + size) for k in range(0, len(self.texts), size))
        whose = self.annotators
        return [replace(self, texts=self.texts[s], annotators=whose and whose[s]) for s in slices]

    @classmethod
    def joined(cls, parts: Sequence[Question]) -> Question:
        """Questions of one kind as one."""
        texts = [text for part in parts for text in part.texts]
        whose = [names for part in parts for names in part.annotators or ()]
        return replace(parts[0], texts=texts, annotators=whose or None)


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
    """A bundle that answers questions with plain values."""

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
        labels: Sequence[Any] = found.labels.tolist()
        if found.scale.is_multi_label:
            labels = [json.loads(label) for label in labels]
        shares = found.probabilities if found.answers is None else found.answers
        columns: dict[str, Sequence[Any]] = {
            "probabilities": self._by_class(shares),
            "entropy": found.entropy.tolist(),
            "spread": found.spread.tolist(),
            "label": labels,
        }
        if found.medians is not None:
            columns["median"] = found.medians.tolist()
        if found.votes is not None:
            columns["low"], columns["high"] = map(self._by_class, found.votes[:2])
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

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
        context = get_context("spawn")
        self._line, self._other = context.Pipe()
        arguments = self._other, folder, how
        self._process: Any = context.Process(target=_answer, args=arguments, daemon=True)
        self._lock, self._stopped = threading.Lock(), False

    @property
    def pid(self) -> int | None:
        """The id of the process, once there is one."""
        pid: int | None = self._process.pid
        return pid

    def start(self) -> About:
        """Load the bundle; an error of it is raised here."""
        with self._lock:
            if not self._stopped:
                self._process.start()
        self._other.close()
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
            if self.pid is not None:
                self._process.kill()
                self._process.join()

    def _received(self, *sent: Question) -> Any:
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
        if self.pid is not None:
            self._process.join(5)
        return MembersEndedError(
            f"the process of the members ended with exit code {self._process.exitcode}",
            "look whether this machine has enough memory, and start again",
        )


def _answer(line: Connection[Any, Any], folder: str | Path, how: dict[str, Any]) -> None:
    """What the process does until the other one ends it, or is gone."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    with suppress(EOFError, OSError):  # the other one is gone
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always")
                from edokit.bundle import Bundle

                answers = Answers(Bundle.load(folder, **how))
        except Exception as error:
            line.send(reported(error))
            return
        shown = [str(note.message) for note in notes if issubclass(note.category, EDOWarning)]
        line.send((answers.about, list(dict.fromkeys(shown))))
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


@dataclass(eq=False)
class _Waiting:
    """A question in the queue."""

    question: Question
    answer: asyncio.Future[list[str]]
    arrived: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self.question.texts)


class Worker:
    """The queue, and the thread that hands questions to the members, batch by batch.

    Parameters
    ----------
    members : MembersProcess
    limits : Limits
    """

    def __init__(self, members: MembersProcess, limits: Limits) -> None:
        self._members, self._limits = members, limits
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._loop: asyncio.AbstractEventLoop
        self._settled: Callable[[], None]
        self.observe: Callable[[int, float], None] = lambda texts, seconds: None
        """Called with the texts and the seconds of each batch."""
        self.waiting = 0
        """Texts in the queue."""
        self.about: About | None = None
        self.failure: BaseException | None = None
        self.stopping = False
        """Whether the server is about to end; what still arrives is answered."""

    @property
    def pid(self) -> int | None:
        """The process of the members."""
        return self._members.pid

    def start(self, settled: Callable[[], None]) -> None:
        """Start it in a running event loop, which calls ``settled`` once members are loaded, and
        when they fail or are lost."""
        self._loop, self._settled = asyncio.get_running_loop(), settled
        threading.Thread(target=self._work, name="edo-members", daemon=True).start()

    def drain(self) -> None:
        """Answer what still arrives, without waiting for full batches."""
        with self._changed:
            self.stopping = True
            self._changed.notify()

    async def ask(self, question: Question) -> list[str]:
        """Answers to the texts, in their order, as JSON."""
        size, most = len(question.texts), self._limits.max_queue
        with self._changed:
            if self.failure is not None:
                raise self.failure
            if self.waiting + size > most:
                raise RefusedError(
                    503,
                    f"{counted(self.waiting, 'text')} wait already, with room for {most}",
                    "try again in a moment",
                    retry_after="1",
                )
            parts = question.parts(self._limits.max_batch)
            asked = [_Waiting(part, self._loop.create_future()) for part in parts]
            self._queue.extend(asked)
            self.waiting += size
            self._changed.notify()
        answers = await asyncio.gather(*(part.answer for part in asked))
        return [answer for part in answers for answer in part]

    def _work(self) -> None:
        try:
            self.about = self._members.start()
            threading.Thread(target=self._watch, name="edo-watch", daemon=True).start()
            self._post(self._settled)
            while batch := self._next():
                start = time.perf_counter()
                found = self._answers(batch)
                self.observe(sum(map(len, batch)), time.perf_counter() - start)
                self._post(_deliver, batch, found)
        except BaseException as error:
            self.failure = error
        with self._changed:
            left = list(self._queue)
            self._queue.clear()
        self._post(_deliver, left, [self.failure] * len(left))
        self._post(self._settled)

    def _watch(self) -> None:
        ended = self._members.wait()
        with self._changed:
            self.failure = self.failure or ended
            self._changed.notify()

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *arguments)

    def _next(self) -> list[_Waiting]:
        """The next batch: questions of one kind, oldest first; empty once the members are gone."""
        most, delay = self._limits.max_batch, self._limits.max_delay_ms / 1e3
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self.failure is not None)
            if self.failure is not None:
                return []
            ready = self._queue[0].arrived + delay
            while self.waiting < most and not self.stopping and time.monotonic() < ready:
                self._changed.wait(ready - time.monotonic())
            kind = self._queue[0].question.kind
            batch: list[_Waiting] = []
            others: list[_Waiting] = []
            size = 0
            while self._queue and size < most:
                one = self._queue.popleft()
                fits = size + len(one) <= most and one.question.kind == kind
                (batch if fits else others).append(one)
                size += len(one) if fits else 0
            self._queue.extendleft(reversed(others))
            self.waiting -= size
            return batch

    def _answers(self, batch: list[_Waiting]) -> list[Any]:
        """The answers to each question, or the error of a question, which is no other's."""
        try:
            answers = iter(self._members.ask(Question.joined([one.question for one in batch])))
        except MembersEndedError as error:
            self.failure = error
            return [error] * len(batch)
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [answer for one in batch for answer in self._answers([one])]
        return [list(islice(answers, len(one))) for one in batch]


def _deliver(batch: list[_Waiting], found: list[Any]) -> None:
    for one, answer in zip(batch, found, strict=True):
        if one.answer.done():  # its client is gone
            continue
        if isinstance(answer, BaseException):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)
