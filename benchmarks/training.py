"""Items per second of `transformer` members against a plain Hugging Face Trainer script.

    python benchmarks/training.py MODEL_FOLDER --items 4000

Both fine-tune the same encoder at the same settings (batch, precision, learning rate, dynamic
padding, no adversarial step, no evaluation) on the same made-up texts, in turn, in one run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from edokit.members.recipe import Lesson
from edokit.members.transformer import TransformerMember

WORDS = ("the", "a", "people", "say", "that", "this", "post", "is", "fine", "rude", "kind", "harsh")


def made_up(items: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of 5 to 60 words, and targets."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, int(n))) for n in rng.integers(5, 61, items)]
    return texts, rng.integers(0, 2, items)


def ours(model: str, texts: list[str], labels: np.ndarray, batch: int, device: str) -> float:
    """Seconds of one epoch through the recipe."""
    member = TransformerMember(
        2, model=model, epochs=1, batch_size=batch, patience=0, max_length=256, device=device
    )
    targets = np.eye(2)[labels]
    start = time.perf_counter()
    member.fit(Lesson(texts, lambda epoch: targets), seed=0)
    return time.perf_counter() - start


def plain(model: str, texts: list[str], labels: np.ndarray, batch: int, device: str) -> float:
    """Seconds of one epoch with a script as the library's documentation has it."""
    start = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForSequenceClassification.from_pretrained(model, num_labels=2)
    encoded = tokenizer(texts, truncation=True, max_length=256)
    rows: list[dict[str, Any]] = [
        {**{name: encoded[name][i] for name in encoded}, "labels": int(labels[i])}
        for i in range(len(texts))
    ]
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            network,
            TrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=batch,
                learning_rate=2e-5,
                warmup_steps=0,
                weight_decay=0.01,
                bf16=device == "cuda",
                use_cpu=device == "cpu",
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=rows,
            data_collator=DataCollatorWithPadding(tokenizer),
        ).train()
    return time.perf_counter() - start


def main() -> None:
    """Print items per second of both, best of several rounds in turn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    texts, labels = made_up(given.items)
    best = {"edo": float("inf"), "plain": float("inf")}
    for _ in range(given.rounds):
        for name, run in (("edo", ours), ("plain", plain)):
            best[name] = min(best[name], run(given.model, texts, labels, given.batch, given.device))
    rates = {name: given.items / found for name, found in best.items()}
    print("| | items per second | against the plain script |\n|---|---|---|")
    print(f"| recipe `transformer` | {rates['edo']:.0f} | {rates['edo'] / rates['plain']:.2f}× |")
    print(f"| plain Trainer script | {rates['plain']:.0f} | 1× |")
    if given.json:
        given.json.write_text(json.dumps({"items": given.items, "seconds": best}, indent=1))


if __name__ == "__main__":
    main()
