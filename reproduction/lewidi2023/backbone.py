"""The paper's search for the settings of its backbone (appendix F), on a backbone of ours.

Ten trials of Optuna on ConvAbuse over learning rate, batch size and warm-up; each trains one
random-select member by the paper's protocol on train and is judged on dev. Test plays no part.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna

from edokit._io.atomic import whole_file
from edokit._io.documents import read_json
from edokit.members import Group
from reproduction.lewidi2023.plans import PoolPlan
from reproduction.lewidi2023.protocol import OPTIONS
from reproduction.lewidi2023.train import train_pools

DATASET = "ConvAbuse"
TRIALS = 10
LEARNING_RATES = (1e-6, 1e-4)
BATCH_SIZES = (4, 8, 16, 32, 64)
WARMUP_STEPS = (1, 500)
COLUMNS = ("trial", "learning_rate", "batch_size", "warmup_steps", "dev_f1", "dev_ce")


@dataclass(frozen=True)
class BackboneTrial:
    """Settings of a backbone, and how a member trained with them did on dev."""

    trial: int
    learning_rate: float
    batch_size: int
    warmup_steps: int
    dev_f1: float
    dev_ce: float


def tune_backbone(
    data: Path,
    backbone: str,
    out: Path,
    *,
    trials: int = TRIALS,
    device: str | None = None,
    epochs: int | None = None,
) -> list[BackboneTrial]:
    """The trials in their order; interrupted, finished ones are not trained again.

    Parameters
    ----------
    data : Path
        Folder of LeWiDi 2023.
    backbone : str
        Hub id or folder of the pretrained encoder.
    out : Path
        Folder for the members, one pool a trial.
    trials : int, default=10
        Number of trials.
    device : str, default=None
        Where to train; None: a GPU where there is one.
    epochs : int, default=None
        The most epochs; None: the protocol's.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=2026))
    results = []
    for number in range(trials):
        trial = study.ask()
        learning_rate = trial.suggest_float("learning_rate", *LEARNING_RATES, log=True)
        batch_size = int(trial.suggest_categorical("batch_size", BATCH_SIZES))
        warmup_steps = trial.suggest_int("warmup_steps", *WARMUP_STEPS)
        options = {
            **OPTIONS,
            "model": backbone,
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "warmup_steps": warmup_steps,
            "warmup_share": 1.0,
        }
        if epochs is not None:
            options["epochs"] = epochs
        group = Group("transformer", 1, "random-select", options=options)
        plan = PoolPlan(DATASET, f"trial-{number}", [group], clean_texts=True)
        predictions = train_pools(data, [plan], out, device=device, jobs=1)
        manifest = read_json(predictions / DATASET / plan.name / "manifest.json")
        member = manifest["members"][0]
        result = BackboneTrial(
            trial=number,
            learning_rate=learning_rate,
            batch_size=batch_size,
            warmup_steps=warmup_steps,
            dev_f1=member["metrics"]["dev"]["f1"],
            dev_ce=member["metrics"]["dev"]["ce"],
        )
        study.tell(trial, result.dev_f1)
        results.append(result)
        write_trials(results, out / "trials.csv")
    return results


def write_trials(results: Sequence[BackboneTrial], path: Path) -> None:
    """Write the trials as CSV."""
    lines = [",".join(COLUMNS)]
    for result in results:
        lines.append(
            f"{result.trial},{result.learning_rate:.3g},{result.batch_size},{result.warmup_steps},"
            f"{result.dev_f1:.4f},{result.dev_ce:.4f}"
        )
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(typed: Sequence[str] | None = None) -> None:
    """Run the search and write its trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of LeWiDi 2023")
    parser.add_argument("--backbone", required=True, help="hub id or folder of the encoder")
    parser.add_argument("--out", type=Path, required=True, help="folder for members and trials.csv")
    parser.add_argument("--device", help="where to train, e.g. cpu or cuda")
    arguments = parser.parse_args(typed)
    tune_backbone(arguments.data, arguments.backbone, arguments.out, device=arguments.device)


if __name__ == "__main__":
    main()
