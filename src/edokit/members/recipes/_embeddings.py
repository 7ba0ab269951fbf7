"""Vectors of texts from an OpenAI-compatible endpoint, cached one by one as its answers are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import AliasPath, BaseModel, Field

from edokit._errors import InputError
from edokit.members.recipes._completions import Completion, TokenCount
from edokit.members.recipes._endpoint import EMBEDDINGS, Endpoint, Request
from edokit.members.recipes._onnx import Vectors, unit_length
from edokit.members.spending import Prices, current_session

_LARGEST = 1e12  # of a vector's numbers: in single precision, its length stays finite
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)]
_MOST_DIMENSIONS = 16_384


class _Embedding(BaseModel):
    """The fields of an answer that are used: one text was sent."""

    vector: list[_Number] = Field(
        min_length=1,
        max_length=_MOST_DIMENSIONS,
        validation_alias=AliasPath("data", 0, "embedding"),
    )
    tokens: TokenCount | None = Field(None, validation_alias=AliasPath("usage", "prompt_tokens"))


def read_embedding(content: bytes) -> Completion:
    """An answer whose text is the vector as JSON, so that it can be cached like others.

    Content that is not an embedding is a ValueError.
    """
    answer = _Embedding.model_validate_json(content)
    # Single precision has nine digits at most.
    vector = [float(f"{number:.9g}") for number in answer.vector]
    return Completion(json.dumps(vector), None, tokens_in=answer.tokens, tokens_out=0)


class EmbeddingServer:
    """A model behind ``/v1/embeddings``: a request for each text that was not asked for before.

    Parameters
    ----------
    base_url, model : str
        The endpoint, and the name of the model there.
    timeout, retries, concurrency : float and int
        As for `Endpoint`.
    price : float or None
        The price of a million tokens.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        timeout: float = 60.0,
        retries: int = 5,
        concurrency: int = 8,
        price: float | None = None,
    ) -> None:
        prices = None
        if price is not None:
            prices = Prices(price, 0.0)
        self.model = model
        self.endpoint = Endpoint(
            base_url,
            path=EMBEDDINGS,
            read=read_embedding,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            prices=prices,
        )

    def requests(self, texts: Sequence[str]) -> list[Request]:
        """The requests for texts; an empty text is sent as a space, since servers refuse it."""
        return [Request({"model": self.model, "input": text or " "}, text=text) for text in texts]

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D] of length one."""
        total = len(texts)

        def report(done: int) -> None:
            session = current_session()
            if session.report is not None:
                session.report(f"{session.member}, text {done} of {total}")

        answers = self.endpoint.ask(self.requests(texts), report)
        try:
            vectors = np.array([json.loads(answer.text) for answer in answers], dtype=np.float32)
        except ValueError as error:  # of different lengths, or damaged by removing a key
            raise InputError(
                f"{self.endpoint.base_url} returned vectors of different lengths for {self.model}",
                "check the option model",
                code="ragged-array",
            ) from error
        return unit_length(vectors)
