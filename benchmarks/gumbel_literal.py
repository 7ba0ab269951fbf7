"""The paper's algorithm as its formulas read: one PyTorch module and one loop per configuration.

The yardstick of ``gumbel.py``. It needs PyTorch, which the package itself does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from edokit.objective.settings import CE, GumbelSteps, ObjectiveSettings
from edokit.solvers.batches import Draws

EPSILON = 1e-12


class Noise(Protocol):
    """Where randomness comes from."""

    def order(self, items: int) -> Tensor: ...
    def of_sizes(self, sizes: int) -> Tensor: ...
    def of_members(self, batch: int, members: int) -> Tensor: ...


class OwnNoise:
    """PyTorch's generator."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)

    def order(self, items: int) -> Tensor:
        return torch.randperm(items)

    def of_sizes(self, sizes: int) -> Tensor:
        return -torch.empty(sizes).exponential_().log()

    def of_members(self, batch: int, members: int) -> Tensor:
        return -torch.empty(batch, members).exponential_().log()


class SharedNoise:
    """The very numbers that edokit's solver draws, to compare the two digit by digit."""

    def __init__(self, seed: int, batch_size: int) -> None:
        self._draws = Draws(seed)
        self._batch_size = batch_size

    def order(self, items: int) -> Tensor:
        return torch.from_numpy(self._draws.shuffle(items))

    def of_sizes(self, sizes: int) -> Tensor:
        return torch.from_numpy(self._draws.size_noise(1, sizes)[0])

    def of_members(self, batch: int, members: int) -> Tensor:
        # edokit fills a short last batch up, and draws for the filler too.
        noise = self._draws.member_noise(1, self._batch_size, members)[0, :batch]
        return torch.from_numpy(noise)


class Ensemble(nn.Module):
    """Weights and a distribution over sizes; everything else is fixed."""

    def __init__(
        self, members: int, settings: ObjectiveSettings, options: GumbelSteps, alpha: Tensor
    ) -> None:
        super().__init__()
        sizes = range(options.min_members, min(options.max_members, members) + 1)
        self.theta = nn.Parameter(torch.zeros(members, dtype=alpha.dtype))
        self.pi = nn.Parameter(torch.zeros(len(sizes), dtype=alpha.dtype))
        masks = np.arange(members) < np.array(sizes)[:, None]
        self.register_buffer("masks", torch.tensor(masks, dtype=alpha.dtype))
        self.register_buffer("alpha", alpha)
        self.settings = settings

    def weights(self, noise: Tensor, temperature: float) -> Tensor:
        """The average over sizes of the first j members' weights, renormalised [K]."""
        z = torch.log_softmax(self.pi, dim=0) + noise
        sizes = torch.softmax(z / temperature, dim=0)
        truncated = torch.softmax(self.theta, dim=0) * self.masks
        truncated = truncated / truncated.sum(dim=1, keepdim=True)
        return (sizes[:, None] * truncated).sum(dim=0)

    def loss(self, p: Tensor, q: Tensor, y: Tensor, noise: Noise, temperature: float) -> Tensor:
        """The loss of a mini-batch: predictions [n, K, C], soft and one-hot hard labels [n, C]."""
        s = self.settings
        v = self.weights(noise.of_sizes(len(self.pi)).to(p.dtype), temperature)
        pooled = (v[None, :, None] * p).sum(dim=1)
        true_positive = (pooled * y).sum()
        false_positive = (pooled * (1 - y)).sum()
        false_negative = ((1 - pooled) * y).sum()
        f1 = 2 * true_positive / (2 * true_positive + false_positive + false_negative)
        distances = (p[:, :, None, :] - p[:, None, :, :]).abs().sum(dim=-1)
        diversity = (v[:, None] * v[None, :] * distances).sum(dim=(1, 2)).mean()
        return (
            s.f1 * (1 - f1)
            + s.ce_weight * self.cross_entropy(v, pooled, p, q, noise, temperature)
            + s.diversity.sign * s.div * diversity
            + s.reg * (v**2).sum()
        )

    def cross_entropy(
        self, v: Tensor, pooled: Tensor, p: Tensor, q: Tensor, noise: Noise, temperature: float
    ) -> Tensor:
        if self.settings.ce is CE.MEAN:
            return -(self.alpha * q * torch.log(pooled + EPSILON)).sum(dim=1).mean()
        losses = -(self.alpha * q[:, None, :] * torch.log(p + EPSILON)).sum(dim=2)
        if self.settings.ce is CE.ALL:
            return (losses * v).sum(dim=1).mean()
        scores = torch.log(v + EPSILON) + noise.of_members(*losses.shape).to(p.dtype)
        soft = torch.softmax(scores / temperature, dim=1)
        hard = nn.functional.one_hot(scores.argmax(dim=1), losses.shape[1])
        return (losses * (hard + soft - soft.detach())).sum(dim=1).mean()


def temperatures(options: GumbelSteps) -> Iterator[float]:
    for epoch in range(options.epochs):
        cooled = options.temperature * np.exp(-options.temperature_decay * epoch)
        yield max(options.min_temperature, float(cooled))


def fit_literally(
    p: Tensor,
    q: Tensor,
    y: Tensor,
    alpha: Tensor,
    settings: ObjectiveSettings,
    options: GumbelSteps,
    noise: Noise,
) -> tuple[np.ndarray, int]:
    """Final weights [K] and size, for members that already stand in rank order."""
    model = Ensemble(p.shape[1], settings, options, alpha)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    for temperature in temperatures(options):
        order = noise.order(len(p))
        for start in range(0, len(p), options.batch_size):
            batch = order[start : start + options.batch_size]
            loss = model.loss(p[batch], q[batch], y[batch], noise, temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    best = int(model.pi.argmax())
    with torch.no_grad():
        truncated = torch.softmax(model.theta, dim=0) * model.masks[best]
    return (truncated / truncated.sum()).double().numpy(), options.min_members + best
