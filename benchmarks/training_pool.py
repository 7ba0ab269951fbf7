"""A pool of transformers on one GPU, against a plain script that trains them one by one.

    python benchmarks/training_pool.py --data ../shared --prepare PLANS   # texts and settings
    python benchmarks/training_pool.py --plans PLANS --model FOLDER --json pool.json
    nvidia-cuda-mps-control -d                                            # and once more with MPS
    python benchmarks/training_pool.py --plans PLANS --model FOLDER --json pool.json --parts edo
    python benchmarks/training_pool.py --write pool.json                  # into RESULTS.md

What the file holds already is not measured again, so that --parts, --ways and --seconds can share
the work among several runs.

HS-Brexit has short texts, CSC pairs. The plain script is what the documentation of Hugging Face's
Trainer shows: DataCollatorWithPadding, bf16, the loss to soft labels; it evaluates every epoch, as
EDO does. EDO trains as `edo train` does, which chooses how many members train at once. Both read
the same texts in batches of 16. Neither saves its models.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from edokit.members import engine
from edokit.members.jobs import Plan, member_data, read_card
from edokit.members.recipe import make_member
from edokit.members.train import train_plan

BAR = 2.0  # times the plain script's throughput
BATCH, LONGEST = 16, 256
# Task, epochs, members of EDO, members of the plain script (one after the other: its pace is the
# same for any number).
POOLS = {"HS-Brexit": ("lewidi2023", 6, 10, 3), "CSC": ("lewidi2025", 1, 8, 2)}
PARTS = ("plain", "edo", "compile", "one", "profile")
MPS = " with MPS"
WAYS = {"usual": False, "recorded": True}
"""The passes of a step launched kernel by kernel, or recorded and replayed (cuda_graphs)."""


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


def tuned(plan: Plan, given: argparse.Namespace, **options: Any) -> Plan:
    """The plan with this model and further options."""
    more = {"model": given.model, **options}
    jobs = tuple(replace(job, options={**job.options, **more}) for job in plan.jobs)
    return Plan(plan.data, jobs, plan.folds)


def our_pool(plan: Plan, given: argparse.Namespace, way: str) -> dict[str, Any]:
    """Members through `train_plan`, which chooses how many train at once."""
    plan = tuned(plan, given, cuda_graphs=WAYS[way])
    stages: list[dict[str, float]] = []
    update = engine.Pace.update

    def note(self: engine.Pace, reports: Any, room: Any) -> bool:
        before = self.now
        decided = update(self, reports, room)
        if decided:
            rate = sum(one["items_per_second"] for one in reports.values())
            began = max(one["began"] for one in reports.values()) - start
            stages.append({"members": before, "rate": rate, "began": began, "chosen": self.now})
        return decided

    with tempfile.TemporaryDirectory() as out, patch.object(engine.Pace, "update", note):
        with Gpu() as gpu:
            start, clock = time.time(), time.perf_counter()
            device = given.device
            failed = train_plan(plan, Path(out), jobs=given.jobs, device=device, keep_models=False)
            seconds = time.perf_counter() - clock
        if failed:
            raise SystemExit(str(failed[0].reason))
        cards: list[Any] = [read_card(Path(out) / job.folder) for job in plan.jobs]
    return {
        "seconds": seconds,
        "members": len(cards),
        "seen": sum(card["items"] * len(card["history"]) for card in cards),
        "stages": stages,
        "busy": gpu.busy,
        "gigabytes": gpu.gigabytes,
        "dev_ce": [card["history"][-1]["dev_ce"] for card in cards],
        "notes": sorted({note for card in cards for note in card["notes"]})[:5],
    }


def plain_pool(plan: Plan, given: argparse.Namespace, members: int) -> dict[str, Any]:
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
            tokenizer = AutoTokenizer.from_pretrained(given.model)
            network = AutoModelForSequenceClassification.from_pretrained(
                given.model, num_labels=len(plan.data.classes)
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
                        bf16=given.device == "cuda",
                        use_cpu=given.device == "cpu",
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


@contextmanager
def timed(spent: Counter[str]) -> Iterator[None]:
    """Add up the host's seconds in the parts of a training."""
    import torch

    from edokit.members.recipes import _tokens, _trainer

    open_parts: list[str] = []

    def wrapped(name: str, function: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            open_parts.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                open_parts.pop()
                took = time.perf_counter() - start
                spent[name] += took
                if open_parts:  # each second counts once
                    spent[open_parts[-1]] -= took

        return call

    with ExitStack() as stack:
        for owner, attribute, name in (
            (_trainer, "load_backbone", "loading weights"),
            (_tokens.Reader, "__call__", "tokenising"),
            (_tokens.EpochBatches, "arrays", "batches"),
            (_trainer, "on_device", "batches"),
            (_trainer.MemberTrainer, "training_step", "forward and backward"),
            (_trainer.MemberTrainer, "_clip_grad_norm", "clipping gradients"),
            (torch.optim.AdamW, "step", "optimizer"),
            (_trainer._Attempt, "evaluate", "evaluation"),
            (_trainer, "_copy_of_weights", "keeping the best weights"),
            (_trainer.MemberTrainer, "train", "Trainer's own"),
        ):
            if hasattr(owner, attribute):
                function = wrapped(name, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, function))
        yield


def fit_one(plan: Plan, given: argparse.Namespace, progress: Any = None, **options: Any) -> Any:
    """One member, fitted in this process."""
    job = tuned(plan, given, **options).jobs[0]
    rows, data = plan.rows(job), plan.data
    own = member_data(
        data.take(np.setdiff1d(rows.train, rows.stop)), job, data.take(rows.stop), given.tokens
    )
    member = make_member(job.recipe, len(data.classes), job.options, given.device)
    return member.fit(own, random_state=job.seed, progress=progress)


def one_member(plan: Plan, given: argparse.Namespace, way: str) -> dict[str, Any]:
    """Where the seconds of one member go, and how busy it keeps the GPU."""
    spent: Counter[str] = Counter()
    events: list[dict[str, Any]] = []
    with Gpu() as gpu, timed(spent):
        start = time.perf_counter()
        fitted = fit_one(plan, given, events.append, cuda_graphs=WAYS[way])
        seconds = time.perf_counter() - start
    spent["other"] = seconds - sum(spent.values())
    rates = [event["items_per_second"] for event in events if "items_per_second" in event]
    return {
        "way": way,
        "seconds": seconds,
        "spent": dict(spent),
        "steady": float(np.median(rates[1:] or rates or [float("nan")])),
        "busy": gpu.busy,
        "losses": [one["loss"] for one in fitted.history_],
        "dev_ce": [one["dev_ce"] for one in fitted.history_],
    }


def profile(plan: Plan, given: argparse.Namespace, way: str) -> dict[str, Any]:
    """Seconds of kernels in a step, by kind, and of the step without the profiler."""
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    from edokit.members.recipes import _trainer

    first, last, at = 64, 80, [0]
    half = (first + last) // 2
    watch: Any = profiler(activities=[ProfilerActivity.CUDA])
    step = _trainer.MemberTrainer.training_step
    clocks: dict[int, float] = {}

    class Enough(Exception):
        """All steps that count were taken."""

    def counted(self: Any, *rest: Any) -> Any:
        at[0] += 1
        if at[0] in (first, half, last):
            torch.cuda.synchronize()
            clocks[at[0]] = time.perf_counter()
        if at[0] == half:
            watch.__enter__()
        if at[0] == last:
            watch.__exit__(None, None, None)
            raise Enough
        return step(self, *rest)

    with patch.object(_trainer.MemberTrainer, "training_step", counted), suppress(Enough):
        fit_one(plan, given, cuda_graphs=WAYS[way])
    kinds: Counter[str] = Counter()
    names: Counter[str] = Counter()
    count = 0
    for event in watch.key_averages():
        milliseconds = event.self_device_time_total / 1000 / (last - half)
        if milliseconds:
            count += event.count
            names[event.key[:80]] += milliseconds
            kinds[kind_of(event.key)] += milliseconds
    return {
        "way": way,
        "step": (clocks[half] - clocks[first]) / (half - first) * 1000,
        "kernels": dict(kinds),
        "launches": count / (last - half),
        "longest": dict(names.most_common(12)),
    }


def kind_of(kernel: str) -> str:
    name = kernel.lower()
    for kind, words in (
        ("matrix products", ("gemm", "nvjet", "cutlass", "cublas", "splitk")),
        ("optimizer and clipping", ("adam", "multi_tensor", "lpnorm", "foreach")),
        ("softmax, norms and dropout", ("softmax", "layer_norm", "layernorm", "dropout")),
        ("copies", ("memcpy", "memset", "copy")),
    ):
        if any(word in name for word in words):
            return kind
    return "other"


def steps(plan: Plan, given: argparse.Namespace, compiles: bool) -> dict[str, Any]:
    """Seconds of the steps of one member; compiled, of another one after it in the process too.

    torch.compile compiles the encoder for training alone, for any length: one graph and its
    gradient. After ``--compile-seconds`` a member ends, wherever it is.
    """
    import torch

    from edokit.members.recipes import _trainer

    load, step = _trainer.load_backbone, _trainer.MemberTrainer.training_step
    took, late = list[float](), list[int]()

    def load_compiled(model: str) -> Any:
        backbone = load(model)
        backbone.compile(dynamic=True)
        return backbone

    def timed_step(self: Any, *rest: Any) -> Any:
        if late:
            raise TimeoutError
        start = time.perf_counter()
        with torch.compiler.set_stance("default"):
            loss = step(self, *rest)
        if self.attempt.device.type == "cuda":
            torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
        return loss

    def over(number: int, _: Any) -> None:
        late.append(number)
        raise TimeoutError  # the compiler may catch it; the next step does not

    def member() -> dict[str, Any]:
        took.clear()
        clock = time.perf_counter()
        before = signal.signal(signal.SIGALRM, over)
        signal.alarm(given.compile_seconds)
        try:
            with torch.compiler.set_stance("force_eager"):  # but for the steps
                fit_one(plan, given)
        except Exception:  # perhaps another one, that the compiler made of ours
            if not late:
                raise
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        seconds = time.perf_counter() - clock
        usual = float(np.median(took[len(took) // 2 :] or [0.0]))
        found = {"finished": not late, "seconds": seconds, "steps": len(took), "step": usual}
        return {**found, "extra": sum(took) - len(took) * usual, "longest": sorted(took)[-5:]}

    with ExitStack() as stack:
        stack.enter_context(patch.object(_trainer.MemberTrainer, "training_step", timed_step))
        if compiles:
            stack.enter_context(patch.object(_trainer, "load_backbone", load_compiled))
        found = member()
        if compiles:
            found["graphs"] = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            found["again"] = member() if found["finished"] else None
            torch._dynamo.reset()
    return found


def padding(plan: Plan, given: argparse.Namespace) -> dict[str, float]:
    """Share of padding in batches by length, and in batches as they come."""
    from edokit.members.recipes._tokens import batches_by_length, padded

    tokens = [given.tokens[text] for text in plan.data.take(plan.rows(plan.jobs[0]).train).texts]
    lengths = np.array([len(one.ids) for one in tokens])
    rng = np.random.default_rng(0)
    order = rng.permutation(len(lengths))
    ways = {
        "by length": batches_by_length(lengths, BATCH, rng),
        "as they come": [order[i : i + BATCH] for i in range(0, len(order), BATCH)],
    }
    found = {"tokens": float(lengths.mean()), "longest": float(lengths.max())}
    for name, batches in ways.items():
        size = sum(padded([tokens[i] for i in b], 0, LONGEST)["input_ids"].size for b in batches)
        found[name] = 1 - lengths.sum() / size
    return found


def measure(given: argparse.Namespace) -> None:
    """All parts, those that matter most first; the file holds what there is so far."""
    import torch

    from edokit.members.recipes.transformer import TransformerMember

    results: dict[str, Any] = {"pools": {}}
    if given.json.is_file():
        results = json.loads(given.json.read_text())
    name = torch.cuda.get_device_name() if given.device == "cuda" else "processor"
    results["where"] = f"{name}, torch {torch.__version__}"

    def keep(pool: str, part: str, found: Any) -> None:
        results["pools"].setdefault(pool, {})[part] = found
        given.json.write_text(json.dumps(results, indent=1))
        print(pool, part, json.dumps(found)[:600], flush=True)

    for part in given.parts:
        for pool in given.pools:
            plan = Plan.load(given.plans / pool)
            given.tokens = TransformerMember.prepare(
                plan.data.texts, {"model": given.model, "max_length": LONGEST}
            )
            for name, run in parts_of(part, pool, given.ways):
                if "error" not in results["pools"].get(pool, {}).get(name, {"error": "missing"}):
                    continue
                if time.time() > given.until:
                    return
                try:
                    keep(pool, name, run(plan, given))
                except Exception as error:  # the other parts are worth having
                    keep(pool, name, {"error": f"{type(error).__name__}: {error}"[:500]})


def parts_of(
    part: str, pool: str, ways: Sequence[str]
) -> list[tuple[str, Callable[[Plan, Any], Any]]]:
    """What is measured, by name."""
    short = pool == next(iter(POOLS))
    if part == "plain":
        return [("plain", partial(plain_pool, members=POOLS[pool][3])), ("padding", padding)]
    if part in ("one", "compile") and not short:
        return []
    if part == "compile":
        kinds = {"steps usual": False, "steps compiled": True}
        return [(name, partial(steps, compiles=kinds[name])) for name in kinds]
    run = {"one": one_member, "edo": our_pool, "profile": profile}[part]
    mps = MPS if part == "edo" and mps_runs() else ""
    return [(f"{part} {way}{mps}", partial(run, way=way)) for way in ways]


def write(file: Path) -> None:
    """The section of RESULTS.md."""
    from results import write_section

    from edokit.members.recipes._fine_tuning import FineTuning

    held = json.loads(file.read_text())
    way = "recorded" if FineTuning(2).cuda_graphs else "usual"
    lines, verdicts = [], []
    for pool, found in held["pools"].items():
        times = rate(found[f"edo {way}"]) / rate(found["plain"])
        verdict = f"{pool} {times:.2f} times, {'reached' if times >= BAR else 'missed'}"
        if "seconds" in (with_mps := found.get(f"edo {way}{MPS}", {})):
            verdict += f" ({rate(with_mps) / rate(found['plain']):.2f}{MPS})"
        verdicts.append(verdict)
        lines += ["", f"### {pool}", "", *pool_lines(found, way)]
    text = [
        "    python benchmarks/training_pool.py --data ../shared --prepare PLANS",
        "    python benchmarks/training_pool.py --plans PLANS --model FOLDER --json pool.json",
        "",
        f"- At least {BAR:g} times the throughput of members trained one after the other with a"
        f" plain Hugging Face Trainer script: {'; '.join(verdicts)}.",
        "",
        f"{held['where']}. all-mpnet-base-v2, its matrices rounded to 8 bits on the way to the"
        f" machine (so that its CE is for comparing the rows alone), batches of {BATCH}, at most"
        f" {LONGEST} tokens, bf16. Both sides evaluate on dev after every epoch, and their seconds"
        " include tokenising, the loading of weights and, of EDO, the start of its processes and"
        " the predictions of dev. MPS is NVIDIA's daemon (`nvidia-cuda-mps-control -d`) that lets"
        " kernels of several processes run at the same time; it does not run unless it is started,"
        " and the plain script, one process, has no use for it.",
        "",
        "MPNet adds a bias of positions to its attention, which transformers computes in the"
        " eager way alone: attention without padding is not available for it, and would save the"
        " share of padding below. Encoders that transformers runs with SDPA, such as BERT, use it"
        " already.",
        "",
        "Dev CE is that of the last epoch on both sides, which share learning rate (2e-5, warm-up"
        " over a tenth, then linear to 0), epochs, batch size, clipping and soft labels. They"
        " differ in the classifier (the plain script's: MPNet's own, a dense layer on the first"
        " token; EDO's: one layer on the mean of all tokens, which begins at the shares of the"
        " classes), in the order of texts (EDO: batches by length) and in weight decay (0.01, and"
        " drawn in 0.005 to 0.015). Which of these makes the difference was not measured; training"
        " side by side and recording do not, as the lines below the tables show.",
        *lines,
    ]
    write_section("Training a pool on one GPU (`training_pool.py`)", "\n".join(text))


def rate(found: dict[str, Any]) -> float:
    return float(found["seen"] / found["seconds"])


def pool_lines(found: dict[str, Any], way: str) -> list[str]:
    """What was found for one pool, as Markdown."""
    plain, pad = found["plain"], found["padding"]
    names = {"usual": "`edo train`", "recorded": "`edo train`, passes recorded (`cuda_graphs`)"}
    pools = {
        (w, mps): found[f"edo {w}{mps}"]
        for w in WAYS
        for mps in ("", MPS)
        if "seconds" in found.get(f"edo {w}{mps}", {})
    }
    rows = [("plain script, one after the other", plain)]
    rows += [
        (f"{names[w]}{mps}" + (" (default)" if (w, mps) == (way, "") else ""), one)
        for (w, mps), one in pools.items()
    ]
    lines = [
        "| | members | items a second | times the plain script | GPU busy | memory | dev CE of"
        " members (sd) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in rows:
        busy = "–" if one["busy"] is None else f"{100 * one['busy']:.0f} %"
        memory = "–" if one["gigabytes"] is None else f"{one['gigabytes']:.0f} GiB"
        spread = np.std(one["dev_ce"], ddof=1) if len(one["dev_ce"]) > 1 else 0.0
        lines.append(
            f"| {name} | {one['members']} | {rate(one):,.0f} | {rate(one) / rate(plain):.2f} |"
            f" {busy} | {memory} | {np.mean(one['dev_ce']):.4f} ({spread:.4f}) |"
        )
    lines += [
        "",
        *quality(found, [one for _, one in rows[1:]], way),
        "",
        f"{pad['tokens']:.0f} tokens a text; padding is {100 * pad['by length']:.0f} % of a batch"
        f" by length, {100 * pad['as they come']:.0f} % in the order of the texts.",
    ]
    for (w, mps), one in pools.items():
        if one["stages"]:
            each = [f"{now['members']:.0f}: {now['rate']:,.0f}" for now in one["stages"]]
            lines += [
                "",
                f"Members at once and their items a second together, {names[w]}{mps}:"
                f" {', '.join(each)}; chosen: {one['stages'][-1]['chosen']:.0f}.",
            ]
    for w in WAYS:
        one = found.get(f"one {w}", {})
        if "spent" in one:
            order = sorted(one["spent"].items(), key=lambda item: -item[1])
            shares = [
                f"{name} {100 * value / one['seconds']:.0f} %"
                for name, value in order
                if value > 0.005 * one["seconds"]
            ]
            busy = "" if one["busy"] is None else f", GPU busy {100 * one['busy']:.0f} %"
            seen = plain["seen"] / plain["members"]
            times = seen / one["seconds"] / rate(plain)
            lines += [
                "",
                f"One member alone, {names[w]}: {one['seconds']:.1f} s, {times:.2f} times the plain"
                f" script's throughput; {one['steady']:,.0f} items a second once it trains{busy};"
                f" the host's time: {', '.join(shares)}.",
            ]
    alone = [found.get(f"one {w}", {}).get("losses") for w in WAYS]
    if all(alone):
        apart = max(abs(a - b) / a for a, b in zip(*alone, strict=True))
        lines += ["", f"Its losses by epoch differ by at most {100 * apart:.1f} % between the two."]
    for w in WAYS:
        one = found.get(f"profile {w}", {})
        if "kernels" in one:
            total = sum(one["kernels"].values())
            kinds = ", ".join(
                f"{kind} {value:.1f} ms"
                for kind, value in sorted(one["kernels"].items(), key=lambda item: -item[1])
            )
            lines += [
                "",
                f"A step of one member, {names[w]}: {one['step']:.1f} ms, of which the GPU computes"
                f" {total:.1f} ms in {one['launches']:,.0f} kernels ({kinds}).",
            ]
    return [*lines, *of_compiling(found, rows[1][1]["members"])]


def of_compiling(found: dict[str, Any], members: int) -> list[str]:
    """Whether torch.compile pays for a pool of so many members, as Markdown."""
    usual, one = (found.get(f"steps {kind}", {}) for kind in ("usual", "compiled"))
    if "step" not in usual or "step" not in one:
        return []
    if not one["finished"]:
        return [
            "",
            f"torch.compile does not pay: with lengths as they come, a member had taken"
            f" {one['steps']} of {usual['steps']} steps after {one['seconds']:.0f} s, where without"
            f" it a member is trained in {usual['seconds']:.0f} s. It is not used.",
        ]
    again = one["again"]
    whole = one["seconds"] + (members - 1) * again["seconds"]
    times, saved = usual["step"] / one["step"], usual["step"] - one["step"]
    even = f"after {one['extra'] / saved:,.0f} steps" if saved > 0 else "never"
    pays = whole < members * usual["seconds"]
    recorded = found.get("profile recorded", {}).get("step")
    return [
        "",
        f"torch.compile, lengths as they come: a step takes {1000 * one['step']:.1f} ms instead of"
        f" {1000 * usual['step']:.1f} ms, {1 / usual['step']:.1f} steps a second before and"
        f" {1 / one['step']:.1f} after ({times:.2f} times). Compiling takes {one['extra']:.0f} s,"
        f" earned back {even}; a member has {usual['steps']}. A member takes"
        f" {one['seconds']:.0f} s, the next one of the process {again['seconds']:.0f} s, without it"
        f" {usual['seconds']:.0f} s: {members} members in one process {whole:.0f} s instead of"
        f" {members * usual['seconds']:.0f} s. It {'pays' if pays else 'does not pay'}"
        + ("" if recorded is None else f"; with recorded passes a step takes {recorded:.1f} ms")
        + ". It is not used.",
    ]


def quality(found: dict[str, Any], pools: Sequence[dict[str, Any]], way: str) -> list[str]:
    """Whether members are as good as the plain script's, and the same however they are trained."""
    ours, plain = (np.array(found[part]["dev_ce"]) for part in (f"edo {way}", "plain"))
    apart = ours.mean() - plain.mean()
    error = np.sqrt(ours.var(ddof=1) / len(ours) + plain.var(ddof=1) / len(plain))
    same = max(float(np.abs(np.array(one["dev_ce"]) - ours).max()) for one in pools)
    alone = found.get(f"one {way}")
    lines = [
        f"Dev CE minus the plain script's: {apart:+.4f} (standard error {error:.4f}, over seeds)."
        " A member's dev CE is the same in all pools of EDO"
        + (f" but for {same:.4f} at most." if same else ", to the last digit."),
    ]
    if alone:
        gap = abs(alone["dev_ce"][-1] - ours[0])
        lines[0] += " The first member, trained with no other beside it, has it too" + (
            f" but for {gap:.4f}." if gap else ", to the last digit."
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--prepare", type=Path)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, help="Members at a time; else as many as pay.")
    parser.add_argument("--pools", nargs="+", default=list(POOLS))
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--seconds", type=float, default=1e9, help="Start no part after these.")
    parser.add_argument("--json", type=Path, default=Path("pool.json"))
    parser.add_argument(
        "--compile-seconds", type=int, default=150, help="Give up a compiled member after these."
    )
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    given.until = time.time() + given.seconds
    if given.write:
        write(given.write)
    elif given.prepare:
        prepare(given.data, given.prepare)
    else:
        measure(given)


if __name__ == "__main__":
    main()
