"""A pool of transformers on one GPU, against a plain script that trains them one by one.

    python benchmarks/training_pool.py DATA --model FOLDER --json FILE   # a line a measurement
    python benchmarks/training_pool.py --json FILE                       # writes RESULTS.md

DATA is any source of annotations with texts and splits. The plain script is what the documentation
of Hugging Face's Trainer shows: DataCollatorWithPadding, bf16, a loss to soft labels; as EDO, it
evaluates every epoch. EDO trains as `edo train` does, which chooses how many members train at a
time. Both read the same texts in batches of 16. Neither keeps its models.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import write_section

from edokit import read_annotations, train_members
from edokit.annotations.core import Annotations
from edokit.members import Group

BATCH = 16
MAX_LENGTH = 256


class TrainedPool(NamedTuple):
    """What the training of a pool took, and the CE of its members on dev."""

    seconds: float
    members: int
    dev_ce: list[float]


def edo_pool(annotations: Annotations, arguments: argparse.Namespace) -> TrainedPool:
    """Train members with `train_members`."""
    options = {
        "model": arguments.model,
        "epochs": arguments.epochs,
        "patience": 0,
        "batch_size": BATCH,
        "max_length": MAX_LENGTH,
    }
    group = Group("transformer", arguments.members, "pool", "soft", options=options)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        train_members(
            annotations,
            [group],
            out=folder,
            jobs=arguments.jobs,
            device=arguments.device,
            keep_models=False,
        )
        seconds = time.perf_counter() - started
        cards = sorted(Path(folder).glob("members/*/member.json"))
        dev_ce = [json.loads(card.read_text())["history"][-1]["dev_ce"] for card in cards]
    return TrainedPool(seconds, arguments.members, dev_ce)


def plain_pool(annotations: Annotations, arguments: argparse.Namespace) -> TrainedPool:
    """Train members one after the other with Hugging Face's Trainer."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    class SoftTrainer(Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any):
            labels = inputs.pop("labels")
            outputs = model(**inputs)
            loss = -(labels * torch.log_softmax(outputs.logits.float(), dim=-1)).sum(-1).mean()
            if return_outputs:
                return loss, outputs
            return loss

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)

    def tokenized(split: str) -> list[dict[str, Any]]:
        part = annotations.split(split)
        columns = [list(map(str, part.texts))]
        if part.contexts is not None:
            columns.append(list(map(str, part.contexts)))
        tokens = tokenizer(*columns, truncation=True, max_length=MAX_LENGTH)
        labels = np.asarray(part.soft_labels, dtype=np.float32).tolist()
        rows = []
        for i, label in enumerate(labels):
            row = {name: tokens[name][i] for name in tokens}
            row["labels"] = label
            rows.append(row)
        return rows

    dev_ce = []
    started = time.perf_counter()
    for seed in range(arguments.plain_members):
        set_seed(seed)
        network = AutoModelForSequenceClassification.from_pretrained(
            arguments.model, num_labels=len(annotations.classes)
        )
        train = tokenized("train")
        with tempfile.TemporaryDirectory() as folder:
            trainer = SoftTrainer(
                network,
                TrainingArguments(
                    output_dir=folder,
                    num_train_epochs=arguments.epochs,
                    per_device_train_batch_size=BATCH,
                    per_device_eval_batch_size=32,
                    learning_rate=2e-5,
                    warmup_steps=len(train) * arguments.epochs // BATCH // 10,
                    weight_decay=0.01,
                    bf16=arguments.device == "cuda",
                    use_cpu=arguments.device == "cpu",
                    eval_strategy="epoch",
                    save_strategy="no",
                    report_to="none",
                    disable_tqdm=True,
                    seed=seed,
                ),
                train_dataset=train,
                eval_dataset=tokenized("dev"),
                data_collator=DataCollatorWithPadding(tokenizer),
            )
            trainer.train()
        losses = [log["eval_loss"] for log in trainer.state.log_history if "eval_loss" in log]
        dev_ce.append(losses[-1])
    seconds = time.perf_counter() - started
    return TrainedPool(seconds, arguments.plain_members, dev_ce)


TITLES = {"plain": "plain script, one by one", "edo": "`edo train`"}


def section(records: list[dict[str, Any]]) -> str:
    """Both pools by dataset, as a section of ``RESULTS.md``."""
    plain_rates = {}
    for record in records:
        if "plain" in record:
            plain_rates[record["dataset"]] = record["plain"]["items_per_second"]
    lines = ["    python benchmarks/training_pool.py DATA --model FOLDER --json FILE", ""]
    lines += [
        "One GPU (NVIDIA H200); weights of MPNet-base's size drawn at random, since speed does not"
        " depend on them, and their CE is for comparing the two rows alone. Batches of 16, at most"
        " 256 tokens, bf16; both sides evaluate on dev after every epoch. Seconds include"
        " tokenising, loading of weights and the start of processes. MPS is NVIDIA's daemon that"
        " lets kernels of several processes run at the same time.",
        "",
        "| dataset | | members | items a second | times the plain script | dev CE (sd) |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        for name, title in TITLES.items():
            if name not in record:
                continue
            pool = record[name]
            if record["mps"]:
                title += " with MPS"
            ratio = pool["items_per_second"] / plain_rates[record["dataset"]]
            lines.append(
                f"| {record['dataset']} | {title} | {pool['members']} |"
                f" {pool['items_per_second']:,.0f} | {ratio:.2f} |"
                f" {pool['dev_ce']:.4f} ({pool['sd']:.4f}) |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure both pools on one dataset, or write the measurements to ``RESULTS.md``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", help="left out: write RESULTS.md")
    parser.add_argument("--model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, help="Members at a time.")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--plain-members", type=int, default=3, help="0 leaves the script out.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--mps", action="store_true", help="NVIDIA's MPS daemon is running.")
    parser.add_argument("--json", type=Path, required=True, help="one line a measurement")
    arguments = parser.parse_args()
    if arguments.data is None:
        records = [json.loads(line) for line in arguments.json.read_text().splitlines()]
        write_section("Training a pool on one GPU (`training_pool.py`)", section(records))
        return
    annotations = read_annotations(arguments.data)
    items = len(annotations.split("train").items)
    record: dict[str, Any] = {"dataset": arguments.data.name, "mps": arguments.mps}
    for name, train in (("plain", plain_pool), ("edo", edo_pool)):
        if name == "plain" and not arguments.plain_members:
            continue
        pool = train(annotations, arguments)
        record[name] = {
            "seconds": pool.seconds,
            "members": pool.members,
            "items_per_second": items * arguments.epochs * pool.members / pool.seconds,
            "dev_ce": float(np.mean(pool.dev_ce)),
            "sd": float(np.std(pool.dev_ce, ddof=1)),
        }
    with arguments.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
