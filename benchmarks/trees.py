"""The packed trees of the default pool beside the forests of scikit-learn that it had before.

    python benchmarks/trees.py LEWIDI2023 LEWIDI2025                    # a section of RESULTS.md
    python benchmarks/trees.py LEWIDI2023 LEWIDI2025 --items 300 --datasets ArMIS

The TF-IDF members of `edo run --quality fast` stand beside `trees`, or beside two forests. Members
answer for items of folds that they have not seen, weights are cross-validated once more, and test
files are not read. A bundle of each pool then answers for one text and for 256, in turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from results import machine, write_section
from run import DATASETS, processor_seconds, read
from threadpoolctl import threadpool_limits

from edokit import Annotations, EDOEnsemble, RunOptions, compare
from edokit._errors import signed
from edokit.bundle import Bundle
from edokit.members import Group, train_members
from edokit.metrics import paired_test
from edokit.pipeline.pool import default_pool
from edokit.predictions.core import Predictions

TREES = "trees"
FORESTS = "forests"
ESTIMATOR = "sklearn.ensemble.ExtraTreesRegressor(50, min_samples_leaf=3, max_features=0.05)"
"""What the pool had before ``trees``: two members of this, on 5,000 pieces of text."""
FORMER = Group("sklearn", 2, FORESTS, "soft", options={"estimator": ESTIMATOR, "pieces": 5000})
MANY = 256
ROUNDS = 7
CE_AIM = 0.001


@dataclass(frozen=True)
class TreesResult:
    """Both pools on one table.

    Attributes
    ----------
    items, annotations : int
    losses : dict of str to list of float
        CE of each item by pool.
    training_seconds : dict of str to float
        Processor seconds of training ``trees``, or the forests, in all folds.
    one_text, many_texts : dict of str to float
        Processor seconds of an answer for one text, and for 256.
    """

    items: int
    annotations: int
    losses: dict[str, list[float]]
    training_seconds: dict[str, float]
    one_text: dict[str, float]
    many_texts: dict[str, float]


def measure(annotations: Annotations) -> TreesResult:
    """Train both pools on a table, compare their answers, and time them."""
    pool = [ingredient.group for ingredient in default_pool(RunOptions(quality="fast"))]
    trees = [group for group in pool if group.recipe == TREES]
    linear = [group for group in pool if group.recipe != TREES]
    with tempfile.TemporaryDirectory() as place, threadpool_limits(1):
        folder = Path(place) / "members"

        def train(groups: Sequence[Group]) -> tuple[Predictions, float]:
            before = processor_seconds()
            trained = train_members(annotations, groups, out=folder, cross_fit=5, jobs=1)
            return trained.predictions["fit"], processor_seconds() - before

        # What is trained already is kept: the differences are those of the new members.
        train(linear)
        _, trees_seconds = train([*linear, *trees])
        predictions, forests_seconds = train([*linear, *trees, FORMER])
        groups = np.array(predictions.groups)
        names = np.array(predictions.members)
        pools = {
            TREES: predictions.select(names[groups != FORESTS]),
            FORESTS: predictions.select(names[groups != TREES]),
        }
        losses = {}
        bundles = {}
        for name, members in pools.items():
            comparison = compare(members, annotations, methods=("edo",), samples=0)
            losses[name] = np.asarray(comparison.losses["edo"]["ce"]).tolist()
            weights = [1 / len(members.members)] * len(members.members)
            ensemble = EDOEnsemble.from_weights(weights, members, annotations)
            bundles[name] = Bundle.create(ensemble, folder, Path(place) / name)
        texts = list(map(str, annotations.texts))
        if annotations.contexts is not None:
            texts = list(zip(texts, map(str, annotations.contexts), strict=True))
        single_texts = [texts[k : k + 1] for k in range(ROUNDS * 5)]
        batches = []
        for k in range(ROUNDS):
            batches.append([texts[(k * 31 + i) % len(texts)] for i in range(MANY)])
        answers = {name: bundle.predict_proba for name, bundle in bundles.items()}
        return TreesResult(
            len(annotations.items),
            len(annotations),
            losses,
            {TREES: trees_seconds, FORESTS: forests_seconds},
            in_turns(answers, single_texts),
            in_turns(answers, batches),
        )


def in_turns(
    answers: Mapping[str, Callable[[list], object]], batches: Sequence[list]
) -> dict[str, float]:
    """Median processor seconds of a batch, for each pool; the pools take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in answers}
    for answer in answers.values():
        answer(batches[0])
    for batch in batches:
        for name, answer in answers.items():
            before = time.process_time()
            answer(batch)
            seconds[name].append(time.process_time() - before)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def in_own_process(source: Path, name: str, items: int, cache: Path) -> TreesResult:
    """The result of one table; what the cache holds is not measured again."""
    file = cache / f"{name}-{items}.json"
    if not file.exists():
        command = [sys.executable, __file__, str(source), "-", "--one", name]
        done = subprocess.run(
            [*command, "--items", str(items)], check=True, capture_output=True, text=True
        )
        cache.mkdir(parents=True, exist_ok=True)
        file.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
        print(file.stem, flush=True)
    return TreesResult(**json.loads(file.read_text(encoding="utf-8")))


def table_lines(results: Mapping[str, TreesResult]) -> Iterator[str]:
    """CE, training and answering of both pools."""
    heads = [
        "dataset",
        "items",
        "CE with trees",
        "with forests",
        "trees less forests",
        "training, processor seconds: trees",
        "forests",
        "one text, ms: trees",
        "forests",
        f"{MANY} texts, texts a second: trees",
        "forests",
        "times the rate",
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name, result in results.items():
        test = paired_test(result.losses[TREES], result.losses[FORESTS])
        cells = [name, f"{result.items:,}"]
        cells += [f"{np.mean(result.losses[pool]):.4f}" for pool in (TREES, FORESTS)]
        cells.append(f"{signed(test.difference)} [{signed(test.low)}, {signed(test.high)}]")
        cells += [f"{result.training_seconds[pool]:.1f}" for pool in (TREES, FORESTS)]
        cells += [f"{1000 * result.one_text[pool]:.1f}" for pool in (TREES, FORESTS)]
        cells += [f"{MANY / result.many_texts[pool]:,.0f}" for pool in (TREES, FORESTS)]
        cells.append(f"{result.many_texts[FORESTS] / result.many_texts[TREES]:.1f}")
        yield f"| {' | '.join(cells)} |"


def verdicts(results: Mapping[str, TreesResult]) -> Iterator[str]:
    """Whether the aims were reached."""
    differences = {}
    for name, result in results.items():
        difference = np.mean(result.losses[TREES]) - np.mean(result.losses[FORESTS])
        differences[name] = float(difference)
    worst = max(differences, key=lambda name: differences[name])
    word = "missed"
    if differences[worst] <= CE_AIM:
        word = "reached"
    yield (
        f"- CE at most {CE_AIM} above that of the pool with forests: {word};"
        f" furthest above on {worst}, {signed(differences[worst])}."
    )


def main() -> None:
    """Measure, and write the section."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--items", type=int, default=2000, help="the most items of each dataset")
    parser.add_argument("--cache", type=Path, default=Path("trees-benchmark"))
    parser.add_argument("--datasets", nargs="*", help="only these; nothing is written then")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        annotations = read(arguments.lewidi2023, arguments.one, arguments.items)
        print(json.dumps(asdict(measure(replace(annotations, splits=None)))))
        return
    results = {}
    for task, names in DATASETS.items():
        for name in names:
            if not arguments.datasets or name in arguments.datasets:
                source = getattr(arguments, task)
                results[name] = in_own_process(source, name, arguments.items, arguments.cache)
    lines = [*verdicts(results), "", *table_lines(results)]
    print("\n".join(lines))
    if not arguments.datasets:
        head = HEAD.format(items=arguments.items, shown=f"{arguments.items:,}")
        versions = machine("numpy", "scikit-learn")
        write_section(
            "Packed trees and forests (`trees.py`)", "\n".join([head, *lines, "", versions])
        )


HEAD = """\
    python benchmarks/trees.py LEWIDI2023 LEWIDI2025 --items {items}

The pool of `edo run --quality fast` with its packed `trees`, and with the two forests of
scikit-learn (`ExtraTreesRegressor`, 50 trees each, on 5,000 pieces of text) that it had before, on
at most {shown} items of train and dev of each dataset, drawn at random. CE is cross-validated:
members in five folds, weights once more; intervals of the difference are over items. Training is of
all folds of `trees`, or of both forests. Texts are answered by a bundle of each pool with equal
weights: milliseconds and rates of processor time on one core, medians of calls in turns.
"""

if __name__ == "__main__":
    main()
