"""Fine-tuning of one network with Hugging Face's Trainer, from pretrained weights to best epoch."""

from __future__ import annotations

import copy
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_utils import set_seed

from edokit._errors import InputError, warn
from edokit._types import Floats
from edokit.members.pretrained import (
    choose_device,
    empty_backbone,
    free_memory,
    load_backbone,
    out_of_memory,
)
from edokit.members.recipe import MemberData, Progress, Text
from edokit.members.recipes._fine_tuning import F1_DELTA, FineTunedMember
from edokit.members.recipes._network import (
    MemberNetwork,
    adversarial_step,
    on_device,
    parameter_groups,
    predict_probabilities,
    uses_bfloat16,
)
from edokit.members.recipes._tokens import (
    AnnotatorTargets,
    EpochBatches,
    EpochTargets,
    Pairs,
    Reader,
)
from edokit.metrics import compute_metrics, rps

Batch = dict[str, torch.Tensor]
# In a batch beside the network's inputs.
_LABELS = ("targets", "soft_labels", "hard_labels", "pair_targets", "pair_weights")
_FIRST_BATCH = 8  # texts from which the scale of a model's features is estimated
_WEIGHTS = "model.safetensors"
_AS_USUAL = 2  # times that batches of a shape are computed before their passes are recorded
_GRAPHS = 64  # recorded at most
_WINDOW = 2.0  # seconds of training after which its pace is reported


@dataclass
class Task:
    """What differs between one head, one that knows annotators and a head per member."""

    targets: EpochTargets | AnnotatorTargets
    loss_of: Callable[[MemberNetwork, torch.Tensor, Batch], torch.Tensor]
    """Loss of the network's logits on a batch."""
    pool: Callable[[MemberNetwork, Floats], Floats]
    """From the network's probabilities [N, …, C] to one distribution per text [N, C]."""
    dev_pairs: tuple[Pairs, Floats] | None = None
    """Who labelled the dev texts, and these labels [P, C], where annotators are known."""
    joint: nn.Module | None = None
    """Ensemble weights that are trained with the members; each attempt starts from a copy."""
    joint_learning_rate: float = 0.0


@dataclass
class FineTuned:
    """A fine-tuned network, and the history of its training."""

    network: MemberNetwork
    reader: Reader
    device: torch.device
    history: list[dict[str, Any]]
    """Per epoch: loss and metrics on dev."""
    best_epoch: int | None
    """The epoch whose weights these are, counted from 1; None without dev texts."""

    def predict(
        self, texts: Sequence[Text], batch_size: int, pairs: Pairs | None = None
    ) -> tuple[Floats, Any]:
        """Probabilities of all heads [N, …, C], and those of pairs [P, C]."""
        tokens = self.reader(texts)
        network, reader = self.network, self.reader
        return predict_probabilities(network, tokens, reader, batch_size, self.device, pairs)

    def save(self, folder: Path) -> None:
        """Write weights, the encoder's config and the tokenizer: nothing that executes on load."""
        weights = {
            name: value.detach().cpu().contiguous()
            for name, value in self.network.state_dict().items()
            if not name.startswith("joint.")
        }
        (folder / _WEIGHTS).write_bytes(save(weights))
        self.network.backbone.config.save_pretrained(folder)
        self.reader.tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: Path, member: FineTunedMember) -> FineTuned:
        """The network that was saved in a folder, ready to predict."""
        device = choose_device(member.device)
        reader = member.reader(str(folder))
        network = _new_network(empty_backbone(folder), member)
        weights = folder / _WEIGHTS
        try:
            network.load_state_dict(load(weights.read_bytes()))
        except Exception as error:  # cut off, missing, or of another model
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                f"{weights} does not hold the weights of the saved member: {reason}",
                "train the member again",
            ) from error
        return cls(network.to(device).eval(), reader, device, [], None)


def fine_tune(
    options: FineTunedMember, data: MemberData, task: Task, *, seed: int, progress: Progress | None
) -> FineTuned:
    """Train from the pretrained weights; out of memory once, batches are halved and accumulated."""
    if not len(data.texts):
        raise InputError("there are no texts to train on", "give some")
    device = choose_device(options.device)
    reader = options.reader(options.model, data.shared)
    batch_size, accumulation = options.batch_size, 1
    while True:
        try:
            with _own_randomness(seed, device):
                attempt = _Attempt(options, data, task, reader, device, seed, progress)
                return attempt.run(batch_size, accumulation)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if accumulation > 1 or batch_size == 1:
                raise InputError(
                    f"a batch of {batch_size} texts of up to {reader.max_length} tokens does not"
                    " fit into the GPU's memory",
                    "lower batch_size or max_length, or choose a smaller model",
                ) from None
        # Here, outside of the handler, nothing holds the tensors of the failed attempt any more.
        attempt = None  # type: ignore[assignment]
        free_memory(device)
        batch_size, accumulation = -(-batch_size // 2), 2
        warn(
            f"a batch of {options.batch_size} texts does not fit into the GPU's memory: batches of"
            f" {batch_size} are accumulated in pairs instead"
        )


class _Attempt(TrainerCallback):  # type: ignore[misc]
    """One training; as a callback it draws the targets of an epoch and keeps the best weights.

    Early stopping is Trainer's own. The best weights are kept in memory: its checkpoints would
    write the whole model to the disk whenever an epoch is better.
    """

    def __init__(
        self,
        options: FineTunedMember,
        data: MemberData,
        task: Task,
        reader: Reader,
        device: torch.device,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.options, self.task, self.reader, self.device = options, task, reader, device
        self.seed, self.progress = seed, progress
        self.texts, self.dev_texts = data.texts, data.dev_texts
        soft: Any = data.dev_soft_labels
        labelled = 0 if soft is None else len(soft)
        if len(self.dev_texts) and labelled != len(self.dev_texts):
            raise InputError(
                f"there are {len(self.dev_texts)} dev texts, but {labelled} soft labels for them",
                "give dev_soft_labels, or no dev texts",
            )
        self.soft_labels = np.asarray(soft, dtype=np.float64)
        self.hard_labels: Any = data.dev_hard_labels
        self.scale = data.scale
        self.criterion = options.criterion or ("rps" if data.scale.positions else "ce")
        if labelled and self.hard_labels is None:
            self.hard_labels = self.scale.hard(self.soft_labels)
        self.epoch = -1
        self.best_epoch: int | None = None
        self.best_weights: dict[str, torch.Tensor] = {}
        self.history: list[dict[str, Any]] = []
        self.began = self.since = 0.0
        self.seen = 0

    def run(self, batch_size: int, accumulation: int) -> FineTuned:
        """Train a new network."""
        options, reader, device = self.options, self.reader, self.device
        if self.progress is not None:
            self.progress({"items": len(self.texts), "epochs": options.epochs})
        self.network = _new_network(load_backbone(options.model), options)
        self.network.head.set_prior(*self.task.targets.prior)
        self.network.to(device)
        tokens = reader(self.texts)
        first = reader.padded(tokens[:_FIRST_BATCH])
        self.network.rescale_heads(**on_device(first, device))
        self.batches = EpochBatches(reader, tokens, self.task.targets, batch_size, self.seed)
        self.tuned = FineTuned(self.network, reader, device, self.history, None)
        steps = -(-len(self.batches) // accumulation) * options.epochs
        self._train(accumulation, options.warmup_of(steps))
        if self.best_epoch is not None:
            self.network.load_state_dict(self.best_weights)
            self.best_weights.clear()
        self.network.eval()
        free_memory(device)
        self.tuned.best_epoch = self.best_epoch
        return self.tuned

    def evaluate(self) -> dict[str, float]:
        """Metrics on the dev texts: of the pooled probabilities, and of known annotators."""
        pairs, labels = self.task.dev_pairs or (None, None)
        found, known = self.tuned.predict(self.dev_texts, self.options.eval_batch_size, pairs)
        pooled = self.task.pool(self.network, found)
        scores = self._scores(pooled, self.soft_labels, self.hard_labels)
        value = scores[self.criterion]
        if labels is not None:
            of_known = self._scores(known, labels, self.scale.hard(labels))
            value = (value + of_known[self.criterion]) / 2
            scores |= {f"known_{name}": of_known[name] for name in of_known}
        return {f"eval_{name}": scores[name] for name in scores} | {"eval_criterion": value}

    def _scores(self, p: Floats, q: Floats, y: Any) -> dict[str, float]:
        if not np.isfinite(p).all():
            return {"ce": float("nan"), "f1": 0.0, "rps": float("nan")}
        rows, scale = self.scale.rows, self.scale
        found: Any = compute_metrics(rows(p), rows(q), scale.row_codes(y), metrics=("ce", "f1"))
        return found if scale.positions is None else {**found, "rps": rps(p, q, scale.positions)}

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        """Draw the targets of the epoch."""
        self.epoch += 1
        self.batches.begin(self.epoch)
        if self.network.joint is not None:
            self.network.joint.set_epoch(self.epoch)

    def on_epoch_end(self, *_: Any, **__: Any) -> None:
        """Report an epoch that is not evaluated."""
        if not len(self.dev_texts):
            self._report({})

    def on_evaluate(self, _: Any, state: Any, __: Any, *, metrics: Any, **___: Any) -> None:
        """Report an epoch, and keep its weights if it is the best so far."""
        scores = {name.replace("eval_", "dev_", 1): metrics[name] for name in metrics}
        value, best = scores.pop("dev_criterion"), state.best_metric
        self._report(scores)
        if best is None or (value > best if self.criterion == "f1" else value < best):
            state.best_metric, self.best_epoch = value, self.epoch + 1
            self.best_weights = _copy_of_weights(self.network, self.device)

    def _report(self, scores: dict[str, float]) -> None:
        loss = self.trainer.mean_loss()
        report = {"epoch": self.epoch + 1, "epochs": self.options.epochs, "loss": loss, **scores}
        if not np.isfinite([loss, scores.get("dev_ce", 0.0)]).all():
            raise InputError(
                f"training diverged: in epoch {self.epoch + 1} the loss is {loss:g} and the dev CE"
                f" {scores.get('dev_ce', float('nan')):g}",
                "lower learning_rate",
            )
        self.history.append(report)
        if self.progress is not None:
            self.progress(report)

    def keep_pace(self, items: int) -> None:
        """Report every few seconds how many items a second there are, and the memory they take.

        How many members train at once depends on it. The first step is left out.
        """
        now = time.time()
        if not self.began:
            self.began = self.since = now
            return
        self.seen += items
        if self.progress is None or now - self.since < _WINDOW:
            return
        cuda, rate = self.device.type == "cuda", self.seen / (now - self.since)
        report = {
            "items_per_second": rate,
            "began": self.began,
            "since": self.since,
            "memory": torch.cuda.max_memory_reserved(self.device) if cuda else 0,
        }
        self.since, self.seen = now, 0
        self.progress(report)

    def _optimizer(self) -> torch.optim.Optimizer:
        options, task, network = self.options, self.task, self.network
        decay = options.weight_decay_of(self.seed)
        groups = parameter_groups(
            network,
            options.learning_rate,
            options.layer_decay,
            decay,
            options.head_learning_rate,
            options.annotator_learning_rate,
        )
        if task.joint is not None:
            network.joint = copy.deepcopy(task.joint).to(self.device)
            weights = list(network.joint.parameters())
            groups.append({"params": weights, "lr": task.joint_learning_rate, "weight_decay": 0.0})
        fused = True if self.device.type == "cuda" else None
        return torch.optim.AdamW(groups, lr=options.learning_rate, fused=fused)

    def _train(self, accumulation: int, warmup_steps: int) -> None:
        options, device = self.options, self.device
        evaluated = len(self.dev_texts) > 0
        by_f1 = self.criterion == "f1"
        with tempfile.TemporaryDirectory(prefix="edo-") as folder:
            arguments = _arguments_on(
                device,
                output_dir=folder,
                num_train_epochs=options.epochs,
                gradient_accumulation_steps=accumulation,
                lr_scheduler_type="linear",
                warmup_steps=warmup_steps,
                max_grad_norm=1.0,
                bf16=uses_bfloat16(device),
                use_cpu=device.type == "cpu",
                seed=self.seed,
                remove_unused_columns=False,
                eval_strategy="epoch" if evaluated else "no",
                metric_for_best_model="criterion",
                greater_is_better=by_f1,
                save_strategy="no",
                logging_strategy="no",
                logging_nan_inf_filter=False,  # it would make the host wait at every step
                log_level="error",
                report_to="none",
                disable_tqdm=True,
            )
            with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
                self.trainer = MemberTrainer(self, arguments)
                if evaluated and options.patience:
                    # An F1 that rises by just the delta counts as better.
                    delta = F1_DELTA - 1e-9 if by_f1 else 0.0
                    self.trainer.add_callback(EarlyStoppingCallback(options.patience, delta))
                self.trainer.add_callback(self)
                if device.type == "cuda":
                    torch.cuda.set_device(device)  # Trainer has set the first GPU
                self.trainer.train()
                # In half precision the forward pass was wrapped; predictions choose for themselves.
                self.trainer.accelerator.unwrap_model(self.network, keep_fp32_wrapper=False)
        del self.trainer  # its optimizer takes more memory than the network


class MemberTrainer(Trainer):  # type: ignore[misc]
    """Trains a network on ready-made batches with the loss and optimizer of its task."""

    def __init__(self, attempt: _Attempt, arguments: TrainingArguments) -> None:
        super().__init__(
            model=attempt.network,
            args=arguments,
            optimizers=(attempt._optimizer(), None),
            eval_dataset=attempt.dev_texts,
        )
        self.remove_callback(PrinterCallback)
        self.attempt = attempt
        self.embeddings = attempt.network.backbone.get_input_embeddings().weight
        self.losses: list[torch.Tensor] = []
        """Loss of each batch since the last call of ``mean_loss``."""
        # The losses of an end-to-end training change from epoch to epoch on the host.
        alike = arguments.gradient_accumulation_steps == 1 and attempt.task.joint is None
        on_gpu = attempt.device.type == "cuda"
        self.recorder = Recorder() if alike and on_gpu and attempt.options.cuda_graphs else None

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The batches as they are: one process, one device, nothing to share out."""
        batches, device = self.attempt.batches, self.attempt.device
        return DataLoader(
            range(len(self.attempt.texts)),
            batch_sampler=batches,
            collate_fn=lambda items: on_device(batches.arrays(items), device),
        )

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, **_: Any
    ) -> Any:
        """The loss of the task on the network's logits."""
        logits = model(**{name: inputs[name] for name in inputs if name not in _LABELS})
        loss = self.attempt.task.loss_of(self.attempt.network, logits, inputs)
        return (loss, logits) if return_outputs else loss

    def training_step(self, model: nn.Module, inputs: Batch, *rest: Any) -> torch.Tensor:
        """Forward and backward passes; on a GPU recorded once for each shape of batches."""

        def passes(inputs: Batch) -> torch.Tensor:
            return self._passes(model, inputs, *rest)

        if self.recorder is None:
            loss = passes(inputs)
        else:
            loss = self.recorder(passes, inputs, self.attempt.network)
        self.losses.append(loss)
        self.attempt.keep_pace(len(inputs["targets"]))
        return loss

    def _passes(self, model: nn.Module, inputs: Batch, *rest: Any) -> torch.Tensor:
        """One backward pass, and with adversarial training a second one on moved embeddings."""
        norm, weight = self.attempt.options.adversarial, self.embeddings
        accumulates = norm and self.args.gradient_accumulation_steps > 1
        earlier = weight.grad.clone() if accumulates and weight.grad is not None else None
        loss: torch.Tensor = super().training_step(model, inputs, *rest)
        if norm:
            with adversarial_step(weight, norm, earlier):
                super().training_step(model, inputs, *rest)
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Metrics on the dev texts, from which early stopping decides."""
        metrics = self.attempt.evaluate()
        self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def mean_loss(self) -> float:
        """Mean loss of the batches since the last call."""
        mean: float = float(torch.stack(self.losses).mean()) * self.args.gradient_accumulation_steps
        self.losses.clear()
        return mean


class Recorder:
    """Passes over batches of a shape, recorded as a CUDA graph and replayed from then on.

    The host then launches one graph instead of some thousand kernels, for which the GPU would
    wait. Every shape is computed as usual at first: those that are rare always are.
    """

    def __init__(self) -> None:
        self.times: dict[Any, int] = {}
        self.recorded: dict[Any, tuple[Callable[[], None], Batch, torch.Tensor]] = {}
        self.gradients: list[tuple[nn.Parameter, torch.Tensor]] = []
        """The weights that have gradients, and where replays leave these."""
        self.usable = True
        self.pool: Any = None

    def __call__(
        self, passes: Callable[[Batch], torch.Tensor], batch: Batch, network: nn.Module
    ) -> torch.Tensor:
        """The loss of a batch; the gradients are those of its passes."""
        shape = tuple((name, batch[name].shape) for name in sorted(batch))
        times = self.times[shape] = self.times.get(shape, 0) + 1
        enough = times > _AS_USUAL and len(self.recorded) < _GRAPHS
        if self.usable and shape not in self.recorded and enough:
            self._record(shape, passes, batch)
        if shape not in self.recorded:
            loss = passes(batch)
            if not self.gradients:
                used = [weight for weight in network.parameters() if weight.grad is not None]
                self.gradients = [(weight, torch.zeros_like(weight)) for weight in used]
            return loss
        replay, inputs, loss = self.recorded[shape]
        for name, tensor in batch.items():
            inputs[name].copy_(tensor)
        replay()
        self._attach()
        return loss.clone()

    def _attach(self) -> None:
        for weight, gradient in self.gradients:
            weight.grad = gradient

    def _record(self, shape: Any, passes: Callable[[Batch], torch.Tensor], batch: Batch) -> None:
        inputs = {name: tensor.clone() for name, tensor in batch.items()}

        def anew() -> torch.Tensor:
            torch._foreach_zero_([gradient for _, gradient in self.gradients])
            return passes(inputs)

        self._attach()
        try:
            replay, loss = self._capture(anew)
        except RuntimeError as error:  # the encoder does what can't be recorded
            self.usable = False
            warn(f"passes are not recorded as CUDA graphs: {str(error).splitlines()[0]}")
            for weight, _ in self.gradients:
                weight.grad = None
            return
        self.recorded[shape] = replay, inputs, loss

    def _capture(
        self, passes: Callable[[], torch.Tensor]
    ) -> tuple[Callable[[], None], torch.Tensor]:
        """What replays the passes, and the loss that a replay fills in; nothing is computed yet."""
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        here = torch.device("cuda", torch.cuda.current_device())
        torch.cuda.synchronize()
        with torch.cuda.stream(stream), here, _OnDevice():
            graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                loss = passes()
            finally:
                graph.capture_end()
        return graph.replay, loss


class _OnDevice(TorchFunctionMode):  # type: ignore[misc]
    """Numbers that a model makes tensors of are filled in where it computes, not copied there."""

    def __torch_function__(self, function: Any, _: Any, args: Any = (), given: Any = None) -> Any:
        if function is torch.tensor and isinstance(args[0], (int, float)):
            return torch.full((), *args, **(given or {}))
        return function(*args, **(given or {}))


def _new_network(backbone: nn.Module, member: FineTunedMember) -> MemberNetwork:
    width = int(backbone.config.hidden_size) * (2 if member.pooling == "mean+target" else 1)
    return MemberNetwork(backbone, member.pooling, member.new_heads(width))


def _copy_of_weights(network: nn.Module, device: torch.device) -> dict[str, torch.Tensor]:
    """The network's weights: on its GPU where there is ample room, else in main memory."""
    weights = network.state_dict()
    size = sum(value.numel() * value.element_size() for value in weights.values())
    ample = device.type == "cuda" and torch.cuda.mem_get_info(device)[0] > 8 * size
    where = device if ample else torch.device("cpu")
    return {name: value.detach().to(where, copy=True) for name, value in weights.items()}


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


def _arguments_on(device: torch.device, **options: Any) -> TrainingArguments:
    """Arguments for this one device; Trainer by itself takes every GPU that there is."""

    class OneDevice(TrainingArguments):  # type: ignore[misc]
        @property
        def device(self) -> torch.device:
            # Asked for its own sake, too: setting devices up leaves the state that Trainer reads.
            found: torch.device = self._setup_devices
            return device if device.type == "cuda" else found

        @property
        def n_gpu(self) -> int:
            return int(device.type == "cuda")

    return OneDevice(**options)
