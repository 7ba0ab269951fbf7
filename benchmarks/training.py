"""Items per second of each recipe against a plain script at the same settings.

    python benchmarks/training.py linear --json linear.json
    python benchmarks/training.py encoder transformer --model FOLDER --json gpu.json
    python benchmarks/training.py encoder --model FOLDER --device cpu --rounds 1 --json cpu.json
    python benchmarks/training.py --write linear.json gpu.json cpu.json     # into RESULTS.md

Both sides learn from the same made-up texts, in turn, in one run. *linear* and *encoder* train ten
members, as a pool has; *transformer* fine-tunes one for an epoch (same batch, precision, learning
rate, dynamic padding; no adversarial step, no evaluation).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit.members.recipe import MemberData

if TYPE_CHECKING:
    from edokit import Annotations

WORDS = ("the", "a", "people", "say", "that", "this", "post", "is", "fine", "rude", "kind", "harsh")
POOL = 10
Run = Callable[[list[str], np.ndarray, argparse.Namespace], None]


def made_up(items: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of 5 to 60 words, some of them rare, and labels."""
    rng = np.random.default_rng(seed)
    rare = [f"{a}{b}" for a, b in product(WORDS, WORDS)]
    texts = []
    for length in rng.integers(5, 61, items):
        texts.append(" ".join([*rng.choice(WORDS, int(length)), *rng.choice(rare, 3)]))
    return texts, rng.integers(0, 2, items)


def shuffled(labels: np.ndarray, member: int) -> np.ndarray:
    """Labels that differ a little between members, as drawn annotators' do."""
    rng = np.random.default_rng(member)
    return np.where(rng.random(len(labels)) < 0.1, 1 - labels, labels)


def our_linear(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    from edokit.members.recipes.linear import LinearMember

    corpus = tuple(texts)
    for k in range(POOL):
        targets = np.eye(2)[shuffled(labels, k)]
        LinearMember(2).fit(
            MemberData(texts, lambda _, t=targets: t, corpus=corpus), random_state=k
        )


def plain_linear(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    """scikit-learn's pipeline, once per member."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    for k in range(POOL):
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True
        )
        model = LogisticRegression(C=5.0, solver="newton-cg", max_iter=2000)
        make_pipeline(make_union(words, characters), model).fit(texts, shuffled(labels, k))


DEV = 200
"""Items that *encoder* members predict once they are trained."""


def annotations_of(texts: list[str], labels: np.ndarray) -> Annotations:
    """Three annotators per text, who sometimes disagree with its label."""
    from edokit.rows import Rows

    n = len(texts)
    three = np.array(["a", "b", "c"])
    answers = np.stack([shuffled(labels, k) for k in range(3)], axis=1)
    # Not from a table: machines with a GPU may have no pyarrow.
    return Annotations(
        rows=Rows.from_names(range(n)),
        annotators=three.astype(object),
        classes=("0", "1"),
        item_codes=np.repeat(np.arange(n), 3),
        annotator_codes=np.tile(np.arange(3), n),
        label_codes=answers.ravel(),
        texts=np.array(texts, dtype=object),
        splits=np.array(["train"] * (n - DEV) + ["dev"] * DEV, dtype=object),
    )


def our_encoder(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    """`edo train`, from annotations to a folder of members and their predictions of dev."""
    import os

    from edokit.members import Group, train_members
    from edokit.members.recipes.encoder import _part_vectors

    with tempfile.TemporaryDirectory() as folder:
        # Nothing is remembered from the round before.
        os.environ["EDO_CACHE"] = f"{folder}/cache"
        _part_vectors.cache_clear()
        train_members(
            annotations_of([f"{text} {i}" for i, text in enumerate(texts)], labels),
            [Group("encoder", POOL, options={"model": given.model})],
            out=f"{folder}/members",
            device=given.device,
        )


def plain_encoder(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    """Texts embedded once as the mean of their tokens, and a regression per member.

    The members also predict dev.
    """
    import torch
    from sklearn.linear_model import LogisticRegression
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(given.model)
    network = AutoModel.from_pretrained(given.model).to(given.device).eval()
    rows = []
    with torch.no_grad():
        for start in range(0, len(texts), 64):
            batch = tokenizer(
                texts[start : start + 64], padding=True, truncation=True, return_tensors="pt"
            ).to(given.device)
            mask = batch["attention_mask"][..., None]
            hidden = network(**batch).last_hidden_state * mask
            rows.append((hidden.sum(1) / mask.sum(1)).float().cpu().numpy())
    vectors = np.concatenate(rows).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for k in range(POOL):
        model = LogisticRegression(C=5.0, solver="newton-cg", max_iter=2000)
        model.fit(vectors[:-DEV], shuffled(labels, k)[:-DEV])
        model.predict_proba(vectors[-DEV:])


def our_transformer(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    from edokit.members.recipes.transformer import TransformerMember

    member = TransformerMember(
        2,
        model=given.model,
        epochs=1,
        batch_size=given.batch,
        patience=0,
        max_length=256,
        device=given.device,
    )
    targets = np.eye(2)[labels]
    member.fit(MemberData(texts, lambda epoch: targets), random_state=0)


def plain_transformer(texts: list[str], labels: np.ndarray, given: argparse.Namespace) -> None:
    """A script as the library's documentation has it."""
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    tokenizer = AutoTokenizer.from_pretrained(given.model)
    network = AutoModelForSequenceClassification.from_pretrained(given.model, num_labels=2)
    encoded = tokenizer(texts, truncation=True, max_length=256)
    rows = []
    for i, label in enumerate(labels):
        row = {name: encoded[name][i] for name in encoded}
        row["labels"] = int(label)
        rows.append(row)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            network,
            TrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=given.batch,
                learning_rate=2e-5,
                warmup_steps=0,
                weight_decay=0.01,
                bf16=given.device == "cuda",
                use_cpu=given.device == "cpu",
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=rows,
            data_collator=DataCollatorWithPadding(tokenizer),
        ).train()


RECIPES: dict[str, tuple[Run, Run, str]] = {
    "linear": (our_linear, plain_linear, "TfidfVectorizer and LogisticRegression, ten times"),
    "encoder": (our_encoder, plain_encoder, "transformers, embedded once; LogisticRegression"),
    "transformer": (our_transformer, plain_transformer, "Hugging Face Trainer"),
}


def measure(recipe: str, given: argparse.Namespace) -> dict[str, Any]:
    """Items per second of both sides, the best of several rounds in turn."""
    n_texts = given.items
    trained_items = given.items * POOL
    device = given.device
    if recipe == "encoder":
        n_texts += DEV
    elif recipe == "transformer":
        trained_items = given.items
    else:
        device = "cpu"
    texts, labels = made_up(n_texts)
    best = [float("inf")] * 2
    for _ in range(given.rounds):
        for side, run in enumerate(RECIPES[recipe][:2]):
            start = time.perf_counter()
            run(texts, labels, given)
            best[side] = min(best[side], time.perf_counter() - start)
    return {
        "recipe": recipe,
        "items": given.items,
        "where": device_name(device),
        "edo": trained_items / best[0],
        "plain": trained_items / best[1],
    }


def device_name(device: str) -> str:
    """The device and the library that computes on it."""
    if device == "cuda":
        import torch

        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"processor, scikit-learn {version('scikit-learn')}"


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| recipe | where | items a second | plain script | times the plain script |"]
    lines.append("|---|---|---|---|---|")
    for row in rows:
        script = RECIPES[row["recipe"]][2]
        lines.append(
            f"| `{row['recipe']}` | {row['where']} | {row['edo']:,.0f} |"
            f" {row['plain']:,.0f} ({script}) | {row['edo'] / row['plain']:.2f} |"
        )
    return lines


def write(files: list[Path]) -> None:
    """Write the measurements in these files as a section of ``RESULTS.md``."""
    from results import write_section

    rows: list[dict[str, Any]] = []
    for file in files:
        rows += json.loads(file.read_text())
    recipes = list(dict.fromkeys(f"`{row['recipe']}`" for row in rows))
    verdict = f"reached by {', '.join(recipes)}"
    slower = []
    for row in rows:
        if row["edo"] < row["plain"]:
            slower.append(f"`{row['recipe']}` ({row['edo'] / row['plain']:.2f})")
    if slower:
        verdict = f"missed by {', '.join(slower)}"
    transformer = "one epoch of MPNet-base, batches of 16, bf16"
    if all(row["recipe"] != "transformer" for row in rows):
        transformer = "see *Training a pool on one GPU*"
    text = [
        "    python benchmarks/training.py linear --json linear.json",
        "    python benchmarks/training.py encoder transformer --model FOLDER --json gpu.json",
        "    python benchmarks/training.py encoder --model FOLDER --device cpu --rounds 1"
        " --json cpu.json",
        "",
        f"- No slower than a plain script: {verdict}.",
        "",
        f"Made-up texts ({rows[0]['items']:,}); *linear* and *encoder*: ten members, items counted"
        f" once for each; *transformer*: {transformer}. *encoder* is"
        f" all of `edo train` with {DEV} dev items to predict; its plain script embeds and predicts"
        " the same texts and writes nothing. Its regressions end at a tolerance of 1e-6, the"
        " plain script's at scikit-learn's 1e-4.",
        "",
        *table(rows),
    ]
    write_section("Training members (`training.py`)", "\n".join(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipes", nargs="*")
    parser.add_argument("--model")
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
        return
    if arguments.device is None and arguments.recipes != ["linear"]:
        import torch

        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = [measure(recipe, arguments) for recipe in arguments.recipes]
    print("\n".join(table(rows)))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
