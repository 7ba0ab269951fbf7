"""The metrics of EDO in the loop of another tool, on invented answers."""

from __future__ import annotations

from importlib.util import find_spec

import adapters
import numpy as np

CLASSES = ("polite", "rude")


def main() -> None:
    rng = np.random.default_rng(0)
    soft_labels = rng.dirichlet([1, 1], 200)
    logits = np.log(soft_labels + 0.05) + rng.normal(0, 0.3, (200, 2))
    values = adapters.trainer_metrics()((logits, soft_labels))
    print("Trainer:", ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
    votes = ["rude", "rude", "polite"]
    for answer in ("rude", '{"rude": 0.7, "polite": 0.3}'):
        distance = adapters.distance_to_people(answer, votes, CLASSES)
        print(f"A judge that says {answer}: {distance:.3f} from the votes 2:1")
    for package in ("torchmetrics", "inspect_ai", "mlflow", "label_studio_ml"):
        state = "is" if find_spec(package) else "is not"
        print(f"{package} {state} installed; its adapter is in adapters.py")


if __name__ == "__main__":
    main()
