"""EDOHead: the objective of prediction space, on live members."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from edokit import EDOEnsemble, Gumbel, MissingExtraError, Objective  # noqa: E402
from edokit.objective.loss import joint_loss  # noqa: E402
from edokit.objective.pools import effective_weights, pool, softmax  # noqa: E402
from edokit.objective.summaries import Problem  # noqa: E402
from edokit.torch import EDOHead  # noqa: E402
from tests.errors import raises_code  # noqa: E402

N = 30
K = 4
C = 3
VARIANTS = [
    (Objective(), "linear"),
    (Objective(f1=1.0, div=1.0, class_weights=True), "linear"),
    (Objective(ce="all", diversity="suppress"), "linear"),
    (Objective(ce="random", class_weights=True), "linear"),
    (Objective(), "log"),
    (Objective(reg=0.1), "linear"),
]


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(C), (N, K))
    q = rng.dirichlet(np.ones(C), N)
    return P, q, np.concatenate([np.arange(C), rng.integers(0, C, N - C)])


def head(objective: Objective | None = None, **given: Any) -> EDOHead:
    made = EDOHead(K, objective=objective, min_members=2, **given)
    rng = np.random.default_rng(5)
    with torch.no_grad():
        made.theta.copy_(torch.from_numpy(rng.normal(size=K)))
        made.size_logits.copy_(torch.from_numpy(rng.normal(size=K - 1)))
    return made


@pytest.mark.parametrize(("objective", "pooled"), VARIANTS)
def test_with_frozen_members_it_is_the_objective_of_prediction_space(
    objective: Objective, pooled: Any
) -> None:
    P, q, y = data()
    rng = np.random.default_rng(1)
    size_noise = rng.gumbel(size=K - 1)
    member_noise = rng.gumbel(size=(N, K))
    edo = head(objective, pool=pooled)
    edo.set_epoch(3)
    theta = edo.theta.detach().numpy()
    logits = edo.size_logits.detach().numpy()
    temperature = max(0.1, 0.5 * np.exp(-0.05 * 3))
    z = logits - np.log(np.exp(logits).sum()) + size_noise
    v = effective_weights(theta, softmax(z / temperature), 2)
    settings = objective.resolve(pooled)
    problem = Problem.from_arrays(P, q, y, class_weights=settings.class_weights, pool=settings.pool)
    wanted = joint_loss(v, problem, settings, noise=member_noise, temperature=temperature)
    given = edo.loss(
        *map(torch.from_numpy, (P, q, y)),
        size_noise=torch.from_numpy(size_noise),
        member_noise=torch.from_numpy(member_noise),
    )
    for term in ("total", "f1", "ce", "div", "reg"):
        assert float(given.terms[term].detach()) == pytest.approx(
            float(wanted.terms[term]), rel=1e-12, abs=1e-14
        )


@pytest.mark.parametrize(("objective", "pooled"), VARIANTS)
def test_gradients_reach_weights_sizes_and_members(objective: Objective, pooled: Any) -> None:
    P, q, y = map(torch.from_numpy, data())
    scores = P.log().requires_grad_()
    edo = head(objective, pool=pooled)
    edo.loss(torch.softmax(scores, dim=-1), q, y).total.backward()
    for part in (edo.theta, edo.size_logits, scores):
        assert part.grad is not None
        assert torch.isfinite(part.grad).all()
        assert part.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("objective", "pooled"), [case for case in VARIANTS if case[0].ce != "random"]
)
def test_gradients_are_those_of_finite_differences(objective: Objective, pooled: Any) -> None:
    P, q, y = map(torch.from_numpy, data())
    noise = torch.from_numpy(np.random.default_rng(1).gumbel(size=K - 1))
    edo = head(objective, pool=pooled)

    def total(scores: torch.Tensor, theta: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        from torch.func import functional_call

        class Loss(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.edo = edo

            def forward(self) -> torch.Tensor:
                return self.edo.loss(torch.softmax(scores, dim=-1), q, y, size_noise=noise).total

        return functional_call(Loss(), {"edo.theta": theta, "edo.size_logits": logits}, ())

    leaves = [t.detach().clone().requires_grad_() for t in (P.log(), edo.theta, edo.size_logits)]
    assert torch.autograd.gradcheck(total, leaves, atol=1e-6)


def test_class_counts_make_batches_weigh_classes_like_all_items() -> None:
    P, q, y = map(torch.from_numpy, data())
    objective = Objective(class_weights=True)
    noise = torch.zeros(K - 1, dtype=torch.float64)
    counted = head(objective, class_counts=np.bincount(y.numpy()).tolist())
    whole = counted.loss(P, q, y, size_noise=noise)
    plain = head(objective).loss(P, q, y, size_noise=noise)
    assert float(whole.total.detach()) == pytest.approx(float(plain.total.detach()), rel=1e-12)
    halves = [
        float(counted.loss(P[s], q[s], y[s], size_noise=noise).terms["ce"].detach())
        for s in (slice(0, N // 2), slice(N // 2, N))
    ]
    assert np.mean(halves) == pytest.approx(float(whole.terms["ce"].detach()), rel=1e-12)


def test_a_batch_without_a_class_needs_class_counts() -> None:
    P, q, y = map(torch.from_numpy, data())
    zeros = torch.zeros_like(y)
    with raises_code("missing-class"):
        head(Objective(class_weights=True)).loss(P, q, zeros)
    head(Objective(class_weights=True), class_counts=[10, 10, 10]).loss(P, q, zeros)


def test_a_batch_of_logits_or_other_labels_is_refused() -> None:
    P, q, y = map(torch.from_numpy, data())
    hole = P.masked_fill(q[:, None] >= 0, torch.nan)
    for batch in ((P.log(), q, y), (hole, q, y), (P[:, 1:], q, y), (P, q[:-1], y), (P, q, y + 2)):
        with raises_code("wrong-shape"):
            head().loss(*batch)


def test_the_ensemble_keeps_the_likeliest_size() -> None:
    edo = head()
    with torch.no_grad():
        edo.size_logits.copy_(torch.tensor([0.0, 1.0, 0.5]))
    weights = edo.weights_
    assert edo.size_ == 3
    w = softmax(edo.theta.detach().numpy())
    np.testing.assert_allclose(weights, [*(w[:3] / w[:3].sum()), 0.0])
    P, _, _ = data()
    np.testing.assert_allclose(edo(torch.from_numpy(P)).detach().numpy(), pool(P, weights))


def test_sizes_are_drawn_in_training_and_not_in_evaluation() -> None:
    P, q, y = map(torch.from_numpy, data())
    edo = head()
    drawn = {float(edo.loss(P, q, y).total.detach()) for _ in range(3)}
    assert len(drawn) == 3
    edo.eval()
    still = {float(edo.loss(P, q, y).total.detach()) for _ in range(3)}
    assert len(still) == 1


def test_in_evaluation_the_expected_member_replaces_a_drawn_one() -> None:
    P, q, y = map(torch.from_numpy, data())
    drawn = head(Objective(ce="random")).eval()
    expected = head(Objective(ce="all")).eval()
    assert torch.equal(drawn.loss(P, q, y).total, expected.loss(P, q, y).total)


def test_class_counts_that_give_no_class_weights_are_refused() -> None:
    with raises_code("invalid-number", "class_counts"):
        head(class_counts=[4, 0, 2])
    weighted = head(Objective(class_weights=True), class_counts=torch.tensor([4, 2]))
    with raises_code("lengths-differ", "2 class_counts", f"{C} classes"):
        weighted.loss(*map(torch.from_numpy, data()))


def test_training_the_head_alone_finds_the_good_member() -> None:
    _, q, y = data()
    good = 0.9 * q + 0.1 / C
    P = np.stack([good, *np.random.default_rng(2).dirichlet(np.ones(C), (K - 1, N))], axis=1)
    edo = EDOHead(K)
    optimizer = torch.optim.Adam(edo.parameters(), lr=0.1)
    arrays = list(map(torch.from_numpy, (P, q, y)))
    torch.manual_seed(0)
    losses = []
    for epoch in range(60):
        edo.set_epoch(epoch)
        loss = edo.loss(*arrays).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert edo.weights_[0] > 0.8


def test_temperature_falls_to_its_floor() -> None:
    edo = EDOHead(K)
    assert edo.temperature == pytest.approx(0.5)
    edo.set_epoch(10)
    assert edo.temperature == pytest.approx(0.5 * np.exp(-0.5))
    edo.set_epoch(1000)
    assert edo.temperature == pytest.approx(0.1)


def test_a_state_dict_holds_weights_and_sizes() -> None:
    edo = head()
    other = EDOHead(K, min_members=2)
    other.load_state_dict(edo.state_dict())
    np.testing.assert_array_equal(other.weights_, edo.weights_)
    assert sorted(edo.state_dict()) == ["size_logits", "theta"]


def test_names_are_those_of_the_ensemble_and_its_solver() -> None:
    own = set(signature(EDOHead).parameters) - {"n_members", "class_counts"}
    others = {*signature(EDOEnsemble).parameters, *signature(Gumbel).parameters}
    assert own <= others
    P, q, _ = data()
    edo = head(Objective(f1=0.5))
    ensemble = EDOEnsemble.from_weights(edo.weights_, P, q, objective=edo.objective)
    np.testing.assert_allclose(ensemble.weights_, edo.weights_)
    assert ensemble.size_ == edo.size_
    pooled = edo(torch.from_numpy(P)).detach().numpy()
    np.testing.assert_allclose(ensemble.predict_proba(P), pooled)


def test_impossible_sizes_are_refused() -> None:
    for given in ({"min_members": 0}, {"min_members": 5}, {"max_members": 0}):
        with raises_code("invalid-range", "4 members"):
            EDOHead(K, **given)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("edokit.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with raises_code("missing-package", '".[transformers]"', kind=MissingExtraError):
        import_module("edokit.torch")
