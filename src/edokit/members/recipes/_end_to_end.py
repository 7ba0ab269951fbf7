"""K members on one encoder, fine-tuned together with the weights that pool them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edokit._errors import InputError, examples, option
from edokit._io.documents import Count
from edokit._types import Floats
from edokit.members.pretrained import require_packages
from edokit.members.recipe import MemberData, Progress, Text
from edokit.members.recipes._fine_tuning import FineTunedMember, SavedMember
from edokit.members.recipes._ranges import Range, check_ranges
from edokit.members.training_data import TrainingData, check_splits, rows_for_job

_RANGES = {
    "n_members": Range(1, integer=True),
    "member_weight": Range(0),
    "joint_learning_rate": Range(0, 1, above=True),
}


class SavedHeads(SavedMember):
    """The content of ``end_to_end.json``."""

    weights: list[float]
    size: Count


@dataclass(eq=False)
class EndToEndMembers(FineTunedMember):
    """K heads on one encoder. Options are those of `FineTunedMember`, and those below.

    Parameters
    ----------
    n_members : int, default=10
        Members K.
    member_weight : float, default=1
        Weight of the members' own loss beside the ensemble's joint loss.
    joint_learning_rate : float, default=1e-3
        Learning rate of the ensemble's weights and size.
    preset : str, default="default"
        The objective of the ensemble.

    Attributes
    ----------
    weights_ : list of float
        Learned weights of the members [K], on the simplex.
    size_ : int
        How many members have weight.
    """

    _file = "end_to_end.json"
    _title = "members trained end to end"
    _saved = SavedHeads

    n_members: int = 10
    member_weight: float = 1.0
    joint_learning_rate: float = 1e-3
    preset: str = "default"

    weights_: list[float] = field(default_factory=list, init=False, repr=False)
    size_: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, _RANGES)
        if self.knows_annotators:
            raise InputError(
                f"end to end there is a head per member, so {option('annotators')} can't be set",
                f"choose {option('annotators', False)}",
            )

    @property
    def details(self) -> Mapping[str, Any]:
        """Weights, size and best epoch."""
        return {"weights": self.weights_, "size": self.size_, "best_epoch": self.best_epoch_}

    def check_data(self, data: TrainingData) -> None:
        """Refuse data without a dev split, or without a class that the preset weighs."""
        from edokit.ensemble import PRESETS

        super().check_data(data)
        check_splits(data, None)
        rows = rows_for_job(data, None, None)
        if not len(rows.stop):
            raise InputError(
                "training end to end chooses its epoch on the split 'dev', which has no items",
                "make one with `edo data split`",
            )
        if not PRESETS[self.preset].objective.class_weights:
            return
        for split, positions in (("train", rows.train), (data.splits[rows.stop[0]], rows.stop)):
            classes = data.scale.row_classes(data.classes)
            codes = data.scale.row_codes(data.hard[positions])
            counts = np.bincount(codes, minlength=len(classes))
            absent = [classes[c] for c in np.flatnonzero(counts == 0)]
            if absent:
                raise InputError(
                    f"{option('preset', self.preset)} weighs classes by how often they are the hard"
                    f" label, but in {split!r} {examples(absent)} never is",
                    f"choose {option('preset', 'default')}",
                )

    def new_weights(self, hard_labels: Any) -> Any:
        """The weights of the ensemble, not trained yet, for these hard labels of rows [n]."""
        from edokit.ensemble import PRESETS
        from edokit.torch import EDOHead

        preset = PRESETS[self.preset]
        return EDOHead(
            self.n_members,
            settings=self.preset,
            max_members=preset.solvers[preset.solver].max_members or self.n_members,
            class_counts=np.bincount(
                hard_labels, minlength=2 if self.scale_.is_multi_label else self.n_classes
            ).tolist(),
        )

    def fit(
        self,
        data: MemberData,
        *,
        random_state: int,
        progress: Progress | None = None,
        head: Any = None,
    ) -> EndToEndMembers:
        """Fit members and weights together.

        ``data.targets`` gives targets [N, K, C], ``data.annotations`` the soft and hard labels of
        the pool. ``head`` is a torch module such as `edokit.torch.EDOHead` that holds the weights
        (None: one for the preset); afterwards it holds those of the best epoch.
        """
        require_packages("fine-tuning")
        from edokit.members.recipes._tokens import EpochTargets

        super().check_data(data)
        self.scale_ = data.scale
        soft = np.asarray(data.annotations.soft_labels, dtype=np.float32)
        hard = np.asarray(data.annotations.hard_labels(), dtype=np.int64)
        head = self.new_weights(data.scale.row_codes(hard)) if head is None else head
        targets = EpochTargets(data.targets, soft_labels=soft, hard_labels=hard)
        self._train(data, targets, random_state, progress=progress, joint=head)
        head.load_state_dict(self._tuned.network.joint.state_dict())
        self.weights_, self.size_ = head.final_weights().tolist(), head.size
        return self

    def batch_loss(self, network: Any, logits: Any, batch: Any) -> Any:
        """The joint loss of the ensemble, and the members' own."""
        import torch

        from edokit.members.recipes._network import row_losses

        probabilities = torch.softmax(logits.double(), dim=-1)
        q, y = batch["soft_labels"], batch["hard_labels"]
        if self.scale_.is_multi_label:  # a row per label, as `Scale.rows` has them
            probabilities = probabilities.movedim(2, 1).flatten(0, 1)
            q, y = torch.stack([1 - q, q], dim=-1).flatten(0, 1), y.flatten()
        joint = network.joint.loss(probabilities, q, y)
        steps = network.head.link.steps
        member_loss = row_losses(self.loss, logits, batch["targets"], steps).mean()
        return joint.total + self.member_weight * member_loss

    def pooled(self, network: Any, probabilities: Floats) -> Floats:
        """The answer of the ensemble [N, C]."""
        import torch

        device = next(network.joint.parameters()).device
        with torch.no_grad():
            rows = torch.from_numpy(self.scale_.rows(probabilities))
            answers = network.joint(rows.to(device)).cpu().numpy()
        pooled: Floats = self.scale_.from_rows(answers, self.n_classes)
        return pooled

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities of every member [N, K, C]."""
        return self._probabilities(texts, (self.n_members,))[0]

    def new_head(self, width: int) -> Any:
        """A head per member on so many features, not trained yet."""
        from edokit.members.recipes._network import Head

        return Head(width, self.new_link(), self.n_members)
