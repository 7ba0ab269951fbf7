"""Options of fine-tuning (the defaults are the paper's), and what fine-tuned members share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edokit._errors import InputError, errors_in, one_of, option
from edokit._io.documents import Count, Document, Json, read_model
from edokit._types import Floats
from edokit.members.pretrained import load_tokenizer, require_packages
from edokit.members.recipe import Member, MemberData, Text, check_options, known_options
from edokit.members.recipes._ranges import Range, check_ranges
from edokit.scales import NOMINAL, Scale

WEIGHT_DECAY = (0.005, 0.015)  # where the weight decay of a member is drawn from
F1_DELTA = 0.01  # by how much the dev F1 must rise to count as better
WARMUP_SHARE = 0.1  # warm-up never takes more than this share of the run
CHOICES = {
    "criterion": ("", "ce", "f1", "rps"),
    "loss": ("ce", "md", "rps", "ce+rps"),
    "link": ("softmax", "cumulative"),
    "pooling": ("first", "last", "mean", "mean+target"),
}
RANGES = {
    "n_classes": Range(2, integer=True),
    "batch_size": Range(1, integer=True),
    "eval_batch_size": Range(1, integer=True),
    "epochs": Range(1, integer=True),
    "patience": Range(0, integer=True),
    "warmup_steps": Range(0, integer=True),
    "max_length": Range(8, integer=True),
    "learning_rate": Range(0, 1, above=True),
    "head_learning_rate": Range(0, 1, above=True, optional=True),
    "annotator_learning_rate": Range(0, 1, above=True),
    "layer_decay": Range(0, 1, above=True),
    "weight_decay": Range(0, 1, optional=True),
    "adversarial": Range(0),
}


class SavedScale(Document):
    """An answer scale in a member's file."""

    kind: str
    positions: list[float] | None = None


class SavedMember(Document):
    """The file of a fine-tuned member: its options, its scale and what it learned."""

    options: dict[str, Json]
    scale: SavedScale
    history: list[dict[str, Json]]
    best_epoch: Count | None


@dataclass(eq=False)
class FineTunedMember(Member):
    """A fine-tuned transformer: what one head and a head per member share.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of sets.
    model : str, default="google-bert/bert-base-uncased"
        Hub id or local folder of the pretrained encoder, or the folder of another fine-tuned
        member, ``FOLDER/members/NAME``, whose encoder is trained further.
    learning_rate : float, default=2e-5
        Learning rate of the encoder.
    batch_size : int, default=16
        Texts of a training step.
    eval_batch_size : int, default=32
        Texts that are predicted at once.
    epochs : int, default=20
        The most epochs; the learning rate falls linearly to 0 over all of them.
    patience : int, default=3
        Epochs without a better one after which training stops; 0: never.
    criterion : {"", "ce", "f1", "rps"}, default=""
        What makes an epoch better on the dev texts: a lower cross-entropy ("ce") or ranked
        probability score ("rps", ordinal scales) to the soft labels, or a micro-F1 on the hard
        labels that is higher by 0.01 at least ("f1"; the paper). Empty: "rps" of ordinal scales,
        else "ce".
    warmup_steps : int, default=500
        Steps in which the learning rate rises; at most a tenth of the run.
    weight_decay : float, default=None
        None: drawn in [0.005, 0.015] by the member's seed.
    max_length : int, default=512
        Tokens; longer texts are cut.
    loss : {"ce", "md", "rps", "ce+rps"}, default="ce"
        Cross-entropy, Manhattan distance or, of ordinal scales, ranked probability score to the
        targets, or the sum of two. Of sets: the mean over labels.
    link : {"softmax", "cumulative"}, default="softmax"
        A score per class or, of ordinal scales, one score and cut points between the classes.
    pooling : {"first", "last", "mean", "mean+target"}, default="mean"
        Which tokens' last hidden states the classifier gets: the first, the last (in a decoder the
        only one that depends on the whole text), the mean over all, or that joined with the mean
        over the utterance of (utterance, context).
    adversarial : float, default=0
        Norm of the adversarial step on the word embeddings (FGM); 0: no such step.
    layer_decay : float, default=1
        The learning rate of each layer is this share of that of the layer above; 1: all the same.
    speaker_tags : bool, default=False
        Name the speaker in each line of (utterance, context).
    context_first : bool, default=False
        Read the context before the utterance, as people do; recommended for decoders, which were
        trained to read forwards.
    head_learning_rate : float, default=None
        None: that of the encoder.
    annotators : bool, default=False
        Learn who labelled: the member predicts for nobody in particular, and for each annotator.
    attributes : str, default=""
        Attributes of the annotators that count, separated by commas: with ``annotators``, or alone.
    annotator_learning_rate : float, default=1e-3
        Learning rate of an annotator's vector beside the features of a text, and bias per class.
    device : str, default=None
        "cpu", "cuda", "cuda:1", "mps"; None: a GPU where there is one.

    Attributes
    ----------
    history_ : list of dict
        Per epoch: epoch, loss, dev_ce, dev_f1 and, of ordinal scales, dev_rps.
    best_epoch_ : int or None
        The epoch whose weights these are, counted from 1.
    constant_ : list of float or None
        The one prediction [C] of a member whose targets have a single class.
    scale_ : Scale
        The answer scale of its targets.
    """

    multi_label: ClassVar[bool] = True

    _file: ClassVar[str]
    _title: ClassVar[str]
    _saved: ClassVar[type[SavedMember]]

    n_classes: int
    _: KW_ONLY
    model: str = "google-bert/bert-base-uncased"
    learning_rate: float = 2e-5
    batch_size: int = 16
    eval_batch_size: int = 32
    epochs: int = 20
    patience: int = 3
    criterion: str = ""
    warmup_steps: int = 500
    weight_decay: float | None = None
    max_length: int = 512
    loss: str = "ce"
    link: str = "softmax"
    pooling: str = "mean"
    adversarial: float = 0.0
    layer_decay: float = 1.0
    speaker_tags: bool = False
    context_first: bool = False
    head_learning_rate: float | None = None
    annotators: bool = False
    attributes: str = ""
    annotator_learning_rate: float = 1e-3
    device: str | None = None

    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    constant_: list[float] | None = field(default=None, init=False, repr=False)
    scale_: Scale = field(default=NOMINAL, init=False, repr=False)
    _tuned: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            one_of(name, getattr(self, name), choices)
        check_ranges(self, RANGES)
        if self.knows_annotators and self.loss == "md":
            raise InputError(
                f"annotators give single labels, from which {option('loss', 'md')} learns no"
                " distribution",
                f"choose {option('loss', 'ce')}, or {option('annotators', False)} and no"
                f" {option('attributes')}",
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

    def _check_scale(self, scale: Scale) -> None:
        """Refuse options of ordinal scales on others."""
        if scale.positions is not None:
            return
        for name, ordinal in (("criterion", "rps"), ("loss", "rps"), ("link", "cumulative")):
            if ordinal in getattr(self, name):
                raise InputError(
                    f"{option(name, getattr(self, name))} is for ordinal scales, but this one is"
                    f" {scale}",
                    f"leave it out, or declare the {option('scale')}",
                )

    def reader(self, model: str) -> Any:
        """What turns texts into the tokens of a model."""
        from edokit.members.recipes._tokens import Reader

        tags = {"speaker_tags": self.speaker_tags, "context_first": self.context_first}
        return Reader(load_tokenizer(model), self.max_length, **tags)

    def new_head(self, width: int) -> Any:
        """A head on so many features, not trained yet."""
        raise NotImplementedError

    def batch_loss(self, network: Any, logits: Any, batch: Any) -> Any:
        """The loss of a network's logits on a batch."""
        raise NotImplementedError

    def pooled(self, network: Any, probabilities: Floats) -> Floats:
        """One distribution per text [N, C] from the probabilities of all heads [N, …, C]."""
        return probabilities

    def new_link(self) -> Any:
        """What turns the scores of a head into logits."""
        from edokit.members.recipes._network import Link

        kind = "sets" if self.scale_.is_multi_label else self.link
        return Link(kind, self.n_classes, self.scale_.steps)

    @classmethod
    def _learned(cls) -> list[str]:
        """Names of fitted attributes that are saved, without their underscore."""
        return [name for name in cls._saved.model_fields if name not in ("options", "scale")]

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configs (JSON) and tokenizer."""
        if self.constant_ is None:
            self._fitted().save(folder)
        state = {"options": self.get_params()}
        state |= {name: getattr(self, f"{name}_") for name in self._learned()}
        state["scale"] = asdict(self.scale_)
        content = json.dumps(state, ensure_ascii=False, indent=2) + "\n"
        (folder / self._file).write_text(content, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> Any:
        """Read what ``save`` wrote, onto a device."""
        path, hint = Path(folder) / cls._file, "name a folder that its method save wrote"
        saved = read_model(path, cls._saved, title=f"a file of {cls._title}", hint=hint)
        # Options that are constants by now are left out.
        known = {"n_classes": 2, **known_options(cls)}
        options = {name: value for name, value in saved.options.items() if name in known}
        with errors_in(path):
            member = cls(**check_options(cls._title, known, options), device=device)
            member.scale_ = Scale(**saved.scale.model_dump(exclude_none=True))
        for name in cls._learned():
            setattr(member, f"{name}_", getattr(saved, name))
        if member.constant_ is None:
            require_packages("fine-tuning")
            from edokit.members.recipes._training import FineTuned

            member._tuned = FineTuned.load(Path(folder), member)
        elif len(member.constant_) != member.n_classes:
            raise InputError(f"{path}: constant has not {member.n_classes} numbers", hint)
        return member

    def _fitted(self) -> Any:
        if self._tuned is None:
            raise InputError("this member is not fitted yet", "call fit first")
        return self._tuned

    def _train(self, data: MemberData, targets: Any, seed: int, **parts: Any) -> None:
        """Fine-tune; ``parts`` are further parts of a `Training`."""
        from edokit.members.recipes._training import Training

        self.scale_ = data.scale
        self._tuned = Training(self, data, targets, seed, **parts).run()
        self.history_, self.best_epoch_ = self._tuned.history, self._tuned.best_epoch

    def _probabilities(
        self, texts: Sequence[Text], heads: tuple[int, ...], pairs: Any = None
    ) -> tuple[Floats, Any]:
        """Probabilities of all heads [N, …, C], and of pairs of a text and an annotator [P, C]."""
        tuned = self._fitted()
        if not len(texts):
            empty = np.empty((0, *heads, self.n_classes))
            return empty, empty
        answers: tuple[Floats, Any] = tuned.predict(texts, self.eval_batch_size, pairs)
        return answers
