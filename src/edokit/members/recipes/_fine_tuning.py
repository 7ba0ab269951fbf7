"""Options of fine-tuning (the defaults are the paper's), and what fine-tuned members share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edokit._errors import InputError, one_of
from edokit._types import Floats
from edokit.members.pretrained import require_packages
from edokit.members.recipe import Member, Text, check_number

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
    """The training loss."""

    CE = "ce"
    """Cross-entropy to the targets."""
    MD = "md"
    """Manhattan distance to the targets."""


class Pooling(str, Enum):
    """Which tokens' last hidden states the classifier gets."""

    FIRST = "first"
    """The first token's."""
    LAST = "last"
    """The last token's: in a decoder the only one that depends on the whole text."""
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
    """The learning rate of each layer is this share of the one above it; 1: all the same."""
    speaker_tags: bool = False
    """Name the speaker in each line of (utterance, context)."""
    annotator_heads: bool = False
    """One head per annotator, trained on the annotations instead of the targets."""
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
            check_number(name, getattr(self, name), least, whole=True)
        check_number("learning_rate", self.learning_rate, 0.0, 1.0, above=True)
        check_number("adversarial", self.adversarial, 0.0)
        check_number("layer_decay", self.layer_decay, 0.0, 1.0, above=True)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, 0.0, 1.0)
        if self.annotator_heads and self.loss != Loss.CE.value:
            raise InputError(
                f"a head per annotator trains on single labels, for which loss={self.loss!r} is"
                " not defined",
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


@dataclass(eq=False)
class FineTunedMember(FineTuning, Member):
    """What members with one head, a head per annotator and a head per member share."""

    resamples: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True
    on_device: ClassVar[bool] = True

    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    """Per epoch: epoch, loss, dev_ce and dev_f1."""
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    """The epoch whose weights were kept, counted from 1."""
    _tuned: Any = field(default=None, init=False, repr=False)

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> Any:
        """Tokens by text, read once for all members."""
        require_packages("fine-tuning")
        from edokit.members.pretrained import load_tokenizer
        from edokit.members.recipes._tokens import Reader

        chosen = cls(2, **{name: options[name] for name in options if name != "n_classes"})
        tokenizer = load_tokenizer(chosen.model)
        return Reader(tokenizer, chosen.max_length, speaker_tags=chosen.speaker_tags).table(texts)

    def _fitted(self) -> Any:
        if self._tuned is None:
            raise InputError("this member is not fitted yet", "call fit first")
        return self._tuned

    def _keep(self, tuned: Any) -> None:
        self._tuned = tuned
        self.history_, self.best_epoch_ = tuned.history, tuned.best_epoch

    def _probabilities(self, texts: Sequence[Text], heads: tuple[int, ...]) -> Floats:
        """Probabilities of all heads [N, …, C]."""
        tuned = self._fitted()
        if not len(texts):
            return np.empty((0, *heads, self.n_classes))
        probabilities: Floats = tuned.predict(texts, self.eval_batch_size)
        return probabilities


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write what a member is, beside its weights, as plain values."""
    text = json.dumps(state, ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


@contextmanager
def reading_state(path: Path, what: str) -> Iterator[Any]:
    """What ``write_state`` wrote; a file that is missing or lacks something is refused."""
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path.parent} is not the folder of {what}: its {path.name} can't be read: {error}",
            "name a folder that its method save wrote",
        ) from error
