"""From scratch: quick recipes stand in for fine-tuned models, a tiny BERT for AraBERTv2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reproduction_cases import small_lewidi

from edokit import EDOWarning
from edokit.datasets.lewidi import read_lewidi
from edokit.members.registry import make_member
from reproduction.lewidi2023.backbone import tune_backbone
from reproduction.lewidi2023.protocol import clean_text, protocol_plans
from reproduction.lewidi2023.study import Pool, Study
from reproduction.lewidi2023.train import committed_plans, recipe_plans, train_pools
from tests.errors import raises_code


def test_linear_members_stand_in_for_every_pool_of_the_paper(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data")
    plans = recipe_plans("linear", {"HS-Brexit": 2}, members=3)
    assert [plan.name for plan in plans] == ["random-select", "per-annotator", "soft-ce"]
    predictions = train_pools(data, plans, tmp_path / "out", jobs=1)
    study = Study(data, predictions)
    assert study.pools["HS-Brexit"] == ["per-annotator", "random-select", "soft-ce"]
    found = study.pool("HS-Brexit", "random-select")
    assert isinstance(found, Pool)
    assert found.test.shape == (50, 3, 2)


def test_what_was_trained_can_be_trained_again_as_its_manifest_says(tmp_path: Path) -> None:
    data = small_lewidi(tmp_path / "data")
    plans = recipe_plans("linear", {"HS-Brexit": 1}, members=2)[:1]
    first = train_pools(data, plans, tmp_path / "first", jobs=1)
    again = committed_plans(first, ["HS-Brexit"])
    assert [(plan.dataset, plan.name, plan.seed) for plan in again] == [
        ("HS-Brexit", "random-select", 0)
    ]
    second = train_pools(data, again, tmp_path / "second", jobs=1)
    pools = [Study(data, place).pool("HS-Brexit", "random-select") for place in (first, second)]
    assert isinstance(pools[0], Pool)
    assert isinstance(pools[1], Pool)
    assert (pools[0].test.probabilities == pools[1].test.probabilities).all()


def test_the_committed_manifests_are_plans() -> None:
    here = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
    with (
        pytest.warns(EDOWarning, match="'gemma' .*ConvAbuse/decoder"),
        pytest.warns(EDOWarning, match="'gemma-bi' .*ArMIS/annotators"),
    ):
        plans = {(plan.dataset, plan.name): plan for plan in committed_plans(here)}
    own = plans["ConvAbuse", "random-select"]
    assert own.groups[0].members == 20
    assert own.groups[0].options["pooling"] == "mean+target"
    assert ("ConvAbuse", "decoder") not in plans


def test_a_folder_that_is_here_is_trained_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
    (tmp_path / "gemma").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "decoder" in {plan.name for plan in committed_plans(here, ["HS-Brexit"])}


def test_an_arabic_backbone_goes_by_hub_id_and_a_tiny_bert_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = recipe_plans("transformer", {"ArMIS": 3}, backbone="aubmindlab/bert-base-arabertv2")
    assert {plan.name for plan in named} == {"random-select", "per-annotator", "soft-ce", "soft-md"}
    assert all(
        plan.groups[0].options["model"] == "aubmindlab/bert-base-arabertv2" for plan in named
    )
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "members"))
    from tiny_transformer import tiny_model

    data = small_lewidi(tmp_path / "data", ("ArMIS",))
    plans = recipe_plans(
        "transformer",
        {"ArMIS": 1},
        backbone=tiny_model(tmp_path / "tiny"),
        members=1,
        options={"epochs": 1, "max_length": 16},
    )
    plans = [plan for plan in plans if plan.name in ("random-select", "soft-md")]
    predictions = train_pools(data, plans, tmp_path / "out", device="cpu", jobs=1)
    found = Study(data, predictions).pool("ArMIS", "soft-md")
    assert isinstance(found, Pool)
    manifest = json.loads((predictions / "ArMIS" / "soft-md" / "manifest.json").read_text())
    assert manifest["groups"][0]["options"]["loss"] == "md"


def test_a_transformer_needs_a_backbone() -> None:
    with raises_code("missing-option"):
        recipe_plans("transformer", {"ArMIS": 3})


def test_training_as_committed_needs_manifests(tmp_path: Path) -> None:
    with raises_code("wrong-folder"):
        committed_plans(tmp_path)


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_recipes_take_the_options_of_every_committed_manifest() -> None:
    plans = committed_plans(Path(__file__).parents[2] / "benchmarks" / "lewidi2023")
    groups = [group for plan in plans for group in plan.groups]
    assert any(group.options.get("annotators") for group in groups)
    for group in groups:
        make_member(group.recipe, 2, group.options)


def test_texts_are_cleaned_as_the_paper_cleans_them() -> None:
    text = "<user> @ann Look at https://a.example/x: 3 <b>odd</b> ideas &amp; a café…"
    assert clean_text(text) == "Look at odd ideas a caf"


def test_the_papers_protocol_trains_members_for_each_seed_and_keeps_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "members"))
    from tiny_transformer import tiny_model

    data = small_lewidi(tmp_path / "data")
    fewest = int(read_lewidi(data / "HS-Brexit", split="train").annotations_per_item.min())
    plans = protocol_plans(
        {"HS-Brexit": fewest},
        tiny_model(tmp_path / "tiny"),
        seeds=2,
        members=1,
        options={"epochs": "1", "max_length": "16"},
    )
    assert [len(plan.groups) for plan in plans] == [2, 2, 1, 1]
    assert all(group.members <= fewest for group in plans[1].groups)
    predictions = train_pools(data, plans[:1], tmp_path / "out", device="cpu", jobs=1)
    found = Study(data, predictions).pool("HS-Brexit", "random-select")
    assert isinstance(found, Pool)
    assert [found.sampled(seed).fit.members for seed in range(2)] == [
        ("seed-0-01",),
        ("seed-1-01",),
    ]


def test_the_settings_of_a_backbone_are_searched_on_dev_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "members"))
    from tiny_transformer import tiny_model

    data = small_lewidi(tmp_path / "data", ("ConvAbuse",))
    model = tiny_model(tmp_path / "tiny")
    settings = {"trials": 2, "device": "cpu", "epochs": 1}
    results = tune_backbone(data, model, tmp_path / "out", **settings)
    assert [result.trial for result in results] == [0, 1]
    assert len({result.learning_rate for result in results}) == 2
    assert tune_backbone(data, model, tmp_path / "out", **settings) == results  # nothing is trained
    lines = (tmp_path / "out" / "trials.csv").read_text().splitlines()
    assert lines[0] == "trial,learning_rate,batch_size,warmup_steps,dev_f1,dev_ce"
    assert len(lines) == 3
