"""What a transformer member learns: targets with one head, or answers with one per annotator."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from edokit._types import Floats
from edokit.members.fine_tune import Task
from edokit.members.fine_tuning import FineTuning
from edokit.members.transformer_answers import AnnotatorAnswers, TargetAnswers
from edokit.members.transformer_losses import annotator_loss, target_loss
from edokit.members.transformer_network import AnnotatorHeads, OneHead


def target_task(targets: TargetAnswers, n_classes: int, loss: str) -> Task:
    """Targets [N, C], one head."""
    return Task(
        answers=targets,
        prior=targets.now.astype(float),
        head=lambda width: OneHead(width, n_classes),
        loss_of=lambda network, logits, batch: target_loss(loss, logits, batch["answers"]),
        pool=lambda network, shares: shares,
    )


def annotator_task(
    answers: AnnotatorAnswers, n_classes: int, average: Callable[[Floats], Floats]
) -> Task:
    """Answers of annotators [N, A, C], a head for each."""
    return Task(
        answers=answers,
        prior=answers.prior,
        head=lambda width: AnnotatorHeads(width, n_classes, len(answers.annotators)),
        loss_of=lambda network, logits, batch: annotator_loss(logits, batch["answers"]),
        pool=lambda network, shares: average(shares),
    )


def head_of(options: FineTuning, n_annotators: int) -> Callable[[int], nn.Module]:
    """What makes the heads of a member for so many features."""
    if options.annotator_heads:
        return lambda width: AnnotatorHeads(width, options.n_classes, n_annotators)
    return lambda width: OneHead(width, options.n_classes)
