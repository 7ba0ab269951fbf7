"""Fine-tuning with one loss for the members and the weights that pool them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.end_to_end import EndToEndMembers, JointData
from edokit.members.recipes._fine_tune import Task
from edokit.members.recipes._network import MemberHeads, MemberNetwork, target_loss
from edokit.members.recipes._tokens import Arrays, TargetAnswers
from edokit.members.recipes._trainer import Batch


def joint_task(lesson: JointData, head: Any, options: EndToEndMembers) -> Task:
    """Targets [N, K, C] for the members, labels [N, C] and [N] for the pool."""
    shape = (len(lesson.texts), options.n_classes)
    soft = np.asarray(lesson.soft_labels, dtype=np.float32)
    hard = np.asarray(lesson.hard_labels, dtype=np.int64)
    if soft.shape != shape or hard.shape != shape[:1]:
        raise InputError(
            f"{shape[0]} texts of {shape[1]} classes need soft labels of shape {list(shape)} and as"
            f" many hard labels, but got {list(soft.shape)} and {list(hard.shape)}",
            "give labels for the texts, in their order",
        )

    def loss_of(network: MemberNetwork, logits: torch.Tensor, batch: Batch) -> torch.Tensor:
        shares = torch.softmax(logits.double(), dim=-1)
        joint = network.joint.loss(shares, batch["answers_soft"], batch["answers_hard"]).total
        own = target_loss(options.loss, logits, batch["answers"])
        return joint + options.member_weight * own

    def pool(network: MemberNetwork, shares: Floats) -> Floats:
        with torch.no_grad():
            device = next(network.joint.parameters()).device
            pooled: Floats = network.joint(torch.from_numpy(shares).to(device)).cpu().numpy()
        return pooled

    answers = _JointAnswers(lesson, soft, hard, options)
    return Task(
        answers=answers,
        prior=soft.astype(float),
        head=lambda width: MemberHeads(width, options.n_classes, options.n_members),
        loss_of=loss_of,
        pool=pool,
        joint=head,
        joint_learning_rate=options.joint_learning_rate,
    )


class _JointAnswers:
    """Targets of the members beside the labels of the pool."""

    def __init__(
        self,
        lesson: JointData,
        soft: npt.NDArray[np.float32],
        hard: npt.NDArray[np.int64],
        options: EndToEndMembers,
    ) -> None:
        shape = (len(lesson.texts), options.n_members, options.n_classes)
        self._members = TargetAnswers(lesson.member_targets, shape)
        self._soft, self._hard = soft, hard

    def begin(self, epoch: int) -> None:
        """Ask for the members' targets of an epoch."""
        self._members.begin(epoch)

    def of(self, items: npt.NDArray[np.int64]) -> Arrays:
        """Targets [B, K, C], soft labels [B, C] and hard labels [B]."""
        return {
            **self._members.of(items),
            "answers_soft": self._soft[items],
            "answers_hard": self._hard[items],
        }
