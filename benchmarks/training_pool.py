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
from typing import Any

import numpy as np
from results import write_section

from edokit import read_annotations, train_members
from edokit.annotations.core import Annotations
from edokit.members import Group

BATCH = 16
MAX_LENGTH = 256


def edo_pool(annotations: Annotations, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train members with `train_members`."""
    options = {
        "model": arguments.model,
        "epochs": arguments.epochs,
        "patience": 0,
        "batch_size": BATCH,
        "max_length": MAX_LENGTH,
    }
    group = Group("transformer", arguments.members, "pool", "soft", options=options)
    how = {"jobs": arguments.jobs, "device": arguments.device, "keep_models": False}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        train_members(annotations, [group], out=folder, **how)
        seconds = time.perf_counter() - started
        cards = sorted(Path(folder).glob("members/*/member.json"))
        dev_ce = [json.loads(card.read_text())["history"][-1]["dev_ce"] for card in cards]
    return {"seconds": seconds, "members": arguments.members, "dev_ce": dev_ce}


def plain_pool(annotations: Annotations, arguments: argparse.Namespace) -> dict[str, Any]:
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
            return (loss, outputs) if return_outputs else loss

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)

    def tokenized(split: str) -> list[dict[str, Any]]:
        part = annotations.split(split)
        columns = [list(map(str, part.texts))]
        if part.contexts is not None:
            columns.append(list(map(str, part.contexts)))
        tokens = tokenizer(*columns, truncation=True, max_length=MAX_LENGTH)
        labels = np.asarray(part.soft_labels, dtype=np.float32).tolist()
        return [
            {**{name: tokens[name][i] for name in tokens}, "labels": labels[i]}
            for i in range(len(labels))
        ]

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
    return {"seconds": seconds, "members": arguments.plain_members, "dev_ce": dev_ce}


def section(records: list[dict[str, Any]]) -> str:
    """Both pools by dataset, as a section of ``RESULTS.md``."""
    plain = {record["dataset"]: record["plain"] for record in records if "plain" in record}
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
        for name in ("plain", "edo"):
            if name not in record:
                continue
            pool = record[name]
            label = "plain script, one by one" if name == "plain" else "`edo train`"
            label += " with MPS" if record["mps"] else ""
            ratio = pool["items_per_second"] / plain[record["dataset"]]["items_per_second"]
            lines.append(
                f"| {record['dataset']} | {label} | {pool['members']} |"
                f" {pool['items_per_second']:,.0f} | {ratio:.2f} |"
                f" {pool['dev_ce']:.4f} ({pool['sd']:.4f}) |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure both pools on one dataset, or write what was measured to ``RESULTS.md``."""
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
        losses = pool.pop("dev_ce")
        trained = items * arguments.epochs * pool["members"]
        record[name] = {
            **pool,
            "items_per_second": trained / pool["seconds"],
            "dev_ce": float(np.mean(losses)),
            "sd": float(np.std(losses, ddof=1)),
        }
    with arguments.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
