"""A jury of language models on the command line: costs, sampled answers, what members earn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commands import answer, edo
from edokit import Predictions, read_predictions, simulate, write_predictions
from edokit._io.tables import write_table


def test_join_takes_costs(tmp_path: Path) -> None:
    shares = np.full((2, 2, 2), 0.5)
    write_predictions(Predictions.from_arrays(shares, layout="NKC"), tmp_path / "one.npz")
    join = ("predictions", "join", tmp_path / "one.npz", "--out")
    done = edo(*join, tmp_path / "out.npz", "--cost", "0=0.002", "--cost", "1=0.5")
    assert done.returncode == 0, done.stderr
    found = read_predictions(tmp_path / "out.npz").member_info
    assert found == {"0": {"cost": 0.002}, "1": {"cost": 0.5}}
    for wrong, fault in (
        ("0=cheap", "--cost 0=cheap does not end in a number"),
        ("z=1", "describes 'z'"),
    ):
        done = edo(*join, tmp_path / "no.npz", "--cost", wrong)
        assert done.returncode == 2
        assert fault in " ".join(done.stderr.split())


def jury(folder: Path) -> tuple[Path, Path]:
    """Predictions of two small and two large models with costs, and annotations."""
    simulation = simulate("two-camps", random_state=0, items=(20, 80, 20))
    people = simulation.annotations.split("dev")
    truth = simulation.truth[simulation.rows("dev")][:, 1]
    rng = np.random.default_rng(0)
    shares, info = {}, {}
    for name, noise in (("small-1", 0.3), ("small-2", 0.3), ("large-1", 0.1), ("large-2", 0.1)):
        p = np.clip(truth + rng.normal(0, noise, len(truth)), 0.03, 0.97)
        shares[name] = np.stack([1 - p, p], axis=1)
        model = name[:-2]
        info[name] = {"model": model, "prompt": name[-1], "cost": 0.1 if model == "large" else 0.01}
    pool = Predictions.from_arrays(
        shares, items=people.items, classes=people.classes, member_info=info
    )
    write_predictions(pool, folder / "jury.npz")
    write_table(people.to_table(), folder / "people.csv")
    return folder / "jury.npz", folder / "people.csv"


def test_explain_trades_cost_against_loss_and_the_page_shows_it(tmp_path: Path) -> None:
    predictions, annotations = jury(tmp_path)
    data = ("--predictions", predictions, "--annotations", annotations)
    fitted = edo("fit", *data, "--out", tmp_path / "e", "--ties", "random")
    assert fitted.returncode == 0, fitted.stderr
    assert "if all are asked" in " ".join(fitted.stdout.split())
    shown = edo("explain", tmp_path / "e", *data)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    for words in ("model large", "prompt 1", "Without one member", "Ever cheaper", "held out"):
        assert words in text
    found = answer("explain", tmp_path / "e", *data)
    assert found["trade_off"]["all_cost"] == 0.22
    assert {row["value"] for row in found["earned"]["model"]} == {"small", "large"}
    assert found["members"][0]["cost"] == 0.1
    alone = answer("explain", tmp_path / "e")
    assert alone["trade_off"] is None
    one = edo("explain", tmp_path / "e", "--predictions", predictions)
    assert one.returncode == 2
    assert "--annotations" in one.stderr
    page = tmp_path / "page.html"
    done = edo("report", tmp_path / "e", *data, "--out", page)
    assert done.returncode == 0, done.stderr
    content = page.read_text(encoding="utf-8")
    assert 'id="cost"' in content
    assert 'data-chart="cost"' in content
    # Other items than those of the fit say nothing of how the weights were chosen.
    few = read_predictions(predictions).take(range(40))
    write_predictions(few, tmp_path / "few.npz")
    people = simulate("two-camps", random_state=0, items=(20, 80, 20)).annotations.split("dev")
    write_table(people.take(range(40)).to_table(), tmp_path / "few.csv")
    shown = ("--predictions", tmp_path / "few.npz", "--annotations", tmp_path / "few.csv")
    done = edo("report", tmp_path / "e", *shown, "--out", tmp_path / "few.html")
    assert done.returncode == 0, done.stderr
    assert "What cheaper ensembles lose is not shown" in " ".join(done.stdout.split())
    assert 'data-chart="cost"' not in (tmp_path / "few.html").read_text(encoding="utf-8")


def test_a_page_of_members_without_costs_has_no_section_about_them(tmp_path: Path) -> None:
    predictions, annotations = jury(tmp_path)
    plain = Predictions.from_arrays(
        read_predictions(predictions).probabilities,
        items=read_predictions(predictions).items,
        classes=read_predictions(predictions).classes,
        layout="NKC",
    )
    write_predictions(plain, tmp_path / "plain.npz")
    data = ("--predictions", tmp_path / "plain.npz", "--annotations", annotations)
    assert edo("fit", *data, "--out", tmp_path / "e", "--ties", "random").returncode == 0
    done = edo("report", tmp_path / "e", *data, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert 'id="cost"' not in (tmp_path / "page.html").read_text(encoding="utf-8")
