"""Fine-tuning of a network in one plain loop, from the pretrained weights to the best epoch."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.torch import load, save
from torch import nn
from transformers import get_linear_schedule_with_warmup

from edokit._errors import InputError, option
from edokit._progress import Progress
from edokit._types import Floats, HardLabels, Ints
from edokit.members import pretrained
from edokit.members.arrays import NamedArrays
from edokit.members.contexts import Text, with_context
from edokit.members.recipe import MemberData
from edokit.members.recipes import _network, _tokens
from edokit.members.recipes._network import AnnotatorHead, Head, MemberNetwork
from edokit.members.recipes._tokens import Pairs, Reader
from edokit.metrics import compute_metrics, rps

if TYPE_CHECKING:
    from edokit.members.recipes.transformer import TransformerMember

# What a batch has beside the inputs of the network.
_LABELS = ("targets", "pair_targets", "pair_weights")
_ANONYMOUS_WEIGHT = 0.5  # of the anonymous loss, beside the loss of annotators' labels
_MAX_GRADIENT_NORM = 1.0
_ROWS = 8192  # texts, or pairs of a text and an annotator, that go through the head at once
_SCALE_TEXTS = 8  # texts from which the scale of a model's features is estimated


@dataclass
class FineTuned:
    """A fine-tuned network, which predicts."""

    network: MemberNetwork
    reader: Reader
    device: torch.device

    def predict(
        self, texts: Sequence[Text], batch_size: int, pairs: Pairs | None = None
    ) -> tuple[Floats, Floats | None]:
        """Probabilities of texts [N, C] and of pairs [P, C]; None without pairs."""
        self.network.eval()
        with _network.memory_errors("eval_batch_size", batch_size):
            pooled = _network.in_batches(
                self._features, self.reader(texts), self.reader, batch_size, self.device
            )
            anonymous = self._answers(pooled, np.arange(len(pooled)))
            if pairs is None:
                return anonymous, None
            answers = anonymous[pairs.rows]
            # Annotators that are not known get the anonymous answer.
            is_known = pairs.annotators >= 0
            if is_known.any():
                answers[is_known] = self._answers(
                    pooled, pairs.rows[is_known], pairs.annotators[is_known]
                )
            return anonymous, answers

    def _features(self, **batch: torch.Tensor) -> torch.Tensor:
        with _network.half_precision(self.device):
            return self.network.features(**batch)

    def _answers(self, pooled: Floats, rows: Ints, annotators: Ints | None = None) -> Floats:
        """Probabilities [N, C] from rows of the features, of these annotators if any are named."""
        outputs = []
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            inputs: NamedArrays = {"pooled": pooled[rows[part]]}
            if annotators is not None:
                inputs |= {"rows": np.arange(len(rows[part])), "annotators": annotators[part]}
            with torch.no_grad():
                logits = self.network.head(**_network.on_device(inputs, self.device))
                answers = self.network.head.link.probabilities(logits[-len(rows[part]) :])
                outputs.append(answers.cpu().numpy())
        return np.concatenate(outputs)

    def save(self, folder: Path) -> None:
        """Write weights, the encoder's config and the tokenizer: nothing that executes on load."""
        weights = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.network.state_dict().items()
        }
        (folder / pretrained.WEIGHTS).write_bytes(save(weights))
        self.network.backbone.config.save_pretrained(folder)
        self.reader.tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: Path, member: TransformerMember) -> FineTuned:
        """The network that was saved in a folder, ready to predict."""
        device = pretrained.choose_device(member.device)
        reader = new_reader(member, str(folder))
        network = _with_head(pretrained.empty_backbone(folder), member)
        network.load_state_dict(load((folder / pretrained.WEIGHTS).read_bytes()))
        return cls(network.to(device).eval(), reader, device)


def new_reader(member: TransformerMember, model: str) -> Reader:
    """What turns texts into the tokens of a model."""
    return Reader(
        pretrained.load_tokenizer(model),
        member.max_length,
        vocabulary=pretrained.vocabulary_size(model),
        speaker_tags=member.speaker_tags,
        context_first=member.context_first,
        instruction=member.instruction,
    )


def _with_head(backbone: nn.Module, member: TransformerMember) -> MemberNetwork:
    """The network of an encoder and a new head, as the member's options say."""
    width = int(backbone.config.hidden_size)
    if member.pooling == "mean+target":
        width *= 2
    link = _network.make_link(member.n_classes, member.scale_)
    head: Head | AnnotatorHead
    if member.annotators:
        head = AnnotatorHead(width, link, member.activity_)
    else:
        head = Head(width, link)
    return MemberNetwork(backbone, member.pooling, head)


@dataclass
class Training:
    """The training of one network: its data, its loop and its evaluation on the dev texts.

    Attributes
    ----------
    member : TransformerMember
        The options; gets the history of its epochs, and which one was the best.
    data : MemberData
        Texts to train on, and dev texts.
    targets : EpochTargets
        What the network learns.
    dev_pairs : tuple of Pairs and ndarray
        Who labelled the dev texts, and these labels [P, C], where annotators are known.
    """

    member: TransformerMember
    data: MemberData
    targets: _tokens.EpochTargets
    seed: int
    progress: Progress | None = None
    dev_pairs: tuple[Pairs, Floats] | None = None

    def run(self) -> FineTuned:
        """Train from the pretrained weights; the caller's random state does not change."""
        member = self.member
        device = pretrained.choose_device(member.device)
        cuda = device.type == "cuda"
        try:
            with (
                _network.memory_errors("batch_size", member.batch_size),
                torch.random.fork_rng([device.index] if cuda else []),
                torch.cuda.device(device) if cuda else nullcontext(),
            ):
                torch.manual_seed(self.seed)
                return self._train(new_reader(member, member.model), device)
        finally:  # gradients and moments are larger than the network
            if cuda:
                gc.collect()
                torch.cuda.empty_cache()

    def _train(self, reader: Reader, device: torch.device) -> FineTuned:
        member = self.member
        data = self.data
        if self.progress is not None:
            self.progress(0, member.epochs, "loading the model")
        tokens = reader(with_context(data.texts, data.context))
        network = self._initial_network(reader.padded(tokens[:_SCALE_TEXTS]), device)
        tuned = FineTuned(network, reader, device)
        steps = -(-len(tokens) // member.batch_size) * member.epochs
        optimizer = torch.optim.AdamW(
            _network.parameter_groups(network, member, member.draw_weight_decay(self.seed)),
            lr=member.learning_rate,
            fused=True if device.type == "cuda" else None,
        )
        schedule = get_linear_schedule_with_warmup(
            optimizer, member.count_warmup_steps(steps), steps
        )
        lengths = np.array([len(text["input_ids"]) for text in tokens])
        best_score = np.inf
        # The score and epoch of the last gain that was large enough for `patience`.
        gained_score = np.inf
        gained_epoch = 0
        best_weights: dict[str, torch.Tensor] = {}
        for epoch in range(1, member.epochs + 1):
            self.targets.begin(epoch - 1)
            network.train()
            losses: list[torch.Tensor] = []
            rng = np.random.default_rng([self.seed, epoch - 1])
            for items in _tokens.batches_by_length(lengths, member.batch_size, rng):
                losses.append(self._backward(tuned, tokens, items))
                nn.utils.clip_grad_norm_(network.parameters(), _MAX_GRADIENT_NORM)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            loss = float(torch.stack(losses).mean())
            if not np.isfinite(loss):
                raise InputError(
                    f"training diverged: in epoch {epoch} the loss is {loss:g}",
                    f"lower {option('learning_rate')}",
                    code="diverged-training",
                )
            # Without dev texts no epoch is better than another: the last weights are kept.
            scores: dict[str, float] = {}
            score = np.inf
            if len(data.dev_texts):
                scores, score = self._evaluate(tuned)
            member.history_.append(
                {"epoch": epoch, "epochs": member.epochs, "loss": loss, **scores}
            )
            if self.progress is not None:
                task = f"epoch {epoch}"
                if "dev_ce" in scores:
                    task += f", dev CE {scores['dev_ce']:.4f}"
                self.progress(epoch, member.epochs, task)
            if score < best_score:
                best_score = score
                member.best_epoch_ = epoch
                best_weights = {
                    name: weight.detach().clone()
                    for name, weight in network.named_parameters()
                    if weight.requires_grad
                }
            if score < gained_score - member.least_gain:
                gained_score = score
                gained_epoch = epoch
            elif gained_epoch and 0 < member.patience <= epoch - gained_epoch:
                break
        network.load_state_dict(best_weights, strict=False)
        if member.adapter_rank:
            network.backbone = network.backbone.merge_and_unload()
        network.eval()
        return tuned

    def _initial_network(self, first_texts: NamedArrays, device: torch.device) -> MemberNetwork:
        """A network with the pretrained weights, whose heads answer with the prior."""
        backbone = pretrained.load_backbone(self.member.model)
        if self.member.adapter_rank:
            backbone = _network.with_adapters(backbone, self.member.adapter_rank)
        network = _with_head(backbone, self.member)
        network.head.set_prior(*self.targets.prior)
        network.to(device)
        network.rescale_heads(**_network.on_device(first_texts, device))
        return network

    def _backward(
        self, tuned: FineTuned, tokens: Sequence[NamedArrays], items: Ints
    ) -> torch.Tensor:
        """The loss of a batch, whose gradient is accumulated."""
        network = tuned.network
        device = tuned.device
        texts = tuned.reader.padded([tokens[i] for i in items])
        batch = _network.on_device({**texts, **self.targets.batch(items)}, device)

        inputs = {name: tensor for name, tensor in batch.items() if name not in _LABELS}

        def loss_and_gradient() -> torch.Tensor:
            with _network.half_precision(device):
                logits = network(**inputs)
            loss = self._loss(network, logits, batch)
            loss.backward()
            return loss.detach()

        loss = loss_and_gradient()
        if self.member.adversarial:
            embeddings = network.backbone.get_input_embeddings().weight
            with _network.adversarial_step(embeddings, self.member.adversarial):
                loss_and_gradient()
        return loss

    def _loss(
        self, network: MemberNetwork, logits: torch.Tensor, batch: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """The loss of the texts, and of the labels of known annotators."""
        kind = self.member.loss
        n = len(batch["targets"])
        link = network.head.link
        anonymous = link.losses(kind, logits[:n], batch["targets"]).mean()
        if "pair_targets" not in batch:
            return anonymous
        pairs = link.losses(kind, logits[n:], batch["pair_targets"])
        return (pairs * batch["pair_weights"]).sum() / n + _ANONYMOUS_WEIGHT * anonymous

    def _evaluate(self, tuned: FineTuned) -> tuple[dict[str, float], float]:
        """Metrics on the dev texts, also of known annotators, and the score of this epoch.

        A lower score is better.
        """
        data = self.data
        criterion = "rps" if data.scale.positions else "ce"
        pairs, labels = self.dev_pairs or (None, None)
        texts = with_context(data.dev_texts, data.dev_context)
        answers, pair_answers = tuned.predict(texts, self.member.eval_batch_size, pairs)
        soft_labels = np.asarray(data.dev_soft_labels, dtype=np.float64)
        scores = self._scores(answers, soft_labels, data.dev_hard_labels)
        score = scores[criterion]
        if self.member.epoch_metric == "f1":
            score = -scores["f1"]
        if labels is not None and pair_answers is not None:
            pair_scores = self._scores(pair_answers, labels, None)
            score = (score + pair_scores[criterion]) / 2
            scores |= {f"known_{name}": pair_scores[name] for name in pair_scores}
        return {f"dev_{name}": scores[name] for name in scores}, score

    def _scores(self, p: Floats, q: Floats, y: HardLabels | None) -> dict[str, float]:
        """CE, F1 and, for ordinal scales, RPS of probabilities to soft and hard labels."""
        scale = self.data.scale
        if y is None:
            y = scale.hard(q)
        codes = scale.row_codes(y)
        computed = compute_metrics(scale.rows(p), scale.rows(q), codes, metrics=("ce", "f1"))
        scores = {name: float(value) for name, value in computed.items() if value is not None}
        if scale.positions is not None:
            scores["rps"] = rps(p, q, scale.positions)
        return scores
