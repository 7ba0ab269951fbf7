"""Fine-tuning of a network in one plain loop, from the pretrained weights to the best epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import nn
from transformers import get_linear_schedule_with_warmup

from edokit._errors import InputError, option, warn
from edokit._types import Floats, Ints
from edokit.members import pretrained
from edokit.members.recipe import MemberData, Progress, Text
from edokit.members.recipes import _network, _tokens
from edokit.members.recipes._fine_tuning import F1_DELTA, FineTunedMember
from edokit.members.recipes._network import MemberNetwork
from edokit.members.recipes._tokens import Pairs, Reader, Tokens
from edokit.metrics import compute_metrics, rps

Batch = dict[str, torch.Tensor]
# In a batch beside the network's inputs.
_LABELS = ("targets", "soft_labels", "hard_labels", "pair_targets", "pair_weights")
_MAX_GRADIENT_NORM = 1.0
_SCALE_TEXTS = 8  # texts from which the scale of a model's features is estimated
_WEIGHTS = "model.safetensors"


@dataclass
class Task:
    """What differs between a head, a head that knows annotators and a head per member.

    Attributes
    ----------
    targets : EpochTargets or AnnotatorTargets
        What the network learns.
    loss_of : callable
        Loss of a network's logits on a batch.
    pool : callable
        From a network's probabilities [N, …, C] to one distribution per text [N, C]; by default
        they are one.
    dev_pairs : tuple of Pairs and ndarray
        Who labelled the dev texts, and these labels [P, C], where annotators are known.
    joint : Module
        Ensemble weights that are trained with the members; each training starts from a copy.
    joint_learning_rate : float
        Learning rate of these weights.
    """

    targets: _tokens.EpochTargets | _tokens.AnnotatorTargets
    loss_of: Callable[[MemberNetwork, torch.Tensor, Batch], torch.Tensor]
    pool: Callable[[MemberNetwork, Floats], Floats] = lambda _, probabilities: probabilities
    dev_pairs: tuple[Pairs, Floats] | None = None
    joint: nn.Module | None = None
    joint_learning_rate: float = 0.0


@dataclass
class FineTuned:
    """A fine-tuned network, and the history of its training.

    ``history`` has loss and metrics on dev of every epoch; ``best_epoch`` is that whose weights
    these are, counted from 1 (None without dev texts).
    """

    network: MemberNetwork
    reader: Reader
    device: torch.device
    history: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int | None = None

    def predict(
        self, texts: Sequence[Text], batch_size: int, pairs: Pairs | None = None
    ) -> tuple[Floats, Any]:
        """Probabilities of all heads [N, …, C], and those of pairs [P, C]."""
        network, reader = self.network, self.reader
        try:
            return _network.predict_probabilities(
                network, reader(texts), reader, batch_size, self.device, pairs
            )
        except RuntimeError as error:
            if not pretrained.out_of_memory(error):
                raise
            raise InputError(
                f"a batch of {batch_size} texts does not fit into the GPU's memory",
                f"lower {option('eval_batch_size')} or {option('max_length')}",
            ) from None

    def save(self, folder: Path) -> None:
        """Write weights, the encoder's config and the tokenizer: nothing that executes on load."""
        weights = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.network.state_dict().items()
            if not name.startswith("joint.")
        }
        (folder / _WEIGHTS).write_bytes(save(weights))
        self.network.backbone.config.save_pretrained(folder)
        self.reader.tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: Path, member: FineTunedMember) -> FineTuned:
        """The network that was saved in a folder, ready to predict."""
        device = pretrained.choose_device(member.device)
        reader = member.reader(str(folder))
        network = _new_network(pretrained.empty_backbone(folder), member)
        weights = folder / _WEIGHTS
        try:
            network.load_state_dict(load(weights.read_bytes()))
        except Exception as error:  # cut off, missing, or of another model
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                f"{weights} does not hold the weights of the saved member: {reason}",
                "train the member again",
            ) from error
        return cls(network.to(device).eval(), reader, device)


def fine_tune(
    member: FineTunedMember, data: MemberData, task: Task, *, seed: int, progress: Progress | None
) -> FineTuned:
    """Train from the pretrained weights; out of memory once, batches are halved and accumulated."""
    training = _Training(member, data, task, seed, progress)
    device, batch_size, accumulation = training.device, member.batch_size, 1
    cuda = device.type == "cuda"
    while True:
        try:
            # Random numbers of the caller go on afterwards as if nothing had happened.
            with (
                torch.random.fork_rng([device.index] if cuda else []),
                torch.cuda.device(device) if cuda else nullcontext(),
            ):
                torch.manual_seed(seed)
                return training.run(batch_size, accumulation)
        except RuntimeError as error:
            if not pretrained.out_of_memory(error):
                raise
            if accumulation > 1 or batch_size == 1:
                raise InputError(
                    f"a batch of {batch_size} texts of up to {training.reader.max_length} tokens"
                    " does not fit into the GPU's memory",
                    f"lower {option('batch_size')} or {option('max_length')}, or choose a smaller"
                    " model",
                ) from None
        # Outside of the handler nothing refers to the tensors of the failed training any more.
        pretrained.free_memory(device)
        batch_size, accumulation = -(-batch_size // 2), 2
        warn(
            f"a batch of {member.batch_size} texts does not fit into the GPU's memory: batches of"
            f" {batch_size} are accumulated in pairs instead"
        )


class _Training:
    """The training of one network: its data, its loop and its evaluation on the dev texts."""

    def __init__(
        self,
        member: FineTunedMember,
        data: MemberData,
        task: Task,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.member, self.data, self.task = member, data, task
        self.seed, self.progress = seed, progress
        self.device = pretrained.choose_device(member.device)
        self.reader: Reader = member.reader(member.model)
        self.criterion = member.criterion or ("rps" if data.scale.positions else "ce")

    def run(self, batch_size: int, accumulation: int) -> FineTuned:
        """Train a new network on batches of this size, so many of which make a step."""
        member, data = self.member, self.data
        if self.progress is not None:
            self.progress({"items": len(data.texts), "epochs": member.epochs})
        tokens = self.reader(data.texts)
        network = self._start(tokens)
        tuned = FineTuned(network, self.reader, self.device)
        n_batches = -(-len(tokens) // batch_size)
        steps = -(-n_batches // accumulation) * member.epochs
        optimizer = self._optimizer(network)
        schedule = get_linear_schedule_with_warmup(optimizer, member.warmup_of(steps), steps)
        lengths = np.array([len(text.ids) for text in tokens])
        best = BestEpoch(self.criterion)
        for epoch in range(1, member.epochs + 1):
            self.task.targets.begin(epoch - 1)
            if network.joint is not None:
                network.joint.set_epoch(epoch - 1)
            network.train()
            losses: list[torch.Tensor] = []
            rng = np.random.default_rng([self.seed, epoch - 1])
            batches = _tokens.batches_by_length(lengths, batch_size, rng)
            for start in range(0, len(batches), accumulation):
                parts = batches[start : start + accumulation]
                for items in parts:
                    losses.append(self._backward(network, self._batch(tokens, items), len(parts)))
                nn.utils.clip_grad_norm_(network.parameters(), _MAX_GRADIENT_NORM)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            scores, criterion = self._evaluate(tuned) if len(data.dev_texts) else ({}, None)
            self._report(tuned, epoch, float(torch.stack(losses).mean()), scores)
            if criterion is not None:
                best.update(epoch, criterion, network)
                if 0 < member.patience <= best.epochs_since:
                    break
        if best.epoch is not None:
            network.load_state_dict(best.weights)
        tuned.best_epoch = best.epoch
        network.eval()
        del optimizer, schedule, best  # together larger than the network
        pretrained.free_memory(self.device)
        return tuned

    def _start(self, tokens: Sequence[Tokens]) -> MemberNetwork:
        """A network with the pretrained weights, whose heads answer with the prior."""
        network = _new_network(pretrained.load_backbone(self.member.model), self.member)
        network.head.set_prior(*self.task.targets.prior)
        network.to(self.device)
        batch = self.reader.padded(tokens[:_SCALE_TEXTS])
        network.rescale_heads(**_network.on_device(batch, self.device))
        if self.task.joint is not None:
            network.joint = copy.deepcopy(self.task.joint).to(self.device)
        return network

    def _optimizer(self, network: MemberNetwork) -> torch.optim.Optimizer:
        groups = _network.parameter_groups(
            network,
            self.member,
            self.member.weight_decay_of(self.seed),
            self.task.joint_learning_rate,
        )
        fused = True if self.device.type == "cuda" else None
        return torch.optim.AdamW(groups, lr=self.member.learning_rate, fused=fused)

    def _batch(self, tokens: Sequence[Tokens], items: Ints) -> Batch:
        """Tokens and targets of these items, where the network is."""
        arrays = self.reader.padded([tokens[i] for i in items])
        return _network.on_device({**arrays, **self.task.targets.of(items)}, self.device)

    def _backward(self, network: MemberNetwork, batch: Batch, parts: int) -> torch.Tensor:
        """The loss of a batch; its gradient, as one of so many parts of a step, is accumulated."""

        def loss_and_gradient() -> torch.Tensor:
            with _network.half_precision(self.device):
                logits = network(**{name: batch[name] for name in batch if name not in _LABELS})
            loss = self.task.loss_of(network, logits, batch)
            (loss / parts).backward()
            return loss.detach()

        loss = loss_and_gradient()
        if norm := self.member.adversarial:
            embeddings = network.backbone.get_input_embeddings().weight
            with _network.adversarial_step(embeddings, norm):
                loss_and_gradient()
        return loss

    def _evaluate(self, tuned: FineTuned) -> tuple[dict[str, float], float]:
        """Metrics on the dev texts, also of known annotators, and the value of the criterion."""
        data, criterion = self.data, self.criterion
        pairs, labels = self.task.dev_pairs or (None, None)
        answers, pair_answers = tuned.predict(data.dev_texts, self.member.eval_batch_size, pairs)
        soft_labels = np.asarray(data.dev_soft_labels, dtype=np.float64)
        pooled = self.task.pool(tuned.network, answers)
        scores = self._scores(pooled, soft_labels, data.dev_hard_labels)
        score = scores[criterion]
        if labels is not None:
            pair_scores = self._scores(pair_answers, labels, None)
            score = (score + pair_scores[criterion]) / 2
            scores |= {f"known_{name}": pair_scores[name] for name in pair_scores}
        return {f"dev_{name}": scores[name] for name in scores}, score

    def _scores(self, p: Floats, q: Floats, y: Any) -> dict[str, float]:
        """CE, F1 and, of ordinal scales, RPS of probabilities to soft and hard labels."""
        scale = self.data.scale
        if not np.isfinite(p).all():
            return {"ce": float("nan"), "f1": 0.0, "rps": float("nan")}
        codes = scale.row_codes(scale.hard(q) if y is None else y)
        scores: Any = compute_metrics(scale.rows(p), scale.rows(q), codes, metrics=("ce", "f1"))
        return scores if scale.positions is None else {**scores, "rps": rps(p, q, scale.positions)}

    def _report(self, tuned: FineTuned, epoch: int, loss: float, scores: dict[str, float]) -> None:
        if not np.isfinite([loss, scores.get("dev_ce", 0.0)]).all():
            raise InputError(
                f"training diverged: in epoch {epoch} the loss is {loss:g} and the dev CE"
                f" {scores.get('dev_ce', float('nan')):g}",
                f"lower {option('learning_rate')}",
            )
        report = {"epoch": epoch, "epochs": self.member.epochs, "loss": loss, **scores}
        tuned.history.append(report)
        if self.progress is not None:
            self.progress(report)


class BestEpoch:
    """The best epoch so far by a criterion on the dev texts, and its weights in memory."""

    def __init__(self, criterion: str) -> None:
        self.sign = 1.0 if criterion == "f1" else -1.0
        # An F1 that rises by just the delta counts as better.
        self.delta = F1_DELTA - 1e-9 if criterion == "f1" else 0.0
        self.score = float("-inf")
        self.epoch: int | None = None
        self.weights: dict[str, torch.Tensor] = {}
        self.epochs_since = 0  # since an epoch was clearly better than those before

    def update(self, epoch: int, criterion: float, network: nn.Module) -> None:
        """Keep the weights of an epoch if it is better."""
        gain = self.sign * criterion - self.score
        self.epochs_since = 0 if gain > self.delta else self.epochs_since + 1
        if gain > 0:
            self.score, self.epoch = self.sign * criterion, epoch
            self.weights = copy.deepcopy(network.state_dict())


def _new_network(backbone: nn.Module, member: FineTunedMember) -> MemberNetwork:
    width = int(backbone.config.hidden_size) * (2 if member.pooling == "mean+target" else 1)
    return MemberNetwork(backbone, member.pooling, member.new_heads(width))
