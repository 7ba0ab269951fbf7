"""What each baseline does that the others don't."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pool_cases import quick, sample

from edokit import Predictions
from edokit.analysis.compare.method import make_method
from edokit.analysis.compare.methods.greedy import Greedy
from edokit.analysis.compare.methods.optimal import LinearPool, LogPool
from edokit.analysis.compare.methods.simple import Top5
from edokit.analysis.compare.methods.wel import WEL, WELCE, LossFactors, WELLoss, evolve
from edokit.metrics import ce, f1, md
from edokit.objective.pools import pool


def arrays(seed: int = 0, items: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    predictions, people = sample(items, seed=seed)
    q = np.asarray(people.soft_labels)
    y = np.asarray(people.hard_labels(ties="first"))
    return predictions.probabilities, q, y


def test_uniform_is_the_mean_of_all_members() -> None:
    dev, people = sample()
    np.testing.assert_allclose(
        make_method("uniform").fit(dev, people).predict_proba(dev), dev.uniform, atol=1e-15
    )


def test_majority_is_the_share_of_members_whose_likeliest_class_it_is() -> None:
    dev, people = sample()
    fitted = make_method("majority").fit(dev, people)
    literal = np.stack([(dev.probabilities.argmax(axis=2) == c).mean(axis=1) for c in (0, 1)], 1)
    np.testing.assert_allclose(fitted.predict_proba(dev), literal, atol=1e-15)
    # One member can't decide: its vote is divided; of a tied vote the likelier class is the label.
    votes = np.array([0.5, 0.9, 0.9, 0.4, 0.4, 0.4])
    undecided = Predictions.from_arrays(
        np.stack([1 - votes, votes], axis=-1)[None],
        members=dev.members,
        classes=("no", "yes"),
        layout="NKC",
    )
    np.testing.assert_allclose(fitted.predict_proba(undecided)[0], [3.5 / 6, 2.5 / 6])
    assert fitted.predict(undecided)[0] == "no"
    pair = make_method("majority").fit(dev.select(dev.members[:2]), people)
    assert pair.predict(undecided.select(dev.members[:2]))[0] == "yes"


def test_best_single_is_the_member_with_the_lowest_cross_entropy() -> None:
    dev, people = sample()
    best = min(range(6), key=lambda k: ce(dev.probabilities[:, k], np.asarray(people.soft_labels)))
    p = make_method("best-single").fit(dev, people).predict_proba(dev)
    np.testing.assert_array_equal(p, dev.probabilities[:, best])


def test_top_5_leaves_the_worst_out_and_votes_where_the_mean_says_otherwise() -> None:
    dev, people = sample()
    fitted = Top5().fit(dev, people)
    assert fitted.size_ == 5
    assert fitted.weights_.max() == pytest.approx(0.2)
    # Three lean to "yes", two are sure of "no": the vote is "yes", the mean is "no".
    leaning = np.array([0.55, 0.55, 0.55, 0.02, 0.02])
    kept = [name for name, w in zip(fitted.members_, fitted.weights_, strict=True) if w > 0]
    split = Predictions.from_arrays(
        np.stack([1 - leaning, leaning], axis=-1)[None],
        members=kept,
        classes=("no", "yes"),
        layout="NKC",
    )
    assert fitted.predict(split)[0] == "yes"
    assert fitted.predict_proba(split)[0].argmax() == 0


def test_a_tied_vote_goes_to_the_likelier_class() -> None:
    dev, people = sample()
    pair = dev.select(["good-1", "good-2"])
    fitted = Top5().fit(pair, people)
    for sure in (0.9, 0.6):
        tied = np.array([[[1 - sure, sure], [0.75, 0.25]]])
        said = fitted.predict(
            Predictions.from_arrays(tied, members=pair.members, classes=("no", "yes"), layout="NKC")
        )
        assert said[0] == ("yes" if sure > 0.75 else "no")


def literal_greedy(P: np.ndarray, q: np.ndarray, rounds: int = 100) -> np.ndarray:
    """Forward selection as it is told: try every member, keep the best, stop at the lowest."""
    bag: list[int] = []
    trail = []
    for _ in range(rounds):
        losses = [round(ce(P[:, [*bag, k]].mean(axis=1), q), 6) for k in range(P.shape[1])]
        equal = [k for k, loss in enumerate(losses) if loss == min(losses)]
        bag.append(next((k for k in equal if k in bag), equal[0]))
        trail.append(min(losses))
    bag = bag[: trail.index(min(trail)) + 1]
    return np.bincount(bag, minlength=P.shape[1]) / len(bag)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_greedy_is_forward_selection_with_replacement(seed: int) -> None:
    P, q, y = arrays(seed)
    np.testing.assert_allclose(Greedy().find_weights(P, q, y), literal_greedy(P, q), atol=1e-12)


def test_greedy_comes_close_to_the_optimal_linear_pool_and_never_beats_it() -> None:
    P, q, y = arrays(4)
    best = ce(pool(P, LinearPool().find_weights(P, q, y)), q)
    greedy = ce(pool(P, Greedy().find_weights(P, q, y)), q)
    assert best - 1e-9 <= greedy <= best + 0.002


def test_greedy_takes_one_of_two_equal_members_only() -> None:
    P, q, y = arrays()
    doubled = np.concatenate([P, P[:, :1]], axis=1)
    weights = Greedy().find_weights(doubled, q, y)
    assert min(weights[0], weights[-1]) == 0


@cache
def optimal(kind: type[LinearPool]) -> np.ndarray:
    return kind().find_weights(*arrays(7, items=30))


@pytest.mark.parametrize("kind", [LinearPool, LogPool])
@given(raw=st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda w: sum(w) > 0.01))
def test_no_weights_beat_the_optimal_pools_on_the_fit_data(kind: type, raw: list[float]) -> None:
    P, q, _ = arrays(7, items=30)
    best = ce(pool(P, optimal(kind), kind.pool), q)
    other = ce(pool(P, np.array(raw) / sum(raw), kind.pool), q)
    assert best <= other + 1e-7


class LiteralLoss:
    """WEL's loss as published, point by point and all its terms, in double precision."""

    def __init__(
        self, P: np.ndarray, q: np.ndarray, y: np.ndarray, parts: list[float], squash: bool
    ) -> None:
        self.P = P
        self.q = q
        self.y = y
        self.parts = parts
        self.squash = squash
        self.votes = np.eye(P.shape[2])[P.argmax(axis=2)]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return np.array([self.loss(point) for point in points])

    def loss(self, point: np.ndarray) -> float:
        size = np.clip(np.round(point[-1]), 1, len(point) - 1)
        kept = np.where(np.arange(len(point) - 1) < size, point[:-1], 0)
        weights = kept / kept.sum()
        (loss,) = self.distances(weights[None])[0]
        alpha, beta, gamma, mu = self.parts
        return float(
            -alpha * f1(np.einsum("nkc,k->nc", self.votes, weights), self.y)
            + beta * (1 / (1 + np.exp(-loss)) if self.squash else loss)
            + gamma * md(pool(self.P, weights), self.q)
            + mu * np.linalg.norm(weights)
        )

    def distances(self, weights: np.ndarray) -> tuple[np.ndarray]:
        return (np.array([ce(pool(self.P, w), self.q) for w in weights]),)


CLASSES = pytest.mark.parametrize("classes", [("no", "yes"), ("calm", "cross", "rude")])


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
@CLASSES
def test_wel_minimises_the_published_loss(classes: tuple[str, ...]) -> None:
    predictions, people = sample(40, classes=classes)
    P = predictions.probabilities
    q = np.asarray(people.soft_labels)
    y = np.asarray(people.hard_labels(ties="first"))
    parts = [0.7, 0.2, 0.4, 0.1]
    for squash, size in product((True, False), (1, 4, 6)):
        point = np.append(np.linspace(0.1, 0.9, 6), size)
        expected = LiteralLoss(P, q, y, parts, squash).loss(point)
        (found,) = WELLoss(P, q, y, LossFactors(*parts), squash)(point[None, :])
        assert found == pytest.approx(expected, abs=1e-5)


def test_wel_chooses_f1_and_wel_ce_chooses_the_cross_entropy() -> None:
    P, q, y = arrays(3, items=80)
    published, unsquashed = (
        kind(trials=12, generations=20, population=5).find_weights(P, q, y) for kind in (WEL, WELCE)
    )
    assert ce(pool(P, unsquashed), q) < ce(pool(P, published), q)
    assert ce(pool(P, unsquashed), q) < ce(P.mean(axis=1), q)


def test_wel_says_nothing_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    dev, people = sample(30)
    quick("wel").fit(dev, people)
    assert capfd.readouterr() == ("", "")


def test_evolution_finds_the_lowest_point_of_a_bowl_and_stays_in_the_box() -> None:
    target = np.array([0.3, -1.5, 2.0])

    def bowl(points: np.ndarray) -> np.ndarray:
        assert ((points >= low) & (points <= high)).all()
        return ((points - target) ** 2).sum(axis=1)

    low = np.array([0.0, -2.0, 0.0])
    high = np.array([1.0, 2.0, 1.0])
    point, value = evolve(bowl, low, high, np.random.default_rng(0), generations=200)
    np.testing.assert_allclose(point, [0.3, -1.5, 1.0], atol=1e-2)
    assert value == pytest.approx(1.0, abs=1e-2)


def test_evolution_is_as_good_as_scipys() -> None:
    from scipy.optimize import differential_evolution

    def bumpy(points: np.ndarray) -> np.ndarray:
        return (points**2 - 3 * np.cos(3 * points)).sum(axis=1)

    low = np.full(4, -4.0)
    high = np.full(4, 4.0)
    ours = []
    theirs = []
    for seed in range(6):
        ours.append(evolve(bumpy, low, high, np.random.default_rng(seed), generations=30)[1])
        found = differential_evolution(
            lambda x: bumpy(x.T),
            list(zip(low, high, strict=True)),
            maxiter=30,
            tol=1e-6,
            seed=seed,
            polish=False,
            init="random",
            updating="deferred",
            vectorized=True,
        )
        theirs.append(found.fun)
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.2
