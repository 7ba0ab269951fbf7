"""Answers of a chat endpoint: read within bounds, without the key in them, and cached.

What a server sends is not trusted. An answer is validated before it is used; what is read back from
the cache is validated again, since files can be damaged.
"""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_json

_MOST_POSITIONS = 16  # tokens of an answer that are kept: a label is named by the first few
_MOST_ALTERNATIVES = 32  # for each of them; requests ask for 20
_LONGEST_TOKEN = 1000  # characters
_MOST_TOKENS = 10**9  # a count above that is not one
_LARGEST_ENTRY = 2**23  # bytes of a cached answer
# Parts of a key with this many characters or more are removed; shorter keys are placeholders.
_SHORTEST_SECRET = 8
REDACTED = "***"


def _not_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("is not a number")
    return value


LogProbability = Annotated[float, AfterValidator(_not_nan)]
TokenText = Annotated[str, Field(max_length=_LONGEST_TOKEN)]
TokenCount = Annotated[int, Field(ge=0, le=_MOST_TOKENS)]
# A token and its log-probability.
Alternative: TypeAlias = tuple[TokenText, LogProbability]
# The token of an answer, followed by the most probable tokens at its place.
Position: TypeAlias = list[Alternative]


@dataclass(frozen=True)
class Completion:
    """The answer of a model.

    Attributes
    ----------
    text : str
        What the model says.
    logprobs : list or None
        For each of the first tokens the token itself, followed by its alternatives, with their
        log-probabilities; None if the server returned no alternatives.
    tokens_in, tokens_out : int or None
        Tokens of the prompt and of the answer; None if the server did not report them.
    """

    text: str
    logprobs: list[Position] | None
    tokens_in: TokenCount | None = None
    tokens_out: TokenCount | None = None

    @property
    def has_usage(self) -> bool:
        """Whether the server reported the tokens of prompt and answer."""
        return self.tokens_in is not None and self.tokens_out is not None


class _Token(BaseModel):
    token: TokenText
    logprob: LogProbability


class _TokenWithAlternatives(_Token):
    top_logprobs: list[_Token]


class _Message(BaseModel):
    content: str | None = None


class _ChatCompletion(BaseModel):
    """The fields of a chat completion that are used."""

    message: _Message = Field(validation_alias=AliasPath("choices", 0, "message"))
    logprobs: object = Field(None, validation_alias=AliasPath("choices", 0, "logprobs", "content"))
    tokens_in: TokenCount | None = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))
    tokens_out: TokenCount | None = Field(
        None, validation_alias=AliasPath("usage", "completion_tokens")
    )


_POSITION = TypeAdapter(_TokenWithAlternatives)


def read_answer(content: bytes) -> Completion:
    """An answer from a chat completion; anything else is a ValueError."""
    # Unpaired surrogates, which a truncated answer may end with, become question marks.
    text = json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace")
    completion = _ChatCompletion.model_validate_json(text)
    return Completion(
        text=completion.message.content or "",
        logprobs=_read_positions(completion.logprobs),
        tokens_in=completion.tokens_in,
        tokens_out=completion.tokens_out,
    )


def _read_positions(content: object) -> list[Position] | None:
    """The first tokens with their alternatives, up to one that is not valid."""
    if not isinstance(content, list):
        return None
    positions: list[Position] = []
    for value in content[:_MOST_POSITIONS]:
        try:
            token = _POSITION.validate_python(value)
        except ValidationError:
            break
        tokens = [token, *token.top_logprobs[:_MOST_ALTERNATIVES]]
        positions.append([(token.token, token.logprob) for token in tokens])
    # Without alternatives, a token is listed beside itself alone.
    if any(len(position) > 2 for position in positions):
        return positions
    return None


def without_key(answer: Completion, key: str) -> Completion:
    """The answer with every part of the key replaced that has eight characters or more.

    A server knows the key that it was sent, and may repeat it.
    """
    positions = answer.logprobs
    if positions is not None:
        # The key may also be spelled by one token after the other.
        spelled = "".join(position[0][0] for position in positions)
        if redact(spelled, key) == spelled:
            positions = [
                [(redact(token, key), value) for token, value in position] for position in positions
            ]
        else:
            positions = None
    return replace(answer, text=redact(answer.text, key), logprobs=positions)


def redact(text: str, key: str) -> str:
    """The text without the parts of a key; keys of less than eight characters are placeholders."""
    starts = range(len(key) - _SHORTEST_SECRET + 1)
    parts = {key[start : start + _SHORTEST_SECRET] for start in starts}
    if not any(part in text for part in parts):
        return text
    is_secret = [False] * len(text)
    for start in range(len(text) - _SHORTEST_SECRET + 1):
        if text[start : start + _SHORTEST_SECRET] in parts:
            is_secret[start : start + _SHORTEST_SECRET] = [True] * _SHORTEST_SECRET
    pieces = []
    for is_hidden, run in groupby(zip(is_secret, text, strict=True), key=itemgetter(0)):
        if is_hidden:
            pieces.append(REDACTED)
        else:
            pieces.append("".join(character for _, character in run))
    return "".join(pieces)


class _CachedCompletion(BaseModel):
    """The content of a cached answer's file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[2]
    request: str
    text: str
    logprobs: list[list[tuple[str, float]]] | None
    tokens_in: TokenCount | None
    tokens_out: TokenCount | None
    digest: str


class AnswerCache:
    """Answers by the digest of their request, each in a file that is written atomically.

    Several processes may write to it, and a killed one leaves whole files only. Nobody but their
    owner may read the files: a model may repeat what it was asked.

    Attributes
    ----------
    damaged : list of Path
        Files that exist, but lack a valid answer to their request.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[Path] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"{folder}, where answers are cached so that none is paid for twice, can't be used:"
                f" {error}",
                "name another folder in EDO_CACHE",
                code="unwritable-file",
            ) from error

    def get(self, digest: str) -> Completion | None:
        """The answer to a request; None if there is none, or a damaged one."""
        path = self.folder / f"{digest}.json"
        try:
            status = path.stat()
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_ENTRY:
            self.damaged.append(path)
            return None
        try:
            return _read_entry(path.read_bytes(), digest)
        except (OSError, ValueError, RecursionError):
            self.damaged.append(path)
            return None

    def put(self, digest: str, answer: Completion) -> None:
        """Write an answer."""
        content = _fields(digest, answer)
        content["digest"] = digest_json(content)
        path = self.folder / f"{digest}.json"
        with whole_file(path) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_text(json.dumps(content), encoding="utf-8")
        # A file that was there before passed its mode on.
        os.chmod(path, 0o600)


def _fields(digest: str, answer: Completion) -> dict[str, object]:
    """The content of a cached answer's file, without the digest of the content."""
    return {
        "format": 2,
        "request": digest,
        "text": answer.text,
        "logprobs": answer.logprobs,
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
    }


def _read_entry(content: bytes, digest: str) -> Completion:
    """The answer in a cached file; a ValueError if it is damaged, or answers another request."""
    entry = _CachedCompletion.model_validate_json(content)
    if entry.logprobs is not None and not all(entry.logprobs):
        raise ValueError("has a position without tokens")
    answer = Completion(entry.text, entry.logprobs, entry.tokens_in, entry.tokens_out)
    if entry.request != digest or entry.digest != digest_json(_fields(digest, answer)):
        raise ValueError("its digest is another one")
    return answer
