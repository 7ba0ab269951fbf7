"""K members on one encoder, fine-tuned together with the weights that pool them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.pretrained import require_packages
from edokit.members.recipe import MemberData, Progress, Text
from edokit.members.recipes.transformer import (
    FineTuning,
    check_number,
    read_settings,
    write_settings,
)

END_TO_END = "end-to-end"
"""Where a training keeps such members."""
_SETTINGS = "end_to_end.json"


@dataclass(frozen=True)
class JointData:
    """What members and weights learn from: N texts, targets per member, labels for the pool."""

    texts: Sequence[Text]
    """Texts [N]."""
    member_targets: Callable[[int], npt.NDArray[Any]]
    """Targets [N, K, C] of an epoch, each member's own."""
    soft_labels: Floats
    """Soft labels [N, C]."""
    hard_labels: npt.NDArray[np.int32]
    """Hard labels [N]."""
    dev_texts: Sequence[Text] = ()
    dev_soft_labels: Floats | None = None
    dev_hard_labels: npt.NDArray[np.int32] | None = None
    shared: Any = None
    """What `TransformerMember.prepare` returned."""


@dataclass(eq=False)
class EndToEndMembers(FineTuning):
    """K heads on one encoder. Options are those of `FineTuning`, and those below."""

    n_members: int = 10
    member_weight: float = 1.0
    """Weight of the members' own cross-entropy beside the ensemble's joint loss."""
    joint_learning_rate: float = 1e-3
    """How fast the ensemble's weights and size learn."""

    weights_: list[float] = field(default_factory=list, init=False, repr=False)
    """Weights of the members [K] that were learned; on the simplex."""
    size_: int = field(default=0, init=False, repr=False)
    """How many members have weight."""
    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    best_epoch_: int | None = field(default=None, init=False, repr=False)
    _tuned: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("n_members", self.n_members, 1, float("inf"), whole=True)
        check_number("member_weight", self.member_weight, 0.0, float("inf"))
        check_number("joint_learning_rate", self.joint_learning_rate, 0.0, 1.0, above=True)
        if self.annotator_heads:
            raise InputError(
                "end to end there is a head per member, but annotator_heads is set",
                "choose annotator_heads=False",
            )

    def options(self) -> dict[str, Any]:
        """Every option by name, as plain values."""
        own = ("n_members", "member_weight", "joint_learning_rate")
        return {**super().options(), **{name: getattr(self, name) for name in own}}

    def fit(
        self, lesson: JointData, head: Any, *, seed: int, progress: Progress | None = None
    ) -> EndToEndMembers:
        """Learn members and weights together.

        ``head`` is a torch module that holds the weights, such as `edokit.torch.EDOHead`: it has
        ``loss(probabilities, soft_labels, hard_labels).total``, gives pooled probabilities when
        called, and knows ``set_epoch``, ``final_weights`` and ``size``. Afterwards it holds the
        weights of the best epoch.
        """
        require_packages("fine-tuning")
        from edokit.members.end_to_end_task import joint_task
        from edokit.members.recipes._fine_tune import fine_tune

        task = joint_task(lesson, head, self)
        plain = MemberData(
            lesson.texts,
            lesson.member_targets,
            lesson.dev_texts,
            lesson.dev_soft_labels,
            lesson.dev_hard_labels,
            shared=lesson.shared,
        )
        self._tuned = fine_tune(self, plain, task, seed=seed, progress=progress)
        head.load_state_dict(self._tuned.network.joint.state_dict())
        self.weights_ = head.final_weights().tolist()
        self.size_ = head.size
        self.history_, self.best_epoch_ = self._tuned.history, self._tuned.best_epoch
        return self

    def predict_members(self, texts: Sequence[Text]) -> Floats:
        """Probabilities of every member [N, K, C]."""
        if self._tuned is None:
            raise InputError("members must be fitted before they are used", "call fit first")
        if not len(texts):
            return np.empty((0, self.n_members, self.n_classes))
        from edokit.members.recipes._trainer import probabilities

        tuned = self._tuned
        return probabilities(
            tuned.network,
            tuned.reader(texts),
            pad_id=tuned.reader.tokenizer.pad_token_id,
            max_length=tuned.reader.max_length,
            batch_size=self.eval_batch_size,
            device=tuned.device,
        )

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), configs (JSON) and tokenizer."""
        if self._tuned is None:
            raise InputError("members must be fitted before they are saved", "call fit first")
        from edokit.members.recipes._fine_tune import save_tuned

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_tuned(self._tuned, folder)
        state = {
            "options": self.options(),
            "weights": self.weights_,
            "size": self.size_,
            "history": self.history_,
            "best_epoch": self.best_epoch_,
        }
        write_settings(folder / _SETTINGS, state)

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> EndToEndMembers:
        """Read what ``save`` wrote, onto a device."""
        folder = Path(folder)
        told = "members trained end to end", "EndToEndMembers.save"
        with read_settings(folder / _SETTINGS, *told) as state:
            members = cls(**{**state["options"], "device": device})
            members.weights_, members.size_ = state["weights"], state["size"]
            members.history_, members.best_epoch_ = state["history"], state["best_epoch"]
        require_packages("fine-tuning")
        from edokit.members.recipes._fine_tune import load_tuned
        from edokit.members.recipes._network import MemberHeads

        members._tuned = load_tuned(
            folder, members, lambda width: MemberHeads(width, members.n_classes, members.n_members)
        )
        return members
