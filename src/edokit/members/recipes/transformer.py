"""Members that are fine-tuned transformers; the defaults are the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from edokit._errors import InputError, errors_in, option
from edokit._io.documents import Count, Document, Json, read_model, write_json
from edokit._progress import Progress
from edokit._types import Floats
from edokit.annotator_effects import mean_over_pairs, pairs_of_texts
from edokit.members.contexts import Context, Text, distinct_texts, with_context
from edokit.members.pretrained import FINE_TUNED, require_packages
from edokit.members.recipe import (
    Annotators,
    Capabilities,
    Member,
    MemberData,
    required_annotations,
    warn_of_equal_targets,
)
from edokit.members.recipe_options import Range, check_options, check_values, known_options
from edokit.scales import NOMINAL, Scale

WEIGHT_DECAY = (0.005, 0.015)  # where the weight decay of a member is drawn from


class SavedTransformer(Document):
    """The content of ``transformer.json``: options, scale and what was learned."""

    options: dict[str, Json]
    scale: Scale
    history: list[dict[str, Json]]
    best_epoch: Count | None
    annotators: list[str]
    activity: list[Count]
    constant: list[Annotated[float, Field(ge=0, le=1)]] | None


@dataclass(eq=False)
class TransformerMember(Member):
    """A pretrained encoder with a classifier on top, fine-tuned together.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of multi-label data.
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
        Epochs without a gain after which training stops; 0: never. The weights of the best epoch
        are kept.
    epoch_metric : {"loss", "f1"}, default="loss"
        What makes an epoch the best on the dev texts: the lowest cross-entropy to the soft labels
        (for ordinal scales, ranked probability score), or the highest micro-F1 to the hard labels.
    least_gain : float, default=0
        A smaller gain of this metric does not count for ``patience``.
    warmup_steps : int, default=500
        Steps in which the learning rate rises.
    warmup_share : float, default=0.1
        The share of the run that these steps take at most.
    weight_decay : float, default=None
        None: drawn in [0.005, 0.015] by the member's seed.
    max_length : int, default=512
        Tokens; longer texts are cut.
    loss : {"ce", "md", "rps", "ce+rps"}, default="ce"
        Cross-entropy, Manhattan distance or, for ordinal scales, ranked probability score to the
        targets, or the sum of two. For multi-label data, the mean over labels.
    pooling : {"first", "last", "mean", "mean+target"}, default="mean"
        Which tokens' last hidden states the classifier gets: the first, the last (in a decoder the
        only one that depends on the whole text), the mean over all, or that mean joined with the
        mean over the text of a pair (text, context).
    adversarial : float, default=0
        Norm of the adversarial step on the word embeddings (FGM); 0: no such step.
    adapter_rank : int, default=0
        Rank of the low-rank adapters (LoRA) that are trained beside the encoder's own weights,
        which stay frozen, and merged into them at the end; 0: all weights are trained.
    layer_decay : float, default=1
        The learning rate of each layer is this share of that of the layer above; 1: all the same.
    speaker_tags : bool, default=False
        Name the speaker in each line of a pair (text, context).
    context_first : bool, default=False
        Read the context before the text, as people do; recommended for decoders, which were
        trained to read forwards.
    instruction : str, default=""
        Read before every text, such as a question that an instruction-tuned model answers.
    head_learning_rate : float, default=None
        None: that of the encoder.
    annotators : bool, default=False
        Whether to learn individual annotators: the member then also predicts for each of them.
    annotator_learning_rate : float, default=1e-3
        Learning rate of an annotator's vector beside the features of a text, and bias per class.
    device : str, default=None
        "cpu", "cuda", "cuda:1", "mps"; None: a GPU where there is one.

    Attributes
    ----------
    history_ : list of dict
        Per epoch: epoch, loss, dev_ce, dev_f1 and, for ordinal scales, dev_rps.
    best_epoch_ : int or None
        The epoch whose weights these are, counted from 1.
    constant_ : list of float or None
        The one prediction [C] of a member whose targets have a single class.
    scale_ : Scale
        The answer scale of its targets.
    annotators_ : list of str
        The annotators that it knows.
    activity_ : list of int
        Number of training labels of each of them.
    """

    capabilities = Capabilities(
        epochs=True, device=True, multi_label=True, people="annotators", pretrained="model"
    )

    n_classes: Annotated[int, Range(2)]
    _: KW_ONLY
    model: str = "google-bert/bert-base-uncased"
    learning_rate: Annotated[float, Range(0, 1, above=True)] = 2e-5
    batch_size: Annotated[int, Range(1)] = 16
    eval_batch_size: Annotated[int, Range(1)] = 32
    epochs: Annotated[int, Range(1)] = 20
    patience: Annotated[int, Range(0)] = 3
    epoch_metric: Literal["loss", "f1"] = "loss"
    least_gain: Annotated[float, Range(0)] = 0.0
    warmup_steps: Annotated[int, Range(0)] = 500
    warmup_share: Annotated[float, Range(0, 1)] = 0.1
    weight_decay: Annotated[float | None, Range(0, 1)] = None
    max_length: Annotated[int, Range(8)] = 512
    loss: Literal["ce", "md", "rps", "ce+rps"] = "ce"
    pooling: Literal["first", "last", "mean", "mean+target"] = "mean"
    adversarial: Annotated[float, Range(0)] = 0.0
    adapter_rank: Annotated[int, Range(0)] = 0
    layer_decay: Annotated[float, Range(0, 1, above=True)] = 1.0
    speaker_tags: bool = False
    context_first: bool = False
    instruction: str = ""
    head_learning_rate: Annotated[float | None, Range(0, 1, above=True)] = None
    annotators: bool = False
    annotator_learning_rate: Annotated[float, Range(0, 1, above=True)] = 1e-3
    device: str | None = None

    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    constant_: list[float] | None = field(default=None, init=False, repr=False)
    scale_: Scale = field(default=NOMINAL, init=False, repr=False)
    annotators_: list[str] = field(default_factory=list, init=False, repr=False)
    activity_: list[int] = field(default_factory=list, init=False, repr=False)
    _tuned: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_values(self)
        if self.adapter_rank and self.adversarial:
            raise InputError(
                f"{option('adversarial', self.adversarial)} moves word embeddings, which"
                f" {option('adapter_rank', self.adapter_rank)} leaves frozen",
                "choose one of the two",
                code="conflicting-options",
            )
        if self.annotators and self.epoch_metric == "f1":
            raise InputError(
                f"{option('epoch_metric', 'f1')} is the micro-F1 of anonymous answers, which says"
                f" little about {option('annotators', True)}",
                f"choose {option('epoch_metric', 'loss')}",
                code="conflicting-options",
            )
        if self.annotators and self.loss == "md":
            raise InputError(
                f"annotators give single labels, from which {option('loss', 'md')} learns no"
                " distribution",
                f"choose {option('loss', 'ce')}, or {option('annotators', False)}",
                code="conflicting-options",
            )

    def draw_weight_decay(self, seed: int) -> float:
        """The weight decay of the member with this seed."""
        if self.weight_decay is not None:
            return self.weight_decay
        return float(np.random.default_rng(seed).uniform(*WEIGHT_DECAY))

    def count_warmup_steps(self, steps: int) -> int:
        """Number of warm-up steps in a run of ``steps`` steps."""
        return min(self.warmup_steps, int(self.warmup_share * steps))

    @property
    def history(self) -> list[dict[str, Any]]:
        """Losses and metrics of its epochs."""
        return self.history_

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators that it knows."""
        return tuple(self.annotators_)

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> TransformerMember:
        """Fit; the same ``random_state`` gives the same member on the same machine's CPU."""
        require_packages("fine-tuning")
        if self.adapter_rank:
            require_packages("training of adapters", ("peft",))
        from edokit.members.recipes._tokens import AnnotatorTargets, EpochTargets, annotator_labels
        from edokit.members.recipes._training import Training

        if "rps" in self.loss and data.scale.positions is None:
            raise InputError(
                f"{option('loss', self.loss)} is for ordinal scales, but this one is {data.scale}",
                f"leave it out, or declare the {option('scale')}",
                code="unordered-scale",
            )
        self.constant_ = None
        self._tuned = None
        self.history_ = []
        self.best_epoch_ = None
        self.scale_ = data.scale
        dev_pairs = None
        targets = EpochTargets(data.targets)
        if self.annotators:
            people = required_annotations(data)
            n_classes = self.n_classes
            targets = AnnotatorTargets(data.targets, people, n_classes, random_state)
            self.annotators_ = list(map(str, people.annotators))
            self.activity_ = targets.activity.tolist()
            if data.dev_annotations is not None and len(data.dev_texts):
                dev_pairs = annotator_labels(data.dev_annotations, self.annotators_, n_classes)
        elif not data.scale.is_multi_label:
            only_class = targets.only_class(self.epochs)
            if only_class is not None:
                # As if each class had been seen once more, as heads start.
                counts = len(data.texts) * np.eye(self.n_classes)[only_class] + 1.0
                self.constant_ = (counts / counts.sum()).tolist()
                warn_of_equal_targets(len(data.texts))
                return self
        self._tuned = Training(self, data, targets, random_state, progress, dev_pairs).run()
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Anonymous probabilities [N, C]; each label's own for multi-label data.

        With ``annotators`` of each text, the mean over what each of them would answer. Annotators
        that the member does not know get exactly the anonymous answer, and so do texts without any.
        Each text is encoded once.
        """
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(texts), 1))
        tuned = self._tuned
        pairs = None
        if not len(texts):
            return np.empty((0, self.n_classes))
        distinct, rows = distinct_texts(with_context(texts, context))
        if annotators is not None and self.annotators:
            from edokit.members.recipes._tokens import Pairs

            positions, codes = pairs_of_texts(annotators, len(texts), self.annotators_)
            pairs = Pairs(rows[positions], codes)
        anonymous, answers = tuned.predict(distinct, self.eval_batch_size, pairs)
        if pairs is None:
            return np.asarray(anonymous[rows])
        return mean_over_pairs(answers, positions)

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configs (JSON) and tokenizer."""
        if self.constant_ is None:
            self._tuned.save(folder)
        saved = {
            "options": self.get_params(),
            "history": self.history_,
            "best_epoch": self.best_epoch_,
            "annotators": self.annotators_,
            "activity": self.activity_,
            "constant": self.constant_,
            "scale": asdict(self.scale_),
        }
        write_json(saved, folder / FINE_TUNED)

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> TransformerMember:
        """Read what ``save`` wrote, onto a device."""
        path = Path(folder) / FINE_TUNED
        saved = read_model(
            path,
            SavedTransformer,
            title="a file of a saved transformer member",
            hint="name a folder that its method save wrote",
        )
        # Options of earlier versions that are constants now are left out.
        defaults = {"n_classes": 2, **known_options(cls)}
        options = {name: value for name, value in saved.options.items() if name in defaults}
        with errors_in(path):
            checked = check_options("a saved transformer member", defaults, options)
            member = cls(**checked, device=device)
        member.scale_ = saved.scale
        member.history_ = saved.history
        member.best_epoch_ = saved.best_epoch
        member.annotators_ = saved.annotators
        member.activity_ = saved.activity
        member.constant_ = saved.constant
        if member.constant_ is None:
            require_packages("fine-tuning")
            from edokit.members.recipes._training import FineTuned

            member._tuned = FineTuned.load(Path(folder), member)
        return member
