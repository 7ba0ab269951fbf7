"""Intervals of `edo estimate`, and the verdicts of `edo evaluate --gate`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from coverage_scenarios.coverage_row import CoverageRow
from edokit.analysis.estimate.statistics import estimate_share, transported_share
from edokit.analysis.gate.statistics import loss_change
from edokit.analysis.sequential import holm
from edokit.datasets.read import read_annotations

LEVEL = 0.95
TEXTS = 2000
LABELLED = (20, 50, 200)
FIT_ITEMS = 800
NEW_ITEMS = (30, 100, 400)
SLICES = 4
POWER = 0.8
ROOT = Path(__file__).resolve().parents[2]
LEWIDI = Path(os.environ.get("EDO_LEWIDI2023", ROOT.parent / "shared" / "lewidi2023"))
REAL = ("HS-Brexit", "ConvAbuse", "MD-Agreement")


@dataclass(frozen=True)
class Crowd:
    """How simulated texts, annotators and answers behave.

    The share of people who choose a label follows a beta distribution with this mean; answers see
    its log-odds with noise and a bias. Texts of a group have one share.
    """

    name: str
    mean: float = 0.2
    votes: int = 3
    noise: float = 0.5
    bias: float = 0.5
    group_size: int = 1


CROWDS = (
    Crowd("a fifth of the votes"),
    Crowd("a fifth, one vote a text", votes=1),
    Crowd("a fiftieth of the votes", mean=0.02),
    Crowd("a fifth, answers say little", noise=4.0),
    Crowd("a fifth, in groups of five", group_size=5),
)


def draw_texts(
    crowd: Crowd, texts: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share, the mean vote and the answer of each text."""
    groups = texts // crowd.group_size
    shares = rng.beta(4 * crowd.mean, 4 * (1 - crowd.mean), groups).clip(1e-4, 1 - 1e-4)
    shares = np.repeat(shares, crowd.group_size)
    votes = rng.binomial(crowd.votes, shares) / crowd.votes
    logits = np.log(shares / (1 - shares)) + crowd.bias + rng.normal(0, crowd.noise, len(shares))
    return shares, votes, 1 / (1 + np.exp(-logits))


def estimate(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Intervals of shares with labels and without, and their width beside that of labels alone."""
    for crowd in CROWDS:
        for labelled in LABELLED:
            rng = np.random.default_rng([seed, labelled])
            covered = 0
            narrow = 0
            for _ in range(runs):
                shares, votes, answers = draw_texts(crowd, TEXTS, rng)
                groups = rng.choice(TEXTS // crowd.group_size, labelled // crowd.group_size, False)
                chosen_items = groups[:, None] * crowd.group_size + np.arange(crowd.group_size)
                clusters = None
                if crowd.group_size > 1:
                    clusters = np.repeat(groups, crowd.group_size)
                share = estimate_share(
                    votes[chosen_items.ravel()],
                    answers[chosen_items.ravel()],
                    answers.mean(),
                    clusters,
                    LEVEL,
                )
                covered += share.low <= shares.mean() <= share.high
                narrow += share.width <= share.label_width
            size = f"{labelled} labelled"
            yield CoverageRow(
                "interval of a share", crowd.name, "covers", LEVEL, covered, runs, size
            )
    yield CoverageRow("not wider than labels alone", CROWDS[-1].name, "kept", 1.0, narrow, runs)
    yield _without_labels(runs, seed)
    yield from _subsampled_shares(runs, seed)


def _without_labels(runs: int, seed: int) -> CoverageRow:
    """Other texts than those of the fit, which people judge by the same answers alike."""
    rng = np.random.default_rng(seed)
    fit_crowd = CROWDS[0]
    covered = 0
    for _ in range(runs):
        _, votes, answers = draw_texts(fit_crowd, FIT_ITEMS, rng)
        shares, _, targets = draw_texts(Crowd("other", mean=0.3), 500, rng)
        share = transported_share(votes, answers, targets, None, LEVEL)
        covered += share.low <= shares.mean() <= share.high
    data = "a fit at a fifth, texts at 30 %"
    return CoverageRow("interval without labels", data, "covers", LEVEL, covered, runs)


@cache
def real_answers(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean votes of dev, answers of TF-IDF that was trained on train, and the loss of each item."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    train = read_annotations(LEWIDI / name, split="train")
    dev = read_annotations(LEWIDI / name, split="dev")
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression())
    labels = train.label_codes
    model.fit(train.whole_texts[train.item_codes].tolist(), labels)
    p = model.predict_proba(dev.whole_texts.tolist()).clip(1e-12)
    losses = -(dev.soft_labels * np.log(p)).sum(axis=1)
    return dev.soft_labels[:, 1], p[:, 1], losses


def _subsampled_shares(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Real texts, of which some are labelled; the truth is the mean vote of all."""
    for name in REAL:
        if not (LEWIDI / name).is_dir():
            continue
        votes, answers, _ = real_answers(name)
        for labelled in (20, 50):
            rng = np.random.default_rng([seed, labelled])
            covered = 0
            for _ in range(runs):
                labelled_items = rng.choice(len(votes), labelled, replace=False)
                share = estimate_share(
                    votes[labelled_items], answers[labelled_items], answers.mean(), None, LEVEL
                )
                covered += share.low <= votes.mean() <= share.high
            data = f"{name}, dev, subsampled"
            size = f"{labelled} labelled"
            yield CoverageRow("interval of a share", data, "covers", LEVEL, covered, runs, size)


def draw_losses(crowd: Crowd, items: int, rng: np.random.Generator) -> np.ndarray:
    """The cross-entropy of the answers to the votes of each item."""
    _, votes, p = draw_texts(crowd, items, rng)
    p = p.clip(1e-6, 1 - 1e-6)
    return -(votes * np.log(p) + (1 - votes) * np.log(1 - p))


def gate_fails(reference: np.ndarray, current: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether all items or one of four slices fail, corrected as the gate does."""
    parts = rng.integers(SLICES, size=len(current))
    samples = [current] + [current[parts == part] for part in range(SLICES)]
    p = [
        loss_change(reference, sample, None, None, level=LEVEL).p
        for sample in samples
        if len(sample) >= 10
    ]
    return bool((holm(np.array(p)) <= (1 - LEVEL) / 2).any())


def gate(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Gates that fail without a change, and those that find a rise of the size that they state."""
    for crowd in CROWDS[:4]:
        for items in NEW_ITEMS:
            rng = np.random.default_rng([seed, items])
            failed = 0
            for _ in range(runs):
                reference = draw_losses(crowd, FIT_ITEMS, rng)
                failed += gate_fails(reference, draw_losses(crowd, items, rng), rng)
            yield CoverageRow(
                "FAIL, with four slices",
                crowd.name,
                "false alarms",
                0.025,
                failed,
                runs,
                f"{items} items",
            )
    for crowd in CROWDS[:4]:
        for items in NEW_ITEMS:
            rng = np.random.default_rng([seed, items])
            n_found = 0
            for _ in range(runs):
                reference = draw_losses(crowd, FIT_ITEMS, rng)
                planned = draw_losses(crowd, items, rng)
                found_change = loss_change(
                    reference, planned, None, None, level=LEVEL, tests=SLICES + 1
                )
                current = draw_losses(crowd, items, rng) + found_change.detectable
                p = loss_change(reference, current, None, None, level=LEVEL).p
                n_found += p <= (1 - LEVEL) / 2 / (SLICES + 1)
            yield CoverageRow(
                "finds the rise that it names",
                crowd.name,
                "kept",
                POWER,
                n_found,
                runs,
                f"{items} items",
            )
    for name in REAL:
        if not (LEWIDI / name).is_dir():
            continue
        _, _, losses = real_answers(name)
        rng = np.random.default_rng(seed)
        failed = 0
        for _ in range(runs):
            shuffled = rng.permutation(losses)
            failed += gate_fails(shuffled[60:], shuffled[:60], rng)
        data = f"{name}, dev, split at random"
        yield CoverageRow(
            "FAIL, with four slices", data, "false alarms", 0.025, failed, runs, "60 items"
        )
