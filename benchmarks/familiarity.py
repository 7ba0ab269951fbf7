"""Which measure tells texts that an ensemble can't know from new texts of the same kind?

    python benchmarks/familiarity.py LEWIDI2023 LEWIDI2025       # a section of RESULTS.md
    python benchmarks/familiarity.py … --encoder FOLDER          # also distances in its space

Texts are those of train and dev; test files are not read. For each dataset, four fifths of the
texts are the fit, and the others are ordinary new texts. A measure is turned into the rank among
texts of the fit that were held out in five folds, and a text is flagged if it ranks below 1 %.
The product's own `Familiarity` is the last row of each dataset.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from results import machine, write_section
from run import DATASETS, read

from edokit._types import Floats
from edokit.members.familiarity import UNFAMILIAR, Familiarity, text_pieces

FOLDS = 5
TITLE = "Texts unlike those of the fit (`familiarity.py`)"
ENGLISH = ("ConvAbuse", "HS-Brexit", "MD-Agreement", "CSC")
Pieces = Callable[[str], set[object]]
Measure = Callable[[Sequence[str], Sequence[str]], Floats]
"""From texts of a fit and other texts to a number for each of these: lower is stranger."""


def words(text: str) -> set[object]:
    """The distinct words of a text; of one without words, the text itself."""
    return set(re.findall(r"\w+", text.casefold())) or {text}


def runs(length: int) -> Pieces:
    """The distinct runs of ``length`` characters of a text."""

    def pieces(text: str) -> set[object]:
        padded = f" {' '.join(text.casefold().split())} "
        return {padded[start : start + length] for start in range(max(1, len(padded) - length + 1))}

    return pieces


def known_share(pieces: Pieces) -> Measure:
    """The share of a text's pieces that the fit has."""

    def measure(fit: Sequence[str], texts: Sequence[str]) -> Floats:
        known_pieces: set[object] = set()
        for text in fit:
            known_pieces |= pieces(text)
        shares = []
        for text in texts:
            shares.append(np.mean([piece in known_pieces for piece in pieces(text)]))
        return np.array(shares)

    return measure


def mean_frequency(pieces: Pieces) -> Measure:
    """The mean log-frequency of a text's pieces among the texts of the fit."""

    def measure(fit: Sequence[str], texts: Sequence[str]) -> Floats:
        counts: Counter[object] = Counter()
        for text in fit:
            counts.update(pieces(text))
        scores = []
        for text in texts:
            frequencies = [(counts[piece] + 0.5) / (len(fit) + 1) for piece in pieces(text)]
            scores.append(np.log(frequencies).mean())
        return np.array(scores)

    return measure


class EncoderDistance:
    """Minus the cosine distance to the nearest text of the fit in an encoder's space.

    Parameters
    ----------
    model : str
        The folder of a sentence encoder.
    """

    def __init__(self, model: str) -> None:
        from edokit.members.recipes.encoder import Encoder

        self._encode = Encoder(model)
        self._vectors: dict[str, np.ndarray] = {}

    def __call__(self, fit: Sequence[str], texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys([*fit, *texts]) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encode(new), strict=True))
        known_vectors = np.stack([self._vectors[text] for text in fit])
        return np.array(
            [(known_vectors @ self._vectors[text]).max() for text in texts], dtype=float
        )


def flagged(measure: Measure, fit: Sequence[str], folds: np.ndarray, texts: list[str]) -> float:
    """The share of texts that rank below 1 % of the held-out ones."""
    held_out = np.empty(len(fit))
    for fold in range(FOLDS):
        other_texts = [text for text, number in zip(fit, folds, strict=True) if number != fold]
        inside = np.flatnonzero(folds == fold)
        held_out[inside] = measure(other_texts, [fit[row] for row in inside])
    scores = measure(fit, texts)
    below = np.searchsorted(np.sort(held_out), scores, side="left")
    up_to = np.searchsorted(np.sort(held_out), scores, side="right")
    return float(np.mean((below + up_to) / 2 / len(fit) < UNFAMILIAR))


def strange_texts(
    name: str, ordinary: list[str], texts: dict[str, list[str]], rng: np.random.Generator
) -> dict[str, list[str]]:
    """Texts that members of a dataset can't know, by kind."""
    strange: dict[str, list[str]] = {}
    is_english = name in ENGLISH
    other_script = "HS-Brexit" if name == "ArMIS" else "ArMIS"
    strange["another script"] = list(map(str, rng.choice(texts[other_script], 200)))
    strange["Japanese characters"] = []
    for _ in range(100):
        codes = rng.integers(0x3041, 0x3096, 20)
        strange["Japanese characters"].append("".join(map(chr, codes)))
    emoji = list("😀😂👍🔥🎉💩😡🙏🤔👀")
    strange["emoji"] = ["".join(rng.choice(emoji, rng.integers(1, 10))) for _ in range(100)]
    letters = list("abcdefghijklmnopqrstuvwxyz     ")
    strange["random letters"] = ["".join(rng.choice(letters, 60)) for _ in range(200)]
    strange["all but empty"] = [".", "?", "!!", "...", "-", "a", "1", "x", "&", "ok"]
    if is_english:
        strange["other English datasets"] = []
        for source in ENGLISH:
            if source != name:
                strange["other English datasets"] += map(str, rng.choice(texts[source], 100))
    strange["40 texts in one"] = [" ".join(rng.choice(ordinary, 40)) for _ in range(100)]
    return strange


KINDS = (
    "another script",
    "Japanese characters",
    "emoji",
    "random letters",
    "all but empty",
    "other English datasets",
    "40 texts in one",
)


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--items", type=int, default=2000, help="the most items of each dataset")
    parser.add_argument("--encoder", help="the folder of a sentence encoder")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    texts: dict[str, list[str]] = {}
    for task, names in DATASETS.items():
        for name in names:
            annotations = read(getattr(arguments, task), name, arguments.items)
            texts[name] = [str(text) for text in annotations.texts]
    measures: dict[str, Measure] = {
        "known words": known_share(words),
        "frequency of words": mean_frequency(words),
        "known runs of 4 characters": known_share(runs(4)),
        "frequency of runs of 3": mean_frequency(runs(3)),
        "frequency of runs of 5": mean_frequency(runs(5)),
    }
    if arguments.encoder:
        measures["nearest in the encoder's space"] = EncoderDistance(arguments.encoder)
    lines = [
        f"| dataset | measure | ordinary new texts | {' | '.join(KINDS)} |",
        "|---" * (3 + len(KINDS)) + "|",
    ]
    for name, all_texts in texts.items():
        for row in dataset_rows(name, all_texts, texts, measures):
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    write_section(TITLE, "\n".join([HEAD, *lines, "", machine("scikit-learn")]))


def dataset_rows(
    name: str, all_texts: list[str], texts: dict[str, list[str]], measures: dict[str, Measure]
) -> list[list[str]]:
    """The rows of one dataset."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(all_texts))
    n_new = len(order) // 5
    ordinary = [all_texts[row] for row in order[:n_new]]
    fit = [all_texts[row] for row in order[n_new:]]
    folds = np.array([hash_fold(text) for text in fit])
    strange = strange_texts(name, ordinary, texts, rng)
    rows = []
    for title, measure in measures.items():
        cells = [f"{flagged(measure, fit, folds, ordinary):.1%}"]
        for kind in KINDS:
            cells.append("")
            if kind in strange:
                cells[-1] = f"{flagged(measure, fit, folds, strange[kind]):.0%}"
        rows.append([name, title, *cells])
    shares = []
    for seed in range(20):  # one split says little about a share of one in a hundred
        shuffled = np.random.default_rng(seed).permutation(len(all_texts))
        familiarity = Familiarity.fit([all_texts[row] for row in shuffled[n_new:]])
        new_texts = [all_texts[row] for row in shuffled[:n_new]]
        shares.append(familiarity.rank(new_texts).unfamiliar.mean())
    familiarity = Familiarity.fit(fit)
    cells = [f"{np.mean(shares):.1%} (20 splits)"]
    for kind in KINDS:
        cells.append("")
        if kind in strange:
            cells[-1] = f"{familiarity.rank(strange[kind]).unfamiliar.mean():.0%}"
    rows.append([name, "**the product's: frequency of runs of 4**", *cells])
    return rows


def hash_fold(text: str) -> int:
    """A fold that equal texts share."""
    return int(text_pieces(text).sum()) % FOLDS


HEAD = """Share of texts that rank below 1 % of the fit's held-out texts. Of ordinary new texts, 1 %
is nominal; of the others, more is better. Texts of other datasets in the same language are not
wrong to be called familiar: many of them are alike.
"""


if __name__ == "__main__":
    main()
