"""EDO inside a torch model: ensemble weights as parameters, a loss on live probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from edokit._errors import InputError, missing_extra, one_of
from edokit._types import Floats
from edokit.objective.loss import Loss, joint_loss
from edokit.objective.pools import effective_weights, pool, softmax
from edokit.objective.settings import CE, Objective, preset_objective
from edokit.objective.summaries import Problem
from edokit.scales import TOLERANCE

try:
    import torch
    from torch import nn
except ImportError as error:
    raise missing_extra(
        f"edokit.torch needs the package torch, but it can't be imported: {error}", "transformers"
    ) from error


class EDOHead(nn.Module):  # type: ignore[misc]
    """Weights and size of an ensemble of K members, trained together with the members.

    Parameters and fitted attributes have the names that they have in `EDOEnsemble` and `Gumbel`.
    While training, sizes are drawn with Gumbel noise at a temperature that `set_epoch` lowers; in
    eval mode nothing is drawn.

    Parameters
    ----------
    n_members : int
        Members K, in rank order: size j keeps the first j.
    preset : {"default", "paper-fixed"}, default="default"
        The objective where none is given.
    pool : {"linear", "log"}, default="linear"
        Linear or logarithmic opinion pool.
    objective : Objective, default=None
        Weights and modes of the loss; None for those of the preset. ``reg="auto"`` is 0.03 here,
        since nothing is cross-validated.
    min_members : int, default=1
        The smallest size (K_min).
    max_members : int, default=10
        The largest size (K_max); at most K.
    temperature : float, default=0.5
        Of the Gumbel-Softmax in the first epoch (T₀).
    temperature_decay : float, default=0.05
        The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ).
    min_temperature : float, default=0.1
        It falls no further than this.
    class_counts : sequence of float of length C, default=None
        Counts of the hard labels of all fit data, all above 0, for class weights on mini-batches.
        None: each batch is weighed by its own.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weight of each member, on the simplex: those of the first ``size_`` members, the rest 0.
        `EDOEnsemble.from_weights` makes an ensemble of them.
    size_ : int
        How many members carry weight: the likeliest size (K*).

    Raises
    ------
    InputError
        If no size lies between ``min_members`` and ``max_members``.

    Examples
    --------
    >>> import torch
    >>> from edokit.torch import EDOHead
    >>> head = EDOHead(2)
    >>> probabilities = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]], dtype=torch.float64)
    >>> soft = torch.tensor([[0.8, 0.2]], dtype=torch.float64)
    >>> head.loss(probabilities, soft, torch.tensor([0])).total.backward()
    >>> head.theta.grad.shape
    torch.Size([2])
    >>> head.weights_, head.size_
    (array([1., 0.]), 1)
    """

    def __init__(
        self,
        n_members: int,
        preset: Literal["default", "paper-fixed"] = "default",
        *,
        pool: Literal["linear", "log"] = "linear",
        objective: Objective | None = None,
        min_members: int = 1,
        max_members: int = 10,
        temperature: float = 0.5,
        temperature_decay: float = 0.05,
        min_temperature: float = 0.1,
        class_counts: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        largest = min(max_members, n_members)
        if not 1 <= min_members <= largest:
            raise InputError(
                "min_members must be at least 1, and at most max_members and the number of members:"
                f" min_members={min_members}, max_members={max_members}, {n_members} members",
                "choose another range of sizes",
                code="invalid-range",
            )
        one_of("pool", pool, ("linear", "log"))
        self.objective = preset_objective(preset, objective)
        self.pool = pool
        self.min_members = min_members
        self.start_temperature = temperature  # T0
        self.temperature_decay = temperature_decay  # γ
        self.min_temperature = min_temperature
        self.theta = nn.Parameter(torch.zeros(n_members, dtype=torch.float64))  # θ
        self.size_logits = nn.Parameter(  # π
            torch.zeros(largest - min_members + 1, dtype=torch.float64)
        )
        self._settings = self.objective.resolve(pool)
        counts = None if class_counts is None else torch.tensor(class_counts, dtype=torch.float64)
        self.register_buffer("class_counts", counts, persistent=False)
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Cool the temperature down to where it is in this epoch, counted from 0."""
        cooled = self.start_temperature * math.exp(-self.temperature_decay * epoch)
        self.temperature = max(self.min_temperature, cooled)

    def sizes(self, noise: torch.Tensor | None = None) -> torch.Tensor:
        """A distribution over the sizes [M]: drawn with Gumbel ``noise`` [M], else the learned."""
        logits = torch.log_softmax(self.size_logits, dim=0)
        return softmax(logits if noise is None else (logits + noise) / self.temperature)

    def weights(self, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Effective weights v [K]: averaged over the learned sizes, or over sizes drawn."""
        return effective_weights(self.theta, self.sizes(noise), self.min_members)

    def loss(
        self,
        probabilities: torch.Tensor,
        soft_labels: torch.Tensor,
        hard_labels: torch.Tensor,
        *,
        size_noise: torch.Tensor | None = None,
        member_noise: torch.Tensor | None = None,
    ) -> Loss:
        """The joint loss and its terms for probabilities [B, K, C], soft [B, C], hard labels [B].

        ``total.backward()`` reaches θ, π and whatever gave the probabilities. Noise is drawn
        while training unless it is given: ``size_noise`` [M], and ``member_noise`` [B, K] for
        ``ce="random"``.
        """
        _check_batch(probabilities, soft_labels, hard_labels, len(self.theta))
        if self.training and size_noise is None:
            size_noise = _gumbel(self.size_logits.shape, self.theta.device)
        random_members = self._settings.ce is CE.RANDOM
        if random_members and member_noise is None:
            member_noise = _gumbel(probabilities.shape[:2], probabilities.device)
        return joint_loss(
            self.weights(size_noise),
            self._problem(probabilities, soft_labels, hard_labels),
            self._settings,
            noise=member_noise if random_members else None,
            temperature=self.temperature,
        )

    def forward(self, probabilities: torch.Tensor) -> torch.Tensor:
        """Pooled probabilities [B, C] of members' probabilities [B, K, C], with ``weights_``."""
        weights = self._kept_weights().to(probabilities.dtype)
        return pool(probabilities, weights, self.pool)

    @property
    def size_(self) -> int:
        """How many members carry weight: the likeliest size, K*."""
        return self.min_members + int(self.size_logits.detach().argmax())

    @property
    def weights_(self) -> Floats:
        """Weight of each member [K]: those of the first ``size_`` members, the rest 0."""
        weights: Floats = self._kept_weights().detach().cpu().numpy()
        return weights

    def _kept_weights(self) -> torch.Tensor:
        """``weights_`` as a tensor that gradients pass through."""
        size = torch.zeros_like(self.size_logits)
        size[self.size_ - self.min_members] = 1.0
        return effective_weights(self.theta, size, self.min_members)

    def _problem(self, P: torch.Tensor, q: torch.Tensor, y: torch.Tensor) -> Problem:
        kind = self._settings.pool
        weighted = self._settings.class_weights
        counts = self.class_counts
        if not weighted or counts is None:
            return Problem.from_arrays(P, q, y, class_weights=weighted, pool=kind)
        alpha = counts.sum() / (len(counts) * counts)  # α
        problem = Problem.from_arrays(P, q, y, pool=kind)
        return replace(problem, class_weights=alpha.to(q.device))


def _check_batch(P: torch.Tensor, q: torch.Tensor, y: torch.Tensor, members: int) -> None:
    """Check that P [B, K, C] and q [B, C] are distributions and y [B] codes of classes."""
    items = len(P)
    classes = P.shape[-1]
    shapes = [tuple(values.shape) for values in (P, q, y)]
    valid = shapes == [(items, members, classes), (items, classes), (items,)]
    if valid:
        sums = P.detach().sum(dim=-1)
        of_classes = (q >= 0).all() & (y >= 0).all() & (y < classes).all()
        valid = bool((P >= 0).all() & ((sums - 1).abs() < TOLERANCE).all() & of_classes)
    if not valid:
        raise InputError(
            f"a batch must have probabilities [B, {members}, C], soft labels [B, C] and hard labels"
            f" [B] from 0 to C − 1, without NaN, but got shapes {shapes}, or other values",
            "apply a softmax to logits, and number the classes from 0",
            code="wrong-shape",
        )


def _gumbel(shape: Sequence[int], device: torch.device) -> torch.Tensor:
    """Standard Gumbel noise."""
    return -torch.empty(tuple(shape), dtype=torch.float64, device=device).exponential_().log()
