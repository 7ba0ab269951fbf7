"""AutoGluon's tabular predictor on rows of annotations, in an environment of its own.

    AUTOGLUON_PYTHON benchmarks/peers_autogluon.py ROWS TEXTS ANSWERS --seconds 60

`peers_tables.py` starts it. ROWS is a CSV of text, label and fold: a row for each annotation, and
items are kept together by their fold. TEXTS is a CSV of texts to answer for. ANSWERS becomes a JSON
file of the classes, the probabilities, the models and the processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import warnings
from pathlib import Path


def processor_seconds() -> float:
    """Of this process and those that it started and that have ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def main() -> None:
    """Fit, answer, and write the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--presets", default="medium_quality")
    parser.add_argument("--cores", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    import pandas as pd
    from autogluon.tabular import TabularPredictor

    rows = pd.read_csv(arguments.rows, dtype={"text": str, "label": str}, keep_default_na=False)
    texts = pd.read_csv(arguments.texts, dtype={"text": str}, keep_default_na=False)
    folds = rows["fold"].nunique()
    before = processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        # Folds of the bags are those of the column: the annotations of an item stay together.
        predictor = TabularPredictor(
            label="label",
            eval_metric="log_loss",
            groups="fold",
            path=os.path.join(folder, "models"),
            verbosity=1,
        )
        predictor.fit(
            rows,
            time_limit=arguments.seconds,
            presets=arguments.presets,
            num_bag_folds=folds,
            num_bag_sets=1,
            num_stack_levels=0,
            num_cpus=arguments.cores,
            num_gpus=0,
        )
        # The column of the folds is not a feature.
        probabilities = predictor.predict_proba(texts.assign(fold=0))
        models = predictor.leaderboard()[["model", "score_val"]].to_numpy().tolist()
    result = {
        "classes": list(map(str, probabilities.columns)),
        "probabilities": probabilities.to_numpy().tolist(),
        "models": models,
        "processor_seconds": processor_seconds() - before,
    }
    arguments.answers.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
