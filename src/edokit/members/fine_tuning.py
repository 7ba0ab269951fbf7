"""The options of fine-tuning; the defaults are the paper's settings."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum
from typing import Any

import numpy as np

from edokit._errors import InputError, one_of

WEIGHT_DECAY = (0.005, 0.015)
"""Where the weight decay of a member is drawn from."""
F1_DELTA = 0.01
"""By how much the dev F1 must rise to count as better."""
WARMUP_SHARE = 0.1
"""Warm-up never takes more than this share of the run."""


class Criterion(str, Enum):
    """What makes an epoch better than those before it, on the dev texts."""

    CE = "ce"
    """A lower cross-entropy to the soft labels."""
    F1 = "f1"
    """A higher micro-F1 on the hard labels, by 0.01 at least (the paper)."""


class Loss(str, Enum):
    """What a step makes smaller."""

    CE = "ce"
    """Cross-entropy to the targets."""
    MD = "md"
    """Manhattan distance to the targets."""


class Pooling(str, Enum):
    """Which tokens' last hidden states the classifier sees."""

    FIRST = "first"
    """The first token's."""
    LAST = "last"
    """The last token's, which in a decoder is the only one that has read the whole text."""
    MEAN = "mean"
    """The mean over all tokens."""
    TARGET = "mean+target"
    """The mean over all tokens, joined with the mean over the target segment's: the utterance
    of (utterance, context), the whole of a single text."""


@dataclass
class FineTuning:
    """How a transformer is fine-tuned into a member with ``n_classes`` outputs."""

    n_classes: int
    _: KW_ONLY
    model: str = "google-bert/bert-base-uncased"
    """Hub id or local folder of the pretrained encoder."""
    learning_rate: float = 2e-5
    batch_size: int = 16
    eval_batch_size: int = 32
    epochs: int = 20
    """The most epochs; the learning rate falls linearly to 0 over all of them."""
    patience: int = 3
    """Epochs without a better one after which training stops; 0: never."""
    criterion: str = Criterion.CE.value
    """Which epoch counts as better: "ce" or "f1"."""
    warmup_steps: int = 500
    """Capped to a tenth of the run."""
    weight_decay: float | None = None
    """None: drawn in [0.005, 0.015] by the member's seed."""
    max_length: int = 512
    """Tokens; longer texts are cut."""
    loss: str = Loss.CE.value
    """"ce" or "md"."""
    pooling: str = Pooling.MEAN.value
    """"first", "last" (for decoders), "mean" or "mean+target"."""
    adversarial: float = 0.0
    """Norm of the adversarial step on the word embeddings (FGM); 0: no such step."""
    layer_decay: float = 1.0
    """Each layer learns this much slower than the one above it; 1: all learn alike."""
    speaker_tags: bool = False
    """Say who speaks in each line of (utterance, context)."""
    annotator_heads: bool = False
    """One head per annotator, from the annotations of the lesson instead of its targets."""
    device: str | None = None
    """"cpu", "cuda", "cuda:1", "mps"; None: a GPU where there is one."""

    def __post_init__(self) -> None:
        one_of("criterion", self.criterion, [mode.value for mode in Criterion])
        one_of("loss", self.loss, [mode.value for mode in Loss])
        one_of("pooling", self.pooling, [mode.value for mode in Pooling])
        for name, least in (
            ("n_classes", 2),
            ("batch_size", 1),
            ("eval_batch_size", 1),
            ("epochs", 1),
            ("patience", 0),
            ("warmup_steps", 0),
            ("max_length", 8),
        ):
            check_number(name, getattr(self, name), least, float("inf"), whole=True)
        check_number("learning_rate", self.learning_rate, 0.0, 1.0, above=True)
        check_number("adversarial", self.adversarial, 0.0, float("inf"))
        check_number("layer_decay", self.layer_decay, 0.0, 1.0, above=True)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, 0.0, 1.0)
        if self.annotator_heads and self.loss != Loss.CE.value:
            raise InputError(
                f"a head per annotator learns from single answers, but loss is {self.loss!r}",
                "choose loss='ce', or annotator_heads=False",
            )

    def options(self) -> dict[str, Any]:
        """Every option by name, as plain values."""
        return {option.name: getattr(self, option.name) for option in fields(FineTuning)}

    def weight_decay_of(self, seed: int) -> float:
        """The weight decay of the member with this seed."""
        if self.weight_decay is not None:
            return self.weight_decay
        return float(np.random.default_rng(seed).uniform(*WEIGHT_DECAY))

    def warmup_of(self, steps: int) -> int:
        """Warm-up steps of a run of so many steps."""
        return min(self.warmup_steps, int(WARMUP_SHARE * steps))


def check_number(
    name: str, value: Any, least: float, most: float, *, above: bool = False, whole: bool = False
) -> None:
    """Refuse what is no number, or one outside of these bounds."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    right_kind = isinstance(value, kinds) and not isinstance(value, bool)
    if not right_kind or not (least < value if above else least <= value) or value > most:
        bound = f"{'above' if above else 'at least'} {least:g}"
        bound += f" and at most {most:g}" if most < float("inf") else ""
        raise InputError(
            f"{name} must be {'a whole number' if whole else 'a number'} {bound}, but got"
            f" {value!r}",
            f"choose another {name}",
        )
