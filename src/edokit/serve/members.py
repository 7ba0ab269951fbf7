"""The members in a process of their own, and the queue in which requests wait for them."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import pickle
import signal
import socket
import struct
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from multiprocessing import get_context
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
        Texts that wait for the members; beyond them requests are refused with 503, as are requests
        that hold more than 64 times ``max_bytes`` together.
    max_connections : int, default=512
        Connections that are open at once; further ones are refused with 503.
    """

    max_batch: int = 64
    max_delay_ms: float = 0.0
    max_texts: int = 1024
    max_length: int = 100_000
    max_bytes: int = 4 << 20
    max_queue: int = 8192
    max_connections: int = 512

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
    attributes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """By annotator."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """What all questions of a batch have in common."""
        pairs = isinstance(self.texts[0], tuple)
        return self.annotators is None, self.panel, self.answer_for, self.attributes, pairs

    def parts(self, size: int) -> list[Question]:
        """The question in parts of at most so many texts."""
        if len(self.texts) <= size:
            return [self]
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
    attributes: tuple[str, ...] = ()
    """Attributes of annotators that members use."""

    @cached_property
    def head(self) -> str:
        """What all answers begin with, as JSON."""
        head = {"version": self.version, "classes": self.classes}
        return json.dumps(head, ensure_ascii=False)[:-1]


Answer = tuple[list[str], list[str]]
"""That to each text as JSON, and the annotators with attributes who are answered anonymously."""


class Answers:
    """A bundle that answers questions."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self.about = About(
            bundle.version,
            list(bundle.classes),
            frozenset(bundle.known_annotators),
            tuple(bundle.ensemble.fitted_.answers or ()),
            bundle.members.manifest["data"].get("pairs"),
            tuple(bundle.members.manifest["data"].get("attributes") or ()),
        )
        if bundle.seconds_per_text is not None:  # else texts are sent elsewhere, at a cost
            self(Question([("warm-up", "")] if self.about.pairs else ["warm-up"]))

    def __call__(self, question: Question) -> tuple[str, list[tuple[Any, ...]], list[str]]:
        """Probabilities, entropy, spread and label of each text: what `written` takes."""
        from edokit.panels import Panel

        attributes = {name: dict(own) for name, own in question.attributes}
        found = self._bundle.describe(
            question.texts,
            annotators=question.annotators,
            panel=None if question.panel is None else Panel(question.panel),
            attributes=attributes or None,
            answer_for=question.answer_for,
        )
        shares = found.probabilities if found.answers is None else found.answers
        labels: Any = found.labels.tolist()
        columns = {
            "probabilities": (self._by_class, _finite(shares.T)),
            "entropy": ("%r", [_finite(found.entropy)]),
            "spread": ("%r", [_finite(found.spread)]),
            "label": ("%s", [labels if found.scale.is_multi_label else map(_encoded, labels)]),
        }
        if found.medians is not None:
            columns["median"] = "%s", [map(_encoded, found.medians.tolist())]
        if found.votes is not None:
            for name, votes in zip(("low", "high"), found.votes, strict=False):
                columns[name] = self._by_class, _finite(votes.T)
        row = "{{{}}}".format(", ".join(f'"{name}": {form}' for name, (form, _) in columns.items()))
        cells = list(zip(*(each for _, own in columns.values() for each in own), strict=True))
        return row, cells, self._bundle.members.unknown_annotators(attributes) if attributes else []

    @cached_property
    def _by_class(self) -> str:
        names = (_encoded(name).replace("%", "%%") for name in self.about.classes)
        return "{{{}}}".format(", ".join(f"{name}: %r" for name in names))


def written(row: str, cells: list[tuple[Any, ...]], unknown: list[str]) -> Answer:
    """What the members found, as JSON: they leave the writing to the process that waits for it."""
    return [row % each for each in cells], unknown


def _finite(values: Floats) -> list[Any]:
    """Values as a list; JSON has no others."""
    if not math.isfinite(values.sum()):
        raise ValueError("a value is not finite")
    found: list[Any] = values.tolist()
    return found


@cache
def _encoded(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


class MembersProcess:
    """The process that loads a bundle and answers questions, one after the other.

    Parameters
    ----------
    folder : str or Path
        The folder of the bundle.
    **how
        Arguments of `Bundle.load`.
    """

    def __init__(self, folder: str | Path, **how: Any) -> None:
        self._line, self._other = socket.socketpair()
        arguments = self._other, folder, how
        context = get_context("spawn")
        self._process: Any = context.Process(target=_answer, args=arguments, daemon=True)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    @property
    def pid(self) -> int | None:
        """The id of the process, once there is one."""
        pid: int | None = self._process.pid
        return pid

    async def start(self) -> About:
        """Load the bundle; an error of it is raised here."""
        self._process.start()
        self._other.close()
        self._reader, self._writer = await asyncio.open_connection(sock=self._line)
        loaded = await self._read()
        if isinstance(loaded, EDOError):
            raise loaded
        about: About
        about, notes = loaded
        for note in notes:
            warn(note)
        return about

    def ask(self, question: Question) -> None:
        """Send a question, which waits there while an earlier one is answered."""
        self._writer.write(pickle.dumps(question, pickle.HIGHEST_PROTOCOL))

    async def received(self) -> Answer | EDOError:
        """The next answer, or an error."""
        found = await self._read()
        return found if isinstance(found, EDOError) else written(*found)

    async def _read(self) -> Any:
        try:
            (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
            return pickle.loads(await self._reader.readexactly(size))
        except (EOFError, OSError):
            raise self._ended() from None

    def stop(self) -> None:
        """End it, whatever it does; where it waits for a question, as other programs end."""
        if self.pid is not None:
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)
            # One that is killed leaves semaphores behind, of which Python warns.
            self._process.join(1)
            self._process.kill()
            self._process.join()

    def _ended(self) -> MembersEndedError:
        self._process.join(5)
        return MembersEndedError(
            f"the process of the members ended with exit code {self._process.exitcode}",
            "look whether this machine has enough memory, and start again",
        )


_SIZE = struct.Struct("!Q")
"""Precedes each answer: its bytes."""


def _answer(line: socket.socket, folder: str | Path, how: dict[str, Any]) -> None:
    """What the process does until the other one ends it, or is gone."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    # Threads that wait for each other must not spin: on a core that others use, too, they would
    # take turns with those they wait for. Read by OpenMP when the members load it.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    questions = line.makefile("rb")

    def send(found: Any) -> None:
        content = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
        line.sendall(_SIZE.pack(len(content)) + content)

    with suppress(EOFError, OSError):  # the other one is gone
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always")
                from edokit.bundle import Bundle

                answers = Answers(Bundle.load(folder, **how))
        except Exception as error:
            send(reported(error))
            return
        shown = [str(note.message) for note in notes if issubclass(note.category, EDOWarning)]
        send((answers.about, list(dict.fromkeys(shown))))
        gc.freeze()  # else what was loaded is gone through again and again, while requests wait
        # What is noted of a request may name people, and nobody reads it.
        warnings.simplefilter("ignore")
        while True:
            question = pickle.load(questions)
            try:
                found: Any = answers(question)
            except Exception as error:
                found = reported(error)
            send(found)


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
    answer: asyncio.Future[Answer]
    arrived: float
    alone: bool = False
    """Whether it was in a batch that failed."""

    def __len__(self) -> int:
        return len(self.question.texts)


AHEAD = 2
"""Full batches that are sent to the members while they work on another one: one would do, unless
the event loop has to wait for a core."""


class Worker:
    """The queue, from which the members get one batch after the other.

    While they work on a batch they are sent the next ones as soon as they are full, so that they
    never wait for requests to be read and answers to be written.

    Parameters
    ----------
    members : MembersProcess
    limits : Limits
    """

    def __init__(self, members: MembersProcess, limits: Limits) -> None:
        self._members, self._limits = members, limits
        self._queue: deque[_Waiting] = deque()
        self._sent: deque[tuple[list[_Waiting], float]] = deque()
        self._timer: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None]
        self.observe: Callable[[int, float], None] = lambda texts, seconds: None
        """Called with the texts and the seconds of each batch."""
        self.waiting = 0
        """Texts in the queue."""
        self.about: About | None = None
        self.failure: Exception | None = None
        self.stopping = False
        """Whether the server is about to end; what still arrives is answered."""

    @property
    def pid(self) -> int | None:
        """The process of the members."""
        return self._members.pid

    def start(self, settled: Callable[[], None]) -> None:
        """Start it in a running event loop, which calls ``settled`` once members are loaded, and
        when they fail or are lost."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._work(settled))

    def drain(self) -> None:
        """Answer what still arrives, without waiting for full batches."""
        self.stopping = True
        self._send_soon()

    async def ask(self, question: Question) -> Answer:
        """Answers to the texts, in their order."""
        size, most = len(question.texts), self._limits.max_queue
        if self.failure is not None:
            raise self.failure
        if self.waiting + size > most:
            raise RefusedError(
                503,
                f"{counted(self.waiting, 'text')} wait already, with room for {most}",
                "try again in a moment",
                retry_after="1",
            )
        new, now = self._loop.create_future, self._loop.time()
        asked = [_Waiting(part, new(), now) for part in question.parts(self._limits.max_batch)]
        self._queue.extend(asked)
        self.waiting += size
        if self._timer is None or self.waiting >= self._limits.max_batch:
            self._send_soon()
        if len(asked) == 1:
            return await asked[0].answer
        answers = await asyncio.gather(*(part.answer for part in asked))
        return [row for rows, _ in answers for row in rows], answers[0][1]

    async def _work(self, settled: Callable[[], None]) -> None:
        try:
            self.about = await self._members.start()
            settled()
            now = self._loop.time()
            while True:
                found = await self._members.received()
                batch, start = self._sent.popleft()
                free, now = now, self._loop.time()
                self.observe(sum(map(len, batch)), now - max(start, free))
                if isinstance(found, EDOError) and len(batch) > 1:
                    for one in batch:  # the error is that of one of them, and no other's
                        one.alone = True
                    self._queue.extendleft(reversed(batch))
                    self.waiting += sum(map(len, batch))
                else:
                    _deliver(batch, found)
                self._send()
        except Exception as error:
            self.failure = error
        for batch in [*(batch for batch, _ in self._sent), list(self._queue)]:
            _deliver(batch, self.failure)
        settled()

    def _send_soon(self) -> None:
        """Send what waits once all that arrived is read, so that it shares a batch."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_soon(self._send)

    def _send(self) -> None:
        """Send the members what they can take: a batch, and the next ones if they are full."""
        self._timer = None
        while self._queue and self.about and not self.failure and len(self._sent) <= AHEAD:
            if self.waiting < self._limits.max_batch and not self.stopping:
                if self._sent:
                    return
                ready = self._queue[0].arrived + self._limits.max_delay_ms / 1e3
                if ready > self._loop.time():
                    self._timer = self._loop.call_at(ready, self._send)
                    return
            batch = self._next()
            self._sent.append((batch, self._loop.time()))
            self._members.ask(Question.joined([one.question for one in batch]))

    def _next(self) -> list[_Waiting]:
        """The next batch: questions of one kind, oldest first."""
        most, first = self._limits.max_batch, self._queue.popleft()
        kind, batch, others, size = first.question.kind, [first], list[_Waiting](), len(first)
        while self._queue and size < most and not first.alone:
            one = self._queue.popleft()
            fits = size + len(one) <= most and one.question.kind == kind and not one.alone
            (batch if fits else others).append(one)
            size += len(one) if fits else 0
        self._queue.extendleft(reversed(others))
        self.waiting -= size
        return batch


def _deliver(batch: list[_Waiting], found: Any) -> None:
    """Answer the questions of a batch with what was found, or with its error."""
    rows, unknown = ([], []) if isinstance(found, Exception) else found
    answers = iter(rows)
    for one in batch:
        answer = list(islice(answers, len(one))), unknown
        if one.answer.done():  # its client is gone
            continue
        if isinstance(found, Exception):
            one.answer.set_exception(found)
        else:
            one.answer.set_result(answer)
