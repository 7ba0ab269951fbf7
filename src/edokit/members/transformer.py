"""Members that are fine-tuned transformers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edokit._errors import EDOWarning, InputError, examples
from edokit._types import Floats
from edokit.members.fine_tuning import FineTuning
from edokit.members.recipe import Lesson, Member, Progress, Text
from edokit.members.settings_file import read_settings, write_settings
from edokit.members.transformers_extra import need_transformers

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
    def tells_apart(self) -> Sequence[str]:
        """The annotators that have a head."""
        return tuple(self.annotators_)

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> Any:
        """Tokens by text, read once for all members."""
        need_transformers()
        from edokit.members.backbone import load_tokenizer
        from edokit.members.tokens import Reader

        known = {name: value for name, value in options.items() if name != "n_classes"}
        chosen = FineTuning(2, **known)
        reader = Reader(
            load_tokenizer(chosen.model), chosen.max_length, speaker_tags=chosen.speaker_tags
        )
        return reader.table(texts)

    def fit(self, lesson: Lesson, *, seed: int, progress: Progress | None = None) -> Any:
        """Learn; the same seed gives the same member on the same machine's CPU."""
        need_transformers()
        from edokit.members.fine_tune import fine_tune
        from edokit.members.transformer_answers import AnnotatorAnswers, TargetAnswers
        from edokit.members.transformer_tasks import annotator_task, target_task

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
            from edokit.members.transformer_files import save_tuned

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
            need_transformers()
            from edokit.members.transformer_files import load_tuned
            from edokit.members.transformer_tasks import head_of

            head = head_of(member, len(member.annotators_))
            member._tuned = load_tuned(folder, member, head)
        return member

    def _fitted(self) -> Any:
        if self._tuned is None:
            raise InputError("a member must be fitted before it is used", "call fit first")
        return self._tuned

    def _probabilities(self, texts: Sequence[Text]) -> Floats:
        tuned = self._fitted()
        from edokit.members.transformer_predict import probabilities

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
        from edokit.members.transformer_network import class_prior

        self.constant_ = class_prior(n_texts * np.eye(self.n_classes)[[only]]).tolist()
        self._tuned = None
        warnings.warn(
            f"all targets name one class, {examples([only])}: this member answers it always",
            EDOWarning,
            stacklevel=3,
        )
