"""Where should the warning on similar texts start? Real tables, and what templates make of a gain.

The first table counts, in train and dev of real datasets, the items in sets of at least three texts
that share half of their words or more without being near-duplicates: what
`edokit.datasets.similar_texts` warns of. The second mixes such texts (groups of five share eight of
twelve words, the label of a group is random) with texts that share nothing and have random labels:
there is nothing to learn, and the gain over a constant answer that cross-validation shows is due to
the groups alone.

    python benchmarks/similar_texts.py LEWIDI2023 LEWIDI2025
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from item_groups import N_GROUPS, SIZE, VOCABULARY, annotate, gain_of_members, group_texts

from edokit import EDOWarning
from edokit.datasets.lewidi import read_lewidi
from edokit.datasets.similar_texts import similar_items

LEWIDI2023 = ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement")
LEWIDI2025 = ("CSC", "MP")
SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)
N_ITEMS = N_GROUPS * SIZE


def real_tables(lewidi2023: Path, lewidi2025: Path) -> Iterator[str]:
    """A row for each real dataset."""
    places = [(name, lewidi2023 / name) for name in LEWIDI2023]
    places += [(name, lewidi2025 / name) for name in LEWIDI2025]
    for name, place in places:
        texts = read_lewidi(place).split("train", "dev").texts
        similar = similar_items(list(texts))
        largest = np.bincount(similar.groups[similar.is_similar], minlength=1).max()
        yield f"| {name} | {len(texts):,} | {similar.is_similar.mean():.1%} | {largest:,} |"


def mixed_texts(share: float, rng: np.random.Generator) -> list[str]:
    """Texts of which this share is in groups of five that share words; the rest share nothing."""
    texts = group_texts(rng, shared=8, shuffled=False)
    for number in range(round(share * N_ITEMS), N_ITEMS):
        texts[number] = " ".join(rng.choice(VOCABULARY, 12))
    return texts


def mixed_row(share: float, runs: int, seed: int) -> str:
    """The gains that runs show where this share of the texts are in groups."""
    gains = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        annotations = annotate(mixed_texts(share, rng), rng)
        without_groups = replace(annotations, item_groups=None)
        with tempfile.TemporaryDirectory() as folder:
            gains.append(gain_of_members(without_groups, Path(folder) / "members", run))
    median = np.median([gain.share for gain in gains])
    claimed = np.mean([gain.standing == "better" for gain in gains])
    return f"| {share:.0%} | {median:+.0%} | {claimed:.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lewidi2023", type=Path)
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EDOWarning)
    print("| dataset, train and dev | items | similar texts | items in the largest set |")
    print("|---|---|---|---|")
    for row in real_tables(arguments.lewidi2023, arguments.lewidi2025):
        print(row, flush=True)
    print(f"\n| items in groups ({arguments.runs} runs) | median gain | gain claimed |")
    print("|---|---|---|")
    for share in SHARES:
        print(mixed_row(share, arguments.runs, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
