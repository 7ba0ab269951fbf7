from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objective_cases import Case, cases, make_case

from edokit import Objective
from edokit.objective.loss import Expansion, joint_loss, pool_terms
from edokit.objective.pools import average_groups, effective_weights, pool, spread_weights
from edokit.objective.settings import ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries, rank_members
from tests.objective.gradients import effective_weights_vjp

EPS = 1e-12
each_variant = pytest.mark.parametrize("ce", ["mean", "all", "random"])
each_pool = pytest.mark.parametrize("kind", ["linear", "log"])


def tensors(case: Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(torch.tensor(part) for part in (case.P, case.q, case.y, case.v))


def close(a: torch.Tensor, b: object, tolerance: float = 1e-9) -> None:
    expected = b.detach().numpy() if isinstance(b, torch.Tensor) else b
    np.testing.assert_allclose(a.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def literal_loss(P, q, y, v, chosen: ObjectiveSettings, noise, temperature: float):
    """The joint loss from the paper's formulas, on whole tensors, left to autograd."""
    hard = torch.nn.functional.one_hot(y, P.shape[2]).to(P.dtype)
    phi = torch.einsum("k,nkc->nc", v, P)
    tp = (hard * phi).sum()
    fp = ((1 - hard) * phi).sum()
    fn = (hard * (1 - phi)).sum()
    f1 = 1 - 2 * tp / (2 * tp + fp + fn + EPS)
    logs = torch.log(P + EPS)
    if chosen.ce == "mean":
        scores = torch.einsum("k,nkc->nc", v, logs)
        log_phi = torch.log_softmax(scores, -1) if chosen.pool == "log" else torch.log(phi + EPS)
        ce = -(q * log_phi).sum(-1).mean()
    elif chosen.ce == "all":
        ce = -torch.einsum("nc,k,nkc->n", q, v, logs).mean()
    else:
        logits = torch.log(v + EPS) + noise
        soft = torch.softmax(logits / temperature, -1)
        hard_draw = torch.nn.functional.one_hot(logits.argmax(-1), P.shape[1]).to(P.dtype)
        drawn = hard_draw - soft.detach() + soft
        ce = -torch.einsum("nk,nc,nkc->n", drawn, q, logs).mean()
    div = torch.einsum("k,l,nkl->n", v, v, (P[:, :, None] - P[:, None]).abs().sum(-1)).mean()
    sign = chosen.diversity.sign
    return (
        chosen.f1 * f1
        + chosen.ce_weight * ce
        + sign * chosen.div * div
        + chosen.reg * (v * v).sum()
    )


@each_variant
@each_pool
@given(case=cases())
def test_tensors_and_arrays_give_the_same_loss(case: Case, ce: str, kind: str) -> None:
    P, q, y, v = tensors(case)
    chosen = Objective(
        f1=0.7, ce_weight=1.3, div=0.4, reg=0.2, diversity="suppress", ce=ce
    ).resolve(kind)
    noise = case.rng.gumbel(size=case.P.shape[:2])
    on_torch = joint_loss(
        v, Problem.from_arrays(P, q, y, pool=kind), chosen, noise=torch.tensor(noise)
    )
    on_numpy = joint_loss(
        case.v, Problem.from_arrays(case.P, case.q, case.y, pool=kind), chosen, noise=noise
    )
    close(on_torch.gradient, on_numpy.gradient)
    for name, value in on_numpy.terms.items():
        close(on_torch.terms[name], value)


@each_variant
@each_pool
@given(case=cases(zeros=False), temperature=st.sampled_from([0.3, 1.0]))
def test_autograd_agrees_with_the_paper_in_weights_and_predictions(
    case: Case, ce: str, kind: str, temperature: float
) -> None:
    P, q, y, v = tensors(case)
    chosen = Objective(
        f1=0.7, ce_weight=1.3, div=0.4, reg=0.2, diversity="preserve", ce=ce
    ).resolve(kind)
    noise = torch.tensor(case.rng.gumbel(size=case.P.shape[:2]))
    found = []
    expected = []
    for slopes, loss in ((found, None), (expected, literal_loss)):
        theirs = v.clone().requires_grad_()
        members = P.clone().requires_grad_()
        if loss is None:
            problem = Problem.from_arrays(members, q, y, pool=kind)
            result = joint_loss(theirs, problem, chosen, noise=noise, temperature=temperature)
            total = result.total
            analytic = result.gradient
        else:
            total = loss(members, q, y, theirs, chosen, noise, temperature)
        total.backward()
        slopes.extend([total, theirs.grad, members.grad])
    close(found[0], expected[0])
    close(found[1], analytic)
    # Off the simplex the literal F1's denominator moves too, by the same for every member ...
    hits = (torch.nn.functional.one_hot(y, P.shape[2]) * torch.einsum("k,nkc->nc", v, P)).sum()
    close(found[1], expected[1] - 0.7 * hits / len(y) / 2)
    # ... and, in the predictions, by the same for every class: no matter along rows that keep
    # their sum.
    along = [slope - slope.mean(-1, keepdim=True) for slope in (found[2], expected[2])]
    close(along[0], along[1])


@given(cases())
def test_summaries_of_tensors_are_those_of_arrays(case: Case) -> None:
    P, q, y, _ = tensors(case)
    a = Summaries.from_arrays(P, q, y)
    b = Summaries.from_arrays(case.P, case.q, case.y)
    for name in ("class_counts", "soft_counts", "hits", "distances", "log_losses"):
        close(getattr(a, name), getattr(b, name), 1e-12)
    close((a + a).hit_rates, b.hit_rates)
    order = rank_members(a)
    close(a.select(order).member_ce(), b.select(order).member_ce())


def test_tensors_go_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(40, 3, 3)
    P, q, y, _ = tensors(case)
    monkeypatch.setattr("edokit.objective.summaries._TENSOR_BLOCK", 70)
    blocks = Summaries.from_arrays(P, q, y)
    close(blocks.distances, Summaries.from_arrays(case.P, case.q, case.y).distances, 1e-12)


def test_gradients_reach_float32_members() -> None:
    case = make_case(16, 3, 2, seed=4)
    logits = torch.tensor(np.log(case.P + 1e-3), dtype=torch.float32, requires_grad=True)
    P = torch.softmax(logits, -1)
    q = torch.tensor(case.q, dtype=torch.float32)
    y = torch.tensor(case.y)
    chosen = Objective(f1=1.0, ce_weight=1.0, div=1.0, reg=1e-3, class_weights=True).resolve()
    problem = Problem.from_arrays(P, q, y, class_weights=True)
    joint_loss(torch.tensor(case.v), problem, chosen).total.backward()
    assert logits.grad.dtype == torch.float32
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad.abs() > 0).any(dim=-1).all()


@each_variant
def test_batches_of_weights_work_on_tensors(ce: str) -> None:
    case = make_case(10, 3, 2, seed=5)
    P, q, y, _ = tensors(case)
    v = case.rng.dirichlet(np.ones(3), size=4)
    noise = case.rng.gumbel(size=(4, 10, 3))
    chosen = Objective(ce=ce).resolve()
    temperature = np.array([0.2, 0.5, 1.0, 0.3])[:, None, None]
    whole = Problem.from_arrays(case.P, case.q, case.y)
    arrays = joint_loss(v, whole, chosen, noise=noise, temperature=temperature)
    weights = torch.tensor(v, requires_grad=True)
    found = joint_loss(
        weights,
        Problem.from_arrays(P, q, y).take(torch.arange(10)),
        chosen,
        noise=torch.tensor(noise),
        temperature=torch.tensor(temperature),
    )
    close(found.total, arrays.total)
    close(found.gradient, arrays.gradient)
    found.total.sum().backward()
    close(weights.grad, arrays.gradient)


def test_the_way_back_from_v_is_autograds() -> None:
    rng = np.random.default_rng(0)
    theta, gradient = rng.normal(size=(2, 5, 6))
    sizes = rng.dirichlet(np.ones(4), size=5)
    on_torch = [torch.tensor(x, requires_grad=True) for x in (theta, sizes)]
    v = effective_weights(*on_torch, 2)
    close(v, effective_weights(theta, sizes, 2))
    v.backward(torch.tensor(gradient))
    for tensor, expected in zip(
        on_torch, effective_weights_vjp(theta, sizes, gradient, 2), strict=True
    ):
        close(tensor.grad, expected)


def test_pools_groups_and_curvature_work_on_tensors() -> None:
    case = make_case(12, 4, 3, seed=6)
    P, q, _, v = tensors(case)
    arrays = (case.P, case.q, case.v)
    for kind in ("linear", "log"):
        close(pool(P, v, kind), pool(case.P, case.v, kind))
        (term,) = pool_terms(Objective().resolve(kind)).values()
        ours = Expansion.from_term(term, P, q, v)
        theirs = Expansion.from_term(term, *arrays)
        for part in ("value", "gradient", "hessian"):
            close(getattr(ours, part), getattr(theirs, part))
    groups = ["a", "b", "a", "b"]
    close(average_groups(P, groups), average_groups(case.P, groups))
    close(spread_weights(v[:2], groups), spread_weights(case.v[:2], groups))
