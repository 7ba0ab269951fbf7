"""Join prediction files of different models, and weight them with commands: `run.py [FOLDER]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from edokit import simulate
from edokit._io.tables import write_table

ENCODERS = ("encoder-1", "encoder-2", "encoder-3")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder)
    for split in ("dev", "test"):
        # The scores of the classic model are logits, so its file is converted first.
        scores = f"classic=classic-{split}.parquet"
        edo(folder, "predictions", "join", scores, "--logits", "--out", f"classic-{split}.npz")
        encoders = [f"{name}={name}-{split}.csv" for name in ENCODERS]
        files = [f"llm=llm-{split}.jsonl", *encoders, f"classic=classic-{split}.npz"]
        groups = ["--group", "llm=llm"]
        for name in ENCODERS:
            groups += ["--group", f"{name}=encoder"]
        groups += ["--group", "classic=classic"]
        edo(folder, "predictions", "join", *files, *groups, "--out", f"{split}.npz")
    learn = ("--predictions", "dev.npz", "--annotations", "people.csv", "--split", "dev")
    edo(folder, "fit", *learn, "--groups", "--out", "ensemble")
    judge = ("--test-predictions", "test.npz", "--test-split", "test")
    edo(folder, "compare", *learn, *judge, "--methods", "best-single,linear-pool,edo")
    edo(folder, "predict", "ensemble", "--predictions", "test.npz", "--out", "pooled.csv")


def edo(folder: Path, *words: str) -> None:
    """Run a command in the folder, as a shell would."""
    print("$ edo", *words, flush=True)
    subprocess.run(["edo", *words], cwd=folder, check=True)


def write_files(folder: Path) -> None:
    """Labels of people, and files of three kinds of models."""
    simulation = simulate("two-camps", random_state=1, items=(1, 300, 300))
    people = simulation.annotations
    write_table(people.to_table(), folder / "people.csv")
    rng = np.random.default_rng(1)
    for split in ("dev", "test"):
        rows = simulation.rows(split)
        items = [str(item) for item in people.items[rows]]
        share = np.clip(simulation.truth[rows, 1], 0.02, 0.98)
        score = np.log(share / (1 - share))

        # An LLM says "I am sure" too often, and finds more offensive than people do.
        answers = chance(3 * score + 1 + rng.normal(0, 3, len(rows)))
        with (folder / f"llm-{split}.jsonl").open("w", encoding="utf-8") as lines:
            for item, p in zip(items, answers.round(2), strict=True):
                lines.write(json.dumps({"item": item, "p_fine": 1 - p, "p_offensive": p}) + "\n")

        # Fine-tuned with three seeds: close to the people, each with its own noise.
        for name in ENCODERS:
            p = chance(score + rng.normal(0, 0.8, len(rows)))
            frame = pd.DataFrame({"item": items, "p_fine": 1 - p, "p_offensive": p})
            frame.to_csv(folder / f"{name}-{split}.csv", index=False)

        # The classic model is cautious, and its scores are not probabilities.
        raw = 0.5 * score + rng.normal(0, 0.5, len(rows))
        frame = pd.DataFrame({"item": items, "p_fine": -raw / 2, "p_offensive": raw / 2})
        frame.to_parquet(folder / f"classic-{split}.parquet")


def chance(score: np.ndarray) -> np.ndarray:
    """Probabilities from scores."""
    return 1 / (1 + np.exp(-score))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "mixed"))
