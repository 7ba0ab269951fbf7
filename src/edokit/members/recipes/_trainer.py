"""Hugging Face's Trainer with our targets and adversarial step, and batched prediction."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.pretrained import free_memory, out_of_memory
from edokit.members.recipes._network import moved_to_hurt
from edokit.members.recipes._tokens import Tokens, padded

Batch = dict[str, torch.Tensor]
LossOf = Callable[[torch.Tensor, Batch], torch.Tensor]
"""Loss of the network's output, given what else is in the batch."""

ANSWERS = "answers"
"""What a batch holds beside the network's inputs begins with this."""


class Epochs(Protocol):
    """Who is told of the epochs."""

    def begin(self, epoch: int) -> None:
        """Called before the batches of an epoch are asked for."""

    def end(self, epoch: int, loss: float) -> bool:
        """Called after an epoch with its mean loss; true: training stops here."""


class MemberTrainer(Trainer):  # type: ignore[misc]
    """Trains a network on ready-made batches with a given loss and optimizer.

    ``adversarial`` is a parameter and the norm of the step that it takes against itself.
    """

    def __init__(
        self,
        network: nn.Module,
        arguments: TrainingArguments,
        *,
        loader: DataLoader[Any],
        loss_of: LossOf,
        optimizer: torch.optim.Optimizer,
        epochs: Epochs,
        adversarial: tuple[nn.Parameter, float] | None = None,
    ) -> None:
        super().__init__(model=network, args=arguments, optimizers=(optimizer, None))
        self.remove_callback(PrinterCallback)
        self.add_callback(_TellEpochs(self, epochs))
        self.loader = loader
        self.loss_of = loss_of
        self.adversarial = adversarial
        self.losses: list[torch.Tensor] = []
        """Loss of each batch since the last look at them."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The batches as they are: one process, one device, nothing to share out."""
        return self.loader

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, **_: Any
    ) -> Any:
        """The given loss on the network's logits."""
        seen = {name: value for name, value in inputs.items() if not name.startswith(ANSWERS)}
        logits = model(**seen)
        loss = self.loss_of(logits, inputs)
        return (loss, logits) if return_outputs else loss

    def training_step(self, model: nn.Module, inputs: Batch, *rest: Any) -> torch.Tensor:
        """One backward pass, and with adversarial training a second one on moved embeddings."""
        if self.adversarial is None:
            loss: torch.Tensor = super().training_step(model, inputs, *rest)
        else:
            weight, norm = self.adversarial
            earlier = None if weight.grad is None else weight.grad.clone()
            loss = super().training_step(model, inputs, *rest)
            with moved_to_hurt(weight, norm, earlier):
                super().training_step(model, inputs, *rest)
        self.losses.append(loss)
        return loss

    def mean_loss(self) -> float:
        """Mean loss of the batches since the last call."""
        mean: float = float(torch.stack(self.losses).mean()) * self.args.gradient_accumulation_steps
        self.losses.clear()
        return mean


class _TellEpochs(TrainerCallback):  # type: ignore[misc]
    def __init__(self, trainer: MemberTrainer, epochs: Epochs) -> None:
        self.trainer, self.epochs, self.epoch = trainer, epochs, -1

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self.epoch += 1
        self.epochs.begin(self.epoch)

    def on_epoch_end(self, _: Any, __: Any, control: Any, **___: Any) -> None:
        if self.epochs.end(self.epoch, self.trainer.mean_loss()):
            control.should_training_stop = True


def train(
    network: nn.Module,
    *,
    device: torch.device,
    n_epochs: int,
    warmup_steps: int,
    accumulation: int,
    seed: int,
    **given: Any,
) -> None:
    """Train the network in place, where it is; ``given`` goes to the trainer."""
    with tempfile.TemporaryDirectory(prefix="edo-") as folder:
        arguments = _arguments_on(
            device,
            output_dir=folder,
            num_train_epochs=n_epochs,
            gradient_accumulation_steps=accumulation,
            lr_scheduler_type="linear",
            warmup_steps=warmup_steps,
            max_grad_norm=1.0,
            bf16=uses_bfloat16(device),
            use_cpu=device.type == "cpu",
            seed=seed,
            remove_unused_columns=False,
            eval_strategy="no",
            save_strategy="no",
            logging_strategy="no",
            logging_nan_inf_filter=False,  # it would make the host wait at every step
            log_level="error",
            report_to="none",
            disable_tqdm=True,
        )
        here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
        with here:
            trainer = MemberTrainer(network, arguments, **given)
            if device.type == "cuda":
                torch.cuda.set_device(device)  # Trainer has set the first GPU
            trainer.train()
            # In half precision the forward pass was wrapped; predictions choose for themselves.
            trainer.accelerator.unwrap_model(network, keep_fp32_wrapper=False)


def _arguments_on(device: torch.device, **options: Any) -> TrainingArguments:
    """Arguments for this one device; Trainer by itself takes every GPU it sees."""

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


def probabilities(
    network: nn.Module,
    tokens: Sequence[Tokens],
    *,
    pad_id: int,
    max_length: int,
    batch_size: int,
    device: torch.device,
) -> Floats:
    """Softmax of the network's logits [N, …, C], in the order of the texts.

    Where a batch does not fit into memory, batches half as large are tried once.
    """
    network.eval()
    order = np.argsort([-len(one.ids) for one in tokens], kind="stable")
    for size in (batch_size, -(-batch_size // 2)):
        try:
            parts = [
                _batch(
                    network, [tokens[i] for i in order[s : s + size]], pad_id, max_length, device
                )
                for s in range(0, len(order), size)
            ]
            break
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        free_memory(device)
    else:
        raise InputError(
            f"a batch must fit into the GPU's memory, but one of {size} texts does not",
            "lower eval_batch_size or max_length",
        )
    result = np.empty((len(tokens), *parts[0].shape[1:]))
    result[order] = np.concatenate(parts)
    return result


def on_device(arrays: dict[str, npt.NDArray[Any]], device: torch.device) -> dict[str, torch.Tensor]:
    """Arrays as tensors where the network is; to a GPU without making the host wait."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if device.type == "cuda":
        return {
            name: tensor.pin_memory().to(device, non_blocking=True)
            for name, tensor in tensors.items()
        }
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def uses_bfloat16(device: torch.device) -> bool:
    """Whether the encoder computes in bfloat16 there."""
    return device.type == "cuda" and bool(torch.cuda.is_bf16_supported())


def _batch(
    network: nn.Module, tokens: list[Tokens], pad_id: int, max_length: int, device: torch.device
) -> Floats:
    half = uses_bfloat16(device)
    precision = torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext()
    with torch.no_grad(), precision:
        logits = network(**on_device(padded(tokens, pad_id, max_length), device))
        shares = torch.softmax(logits.double(), dim=-1) if device.type != "mps" else logits
    if device.type == "mps":  # no double precision there
        shares = torch.softmax(shares.cpu().double(), dim=-1)
    result: Floats = shares.cpu().numpy()
    return result
