"""EDO inside a torch model: ensemble weights as parameters, a loss on live probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from edokit._errors import InputError, check_number, missing_extra, one_of
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

    Parameters and fitted attributes are named as in `EDOEnsemble` and `Gumbel`. In training mode,
    sizes are drawn with Gumbel noise at a temperature that `set_epoch` lowers, and with
    ``ce="random"`` also a member per item. In eval mode nothing is drawn: the loss is that of the
    learned sizes, and instead of the cross-entropy of drawn members it has their expectation, which
    is that of ``ce="all"``.

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
        Temperature of the Gumbel-Softmax in the first epoch (T₀).
    temperature_decay : float, default=0.05
        The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ).
    min_temperature : float, default=0.1
        The temperature does not fall below this.
    class_counts : sequence of float of length C, default=None
        Counts of the hard labels of all fit data, all above 0, for class weights on mini-batches.
        None: each batch is weighted by its own counts.

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
        If no size lies between ``min_members`` and ``max_members``, or a class count is not above
        0.

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
        counts = None
        if class_counts is not None:
            counts = torch.as_tensor(class_counts, dtype=torch.float64).clone()
            for count in counts.tolist():
                check_number("class_counts", count, 0, above=True, hint="leave unused classes out")
        self.register_buffer("class_counts", counts, persistent=False)
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Set the temperature to that of this epoch; epochs are counted from 0."""
        cooled = self.start_temperature * math.exp(-self.temperature_decay * epoch)
        self.temperature = max(self.min_temperature, cooled)

    def sizes(self, noise: torch.Tensor | None = None) -> torch.Tensor:
        """A distribution over the sizes [M].

        With Gumbel ``noise`` [M] it is a draw at the current temperature, without it the learned
        distribution.
        """
        logits = torch.log_softmax(self.size_logits, dim=0)
        if noise is not None:
            logits = (logits + noise) / self.temperature
        return softmax(logits)

    def weights(self, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Effective weights v [K]: the mean over the distribution that `sizes` returns."""
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

        Gradients of ``total.backward()`` flow into θ, π and the probabilities. In training mode,
        noise that is not given is drawn: ``size_noise`` [M], and ``member_noise`` [B, K] for
        ``ce="random"``.
        """
        _check_batch(probabilities, soft_labels, hard_labels, len(self.theta))
        settings = self._settings
        if self.training and size_noise is None:
            size_noise = _gumbel(self.size_logits.shape, self.theta.device)
        if settings.ce is CE.RANDOM and member_noise is None:
            if self.training:
                member_noise = _gumbel(probabilities.shape[:2], probabilities.device)
            else:
                settings = replace(settings, ce=CE.ALL)
        return joint_loss(
            self.weights(size_noise),
            self._problem(probabilities, soft_labels, hard_labels),
            settings,
            noise=member_noise,
            temperature=self.temperature,
        )

    def forward(self, probabilities: torch.Tensor) -> torch.Tensor:
        """Pooled probabilities [B, C] of members' probabilities [B, K, C], with ``weights_``."""
        weights = self._weights_of_chosen_size().to(probabilities.dtype)
        return pool(probabilities, weights, self.pool)

    @property
    def size_(self) -> int:
        """How many members carry weight: the likeliest size, K*."""
        return self.min_members + int(self.size_logits.detach().argmax())

    @property
    def weights_(self) -> Floats:
        """Weight of each member [K]: those of the first ``size_`` members, the rest 0."""
        weights: Floats = self._weights_of_chosen_size().detach().cpu().numpy()
        return weights

    def _weights_of_chosen_size(self) -> torch.Tensor:
        """``weights_`` as a tensor that gradients pass through."""
        size = torch.zeros_like(self.size_logits)
        size[self.size_ - self.min_members] = 1.0
        return effective_weights(self.theta, size, self.min_members)

    def _problem(self, P: torch.Tensor, q: torch.Tensor, y: torch.Tensor) -> Problem:
        """The problem of a batch: P [B, K, C], soft labels q [B, C] and hard label codes y [B]."""
        pool = self._settings.pool
        uses_class_weights = self._settings.class_weights
        counts = self.class_counts
        if not uses_class_weights or counts is None:
            return Problem.from_arrays(P, q, y, class_weights=uses_class_weights, pool=pool)
        if len(counts) != q.shape[1]:
            raise InputError(
                f"there are {len(counts)} class_counts, but the batch has {q.shape[1]} classes",
                "give one count per class",
                code="lengths-differ",
            )
        alpha = counts.sum() / (len(counts) * counts)  # α
        problem = Problem.from_arrays(P, q, y, pool=pool)
        return replace(problem, class_weights=alpha.to(q.device))


def _check_batch(P: torch.Tensor, q: torch.Tensor, y: torch.Tensor, members: int) -> None:
    """Refuse P [B, K, C] or q [B, C] with numbers below 0, P that does not sum to 1, and y [B]
    that are not codes of the classes."""
    items = len(P)
    classes = P.shape[-1]
    shapes = [tuple(values.shape) for values in (P, q, y)]
    is_valid = shapes == [(items, members, classes), (items, classes), (items,)]
    if is_valid:
        deviations = (P.detach().sum(dim=-1) - 1).abs()
        are_distributions = (P >= 0).all() & (deviations < TOLERANCE).all()
        are_class_codes = (y >= 0).all() & (y < classes).all()
        is_valid = bool(are_distributions & (q >= 0).all() & are_class_codes)
    if not is_valid:
        raise InputError(
            f"a batch must have probabilities [B, {members}, C], soft labels [B, C] and hard labels"
            f" [B] from 0 to C − 1, without NaN, but got shapes {shapes}, or other values",
            "apply a softmax to logits, and number the classes from 0",
            code="wrong-shape",
        )


def _gumbel(shape: Sequence[int], device: torch.device) -> torch.Tensor:
    """Standard Gumbel noise."""
    return -torch.empty(tuple(shape), dtype=torch.float64, device=device).exponential_().log()
