"""Requests are answered from what was prepared when the server started."""

from __future__ import annotations

import asyncio
import inspect
import typing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pydantic
import pytest

from edokit import Bundle
from edokit.serve.app import App
from edokit.serve.batching import Answerer, Batcher, Limits

REFLECTION = ((inspect, "signature"), (typing, "get_type_hints"), (pydantic, "TypeAdapter"))


async def answers_of(bundle: Bundle, requests: list[dict[str, Any]], patch: Any) -> list[int]:
    """The statuses of requests, while reflection fails."""
    limits = Limits()
    batcher = Batcher(lambda: Answerer(bundle), limits)
    app = App(batcher, limits, None, log=print)
    await batcher.start()

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a request looks at the signature of {arguments}")

    for module, name in REFLECTION:
        patch.setattr(module, name, fail)
    transport = httpx.ASGITransport(app=app)
    statuses = []
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for request in requests:
            answer = await client.post("/predict", json=request)
            statuses.append(answer.status_code)
        health = await client.get("/health")
        statuses.append(health.status_code)
    batcher.close()
    return statuses


def test_no_request_looks_at_a_signature(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Bundle.load(bundle)
    ann, ben = loaded.known_annotators[:2]
    texts = ["How kind of you.", "What a rude reply."]
    requests: list[dict[str, Any]] = [
        {"texts": texts},
        {"texts": texts, "annotators": [[ann], [ann, ben]]},
        {"texts": texts, "panel": [ann, ben]},
        {"texts": texts, "for": "md"},
    ]
    with monkeypatch.context() as patch:
        statuses = asyncio.run(answers_of(loaded, requests, patch))
    assert statuses == [200] * 5
