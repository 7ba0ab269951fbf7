"""Training writes members, predictions and a manifest, goes on where it stopped, loses nothing."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from member_cases import small_people

from edokit import (
    Annotations,
    EDOWarning,
    read_predictions,
    score_members,
    train_members,
)
from edokit._names import as_names
from edokit.members import TrainingOptions, parse_groups, runner
from edokit.members.jobs import member_data, run_job
from edokit.members.plan import TrainingJob, make_plan
from edokit.members.train import Trained, train_plan
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce, f1
from tests.errors import raises_code

PEOPLE = small_people()
PRIOR = "member_cases:PriorMember"


def train(recipe: str, out: Path | None = None, **given: Any) -> Trained:
    pool = {name: given.pop(name) for name in ("options", "supervision") if name in given}
    people = given.pop("people", PEOPLE)
    return train_members(people, parse_groups(recipe, **pool), out=out, **{"jobs": 1, **given})


def test_predictions_of_each_split_lie_in_the_folder(tmp_path: Path) -> None:
    trained = train("linear:3", tmp_path)
    for split in ("dev", "test"):
        kept = read_predictions(tmp_path / "predictions" / f"{split}.npz")
        assert list(kept.items) == list(PEOPLE.split(split).items)
        assert kept.members == ("linear-01", "linear-02", "linear-03")
        assert kept.groups == ("linear",) * 3
        assert kept.classes == ("0", "1")
        np.testing.assert_array_equal(kept.probabilities, trained.predictions[split].probabilities)


def test_the_manifest_tells_what_was_trained_and_how_good_it_is(tmp_path: Path) -> None:
    trained = train("linear:2", tmp_path, random_state=7, source="people.csv")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == json.loads(json.dumps(trained.manifest))
    assert manifest["seed"] == 7
    assert manifest["data"]["source"] == "people.csv"
    assert manifest["data"]["items"] == {"train": 36, "dev": 18, "test": 18}
    assert {"python", "edokit", "numpy"} <= set(manifest["versions"])
    assert manifest["failed"] == []
    second = manifest["members"][1]
    assert second["targets"] == {"supervision": "random-select", "draw": "once"}
    assert second["seconds"] > 0
    dev = PEOPLE.split("dev")
    answers = trained.predictions["dev"]
    assert second["metrics"]["dev"]["ce"] == pytest.approx(
        ce(answers.select([answers.members[1]]).uniform, dev.soft_labels)
    )
    assert manifest["mean"]["dev"]["f1"] == pytest.approx(f1(answers.uniform, dev.hard_labels()))


def test_versions_do_not_depend_on_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    expected = importlib.metadata.version("torch")
    train("linear:1", tmp_path / "loaded")
    monkeypatch.delitem(sys.modules, "torch")
    train("linear:1", tmp_path / "not-loaded")
    for folder in ("loaded", "not-loaded"):
        card = json.loads((tmp_path / folder / "members" / "linear-01" / "member.json").read_text())
        manifest = json.loads((tmp_path / folder / "manifest.json").read_text())
        assert card["versions"]["torch"] == expected
        assert manifest["versions"]["torch"] == expected


def test_random_select_members_differ_and_soft_ones_do_not() -> None:
    drawn = train("linear:2").predictions["dev"].probabilities
    assert (drawn[:, 0] != drawn[:, 1]).any()
    with pytest.warns(EDOWarning, match="same: linear; .*random-select") as noted:
        predicted = train("linear:2", supervision="soft").predictions["dev"]
    assert len(noted) == 1
    assert predicted.member_info["linear-01"] == {"supervision": "soft"}
    soft = predicted.probabilities
    np.testing.assert_array_equal(soft[:, 0], soft[:, 1])


def test_members_that_chance_sets_apart_are_not_called_the_same() -> None:
    train("linear:1", supervision="majority")
    forest = {"estimator": "sklearn.ensemble.RandomForestClassifier(n_estimators=3)"}
    train("sklearn:2", supervision="soft", options=forest)


def test_members_are_the_same_where_each_item_has_one_answer() -> None:
    alone = PEOPLE.to_table().to_pandas().drop_duplicates("item")
    with pytest.warns(EDOWarning, match="same: linear"):
        train("linear:2", people=Annotations.from_table(alone))


def test_the_same_seed_gives_the_same_predictions_and_another_does_not() -> None:
    first, again, other = (
        train("linear:2", random_state=seed).predictions["test"].probabilities for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    alone = train("linear:3").predictions["dev"]
    together = train("linear:3", tmp_path, jobs=2).predictions["dev"]
    np.testing.assert_array_equal(alone.probabilities, together.probabilities)


def test_processes_write_where_the_caller_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Parallel(2, backend="loky")(delayed(os.getcwd)() for _ in range(2))
    monkeypatch.chdir(tmp_path)  # the workers stay where they were started
    train("linear:2", Path("out"), jobs=2)
    assert (tmp_path / "out/members/linear-02/member.json").is_file()


def folder_bytes(out: Path) -> dict[str, bytes]:
    """Models and predictions of a training."""
    files = [*out.glob("members/*/linear.npz"), *out.glob("members/*/predictions.npz")]
    files += out.glob("predictions/*.npz")
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def test_a_small_pool_starts_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train("linear:4", tmp_path / "one", jobs=1)

    def started(*given: object, **more: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr("joblib.cpu_count", lambda *given: 4)
    monkeypatch.setattr("joblib.Parallel", started)
    train("linear:4", tmp_path / "decided", jobs=None)
    assert folder_bytes(tmp_path / "decided") == folder_bytes(tmp_path / "one")
    with raises_code("failed-member"):
        train("linear:4", jobs=4)  # as asked


def test_workers_are_started_for_what_is_left_once_that_is_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda *given: 2)
    monkeypatch.setattr(runner, "_START_SECONDS", 0.0)
    here: list[str] = []

    def seen(plan: Any, job: Any, *more: Any, **options: Any) -> Any:
        here.append(job.member)
        return run_job(plan, job, *more, **options)

    monkeypatch.setattr(runner, "run_job", seen)
    train("linear:3", tmp_path / "decided", jobs=None)
    assert here == ["linear-01"]
    train("linear:3", tmp_path / "one", jobs=1)
    assert folder_bytes(tmp_path / "decided") == folder_bytes(tmp_path / "one")


def test_a_finished_training_trains_nothing_again(tmp_path: Path) -> None:
    options = {"note": str(tmp_path / "note")}
    first = train(f"{PRIOR}:3", tmp_path / "out", options=options)
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    second = train(f"{PRIOR}:3", tmp_path / "out", options=options)
    assert len((tmp_path / "note").read_text().split()) == 3
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    np.testing.assert_array_equal(
        first.predictions["dev"].probabilities, second.predictions["dev"].probabilities
    )


def test_a_pool_can_grow(tmp_path: Path) -> None:
    options = {"note": str(tmp_path / "note")}
    train(f"{PRIOR}:2", tmp_path / "out", options=options)
    grown = train(f"{PRIOR}:4", tmp_path / "out", options=options)
    assert len((tmp_path / "note").read_text().split()) == 4
    assert len(grown.predictions["dev"].members) == 4


def test_members_trained_otherwise_are_refused_or_replaced(tmp_path: Path) -> None:
    train("linear:2", tmp_path)
    with raises_code("other-settings"):
        train("linear:2", tmp_path, options={"strength": 1})
    with raises_code("other-settings", "overwrite=True"):
        train("linear:2", tmp_path, people=small_people(seed=1))
    replaced = train("linear:2", tmp_path, options={"strength": 1}, overwrite=True)
    assert replaced.manifest["groups"][0]["options"]["strength"] == 1.0
    fresh = train("linear:2", options={"strength": 1})
    np.testing.assert_array_equal(
        replaced.predictions["dev"].probabilities, fresh.predictions["dev"].probabilities
    )


KILLED = """
import sys
from member_cases import small_people
from edokit.members import train_members
from edokit.members.groups import parse_groups

if __name__ == "__main__":
    out, note, jobs = sys.argv[1:]
    pool = parse_groups("member_cases:SlowMember:8", options={"note": note})
    train_members(small_people(), pool, out=out, jobs=int(jobs))
"""


def finished_members(out: Path) -> set[str]:
    names = (path.parent.name for path in out.glob("members/*/member.json"))
    return {name for name in names if not name.startswith(".")}


def test_a_killed_training_in_processes_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    note = tmp_path / "note"
    out = tmp_path / "out"
    script.write_text(KILLED)
    command = [sys.executable, str(script), str(out), str(note), "2"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    running = subprocess.Popen(command, env=environment, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(finished_members(out)) < 2:
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    finished = finished_members(out)
    assert 2 <= len(finished) < 8
    assert not (out / "manifest.json").exists()
    seeds = {
        json.loads((out / "members" / name / "member.json").read_text())["seed"]
        for name in finished
    }
    trained = train("member_cases:SlowMember:8", out, options={"note": str(note)})
    assert len(trained.predictions["dev"].members) == 8
    starts = note.read_text().split()
    assert all(starts.count(str(seed)) == 1 for seed in seeds)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_member_that_fails_is_told_and_the_others_finish(tmp_path: Path, jobs: int) -> None:
    trained = train("member_cases:FailingMember:6", tmp_path, jobs=jobs)
    failed = {one.job.member for one in trained.failed}
    assert 0 < len(failed) < 6
    assert all(one.reason == "RuntimeError: the dog ate the weights" for one in trained.failed)
    kept = read_predictions(tmp_path / "predictions" / "dev.npz")
    assert set(kept.members) | failed == {f"FailingMember-{k:02d}" for k in range(1, 7)}
    assert not set(kept.members) & failed
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert {one["name"] for one in manifest["failed"]} == failed


def test_a_failed_member_is_tried_again(tmp_path: Path) -> None:
    options = {"cured": str(tmp_path / "cured")}
    recipe = "member_cases:FailingMember:6"
    assert train(recipe, tmp_path / "out", options=options).failed
    (tmp_path / "cured").touch()
    cured = train(recipe, tmp_path / "out", options=options)
    assert not cured.failed
    assert len(cured.predictions["dev"].members) == 6


def test_a_member_whose_process_dies_takes_no_other_with_it(tmp_path: Path) -> None:
    trained = train("member_cases:DyingMember:2,linear:1", tmp_path, jobs=2)
    (failed,) = trained.failed
    assert "its worker died" in failed.reason
    assert len(trained.predictions["dev"].members) == 2


def test_answers_that_are_no_probabilities_make_a_failed_member() -> None:
    with raises_code("failed-member", "18"):
        train("member_cases:BrokenMember:2")


def test_a_group_that_cannot_be_prepared_takes_no_other_with_it(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "empty").mkdir()
    trained = train("linear:1,encoder:2", options={"model": str(tmp_path / "empty")})
    assert [one.job.member for one in trained.failed] == ["encoder-01", "encoder-02"]
    assert "config.json" in trained.failed[0].reason
    assert trained.predictions["dev"].members == ("linear-01",)


def test_per_annotator_members_learn_from_their_annotator_alone(tmp_path: Path) -> None:
    trained = train(f"{PRIOR}:3", tmp_path, supervision="per-annotator")
    learned = PEOPLE.split("train")
    for k, member in enumerate(trained.manifest["members"]):
        assert member["targets"]["annotator"] == f"person-{k}"
        own = learned.annotator_codes == k
        share = learned.label_codes[own].mean()  # type: ignore[index]
        np.testing.assert_allclose(
            trained.predictions["dev"].probabilities[:, k, 1], share, rtol=1e-6
        )


def test_an_annotator_with_one_class_becomes_a_constant_member_and_a_warning() -> None:
    assert PEOPLE.label_codes is not None
    always = np.where(PEOPLE.annotator_codes == 1, np.int32(0), PEOPLE.label_codes)
    people = replace(PEOPLE, label_codes=always)
    with pytest.warns(EDOWarning, match="linear-02-person-1: all 36 targets"):
        trained = train("linear:3", people=people, supervision="per-annotator")
    answers = trained.predictions["dev"].probabilities[:, 1]
    assert (answers == answers[0]).all()


@pytest.mark.filterwarnings("ignore:all members of a group:edokit._errors.EDOWarning")
def test_out_of_fold_predictions_cover_train_and_dev_and_are_honest(tmp_path: Path) -> None:
    trained = train("member_cases:SeenMember:2", tmp_path, cross_fit=3)
    fit = read_predictions(tmp_path / "predictions" / "fit.npz")
    wanted = [i for i, split in zip(PEOPLE.items, PEOPLE.splits, strict=True) if split != "test"]  # type: ignore[arg-type]
    assert list(fit.items) == wanted
    # A SeenMember says 1 of what it learned from: no item was answered by a fit that saw it.
    assert (fit.probabilities[:, :, 1] == 0).all()
    assert set(trained.predictions) == {"fit", "test"}


def test_test_predictions_are_the_mean_over_folds(tmp_path: Path) -> None:
    trained = train(f"{PRIOR}:1", tmp_path, cross_fit=3)
    folds = [
        np.load(tmp_path / "members" / "PriorMember-01" / f"fold-{f}" / "answer.npy")
        for f in range(3)
    ]
    np.testing.assert_allclose(
        trained.predictions["test"].probabilities[0, 0], np.mean(folds, axis=0), rtol=1e-6
    )
    place = {item: row for row, item in enumerate(trained.predictions["fit"].items)}
    numbers = fold_numbers(TrainingData.from_annotations(PEOPLE), 3, 0)
    for item, fold in zip(PEOPLE.items, numbers, strict=True):
        if fold >= 0:
            answer = trained.predictions["fit"].probabilities[place[item], 0]
            np.testing.assert_allclose(answer, folds[fold], rtol=1e-6)


def test_folds_need_no_splits() -> None:
    trained = train("linear:1", people=small_people(splits=False), cross_fit=2)
    assert set(trained.predictions) == {"fit"}
    assert len(trained.predictions["fit"]) == 72


def test_a_recipe_that_stops_early_does_not_learn_from_what_it_stops_on() -> None:
    data = TrainingData.from_annotations(PEOPLE)
    plan = make_plan(data, parse_groups("member_cases:EpochMember:1"), TrainingOptions(cross_fit=3))
    lesson = member_data(plan, plan.jobs[0])
    assert lesson.dev_soft_labels is not None
    assert len(lesson.dev_texts) > 0
    assert not set(lesson.dev_texts) & set(lesson.texts)
    assert lesson.dev_soft_labels.shape == (len(lesson.dev_texts), 2)
    assert (lesson.targets(0) != lesson.targets(1)).any()


def test_predictions_can_be_kept_without_models(tmp_path: Path) -> None:
    train("linear:1", tmp_path, keep_models=False)
    files = {file.name for file in (tmp_path / "members" / "linear-01").iterdir()}
    assert files == {"member.json", "predictions.npz"}


def test_pairs_reach_the_members() -> None:
    assert PEOPLE.texts is not None
    people = replace(PEOPLE, contexts=as_names(["what now?"] * len(PEOPLE.items)))
    plain = train("linear:1", people=PEOPLE).predictions["dev"].probabilities
    paired = train("linear:1", people=people).predictions["dev"].probabilities
    # One context for all tells nothing, so the utterances alone decide.
    np.testing.assert_allclose(paired, plain, atol=0.05)


def test_progress_tells_members_and_epochs(tmp_path: Path) -> None:
    reports: list[tuple[object, ...]] = []
    train(f"{PRIOR}:2", tmp_path, progress=lambda *report: reports.append(report))
    assert (0, 2, "PriorMember-01, epoch 1, dev CE 0.5") in reports
    assert reports[0] == (0, 2, "preparing")
    assert reports[-1] == (2, 2, "PriorMember-02")


def test_the_history_of_a_member_is_in_its_card(tmp_path: Path) -> None:
    train(f"{PRIOR}:1", tmp_path)
    card = json.loads((tmp_path / "members" / "PriorMember-01" / "member.json").read_text())
    assert card["history"] == [{"epoch": 1, "dev_ce": 0.5}]


def test_a_recipe_refuses_its_options_before_anything_is_trained(tmp_path: Path) -> None:
    with raises_code("invalid-number", "strength", "1", "0"):
        train("linear:2", tmp_path / "out", options={"strength": -1})
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with raises_code("not-a-folder"):
        train("linear:1", tmp_path / "file")


def test_fewer_jobs_than_one_are_refused() -> None:
    with raises_code("invalid-number", "jobs", "0"):
        train("linear:1", jobs=0)


def test_jobs_take_all_gpus_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert runner.available_devices(None) == ("cuda:0", "cuda:1", "cuda:2")
    assert runner.available_devices("cuda:1") == ("cuda:1",)


@pytest.mark.parametrize(
    ("free_gib", "weights_gib", "expected"), [(3, 1, 1), (20, 1, 2), (139, 1, 8), (139, 15, 2)]
)
def test_as_many_members_train_on_a_gpu_as_its_memory_holds(
    free_gib: int, weights_gib: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_free_bytes", lambda device: free_gib * 2**30)
    monkeypatch.setattr(runner, "weight_bytes", lambda model: weights_gib * 2**30)
    monkeypatch.setattr("joblib.cpu_count", lambda: 32)
    job = TrainingJob("m-1", "m", "transformer", {"model": "x"}, "soft", "epoch", seed=0)
    assert runner.count_jobs(None, [job], ("cuda",)) == expected
    assert runner.count_jobs(None, [job], ("cuda:0", "cuda:1")) == 2 * expected


def test_only_what_is_missing_is_trained(tmp_path: Path) -> None:
    data = TrainingData.from_annotations(PEOPLE)
    settings = TrainingOptions(jobs=1)
    plan = make_plan(data, parse_groups("linear:2"), settings)
    assert [outcome.reason for outcome in train_plan(plan, tmp_path)] == ["", ""]
    reports: list[tuple[object, ...]] = []
    assert train_plan(plan, tmp_path, lambda *report: reports.append(report)) == []
    assert reports == [(2, 2, "from before")]
    assert train("linear:2", tmp_path).resumed == 2


def test_what_members_say_of_themselves_is_in_their_predictions(tmp_path: Path) -> None:
    paid = "member_cases:PaidMember"
    trained = train(f"{paid}:2", tmp_path)
    card = json.loads((tmp_path / "members" / "PaidMember-01" / "member.json").read_text())
    assert card["details"] == {"model": "tiny", "cost": 0.25, "requests": 36, "rows": [1, 2]}
    about = {"model": "tiny", "cost": 0.25, "requests": 36}
    dev = trained.predictions["dev"]
    assert dev.member_info == dict.fromkeys(dev.members, about)
    assert trained.manifest["members"][0]["details"] == about
    assert read_predictions(tmp_path / "predictions" / "dev.npz").member_info == dev.member_info
    scored = score_members(tmp_path, ["tea"], trust=["member_cases"])
    assert scored.member_info["PaidMember-02"] == {"model": "tiny", "cost": 0.25, "requests": 1}


def test_an_item_costs_what_all_folds_of_a_member_cost() -> None:
    (about,) = (
        train("member_cases:PaidMember:1", cross_fit=3).predictions["test"].member_info.values()
    )
    assert about == {"model": "tiny", "cost": 0.75, "requests": 54 + 3 * 18}
