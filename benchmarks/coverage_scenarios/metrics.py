"""Intervals of `edo evaluate`, and paired differences and gains of `edo compare` and `edo run`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coverage_scenarios.coverage_row import CoverageRow, Promise
from edokit.analysis.scores.result import Gain, Score
from edokit.analysis.sequential import holm
from edokit.metrics import (
    METRIC,
    PairedTest,
    bootstrap,
    compute_metrics,
    headline_metric,
    item_values,
    main_metrics,
    paired_test,
)
from edokit.metrics.paired_metrics import paired_metric_test
from edokit.metrics.resampling import Resampling
from edokit.scales import NOMINAL, Scale

ITEMS = (12, 30, 100, 400)
SAMPLES = 1000
LEVEL = 0.95
POPULATION_ITEMS = 200_000
"""Items on which the true value of a metric is computed."""


@dataclass(frozen=True)
class Population:
    """How simulated items, models and annotators behave.

    The log-odds of a text are normal with this mean and standard deviation; models see them with
    noise. Texts of a group share half of the variance of the log-odds and of the noise.
    """

    name: str
    mean: float = 0.0
    deviation: float = 1.5
    noise: float = 0.7
    votes: int = 3
    classes: int = 2
    group_size: int = 1


BALANCED = Population("two classes, balanced")
SURE = Population("two classes, models too sure", deviation=3.0, noise=1.5)
RARE = Population("two classes, 95:5", mean=-3.5, noise=1.0)
SEVEN = Population("seven points", classes=7)
GROUPED = Population("two classes, in groups of five", group_size=5)
POPULATIONS = (BALANCED, SURE, RARE, SEVEN, GROUPED)


@dataclass(frozen=True, eq=False)
class Table:
    """Two models' probabilities [N, C] on simulated items, and what annotators answered."""

    first: np.ndarray
    second: np.ndarray
    soft_labels: np.ndarray
    hard_labels: np.ndarray
    clusters: np.ndarray | None
    scale: Scale


def shared_normal(
    n_items: int, population: Population, rng: np.random.Generator, columns: int = 1
) -> np.ndarray:
    """Standard normal values [N, columns], of which items of a group share half the variance."""
    own_noise = rng.normal(size=(n_items, columns))
    if population.group_size == 1:
        return own_noise
    n_groups = -(-n_items // population.group_size)
    shared = rng.normal(size=(n_groups, columns)).repeat(population.group_size, axis=0)[:n_items]
    return np.sqrt(0.5) * (own_noise + shared)


def draw(n_items: int, population: Population, rng: np.random.Generator) -> Table:
    """Draw items, annotators' answers, and two models that are equally good."""
    n_classes = population.classes
    scale = NOMINAL
    columns = n_classes - 1
    if n_classes > 2:
        scale = Scale("ordinal", tuple(range(1, n_classes + 1)))
        columns = n_classes

    def probabilities(logits: np.ndarray) -> np.ndarray:
        if columns == 1:
            logits = np.column_stack([np.zeros(len(logits)), logits])
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    spread = population.deviation * shared_normal(n_items, population, rng, columns)
    logits = population.mean + spread
    votes = rng.multinomial(population.votes, probabilities(logits))
    soft_labels = votes / population.votes
    models = []
    for _ in range(2):
        noise = population.noise * shared_normal(n_items, population, rng, columns)
        models.append(probabilities(logits + noise))
    clusters = None
    if population.group_size > 1:
        clusters = np.arange(n_items) // population.group_size
    return Table(*models, soft_labels, soft_labels.argmax(axis=1), clusters, scale)


class Counts:
    """How often statements were true, by what is shown and by number of items."""

    def __init__(self, data: str) -> None:
        self.data = data
        self._outcomes: dict[tuple[str, Promise], dict[int, list[bool]]] = {}

    def add(self, shown: str, n_items: int, is_true: bool, promise: Promise = "covers") -> None:
        """Count one simulated table."""
        by_size = self._outcomes.setdefault((shown, promise), {})
        by_size.setdefault(n_items, []).append(is_true)

    def rows(self) -> Iterator[CoverageRow]:
        """A row for each statement and size."""
        for (quantity, promise), by_size in self._outcomes.items():
            nominal = LEVEL
            if promise == "false alarms":
                nominal = 1 - LEVEL
            for n_items, outcomes in by_size.items():
                yield CoverageRow(
                    quantity,
                    self.data,
                    promise,
                    nominal,
                    count=sum(outcomes),
                    runs=len(outcomes),
                    size=f"{n_items} items",
                )


def evaluate(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Intervals of every metric, on small and large tables."""
    for population in POPULATIONS:
        population_draw = draw(POPULATION_ITEMS, population, np.random.default_rng([seed, 1]))
        truth = compute_metrics(
            population_draw.first,
            population_draw.soft_labels,
            population_draw.hard_labels,
            scale=population_draw.scale,
        )
        counts = Counts(population.name)
        for n_items in ITEMS:
            for run in range(runs):
                table = draw(n_items, population, np.random.default_rng([seed, n_items, run]))
                intervals = bootstrap(
                    table.first,
                    table.soft_labels,
                    table.hard_labels,
                    scale=table.scale,
                    clusters=table.clusters,
                    samples=SAMPLES,
                    level=LEVEL,
                    random_state=run,
                )
                for name, interval in intervals.items():
                    # Where no interval is shown, there is none to be wrong.
                    if interval.low is not None and interval.high is not None:
                        covers = interval.low <= truth[name] <= interval.high
                        counts.add(f"interval of {METRIC[name].short}", n_items, covers)
        yield from counts.rows()


def item_losses(metric: str, p: np.ndarray, table: Table) -> np.ndarray:
    """The values of a metric by item [N]."""
    formula = item_values(table.scale)[metric]
    return formula(p, table.soft_labels, table.hard_labels)


def compare(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Paired differences of two equal models, and the gain over a constant answer."""
    for population in POPULATIONS:
        population_draw = draw(POPULATION_ITEMS, population, np.random.default_rng([seed, 1]))
        shares = population_draw.soft_labels.mean(axis=0)
        names = main_metrics(population_draw.scale)
        headline = headline_metric(population_draw.scale)
        short = METRIC[headline].short
        of_constant = item_losses(
            headline, np.tile(shares, (len(population_draw.first), 1)), population_draw
        ).mean()
        true_gain = (
            1 - item_losses(headline, population_draw.first, population_draw).mean() / of_constant
        )
        counts = Counts(population.name)
        for n_items in ITEMS:
            for run in range(runs):
                table = draw(n_items, population, np.random.default_rng([seed, n_items, run]))

                def paired(metric: str, first: np.ndarray, second: np.ndarray) -> PairedTest:
                    return paired_test(
                        item_losses(metric, first, table),  # noqa: B023
                        item_losses(metric, second, table),  # noqa: B023
                        clusters=table.clusters,  # noqa: B023
                        samples=SAMPLES,
                        level=LEVEL,
                        random_state=run,  # noqa: B023
                    )

                for name in names:
                    test = paired(name, table.first, table.second)
                    covers = test.low <= 0 <= test.high  # equal models
                    counts.add(f"difference in {METRIC[name].short}", n_items, covers)
                    if name == headline:
                        is_claimed = test.p_value <= 1 - LEVEL
                        counts.add(
                            f"p ≤ .05 in {short}, equal models", n_items, is_claimed, "false alarms"
                        )
                constant = np.tile(shares, (n_items, 1))
                test = paired(headline, table.first, constant)
                rival = item_losses(headline, constant, table).mean()
                gain = Gain.from_test(headline, test, Score("constant", metrics={headline: rival}))
                covers = gain.low <= true_gain <= gain.high
                counts.add(f"gain in {short} on a constant", n_items, covers)
        yield from counts.rows()


WHOLE_METRICS = ("macro_f1", "ece", "entropy_correlation")
"""Metrics that are not means over items."""
FAMILY = ("f1", "ce", "md", "bs", *WHOLE_METRICS)
"""Metrics of a table whose tests are corrected together."""


def compare_metrics(runs: int, seed: int) -> Iterator[CoverageRow]:
    """Differences of equal models in metrics of whole tables, and corrected tests of seven."""
    for population in (BALANCED, SURE, RARE, GROUPED):
        counts = Counts(population.name)
        for n_items in ITEMS[1:]:
            for run in range(runs):
                table = draw(n_items, population, np.random.default_rng([seed, n_items, run]))
                resampling = Resampling(SAMPLES, LEVEL, run, table.clusters)
                p_values: list[float] = []
                for name in FAMILY:
                    test = _test_of_equal_models(name, table, resampling)
                    if test is None:
                        continue
                    p_values.append(test.p_value)
                    if name not in WHOLE_METRICS:
                        continue
                    short = METRIC[name].short
                    covers = test.low <= 0 <= test.high
                    counts.add(f"difference in {short}", n_items, covers)
                    is_claimed = test.p_value <= 1 - LEVEL
                    counts.add(
                        f"p ≤ .05 in {short}, equal models", n_items, is_claimed, "false alarms"
                    )
                is_any_claimed = bool((holm(np.array(p_values)) <= 1 - LEVEL).any())
                counts.add(
                    "any corrected p ≤ .05 of seven metrics, equal models",
                    n_items,
                    is_any_claimed,
                    "false alarms",
                )
        yield from counts.rows()


def _test_of_equal_models(name: str, table: Table, resampling: Resampling) -> PairedTest | None:
    if name in WHOLE_METRICS:
        answers = [table.first, table.second]
        if METRIC[name].hard:
            answers = [np.eye(p.shape[1])[p.argmax(axis=1)] for p in answers]
        return paired_metric_test(
            name, *answers, table.soft_labels, table.hard_labels, table.scale, resampling
        )
    return paired_test(
        item_losses(name, table.first, table),
        item_losses(name, table.second, table),
        clusters=table.clusters,
        samples=2 * resampling.samples,
        level=LEVEL,
        random_state=resampling.random_state,
    )
