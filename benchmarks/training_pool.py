"""A pool of transformers on one GPU, against a plain script that trains them one by one.

    python benchmarks/training_pool.py DATA --model FOLDER

DATA is any source of annotations with texts and splits. The plain script is what the documentation
of Hugging Face's Trainer shows: DataCollatorWithPadding, bf16, a loss to soft labels; as EDO, it
evaluates every epoch. EDO trains as `edo train` does, which chooses how many members train at a
time. Both read the same texts in batches of 16. Neither keeps its models.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from edokit import read_annotations, train_members
from edokit.annotations import Annotations
from edokit.members import Group

BATCH, MAX_LENGTH = 16, 256


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
    started = time.perf_counter()
    trained = train_members(annotations, [group], jobs=arguments.jobs, device=arguments.device)
    return {
        "seconds": time.perf_counter() - started,
        "members": arguments.members,
        "dev_ce": [m["history"][-1]["dev_ce"] for m in trained.manifest["members"]],
    }


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


def main() -> None:
    """Print a table of both pools."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, help="Members at a time.")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--plain-members", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    annotations = read_annotations(arguments.data)
    pools = {
        "plain script, one after the other": plain_pool(annotations, arguments),
        "`edo train`": edo_pool(annotations, arguments),
    }
    print("| | members | seconds a member | dev CE of members (sd) |\n|---|---|---|---|")
    for name, pool in pools.items():
        seconds, losses = pool["seconds"] / pool["members"], pool["dev_ce"]
        spread = f"{np.mean(losses):.4f} ({np.std(losses, ddof=1):.4f})"
        print(f"| {name} | {pool['members']} | {seconds:.1f} | {spread} |")


if __name__ == "__main__":
    main()
