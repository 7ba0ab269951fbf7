"""Options of fine-tuning (the defaults are the paper's), and what fine-tuned members share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edokit._errors import InputError, check_number, errors_in, one_of
from edokit._io.schema import (
    checked,
    listed,
    loose,
    mapping,
    number,
    optional,
    plain,
    read_document,
    record,
    text,
)
from edokit._types import Floats
from edokit.members.pretrained import load_tokenizer, require_packages
from edokit.members.recipe import Member, MemberData, Progress, Text
from edokit.scales import NOMINAL, Scale

WEIGHT_DECAY = (0.005, 0.015)  # where the weight decay of a member is drawn from
F1_DELTA = 0.01  # by how much the dev F1 must rise to count as better
WARMUP_SHARE = 0.1  # warm-up never takes more than this share of the run
CRITERIA = ("", "ce", "f1", "rps")
LOSSES = ("ce", "md", "rps", "ce+rps")
LINKS = ("softmax", "cumulative")
POOLINGS = ("first", "last", "mean", "mean+target")


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
    criterion: str = ""
    """What makes an epoch better on the dev texts: a lower cross-entropy ("ce") or ranked
    probability score ("rps", ordinal scales) to the soft labels, or a micro-F1 on the hard labels
    that is higher by 0.01 at least ("f1"; the paper). Empty: "rps" of ordinal scales, else "ce"."""
    warmup_steps: int = 500
    """Capped to a tenth of the run."""
    weight_decay: float | None = None
    """None: drawn in [0.005, 0.015] by the member's seed."""
    max_length: int = 512
    """Tokens; longer texts are cut."""
    loss: str = "ce"
    """Cross-entropy ("ce"), Manhattan distance ("md") or, of ordinal scales, ranked probability
    score ("rps") to the targets, or the sum of two ("ce+rps"). Of sets: the mean over labels."""
    link: str = "softmax"
    """Of ordinal scales: a score per class ("softmax"), or one score and cut points between the
    classes ("cumulative")."""
    pooling: str = "mean"
    """Which tokens' last hidden states the classifier gets: the "first", the "last" (in a decoder
    the only one that depends on the whole text), the "mean" over all, or that joined with the mean
    over the utterance of (utterance, context) ("mean+target")."""
    adversarial: float = 0.0
    """Norm of the adversarial step on the word embeddings (FGM); 0: no such step."""
    layer_decay: float = 1.0
    """The learning rate of each layer is this share of the one above it; 1: all the same."""
    speaker_tags: bool = False
    """Name the speaker in each line of (utterance, context)."""
    context_first: bool = False
    """Read (utterance, context) in the order in which people read them, the context before the
    utterance; recommended for decoders, which were trained to read forwards."""
    head_learning_rate: float | None = None
    """None: as the encoder's."""
    annotators: bool = False
    """Learn who labelled: the member predicts for nobody in particular, and for each annotator."""
    attributes: str = ""
    """Attributes of the annotators that count, separated by commas: beside who labelled, or
    alone."""
    annotator_learning_rate: float = 1e-3
    """Learning rate of what is an annotator's own: a vector beside the features of a text, and a
    bias per class."""
    annotator_dropout: float = 0.2
    """Share of the labels whose annotator is hidden in an epoch."""
    annotator_shrinkage: float = 10.0
    """What is an annotator's own counts by n / (n + this), n their number of labels."""
    anonymous_weight: float = 0.5
    """Weight of the loss for nobody in particular beside that of the annotators' labels."""
    device: str | None = None
    """"cpu", "cuda", "cuda:1", "mps"; None: a GPU where there is one."""

    def __post_init__(self) -> None:
        one_of("criterion", self.criterion, CRITERIA)
        one_of("loss", self.loss, LOSSES)
        one_of("link", self.link, LINKS)
        one_of("pooling", self.pooling, POOLINGS)
        least = {"n_classes": 2, "batch_size": 1, "eval_batch_size": 1, "epochs": 1}
        for name, bound in {**least, "patience": 0, "warmup_steps": 0, "max_length": 8}.items():
            check_number(name, getattr(self, name), bound, whole=True)
        check_number("learning_rate", self.learning_rate, 0.0, 1.0, above=True)
        check_number("adversarial", self.adversarial, 0.0)
        check_number("layer_decay", self.layer_decay, 0.0, 1.0, above=True)
        if self.weight_decay is not None:
            check_number("weight_decay", self.weight_decay, 0.0, 1.0)
        if self.head_learning_rate is not None:
            check_number("head_learning_rate", self.head_learning_rate, 0.0, 1.0, above=True)
        check_number("annotator_learning_rate", self.annotator_learning_rate, 0.0, 1.0, above=True)
        check_number("annotator_dropout", self.annotator_dropout, 0.0, 1.0)
        check_number("annotator_shrinkage", self.annotator_shrinkage, 0.0)
        check_number("anonymous_weight", self.anonymous_weight, 0.0)
        if self.knows_annotators and self.loss == "md":
            raise InputError(
                "annotators give single labels, from which loss='md' learns no distribution",
                "choose loss='ce', or annotators=False and no attributes",
            )

    @property
    def knows_annotators(self) -> bool:
        """Whether it learns from each annotator's own labels."""
        return self.annotators or bool(self.attributes)

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
    """What members with one head, one that knows annotators and a head per member share."""

    resamples: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True
    on_device: ClassVar[bool] = True
    multi_label: ClassVar[bool] = True

    _file: ClassVar[str]
    """The JSON file with its options and fitted attributes."""
    _kind: ClassVar[str]
    """What a folder with this file is, for messages."""
    _kept: ClassVar[tuple[str, ...]]
    """Fitted attributes that are kept, without their underscore."""

    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    """Per epoch: epoch, loss, dev_ce, dev_f1 and, of ordinal scales, dev_rps."""
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    """The epoch whose weights were kept, counted from 1."""
    constant_: list[float] | None = field(default=None, init=False, repr=False)
    """The one prediction [C] of a member whose targets have a single class."""
    scale_: Scale = field(default=NOMINAL, init=False, repr=False)
    """The answer scale of its targets."""
    _tuned: Any = field(default=None, init=False, repr=False)

    def check_data(self, data: Any) -> None:
        """Refuse options of ordinal scales on others."""
        self.check_options(data.scale)

    def check_options(self, scale: Scale) -> None:
        """Refuse options of ordinal scales on others."""
        if scale.positions is not None:
            return
        for name, ordinal in (("criterion", "rps"), ("loss", "rps"), ("link", "cumulative")):
            if ordinal in getattr(self, name):
                raise InputError(
                    f"{name}={getattr(self, name)!r} is for ordinal scales, but this one is"
                    f" {scale}",
                    f"leave {name} out, or declare the scale",
                    parameters=(name, "scale"),
                )

    def options(self) -> dict[str, Any]:
        """Every option by name, as plain values."""
        names = [option.name for option in fields(self) if option.init and option.name != "preset"]
        return {name: getattr(self, name) for name in names}

    def reader(self, model: str) -> Any:
        """What turns texts into the tokens of a model."""
        from edokit.members.recipes._tokens import Reader

        return Reader(
            load_tokenizer(model),
            self.max_length,
            speaker_tags=self.speaker_tags,
            context_first=self.context_first,
        )

    def new_heads(self, width: int) -> Any:
        """Heads on so many features, not trained yet."""
        raise NotImplementedError

    def new_link(self) -> Any:
        """What turns the scores of a head into logits."""
        from edokit.members.recipes._network import Link

        kind = "sets" if self.scale_.is_multi_label else self.link
        return Link(kind, self.n_classes, self.scale_.steps)

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configs (JSON) and tokenizer."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.constant_ is None:
            self._fitted().save(folder)
        kept = {name: getattr(self, f"{name}_") for name in self._kept}
        kept["scale"] = asdict(self.scale_)
        state = json.dumps({"options": self.options(), **kept}, ensure_ascii=False, indent=2)
        (folder / self._file).write_text(state + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> Any:
        """Read what ``save`` wrote, onto a device."""
        folder = Path(folder)
        path, hint = folder / cls._file, "name a folder that its method save wrote"
        if not path.is_file():
            raise InputError(
                f"{folder} is not the folder of {cls._kind}: it has no {cls._file}", hint
            )
        needed = {"options": mapping(plain), **dict.fromkeys(cls._kept, loose)}
        scale = record({"kind": text}, {"positions": listed(number())}, only=True)
        form = record({**needed, "scale": scale})
        state = read_document(path, form, f"a file of {cls._kind}", hint)
        for file in folder.glob("*config.json"):
            read_document(file, plain, "a whole configuration", hint)
        options = {**state["options"], "device": device}
        options.pop("cuda_graphs", None)  # of members that 0.1.0 saved
        try:
            with errors_in(path):
                member = cls(**options)
                member.scale_ = Scale(**state["scale"])
        except TypeError as error:
            raise InputError(f"{path} holds options that are unknown: {error}", hint) from error
        for name in cls._kept:
            setattr(member, f"{name}_", state[name])
        constant = optional(listed(number(0, 1), member.n_classes))
        checked(member.constant_, constant, path, f"a file of {cls._kind}", hint)
        if member.constant_ is None:
            require_packages("fine-tuning")
            from edokit.members.recipes._training import FineTuned

            member._tuned = FineTuned.load(folder, member)
        return member

    def _fitted(self) -> Any:
        if self._tuned is None:
            raise InputError("this member is not fitted yet", "call fit first")
        return self._tuned

    def _tune(self, data: MemberData, task: Any, seed: int, progress: Progress | None) -> None:
        from edokit.members.recipes._training import fine_tune

        self.scale_ = data.scale
        self._tuned = fine_tune(self, data, task, seed=seed, progress=progress)
        self.history_, self.best_epoch_ = self._tuned.history, self._tuned.best_epoch

    def _probabilities(
        self, texts: Sequence[Text], heads: tuple[int, ...], pairs: Any = None
    ) -> tuple[Floats, Any]:
        """Probabilities of all heads [N, …, C], and of pairs of a text and an annotator [P, C]."""
        tuned = self._fitted()
        if not len(texts):
            empty = np.empty((0, *heads, self.n_classes))
            return empty, empty
        found: tuple[Floats, Any] = tuned.predict(texts, self.eval_batch_size, pairs)
        return found
