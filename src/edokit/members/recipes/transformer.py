"""Members that are fine-tuned transformers; the default options are the paper's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edokit._errors import EDOWarning, InputError, examples, one_of
from edokit._types import Floats
from edokit.members.pretrained import require_packages
from edokit.members.recipe import Member, MemberData, Progress, Text

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


_SETTINGS = "transformer.json"


@dataclass(eq=False)
class TransformerMember(FineTuning, Member):
    """A pretrained encoder with a classifier on top, fine-tuned together.

    Options are those of `FineTuning`. With ``annotator_heads`` every annotator has a classifier
    of their own on the same encoder.
    """

    resamples: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True
    on_device: ClassVar[bool] = True

    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    """Per epoch: epoch, loss, dev_ce and dev_f1."""
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    """The epoch whose weights were kept, counted from 1."""
    annotators_: list[str] = field(default_factory=list, init=False, repr=False)
    """The annotators that have a head."""
    activity_: list[float] = field(default_factory=list, init=False, repr=False)
    """How many answers of each of them there were to learn from."""
    constant_: list[float] | None = field(default=None, init=False, repr=False)
    """The one answer [C] of a member that saw a single class."""
    _tuned: Any = field(default=None, init=False, repr=False)

    @property
    def known_annotators(self) -> Sequence[str]:
        """The annotators that have a head."""
        return tuple(self.annotators_)

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> Any:
        """Tokens by text, read once for all members."""
        require_packages("fine-tuning")
        from edokit.members.pretrained import load_tokenizer
        from edokit.members.recipes._tokens import Reader

        known = {name: value for name, value in options.items() if name != "n_classes"}
        chosen = FineTuning(2, **known)
        reader = Reader(
            load_tokenizer(chosen.model), chosen.max_length, speaker_tags=chosen.speaker_tags
        )
        return reader.table(texts)

    def fit(self, lesson: MemberData, *, seed: int, progress: Progress | None = None) -> Any:
        """Learn; the same seed gives the same member on the same machine's CPU."""
        require_packages("fine-tuning")
        from edokit.members.recipes._fine_tune import annotator_task, fine_tune, target_task
        from edokit.members.recipes._tokens import AnnotatorAnswers, TargetAnswers

        n_texts = len(lesson.texts)
        self.constant_ = None
        if self.annotator_heads:
            answered = AnnotatorAnswers(lesson.annotations, n_texts, self.n_classes)
            self.annotators_ = answered.annotators
            self.activity_ = answered.activity.tolist()
            task = annotator_task(answered, self.n_classes, self._average)
        else:
            targets = TargetAnswers(lesson.targets, (n_texts, self.n_classes))
            if n_texts and (only := targets.only_class(self.epochs)) is not None:
                self._be_constant(only, n_texts)
                return self
            task = target_task(targets, self.n_classes, self.loss)
        self._tuned = fine_tune(self, lesson, task, seed=seed, progress=progress)
        self.history_, self.best_epoch_ = self._tuned.history, self._tuned.best_epoch
        return self

    def predict_proba(
        self, texts: Sequence[Text], annotators: Sequence[Iterable[str]] | None = None
    ) -> Floats:
        """Probabilities [N, C].

        With a head per annotator they are averaged over all annotators, each as often as they
        answered; or over ``annotators``, those known to judge each text (others are passed over;
        a text whose judges are all unknown gets the average over all).
        """
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(texts), 1))
        shares = self._probabilities(texts)
        if not self.annotator_heads:
            return shares
        if annotators is None:
            return self._average(shares)
        pooled: Floats = np.einsum("na,nac->nc", self._judges(annotators, len(texts)), shares)
        return pooled

    def predict_annotators(self, texts: Sequence[Text]) -> Floats:
        """What each annotator would answer [N, A, C], in the order of ``annotators_``."""
        if not self.annotator_heads:
            raise InputError(
                "only a member with a head per annotator can tell annotators apart, but this one"
                " has one head",
                "train with annotator_heads=True",
            )
        return self._probabilities(texts)

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configs (JSON) and tokenizer."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.constant_ is None:
            tuned = self._fitted()
            from edokit.members.recipes._fine_tune import save_tuned

            save_tuned(tuned, folder)
        state = {
            "options": self.options(),
            "history": self.history_,
            "best_epoch": self.best_epoch_,
            "annotators": self.annotators_,
            "activity": self.activity_,
            "constant": self.constant_,
        }
        write_settings(folder / _SETTINGS, state)

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> TransformerMember:
        """Read what ``save`` wrote, onto a device."""
        folder = Path(folder)
        told = "a saved transformer member", "TransformerMember.save"
        with read_settings(folder / _SETTINGS, *told) as state:
            member = cls(**{**state["options"], "device": device})
            member.history_, member.best_epoch_ = state["history"], state["best_epoch"]
            member.annotators_, member.activity_ = state["annotators"], state["activity"]
            member.constant_ = state["constant"]
        if member.constant_ is None:
            require_packages("fine-tuning")
            from edokit.members.recipes._fine_tune import head_of, load_tuned

            head = head_of(member, len(member.annotators_))
            member._tuned = load_tuned(folder, member, head)
        return member

    def _fitted(self) -> Any:
        if self._tuned is None:
            raise InputError("a member must be fitted before it is used", "call fit first")
        return self._tuned

    def _probabilities(self, texts: Sequence[Text]) -> Floats:
        tuned = self._fitted()
        from edokit.members.recipes._trainer import probabilities

        if not len(texts):
            heads = (len(self.annotators_),) if self.annotator_heads else ()
            return np.empty((0, *heads, self.n_classes))
        return probabilities(
            tuned.network,
            tuned.reader(texts),
            pad_id=tuned.reader.tokenizer.pad_token_id,
            max_length=tuned.reader.max_length,
            batch_size=self.eval_batch_size,
            device=tuned.device,
        )

    def _average(self, shares: Floats) -> Floats:
        """Over annotators [N, A, C] -> [N, C], each as often as they answered."""
        average: Floats = np.average(shares, axis=1, weights=self.activity_)
        return average

    def _judges(self, annotators: Sequence[Iterable[str]], n_texts: int) -> Floats:
        """Weights [N, A] of the heads of those who judge each text."""
        if len(annotators) != n_texts:
            raise InputError(
                f"annotators must be given for each of the {n_texts} texts, but there are"
                f" {len(annotators)} entries",
                "give one list of annotators per text",
            )
        places = {name: place for place, name in enumerate(self.annotators_)}
        weights = np.zeros((n_texts, len(places)))
        everyone = np.array(self.activity_) / sum(self.activity_)
        strangers = 0
        for row, names in enumerate(annotators):
            for name in names:
                if str(name) in places:
                    weights[row, places[str(name)]] += 1
            if weights[row].any():
                weights[row] /= weights[row].sum()
            else:
                weights[row] = everyone
                strangers += 1
        if strangers:
            warnings.warn(
                f"{strangers} of {n_texts} texts have no judge with a head; they get the average"
                " over all annotators",
                EDOWarning,
                stacklevel=3,
            )
        return weights

    def _be_constant(self, only: int, n_texts: int) -> None:
        from edokit.members.recipes._network import class_prior

        self.constant_ = class_prior(n_texts * np.eye(self.n_classes)[[only]]).tolist()
        self._tuned = None
        warnings.warn(
            f"all targets name one class, {examples([only])}: this member answers it always",
            EDOWarning,
            stacklevel=3,
        )


def write_settings(path: Path, state: Mapping[str, Any]) -> None:
    """Write plain values."""
    text = json.dumps(state, ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


@contextmanager
def read_settings(path: Path, what: str, writer: str) -> Iterator[Any]:
    """What ``write_settings`` wrote; a file that is not there or lacks something is refused.

    ``what`` the folder must be, and ``writer`` is what makes such folders.
    """
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path.parent} must be the folder of {what}, but its {path.name} can't be read:"
            f" {error}",
            f"name a folder that {writer} wrote",
        ) from error
