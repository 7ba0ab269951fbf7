"""The adapters of examples/other-tools give the metrics of EDO in other tools."""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import edokit
from edokit import Scale
from edokit.metrics import ce, compute_metrics, md
from example_cases import EXAMPLES

CLASSES = ("polite", "rude")
VOTES = ["rude", "rude", "polite"]


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES / "other-tools"))
    sys.modules.pop("adapters", None)
    import adapters

    return adapters


def test_trainer_metrics_are_those_of_the_softmax(adapters: Any) -> None:
    logits = np.array([[0.0, 1.0], [2.0, 0.0], [0.3, 0.1]])
    q = np.eye(2)[[1, 0, 0]] * 0.8 + 0.1
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = adapters.trainer_metrics()((logits, q))
    assert found["ce"] == pytest.approx(ce(p, q))
    assert found["md"] == pytest.approx(md(p, q))


def test_trainer_metrics_of_a_scale_have_w1(adapters: Any) -> None:
    scale = Scale("ordinal", (1, 2, 4))
    found = adapters.trainer_metrics(scale)((np.zeros((2, 3)), np.eye(3)[[0, 2]]))
    p = np.full((2, 3), 1 / 3)
    q = np.eye(3)[[0, 2]]
    expected = compute_metrics(p, q, [0, 2], metrics=["w1"], scale=scale)["w1"]
    assert found["w1"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "distance"),
    [("rude", 2 / 3), ('{"rude": 2, "polite": 1}', 0.0), ("I can't say", 1 / 3)],
)
def test_answers_are_compared_with_votes(adapters: Any, answer: str, distance: float) -> None:
    assert adapters.distance_to_people(answer, VOTES, CLASSES) == pytest.approx(distance)


def jury_of_three() -> tuple[list[list[str]], list[list[str]]]:
    """The answers of three judges, of which the last two agree, and five votes for each item."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.1, 0.9, 300)
    votes = [[CLASSES[int(rng.random() < share)] for _ in range(5)] for share in shares]
    answers = []
    for share in shares:
        first, second = (CLASSES[int(rng.random() < share)] for _ in range(2))
        answers.append([first, second, second])
    return answers, votes


def test_a_judge_that_repeats_another_adds_nothing(adapters: Any) -> None:
    answers, votes = jury_of_three()
    three = adapters.jury_metrics(answers, votes, CLASSES)
    two = adapters.jury_metrics([row[:2] for row in answers], votes, CLASSES)
    assert 1 <= three["judges_low"] <= three["judges"] <= three["judges_high"]
    assert three["judges"] == pytest.approx(9 / 5, abs=0.3)  # the mean's error of weights 1/3, 2/3
    assert two["judges"] == pytest.approx(2, abs=0.2)


def test_the_metric_of_a_jury_is_that_of_the_audit(adapters: Any) -> None:
    answers, votes = jury_of_three()
    labels = [[vote == "rude" for vote in row] for row in votes]
    people = edokit.Annotations.from_matrix(np.array(labels).astype(int), classes=[0, 1])
    jury = np.array([[np.eye(2)[int(name == "rude")] for name in row] for row in answers])
    judges = edokit.audit(jury, people).judges
    assert judges is not None
    expected = (judges.estimate, judges.low, judges.high)
    assert tuple(adapters.jury_metrics(answers, votes, CLASSES).values()) == pytest.approx(expected)


def with_torchmetrics(adapters: Any) -> float:
    import torch

    metric = adapters.torch_metric("md")
    metric.update(torch.tensor([[0.4, 0.6]]), torch.tensor([[0.0, 1.0]]))
    metric.update(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    return float(metric.compute()) - 0.4


def with_inspect_ai(adapters: Any) -> float:
    state = SimpleNamespace(output=SimpleNamespace(completion="rude"))
    score = asyncio.run(adapters.inspect_scorer(CLASSES)(state, VOTES))
    return float(score.value) - 2 / 3


def with_inspect_jury(adapters: Any) -> float:
    """An evaluation with three judges, of which the third repeats the second."""
    from inspect_ai import Epochs, Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, accuracy, multi_scorer, scorer
    from inspect_ai.solver import solver

    answers, votes = jury_of_three()

    @solver
    def no_model() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            return state

        return solve

    def judge(place: int) -> Any:
        @scorer(metrics=[accuracy()], name=f"judge-{place}")
        def judge_at_place() -> Any:
            async def score(state: Any, target: Any) -> Any:
                return Score(value=answers[int(state.sample_id)][place])

            return score

        return judge_at_place()

    samples = [
        Sample(id=str(row), input="what a day", target="rude", metadata={"votes": votes[row]})
        for row in range(len(answers))
    ]
    task = Task(
        dataset=samples,
        solver=no_model(),
        scorer=multi_scorer([judge(place) for place in range(3)], "collect"),
        metrics=[adapters.inspect_jury(CLASSES)],
        epochs=Epochs(1, "mode"),
    )
    # Its streams are left open until they are collected, and its libraries use what is deprecated.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (log,) = eval(task, model="mockllm/model", display="none", log_dir=folder)
        gc.collect()
    assert log.status == "success", log.error
    values = {name: value.value for name, value in log.results.scores[0].metrics.items()}
    expected = adapters.jury_metrics(answers, votes, CLASSES)
    assert set(expected) <= set(values), values
    return max(abs(values[name] - expected[name]) for name in expected)


def with_mlflow(adapters: Any) -> float:
    scorer = adapters.mlflow_scorer(CLASSES)
    return float(scorer(outputs="rude", expectations={"votes": VOTES})) - 2 / 3


@pytest.mark.parametrize("name", ["ce", "md", "w1", "entropy_correlation"])
def test_torchmetrics_collects_batches(adapters: Any, name: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    scale = Scale("ordinal", (1, 2, 4))
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet([1, 1, 1], (2, 40))
    metric = adapters.torch_metric(name, scale)
    for rows in (slice(0, 15), slice(15, 40)):
        metric.update(torch.tensor(p[rows]), torch.tensor(q[rows]))
    expected = compute_metrics(p, q, scale.hard(q), metrics=[name], scale=scale)[name]
    assert float(metric.compute()) == pytest.approx(expected, abs=1e-6)


class Divided:
    """A bundle that gives every text the same answer."""

    classes = CLASSES

    def predict_proba(self, texts: list[str]) -> Any:
        return np.tile([[0.25, 0.75]], (len(texts), 1))


def test_label_studio_gets_a_label_and_a_score(adapters: Any) -> None:
    tasks = [{"id": 1, "data": {"text": "what a day"}}]
    (prediction,) = adapters.label_studio_predictions(Divided(), tasks)
    assert prediction["score"] == 0.75
    assert prediction["result"][0]["value"] == {"choices": ["rude"]}


def with_label_studio_ml(adapters: Any) -> float:
    """The backend answers for the tasks of a project with what its bundle says."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(edokit, "load", lambda folder: Divided())
        backend = adapters.label_studio_backend("bundle")()
    (prediction,) = backend.predict([{"data": {"text": "what a day"}}], context=None)
    return float(prediction["score"]) - 0.75


def with_label_studio_sdk(adapters: Any) -> float:
    """The SDK takes the prediction for this labelling configuration."""
    from label_studio_sdk.label_interface import LabelInterface

    choices = "".join(f'<Choice value="{name}"/>' for name in CLASSES)
    config = (
        '<View><Text name="text" value="$text"/>'
        f'<Choices name="label" toName="text">{choices}</Choices></View>'
    )
    tasks = [{"data": {"text": "what a day"}}]
    (prediction,) = adapters.label_studio_predictions(Divided(), tasks)
    return 0.0 if LabelInterface(config).validate_prediction(prediction) else 1.0


# A package that is not installed has no case here, so that nothing is skipped.
TOOLS = {
    "torchmetrics": with_torchmetrics,
    "inspect_ai": with_inspect_ai,
    "inspect_ai.scorer": with_inspect_jury,
    "mlflow": with_mlflow,
    "label_studio_sdk": with_label_studio_sdk,
    "label_studio_ml": with_label_studio_ml,
}
INSTALLED = [name for name in TOOLS if find_spec(name.partition(".")[0])]


# The SDK of Label Studio declares models in the way of Pydantic 1.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_installed_tools_give_the_same(
    adapters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # label_studio_ml writes a database, cache.db, there; by default into the current folder.
    monkeypatch.setenv("MODEL_DIR", str(tmp_path))
    assert {name: TOOLS[name](adapters) for name in INSTALLED} == {
        name: pytest.approx(0, abs=1e-6) for name in INSTALLED
    }
