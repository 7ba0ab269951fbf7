"""EDO's metrics of label distributions in other tools; copy what you need.

Each function imports the package that it is for when it is called.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

import edokit
from edokit.metrics import compute_metrics
from edokit.scales import NOMINAL, Scale

METRICS = ("f1", "ce", "md", "entropy_correlation")
JURY_METRICS = ("judges", "judges_low", "judges_high")


def trainer_metrics(scale: Scale = NOMINAL) -> Callable[[Any], dict[str, float]]:
    """``compute_metrics`` of Hugging Face's Trainer: logits against soft labels [N, C]."""
    names = list(METRICS)
    if scale.kind == "ordinal":
        names.append("w1")

    def compute(prediction: Any) -> dict[str, float]:
        logits, soft_labels = prediction
        p = scale.from_logits(np.asarray(logits, dtype=np.float64))
        q = np.asarray(soft_labels, dtype=np.float64)
        values = compute_metrics(p, q, scale.hard(q), metrics=names, scale=scale)
        return {name: nan_if_none(value) for name, value in values.items()}

    return compute


def nan_if_none(value: float | None) -> float:
    """The value of a metric; NaN where it is not defined."""
    if value is None:
        return math.nan
    return value


def torch_metric(name: str = "ce", scale: Scale = NOMINAL) -> Any:
    """A `torchmetrics.Metric` whose ``update`` takes probabilities and soft labels [N, C]."""
    import torch
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat

    class SoftLabelMetric(Metric):  # type: ignore[misc]
        full_state_update = False

        def __init__(self) -> None:
            super().__init__()
            self.add_state("probabilities", [], dist_reduce_fx="cat")
            self.add_state("soft_labels", [], dist_reduce_fx="cat")

        def update(self, probabilities: Any, soft_labels: Any) -> None:
            self.probabilities.append(probabilities.detach())
            self.soft_labels.append(soft_labels.detach())

        def compute(self) -> Any:
            p = dim_zero_cat(self.probabilities).double().cpu().numpy()
            q = dim_zero_cat(self.soft_labels).double().cpu().numpy()
            value = compute_metrics(p, q, scale.hard(q), metrics=[name], scale=scale)[name]
            return torch.tensor(nan_if_none(value))

    return SoftLabelMetric()


def votes_as_soft_label(votes: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The share of each class among the votes of people [1, C]."""
    return np.array([[list(votes).count(name) / len(votes) for name in classes]])


def answer_as_probabilities(answer: str, classes: Sequence[str]) -> np.ndarray:
    """The answer of a model, a class or a JSON object of shares, as probabilities [1, C]."""
    try:
        shares = json.loads(answer)
    except ValueError:
        shares = answer.strip()
    if not isinstance(shares, dict):
        shares = {str(shares): 1.0}
    p = np.array([[float(shares.get(name, 0.0)) for name in classes]])
    if p.sum() <= 0:
        p = np.ones_like(p)
    return p / p.sum()


def distance_to_people(answer: str, votes: Sequence[str], classes: Sequence[str]) -> float:
    """The Manhattan distance between a model's answer and the votes, from 0 to 2."""
    p = answer_as_probabilities(answer, classes)
    q = votes_as_soft_label(votes, classes)
    return float(np.abs(p - q).sum())


def inspect_scorer(classes: Sequence[str]) -> Any:
    """A scorer of inspect_ai; the target of a sample is the list of its annotators' votes."""
    from inspect_ai.scorer import Score, mean, scorer, stderr

    @scorer(metrics=[mean(), stderr()])
    def soft_label_distance() -> Any:
        async def score(state: Any, target: Any) -> Any:
            answer = state.output.completion
            return Score(value=distance_to_people(answer, list(target), classes), answer=answer)

        return score

    return soft_label_distance()


def jury_metrics(
    answers: Sequence[Sequence[str]], votes: Sequence[Sequence[str]], classes: Sequence[str]
) -> dict[str, float]:
    """The number of independent judges in a jury by `edo audit`, with its interval.

    ``answers`` and ``votes`` have one list per item: the judges' answers, each judge at the same
    place, and the votes of people, of which some items need two or more.
    """
    annotations: dict[str, list[str]] = {"item": [], "annotator": [], "label": []}
    for number, item_votes in enumerate(votes):
        for person, vote in enumerate(item_votes):
            annotations["item"].append(str(number))
            annotations["annotator"].append(f"person-{person}")
            annotations["label"].append(vote)
    people = edokit.Annotations.from_table(annotations, classes=classes, scale=NOMINAL)
    by_judge = {}
    for place in range(len(answers[0])):
        rows = [answer_as_probabilities(str(row[place]), classes)[0] for row in answers]
        by_judge[f"judge-{place + 1}"] = np.array(rows)
    jury = edokit.Predictions.from_arrays(
        by_judge, items=[str(number) for number in range(len(answers))], classes=classes
    )
    judges = edokit.audit(jury, people).judges
    if judges is None or judges.estimate is None:
        return dict.fromkeys(JURY_METRICS, math.nan)
    return dict(zip(JURY_METRICS, (judges.estimate, judges.low, judges.high), strict=True))


def inspect_jury(classes: Sequence[str], votes: str = "votes") -> Any:
    """A metric of inspect_ai: the effective number of judges among several scorers.

    It goes with ``multi_scorer([…], "collect")``, whose score is the list of the judges' answers,
    and with ``epochs=Epochs(1, "mode")``: the usual reducer makes numbers of answers. The votes of
    people about the same question are in this field of the sample's metadata.
    """
    from inspect_ai.scorer import SampleScore, metric

    @metric
    def effective_judges() -> Any:
        def compute(scores: Any) -> dict[str, float]:
            if not scores:
                return dict.fromkeys(JURY_METRICS, math.nan)
            answers = [score.score.value for score in scores]
            if not all(isinstance(answer, str) for answer in chain.from_iterable(answers)):
                raise ValueError(
                    'judges answer with names of classes: add epochs=Epochs(1, "mode")'
                )
            people = [score.sample_metadata[votes] for score in scores]
            return jury_metrics(answers, people, classes)

        # inspect_ai gives the metadata of samples to metrics with this annotation alone.
        compute.__annotations__["scores"] = list[SampleScore]
        return compute

    return effective_judges()


def mlflow_scorer(classes: Sequence[str]) -> Any:
    """A scorer of `mlflow.genai.evaluate`; ``expectations`` hold the annotators' ``votes``."""
    from mlflow.genai.scorers import scorer

    @scorer(name="soft_label_distance")
    def soft_label_distance(outputs: Any, expectations: Any) -> float:
        return distance_to_people(str(outputs), expectations["votes"], classes)

    return soft_label_distance


def label_studio_predictions(
    bundle: Any, tasks: Sequence[Any], control: str = "label", to_name: str = "text"
) -> list[dict[str, Any]]:
    """Predictions of a bundle for tasks of Label Studio: a label, and how sure it is.

    ``bundle`` is what `edokit.load` gives. A low score is a task that divides people.
    """
    p = bundle.predict_proba([task["data"]["text"] for task in tasks])
    predictions = []
    for row in p:
        best = int(row.argmax())
        result = {
            "from_name": control,
            "to_name": to_name,
            "type": "choices",
            "value": {"choices": [str(bundle.classes[best])]},
        }
        predictions.append({"result": [result], "score": float(row[best])})
    return predictions


def label_studio_backend(folder: str) -> Any:
    """A model of label_studio_ml that answers with a bundle; ``label-studio-ml`` serves it."""
    from label_studio_ml.model import LabelStudioMLBase

    bundle = edokit.load(folder)

    class EDOBackend(LabelStudioMLBase):  # type: ignore[misc]
        def predict(self, tasks: Any, context: Any = None, **options: Any) -> Any:
            return label_studio_predictions(bundle, tasks)

    return EDOBackend
