"""Fine-tuning of one network, from the pretrained weights to the best epoch."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import nn
from torch.utils.data import DataLoader
from transformers import set_seed

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit.members.dev_scores import dev_scores
from edokit.members.pretrained import (
    choose_device,
    empty_backbone,
    free_memory,
    kept_copy,
    load_backbone,
    load_tokenizer,
    out_of_memory,
)
from edokit.members.recipe import MemberData, Progress
from edokit.members.recipes._network import (
    AnnotatorHeads,
    MemberNetwork,
    OneHead,
    annotator_loss,
    class_prior,
    parameter_groups,
    pooled_width,
    target_loss,
    word_embeddings,
)
from edokit.members.recipes._tokens import (
    AnnotatorAnswers,
    Answers,
    EpochBatches,
    Reader,
    TargetAnswers,
    padded,
)
from edokit.members.recipes._trainer import Batch, on_device, probabilities, train
from edokit.members.recipes.transformer import F1_DELTA, Criterion, FineTuning

_FIRST_LOOK = 8  # texts that tell how loud a model's features are


@dataclass
class Task:
    """What differs between one head, a head per annotator and a head per member."""

    answers: Answers
    prior: Floats
    """Answers [M, C] whose mean the heads start at."""
    head: Callable[[int], nn.Module]
    """Heads for so many features."""
    loss_of: Callable[[MemberNetwork, torch.Tensor, Batch], torch.Tensor]
    """Loss of the network's logits on a batch."""
    pool: Callable[[MemberNetwork, Floats], Floats]
    """From the network's probabilities [N, …, C] to one distribution per text [N, C]."""
    joint: nn.Module | None = None
    """Ensemble weights that learn with the members; each attempt starts from a copy."""
    joint_learning_rate: float = 0.0


@dataclass
class FineTuned:
    """A fine-tuned network and how it came about."""

    network: MemberNetwork
    reader: Reader
    device: torch.device
    history: list[dict[str, Any]]
    """Per epoch: loss, dev_ce and dev_f1."""
    best_epoch: int | None
    """The epoch whose weights these are, counted from 1; None without dev texts."""


def fine_tune(
    options: FineTuning, lesson: MemberData, task: Task, *, seed: int, progress: Progress | None
) -> FineTuned:
    """Train from the pretrained weights; out of memory once, batches are halved and accumulated."""
    if not len(lesson.texts):
        raise InputError("there must be texts to learn from, but there are none", "give some")
    device = choose_device(options.device)
    reader = Reader(
        load_tokenizer(options.model),
        options.max_length,
        speaker_tags=options.speaker_tags,
        known=lesson.shared,
    )
    batch_size, accumulation = options.batch_size, 1
    while True:
        try:
            with _own_randomness(seed, device):
                return _attempt(
                    options, lesson, task, reader, device, seed, progress, batch_size, accumulation
                )
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if accumulation > 1 or batch_size == 1:
                raise InputError(
                    f"a batch must fit into the GPU's memory, but one of {batch_size} texts of up"
                    f" to {reader.max_length} tokens does not",
                    "lower batch_size or max_length, or choose a smaller model",
                ) from None
        # Here, outside of the handler, nothing holds the tensors of the failed attempt any more.
        free_memory(device)
        batch_size, accumulation = -(-batch_size // 2), 2
        warnings.warn(
            f"a batch of {options.batch_size} texts does not fit into the GPU's memory: batches of"
            f" {batch_size} are accumulated in pairs instead",
            EDOWarning,
            stacklevel=2,
        )


def _attempt(
    options: FineTuning,
    lesson: MemberData,
    task: Task,
    reader: Reader,
    device: torch.device,
    seed: int,
    progress: Progress | None,
    batch_size: int,
    accumulation: int,
) -> FineTuned:
    backbone = load_backbone(options.model)
    head = task.head(pooled_width(backbone, options.pooling))
    head.start_at(class_prior(task.prior))
    network = MemberNetwork(backbone, options.pooling, head).to(device)
    pad_id = reader.tokenizer.pad_token_id
    tokens = reader(lesson.texts)
    network.start_quietly(
        **on_device(padded(tokens[:_FIRST_LOOK], pad_id, reader.max_length), device)
    )
    batches = EpochBatches(
        tokens,
        task.answers,
        batch_size=batch_size,
        seed=seed,
        pad_id=pad_id,
        max_length=reader.max_length,
    )
    groups = parameter_groups(
        network, options.learning_rate, options.layer_decay, options.weight_decay_of(seed)
    )
    if task.joint is not None:
        network.joint = copy.deepcopy(task.joint).to(device)
        weights = list(network.joint.parameters())
        groups.append({"params": weights, "lr": task.joint_learning_rate, "weight_decay": 0.0})
    steps = -(-len(batches) // accumulation) * options.epochs
    watch = _Watch(options, lesson, task, reader, network, device, batches, progress)
    train(
        network,
        device=device,
        n_epochs=options.epochs,
        warmup_steps=options.warmup_of(steps),
        accumulation=accumulation,
        seed=seed,
        loader=DataLoader(
            range(len(lesson.texts)),
            batch_sampler=batches,
            collate_fn=lambda items: on_device(batches.arrays(items), device),
        ),
        loss_of=lambda logits, batch: task.loss_of(network, logits, batch),
        optimizer=torch.optim.AdamW(
            groups, lr=options.learning_rate, fused=True if device.type == "cuda" else None
        ),
        epochs=watch,
        adversarial=(
            (word_embeddings(backbone), options.adversarial) if options.adversarial else None
        ),
    )
    best = watch.restore()
    network.eval()
    free_memory(device)
    return FineTuned(network, reader, device, watch.history, best)


class _Watch:
    """Looks at the dev texts after every epoch, keeps the best weights, stops in time."""

    def __init__(
        self,
        options: FineTuning,
        lesson: MemberData,
        task: Task,
        reader: Reader,
        network: MemberNetwork,
        device: torch.device,
        batches: EpochBatches,
        progress: Progress | None,
    ) -> None:
        self._options, self._task, self._reader = options, task, reader
        self._network, self._device, self._batches = network, device, batches
        self._progress = progress
        self._dev = reader(lesson.dev_texts)
        self._soft, self._hard = _dev_labels(lesson)
        self._best = BestEpoch(options.criterion, options.patience)
        self._weights: dict[str, torch.Tensor] = {}
        self.history: list[dict[str, Any]] = []

    def begin(self, epoch: int) -> None:
        """Get the batches of an epoch ready."""
        self._batches.begin(epoch)
        if self._network.joint is not None:
            self._network.joint.set_epoch(epoch)

    def end(self, epoch: int, loss: float) -> bool:
        """Judge an epoch; true: stop."""
        report: dict[str, Any] = {"epoch": epoch + 1, "epochs": self._options.epochs, "loss": loss}
        stop = False
        if self._dev:
            pooled = self._task.pool(
                self._network,
                probabilities(
                    self._network,
                    self._dev,
                    pad_id=self._reader.tokenizer.pad_token_id,
                    max_length=self._reader.max_length,
                    batch_size=self._options.eval_batch_size,
                    device=self._device,
                ),
            )
            scores = dev_scores(pooled, self._soft, self._hard)
            report["dev_ce"], report["dev_f1"] = scores["ce"], scores["f1"]
        if not np.isfinite([loss, report.get("dev_ce", 0.0)]).all():
            raise InputError(
                f"training must stay finite, but in epoch {epoch + 1} the loss is {loss:g} and the"
                f" dev CE {report.get('dev_ce', float('nan')):g}",
                "lower learning_rate",
            )
        if self._dev:
            if self._best.see(epoch + 1, report["dev_ce"], report["dev_f1"]):
                self._weights = kept_copy(self._network, self._device)
            stop = self._best.out_of_patience
        self.history.append(report)
        if self._progress is not None:
            self._progress(report)
        return stop

    def restore(self) -> int | None:
        """Put the best epoch's weights back; its number."""
        if self._best.epoch is not None:
            self._network.load_state_dict(self._weights)
        return self._best.epoch


def _dev_labels(lesson: MemberData) -> tuple[Floats, Any]:
    """Soft labels [N, C] and hard labels [N] of the dev texts."""
    soft, hard = lesson.dev_soft_labels, lesson.dev_hard_labels
    if not len(lesson.dev_texts):
        return np.empty((0, 0)), np.empty(0)
    if soft is None or len(soft) != len(lesson.dev_texts):
        raise InputError(
            f"the {len(lesson.dev_texts)} dev texts need a soft label each, but there are"
            f" {0 if soft is None else len(soft)}",
            "give dev_soft_labels, or no dev texts",
        )
    return np.asarray(soft, dtype=np.float64), np.argmax(soft, axis=1) if hard is None else hard


@contextmanager
def _own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Seeded inside; the generators that others use go on afterwards as if nothing happened."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng([device.index] if device.type == "cuda" else []):
        set_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


@dataclass
class BestEpoch:
    """Remembers the best epoch; patience is spent by epochs that are not clearly better."""

    criterion: str
    patience: int
    epoch: int | None = None
    """The best epoch so far."""
    value: float = float("-inf")
    waited: int = 0

    def see(self, epoch: int, ce: float, f1: float) -> bool:
        """Whether this epoch is the best so far."""
        by_f1 = Criterion(self.criterion) is Criterion.F1
        value, delta = (f1, F1_DELTA) if by_f1 else (-ce, 0.0)
        clearly = value - self.value >= delta if delta else value > self.value
        self.waited = 0 if clearly else self.waited + 1
        better = value > self.value
        if better:
            self.value, self.epoch = value, epoch
        return better

    @property
    def out_of_patience(self) -> bool:
        """Whether training should stop."""
        return 0 < self.patience <= self.waited


def target_task(targets: TargetAnswers, n_classes: int, loss: str) -> Task:
    """Targets [N, C], one head."""
    return Task(
        answers=targets,
        prior=targets.now.astype(float),
        head=lambda width: OneHead(width, n_classes),
        loss_of=lambda network, logits, batch: target_loss(loss, logits, batch["answers"]),
        pool=lambda network, shares: shares,
    )


def annotator_task(
    answers: AnnotatorAnswers, n_classes: int, average: Callable[[Floats], Floats]
) -> Task:
    """Answers of annotators [N, A, C], a head for each."""
    return Task(
        answers=answers,
        prior=answers.prior,
        head=lambda width: AnnotatorHeads(width, n_classes, len(answers.annotators)),
        loss_of=lambda network, logits, batch: annotator_loss(logits, batch["answers"]),
        pool=lambda network, shares: average(shares),
    )


def head_of(options: FineTuning, n_annotators: int) -> Callable[[int], nn.Module]:
    """What makes the heads of a member for so many features."""
    if options.annotator_heads:
        return lambda width: AnnotatorHeads(width, options.n_classes, n_annotators)
    return lambda width: OneHead(width, options.n_classes)


_WEIGHTS = "model.safetensors"


def save_tuned(tuned: FineTuned, folder: Path) -> None:
    """Write weights, the encoder's config and the tokenizer."""
    weights = {
        name: value.detach().cpu().contiguous()
        for name, value in tuned.network.state_dict().items()
        if not name.startswith("joint.")
    }
    (folder / _WEIGHTS).write_bytes(save(weights))
    tuned.network.backbone.config.save_pretrained(folder)
    tuned.reader.tokenizer.save_pretrained(folder)


def load_tuned(folder: Path, options: FineTuning, head: Callable[[int], nn.Module]) -> FineTuned:
    """The network that was saved in a folder, ready to predict."""
    device = choose_device(options.device)
    reader = Reader(
        load_tokenizer(str(folder)), options.max_length, speaker_tags=options.speaker_tags
    )
    backbone = empty_backbone(folder)
    network = MemberNetwork(
        backbone, options.pooling, head(pooled_width(backbone, options.pooling))
    )
    weights = folder / _WEIGHTS
    try:
        network.load_state_dict(load(weights.read_bytes()))
    except Exception as error:  # cut off, missing, or of another model
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{weights} must hold the weights of the saved member, but: {reason}",
            "train the member again",
        ) from error
    return FineTuned(network.to(device).eval(), reader, device, [], None)
