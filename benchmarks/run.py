"""Is `edo run` worth it beside twenty lines of scikit-learn? Measured by cross-validation.

    python benchmarks/run.py LEWIDI2023 LEWIDI2025 --encoder FOLDER     # a section of RESULTS.md
    python benchmarks/run.py LEWIDI2023 LEWIDI2025 --items 500 --outer 1    # a quick look

Outer folds are of the items of train and dev; near-duplicate texts are in the same fold. Test files
are not read. `edo run` sees the items of the other folds and answers for those of one fold, first
with `--quality fast` (TF-IDF members), then with a sentence encoder where one reads the texts.
Beside it: a constant answer, the uniform mean of the same members, one soft-label regression (the
recipe `linear`) and what one would write by hand, all trained on the same folds. Results are kept
in the cache: a run that was killed goes on, and more folds can be added later.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from results import machine, write_section
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import edokit
from edokit import Annotations, read_annotations
from edokit._errors import signed
from edokit._types import Floats
from edokit.members import Group, score_members, train_members
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import METRIC, item_values, paired_test
from edokit.pipeline.encoders import is_latin
from edokit.scales import Scale

FOLDS = 5
DATASETS = {
    "lewidi2023": ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"),
    "lewidi2025": ("CSC", "MP"),
}
FAST = "run-fast"
AUTO = "run-auto"
TITLES = {
    FAST: "`edo run --quality fast`",
    AUTO: "`edo run` with the encoder",
    "uniform-fast": "uniform mean of the TF-IDF pool",
    "uniform-auto": "uniform mean of the pool with the encoder",
    "soft": "one soft-label regression",
    "by hand": "by hand",
    "constant": "constant",
}
RIVALS = ("soft", "by hand", "constant")


@dataclass
class FoldResult:
    """The answers of all methods for the items of one fold.

    Attributes
    ----------
    soft_labels : list of list of float
        The shares of annotators' answers, by held-out item.
    positions : list of float, or None
        Where the classes are on a scale.
    answers : dict of str to list of list of float
        The probabilities of each method, by held-out item.
    processor_seconds, seconds : dict of str to float
        The time of the runs: of the processor, and on the clock.
    summaries : dict of str to str
        The sentence in which each run ended.
    """

    soft_labels: list[list[float]]
    positions: list[float] | None
    answers: dict[str, list[list[float]]] = field(default_factory=dict)
    processor_seconds: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)

    def add(self, method: str, probabilities: Floats) -> None:
        """Keep the answers of a method."""
        self.answers[method] = np.round(probabilities, 7).tolist()

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        if self.positions is None:
            return Scale()
        return Scale("ordinal", tuple(self.positions))

    def losses(self, method: str, metric: str) -> Floats:
        """A metric of each item."""
        p = np.clip(np.array(self.answers[method]), 1e-9, 1.0)
        p /= p.sum(axis=1, keepdims=True)
        q = np.array(self.soft_labels)
        return np.asarray(item_values(self.scale)[metric](p, q, q.argmax(axis=1)))

    def save(self, file: Path) -> None:
        """Write a JSON file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".partial")
        temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")
        temporary.replace(file)

    @classmethod
    def load(cls, file: Path) -> FoldResult:
        """Read what `save` wrote."""
        return cls(**json.loads(file.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Table:
    """A table of annotations, cut into outer folds."""

    name: str
    annotations: Annotations
    folds: np.ndarray
    encoder: str | None

    @classmethod
    def read(cls, folder: Path, name: str, most: int, encoder: str | None) -> Table:
        """Read a data set; the encoder is left out where it does not read the script."""
        annotations = read(folder, name, most)
        folds = fold_numbers(TrainingData.from_annotations(annotations), FOLDS, 0)
        if not is_latin(list(map(str, annotations.whole_texts))):
            encoder = None
        return cls(name, annotations, folds, encoder)

    def split(self, fold: int) -> tuple[Annotations, Annotations]:
        """The items of the other folds, and those of this one."""
        train = self.annotations.take(np.flatnonzero(self.folds != fold))
        held_out = self.annotations.take(np.flatnonzero(self.folds == fold))
        return replace(train, splits=None), held_out

    def file(self, cache: Path, fold: int) -> Path:
        """The file of the result of a fold."""
        return cache / f"{self.name}-{len(self.annotations.items)}-{fold}.json"


def read(folder: Path, name: str, most: int) -> Annotations:
    """The items of train and dev, or at most that many of them, drawn at random."""
    with tempfile.TemporaryDirectory() as place:
        for file in (folder / name).glob("*.json"):
            if not file.stem.endswith("_test"):
                (Path(place) / file.name).symlink_to(file.resolve())
        annotations = read_annotations(place)
    if len(annotations.items) <= most:
        return annotations
    # The pool was chosen on the first ones.
    drawn_items = np.random.default_rng(0).permutation(len(annotations.items))[-most:]
    return annotations.take(np.sort(drawn_items))


def answer_by_hand(train: Annotations, texts: Sequence[str]) -> Floats:
    """Answers of a model written without EDO: words and pairs of words, shares as weighted rows."""
    shares = train.soft_labels
    rows, classes = np.nonzero(shares)
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    train_texts = [str(train.whole_texts[row]) for row in rows]
    weights = shares[rows, classes]
    model.fit(train_texts, classes, logisticregression__sample_weight=weights)
    answers = np.full((len(texts), shares.shape[1]), 1e-9)
    answers[:, model[-1].classes_] = model.predict_proba(texts)
    return answers / answers.sum(axis=1, keepdims=True)


def inputs(annotations: Annotations) -> list[str] | list[tuple[str, str]]:
    """Texts, or pairs of a text and its context."""
    texts = list(map(str, annotations.texts))
    if annotations.contexts is None:
        return texts
    return list(zip(texts, map(str, annotations.contexts), strict=True))


def processor_seconds() -> float:
    """Processor seconds of this process and of those that it started and that have ended."""
    total = 0.0
    for processes in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(processes)
        total += usage.ru_utime + usage.ru_stime
    return total


def measure_fold(table: Table, fold: int) -> FoldResult:
    """Train all methods on the other folds, and let them answer for this one."""
    train, held_out = table.split(fold)
    texts = inputs(held_out)
    positions = None
    if train.scale.positions is not None:
        positions = list(train.scale.positions)
    result = FoldResult(np.asarray(held_out.soft_labels).tolist(), positions)
    result.add("constant", np.tile(train.soft_labels.mean(axis=0), (len(texts), 1)))
    result.add("by hand", answer_by_hand(train, list(map(str, held_out.whole_texts))))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        qualities = {FAST: None}
        if table.encoder is not None:
            qualities[AUTO] = table.encoder
        # The second run keeps the members of the first.
        for method, encoder in qualities.items():
            quality = "auto"
            if encoder is None:
                quality = "fast"
            before = processor_seconds()
            started = time.perf_counter()
            run = edokit.run(train, folder / "run", jobs=1, quality=quality, encoder=encoder)
            result.processor_seconds[method] = processor_seconds() - before
            result.seconds[method] = time.perf_counter() - started
            result.summaries[method] = run.summary
            result.add(method, run.predict_proba(texts))
            uniform = score_members(folder / "run" / "members", texts).uniform
            result.add(method.replace("run", "uniform"), uniform)
        # One fit on all items: a split beside train is needed, and not looked at.
        splits = np.full(len(train.items), "train", dtype=object)
        splits[:1] = "dev"
        soft = [Group("linear", 1, supervision="soft")]
        train_members(replace(train, splits=splits), soft, out=folder / "soft")
        result.add("soft", score_members(folder / "soft", texts).uniform)
    return result


def cached_fold(table: Table, fold: int, cache: Path) -> FoldResult:
    """The result of a fold; what the cache holds is not measured again."""
    file = table.file(cache, fold)
    if not file.exists():
        result = measure_fold(table, fold)
        result.save(file)
        seconds = {method: round(value) for method, value in result.processor_seconds.items()}
        print(file.stem, seconds, list(result.summaries.values())[-1], flush=True)
    return FoldResult.load(file)


@dataclass(frozen=True)
class Measured:
    """The folds of a table together."""

    folds: list[FoldResult]

    @property
    def items(self) -> int:
        """How many items were held out."""
        return sum(len(fold.soft_labels) for fold in self.folds)

    @property
    def headline(self) -> str:
        """The metric that the table is judged by: RPS of points of a scale, else CE."""
        if self.folds[0].positions is None:
            return "ce"
        return "rps"

    def has(self, method: str) -> bool:
        """Whether the method answered."""
        return all(method in fold.answers for fold in self.folds)

    def losses(self, method: str, metric: str) -> Floats:
        """The metric of each held-out item."""
        return np.concatenate([fold.losses(method, metric) for fold in self.folds])

    def mean(self, method: str, metric: str) -> float:
        """The metric over all held-out items."""
        return float(self.losses(method, metric).mean())

    def standing(self, method: str, other: str, metric: str) -> str:
        """Whether a method is clearly better (▲) or clearly worse (▼) than another."""
        test = paired_test(self.losses(method, metric), self.losses(other, metric))
        if test.high < 0:
            return "▲"
        if test.low > 0:
            return "▼"
        return ""

    def difference(self, method: str, other: str, metric: str) -> str:
        """A method less another with the 95 % interval."""
        test = paired_test(self.losses(method, metric), self.losses(other, metric))
        ends = f"[{signed(test.low)}, {signed(test.high)}]"
        return f"{self.standing(method, other, metric)} {signed(test.difference)} {ends}".strip()


def table_lines(results: Mapping[str, Measured]) -> Iterator[str]:
    """Both pools side by side, and what learned weights and whole runs gain."""
    heads = [
        "dataset",
        "items",
        "metric",
        TITLES[FAST],
        TITLES[AUTO],
        "encoder less TF-IDF",
        "TF-IDF less its uniform mean",
        "encoder less its uniform mean",
        *(f"TF-IDF less {TITLES[name]}" for name in RIVALS),
        *(f"encoder less {TITLES[name]}" for name in RIVALS),
        "processor seconds: TF-IDF",
        "more with the encoder",
    ]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name, measured in results.items():
        has_encoder = measured.has(AUTO)
        for metric in dict.fromkeys(["ce", measured.headline]):
            # The first fold embeds the texts; later ones find them in the cache.
            seconds = measured.folds[0].processor_seconds
            encoder_mean = "–"
            encoder_seconds = "–"
            if has_encoder:
                encoder_mean = f"{measured.mean(AUTO, metric):.4f}"
                encoder_seconds = f"{seconds[AUTO]:.0f}"
            cells = [name, f"{measured.items:,}", METRIC[metric].short]
            cells += [f"{measured.mean(FAST, metric):.4f}", encoder_mean]
            pairs = [(AUTO, FAST), (FAST, "uniform-fast"), (AUTO, "uniform-auto")]
            pairs += [(FAST, rival) for rival in RIVALS]
            pairs += [(AUTO, rival) for rival in RIVALS]
            for method, other_method in pairs:
                if method == AUTO and not has_encoder:
                    cells.append("–")
                else:
                    cells.append(measured.difference(method, other_method, metric))
            cells += [f"{seconds[FAST]:.0f}", encoder_seconds]
            yield f"| {' | '.join(cells)} |"


def verdict(results: Mapping[str, Measured]) -> Iterator[str]:
    """Whether the aims were reached."""
    worse = []
    better = []
    gained = []
    for name, measured in results.items():
        metric = measured.headline
        method = FAST
        if measured.has(AUTO):
            method = AUTO
        rivals = [name for name in measured.folds[0].answers if not name.startswith("run")]
        best = min(rivals, key=lambda rival: measured.mean(rival, metric))
        if measured.standing(method, best, metric) == "▼":
            worse.append(name)
        if measured.standing(method, "soft", metric) == "▲":
            better.append(name)
        if measured.has(AUTO) and measured.standing(AUTO, FAST, metric) == "▲":
            gained.append(name)
    reached = "Reached"
    if worse:
        reached = f"Missed on {', '.join(worse)}"
    yield f"- Aim: never clearly worse than the best of the others. {reached}."
    reached = "Missed"
    if len(better) > 3:
        reached = "Reached"
    yield (
        "- Aim: clearly better than one soft-label regression on at least four of six."
        f" {reached}: {len(better)} ({', '.join(better) or 'none'})."
    )
    yield f"- The encoder is a clear gain on {', '.join(gained) or 'none'}."


def read_tables(arguments: argparse.Namespace) -> list[Table]:
    """The tables of the two folders."""
    tables = []
    for task, names in DATASETS.items():
        for name in names:
            if not arguments.datasets or name in arguments.datasets:
                folder = getattr(arguments, task)
                tables.append(Table.read(folder, name, arguments.items, arguments.encoder))
    return tables


def parser_of(description: str) -> argparse.ArgumentParser:
    """The arguments that programs on these tables share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--encoder", help="a folder with onnx/model.onnx")
    parser.add_argument("--items", type=int, default=1000, help="the most items of each dataset")
    parser.add_argument("--cache", type=Path, default=Path("run-benchmark"))
    parser.add_argument("--outer", type=int, default=FOLDS, help="how many outer folds")
    parser.add_argument("--datasets", nargs="*", help="only these; nothing is written then")
    return parser


def use_embedding_cache(cache: Path) -> None:
    """Keep the vectors of texts beside the results, for the folds that follow."""
    os.environ["EDO_CACHE"] = str((cache / "embeddings").resolve())


def measure_tables(tables: Sequence[Table], outer: int, cache: Path) -> dict[str, Measured]:
    """The last outer folds of all tables: first one fold of each, then the next."""
    use_embedding_cache(cache)
    folds: dict[str, list[FoldResult]] = {table.name: [] for table in tables}
    for fold in range(FOLDS - 1, FOLDS - 1 - outer, -1):
        for table in tables:
            folds[table.name].append(cached_fold(table, fold, cache))
    return {name: Measured(parts) for name, parts in folds.items()}


def main() -> None:
    """Measure, and write the section."""
    arguments = parser_of(__doc__).parse_args()
    warnings.simplefilter("ignore")
    results = measure_tables(read_tables(arguments), arguments.outer, arguments.cache)
    lines = [*verdict(results), "", *table_lines(results)]
    print("\n".join(lines))
    if not arguments.datasets:
        head = HEAD.format(outer=arguments.outer, items=arguments.items)
        versions = machine("scikit-learn", "onnxruntime")
        write_section("One command (`run.py`)", "\n".join([head, *lines, "", versions]))


HEAD = """\
    python benchmarks/run.py LEWIDI2023 LEWIDI2025 --encoder FOLDER --items {items} --outer {outer}

`edo run` before (`--quality fast`, the TF-IDF pool) and after (with a sentence encoder, here
all-MiniLM-L6-v2), on items of train and dev that nothing was trained on. At most {items} items of
a dataset, drawn at random, in five outer folds, near-duplicate texts in the same one; the last
{outer} are held out in turn. The default pool was chosen on the first folds of ArMIS and HS-Brexit
and on other items of MD-Agreement and MP; of ConvAbuse, too small for that, some items were looked
at in both. The encoder does not read ArMIS, which is Arabic; MP is in nine languages, seven in the
Latin script. The others see the same items: one soft-label regression (the recipe `linear`), by
hand (TF-IDF of words and pairs of words, scikit-learn's `LogisticRegression` with each share of
answers as a weighted row), the uniform mean of the same members, and the mean shares. Differences
have 95 % intervals over held-out items; ▲ clearly better, ▼ clearly worse. Processor seconds are of
the first fold: a run with its page and bundle in one process, and the same command again with the
encoder, which keeps the members that are trained.
"""

if __name__ == "__main__":
    main()
