"""From scratch: quick recipes stand in for fine-tuned models, a tiny BERT for AraBERTv2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reproduction_cases import small_lewidi

from edokit._errors import EDOWarning, InputError
from edokit.members.registry import make_member
from reproduction.lewidi2023.study import Pool, Study
from reproduction.lewidi2023.train import committed_plans, recipe_plans, train_pools


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
        pytest.warns(EDOWarning, match="'gemma' is a folder that is not here: ConvAbuse/decoder"),
        pytest.warns(EDOWarning, match="'gemma-bi' is a folder .* ArMIS/annotators"),
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
    with pytest.raises(InputError, match="needs a backbone"):
        recipe_plans("transformer", {"ArMIS": 3})


def test_training_as_committed_needs_manifests(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs manifests"):
        committed_plans(tmp_path)


@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_recipes_take_the_options_of_every_committed_manifest() -> None:
    plans = committed_plans(Path(__file__).parents[2] / "benchmarks" / "lewidi2023")
    groups = [group for plan in plans for group in plan.groups]
    assert any(group.options.get("annotators") for group in groups)
    for group in groups:
        make_member(group.recipe, 2, group.options)
