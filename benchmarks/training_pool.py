"""A pool of transformers on one GPU, against a plain script that trains them one by one.

    python benchmarks/training_pool.py --data ../shared --prepare PLANS   # texts and settings
    python benchmarks/training_pool.py --plans PLANS --model FOLDER --jobs 1 4 --json pool.json
    nvidia-cuda-mps-control -d                                            # and once more with MPS
    python benchmarks/training_pool.py --plans PLANS --model FOLDER --jobs 4 --json pool.json
    python benchmarks/training_pool.py --write pool.json                  # into RESULTS.md

The file keeps what was measured before, so that several runs can share the work.

HS-Brexit has short texts, CSC pairs. The plain script is what the documentation of Hugging Face's
Trainer shows: DataCollatorWithPadding, bf16, the loss to soft labels; it evaluates every epoch, as
EDO does. EDO trains as `edo train --jobs N` does. Both read the same texts in batches of 16.
Neither saves its models.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edokit.members.jobs import Plan, read_card
from edokit.members.train import train_plan

BAR = 2.0  # times the plain script's throughput
BATCH, LONGEST = 16, 256
# Task, epochs, members of EDO, members of the plain script (one after the other: its pace is the
# same for any number).
POOLS = {"HS-Brexit": ("lewidi2023", 6, 10, 3), "CSC": ("lewidi2025", 1, 8, 2)}
MPS = " with MPS"


def prepare(data: Path, out: Path) -> None:
    """Write the plans of both pools: what they train on, and how."""
    import zipfile

    from edokit.members import Group
    from edokit.members.train import prepare_training

    sys.path.append(str(Path(__file__).parent / "lewidi"))
    from tasks import load_task

    for name, (task, epochs, members, _) in POOLS.items():
        with tempfile.TemporaryDirectory() as folder:
            root = data / task
            if (zipped := root / f"{task}.zip").is_file():
                zipfile.ZipFile(zipped).extractall(folder)
                root = Path(folder) / task
            found = load_task(task).read(root, name)
        kept = np.isin(np.array(found.annotations.splits), ("train", "dev"))
        given = {"epochs": epochs, "patience": 0, "batch_size": BATCH, "max_length": LONGEST}
        group = Group("transformer", members, "pool", "soft", options={**given, "model": "model"})
        annotations = found.annotations.take(np.flatnonzero(kept))
        prepare_training(annotations, [group], out=out / name, pairs=found.pairs, overwrite=True)


class Gpu:
    """How busy the GPU is, and the most memory in use, as nvidia-smi samples them."""

    def __enter__(self) -> Gpu:
        what = "--query-gpu=utilization.gpu,memory.used"
        how = ("--format=csv,noheader,nounits", "-lms", "250")
        self.process: Any = None
        with suppress(OSError):
            self.process = subprocess.Popen(
                ["nvidia-smi", what, *how], stdout=subprocess.PIPE, text=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.busy = self.gigabytes = None
        if self.process is not None:
            self.process.terminate()
            lines = self.process.communicate()[0].splitlines()
            rows = [[float(x) for x in line.split(",")] for line in lines if line.count(",") == 1]
            if rows:
                self.busy = float(np.mean([row[0] for row in rows])) / 100
                self.gigabytes = max(row[1] for row in rows) / 1024


def mps_runs() -> bool:
    """Whether NVIDIA's MPS daemon is there, which runs kernels of several processes at once."""
    with suppress(OSError, subprocess.TimeoutExpired):
        ask = ["nvidia-cuda-mps-control"]
        quiet = subprocess.DEVNULL
        asked = subprocess.run(
            ask, input=b"get_server_list\n", stdout=quiet, stderr=quiet, timeout=20, check=False
        )
        return asked.returncode == 0
    return False


def our_pool(plan: Plan, device: str, jobs: int) -> dict[str, Any]:
    """Members through `train_plan`, so many at a time."""
    with tempfile.TemporaryDirectory() as out:
        with Gpu() as gpu:
            clock = time.perf_counter()
            failed = train_plan(plan, Path(out), jobs=jobs, device=device, keep_models=False)
            seconds = time.perf_counter() - clock
        if failed:
            raise SystemExit(str(failed[0].reason))
        cards: list[Any] = [read_card(Path(out) / job.folder) for job in plan.jobs]
    return {
        "seconds": seconds,
        "members": len(cards),
        "seen": sum(card["items"] * len(card["history"]) for card in cards),
        "busy": gpu.busy,
        "gigabytes": gpu.gigabytes,
        "dev_ce": [card["history"][-1]["dev_ce"] for card in cards],
    }


def plain_pool(plan: Plan, model: str, device: str, members: int) -> dict[str, Any]:
    """One member after the other with Hugging Face's Trainer."""
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

    dev_ce, seen = [], 0
    with Gpu() as gpu:
        clock = time.perf_counter()
        for job in plan.jobs[:members]:
            set_seed(job.seed)
            tokenizer = AutoTokenizer.from_pretrained(model)
            network = AutoModelForSequenceClassification.from_pretrained(
                model, num_labels=len(plan.data.classes)
            )
            rows = plan.rows(job)
            parts = []
            for positions in (np.setdiff1d(rows.train, rows.stop), rows.stop):
                part = plan.data.take(positions)
                texts = [[text] if isinstance(text, str) else list(text) for text in part.texts]
                columns = map(list, zip(*texts, strict=True))
                most = min(LONGEST, tokenizer.model_max_length)
                read = tokenizer(*columns, truncation=True, max_length=most)
                labels = np.asarray(part.soft_labels, dtype=np.float32).tolist()
                parts.append(
                    [
                        {**{name: read[name][i] for name in read}, "labels": labels[i]}
                        for i in range(len(labels))
                    ]
                )
            epochs = job.options["epochs"]
            with tempfile.TemporaryDirectory() as folder:
                trainer = SoftTrainer(
                    network,
                    TrainingArguments(
                        output_dir=folder,
                        num_train_epochs=epochs,
                        per_device_train_batch_size=BATCH,
                        per_device_eval_batch_size=32,
                        learning_rate=2e-5,
                        warmup_steps=len(parts[0]) * epochs // BATCH // 10,
                        weight_decay=0.01,
                        bf16=device == "cuda",
                        use_cpu=device == "cpu",
                        eval_strategy="epoch",
                        save_strategy="no",
                        report_to="none",
                        disable_tqdm=True,
                        seed=job.seed,
                    ),
                    train_dataset=parts[0],
                    eval_dataset=parts[1],
                    data_collator=DataCollatorWithPadding(tokenizer),
                )
                trainer.train()
            found = [one["eval_loss"] for one in trainer.state.log_history if "eval_loss" in one]
            dev_ce.append(found[-1])
            seen += len(parts[0]) * epochs
        seconds = time.perf_counter() - clock
    how = {"seconds": seconds, "members": members, "seen": seen, "dev_ce": dev_ce}
    return {**how, "busy": gpu.busy, "gigabytes": gpu.gigabytes}


def padding(plan: Plan, model: str) -> dict[str, float]:
    """Share of padding in batches by length, and in batches as they come."""
    from edokit.members.recipes._tokens import batches_by_length
    from edokit.members.recipes.transformer import TransformerMember

    reader = TransformerMember(2, model=model, max_length=LONGEST).reader(model)
    tokens = reader(plan.data.take(plan.rows(plan.jobs[0]).train).texts)
    lengths = np.array([len(text.ids) for text in tokens])
    rng = np.random.default_rng(0)
    order = rng.permutation(len(lengths))
    orders = {
        "by length": batches_by_length(lengths, BATCH, rng),
        "as they come": [order[i : i + BATCH] for i in range(0, len(order), BATCH)],
    }
    shares = {"tokens": float(lengths.mean())}
    for name, batches in orders.items():
        size = sum(reader.padded([tokens[i] for i in b])["input_ids"].size for b in batches)
        shares[name] = 1 - lengths.sum() / size
    return shares


def measure(options: argparse.Namespace) -> None:
    """Both sides of every pool that the file does not hold yet."""
    import torch

    results: dict[str, Any] = {"pools": {}}
    if options.json.is_file():
        results = json.loads(options.json.read_text())
    gpu = torch.cuda.get_device_name() if options.device == "cuda" else "processor"
    results["where"] = f"{gpu}, torch {torch.__version__}"
    mps = MPS if mps_runs() else ""
    for pool in options.pools:
        parts = results["pools"].setdefault(pool, {})
        plan = Plan.load(options.plans / pool)
        plan = Plan(
            plan.data,
            tuple(
                replace(job, options={**job.options, "model": options.model}) for job in plan.jobs
            ),
            plan.folds,
        )
        if "plain" not in parts:
            parts["plain"] = plain_pool(plan, options.model, options.device, POOLS[pool][3])
            parts["padding"] = padding(plan, options.model)
        for jobs in options.jobs:
            if (name := f"{jobs} at a time{mps}") not in parts:
                parts[name] = our_pool(plan, options.device, jobs)
            print(pool, name, rate(parts[name]) / rate(parts["plain"]), flush=True)
            options.json.write_text(json.dumps(results, indent=1))


def write(file: Path) -> None:
    """The section of RESULTS.md."""
    from results import write_section

    results = json.loads(file.read_text())
    lines, verdicts = [], []
    for pool, parts in results["pools"].items():
        plain, shares = parts["plain"], parts["padding"]
        pools = {name: part for name, part in parts.items() if "at a time" in name}
        times = max(rate(part) for name, part in pools.items() if MPS not in name) / rate(plain)
        verdicts.append(f"{pool} {times:.2f} times, {'reached' if times >= BAR else 'missed'}")
        lines += ["", f"### {pool}", "", *table({"plain script": plain, **pools}), ""]
        lines += [quality(plain, list(pools.values())), ""]
        lines += [
            f"{shares['tokens']:.0f} tokens a text; padding is {100 * shares['by length']:.0f} % of"
            f" a batch by length, {100 * shares['as they come']:.0f} % in the order of the texts.",
        ]
    text = [
        "    python benchmarks/training_pool.py --data ../shared --prepare PLANS",
        "    python benchmarks/training_pool.py --plans PLANS --model FOLDER --jobs 1 4"
        " --json pool.json",
        "",
        f"- At least {BAR:g} times the throughput of members trained one after the other with a"
        f" plain Hugging Face Trainer script: {'; '.join(verdicts)}.",
        "",
        f"{results['where']}. all-mpnet-base-v2, its matrices rounded to 8 bits on the way to the"
        f" machine (so that its CE is for comparing the rows alone), batches of {BATCH}, at most"
        f" {LONGEST} tokens, bf16. Both sides evaluate on dev after every epoch, and their seconds"
        " include tokenising, the loading of weights and, of EDO, the start of its processes and"
        " the predictions of dev. MPS is NVIDIA's daemon (`nvidia-cuda-mps-control -d`) that lets"
        " kernels of several processes run at the same time.",
        "",
        "Dev CE is that of the last epoch on both sides, which share learning rate (2e-5, warm-up"
        " over a tenth, then linear to 0), epochs, batch size, clipping and soft labels. They"
        " differ in the classifier (the plain script's: MPNet's own, a dense layer on the first"
        " token; EDO's: one layer on the mean of all tokens, which begins at the shares of the"
        " classes), in the order of texts (EDO: batches by length) and in weight decay (0.01, and"
        " drawn in 0.005 to 0.015). Which of these makes the difference was not measured.",
        *lines,
    ]
    write_section("Training a pool on one GPU (`training_pool.py`)", "\n".join(text))


def rate(part: dict[str, Any]) -> float:
    return float(part["seen"] / part["seconds"])


def table(parts: dict[str, dict[str, Any]]) -> list[str]:
    """The rows of one pool as Markdown; the plain script's comes before the others."""
    lines = [
        "| | members | items a second | times the plain script | GPU busy | memory | dev CE of"
        " members (sd) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, part in parts.items():
        busy = "–" if part["busy"] is None else f"{100 * part['busy']:.0f} %"
        memory = "–" if part["gigabytes"] is None else f"{part['gigabytes']:.0f} GiB"
        spread = np.std(part["dev_ce"], ddof=1) if len(part["dev_ce"]) > 1 else 0.0
        times = rate(part) / rate(parts["plain script"])
        lines.append(
            f"| {name} | {part['members']} | {rate(part):,.0f} | {times:.2f} |"
            f" {busy} | {memory} | {np.mean(part['dev_ce']):.4f} ({spread:.4f}) |"
        )
    return lines


def quality(plain: dict[str, Any], pools: Sequence[dict[str, Any]]) -> str:
    """Whether members are as good as the plain script's, and the same however they are trained."""
    ours, theirs = np.array(pools[0]["dev_ce"]), np.array(plain["dev_ce"])
    difference = ours.mean() - theirs.mean()
    error = np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    largest = max(float(np.abs(np.array(part["dev_ce"]) - ours).max()) for part in pools)
    return (
        f"Dev CE minus the plain script's: {difference:+.4f} (standard error {error:.4f}, over"
        " seeds). A member's dev CE is the same in all pools of EDO"
        + (f" but for {largest:.4f} at most." if largest else ", to the last digit.")
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--prepare", type=Path)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 4], help="Members at a time.")
    parser.add_argument("--pools", nargs="+", default=list(POOLS))
    parser.add_argument("--json", type=Path, default=Path("pool.json"))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    if options.write:
        write(options.write)
    elif options.prepare:
        prepare(options.data, options.prepare)
    else:
        measure(options)


if __name__ == "__main__":
    main()
