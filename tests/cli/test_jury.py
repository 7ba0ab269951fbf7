"""A jury of language models on the command line: costs, sampled answers, what members earn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commands import edo
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


def test_the_page_trades_cost_against_loss(tmp_path: Path) -> None:
    predictions, annotations = jury(tmp_path)
    data = ("--predictions", predictions, "--annotations", annotations)
    fitted = edo("fit", *data, "--out", tmp_path / "e", "--ties", "random")
    assert fitted.returncode == 0, fitted.stderr
    assert "if all are asked" in " ".join(fitted.stdout.split())
    page = tmp_path / "page.html"
    done = edo("report", tmp_path / "e", *data, "--out", page)
    assert done.returncode == 0, done.stderr
    content = page.read_text(encoding="utf-8")
    assert 'id="cost"' in content
    for words in ("large", "prompt", "Without one member", "Cheaper ensembles", "held out"):
        assert words in content
    # The path is of the items of the fit, and needs their files.
    predictions.unlink()
    done = edo("report", tmp_path / "e", "--out", page)
    assert done.returncode == 0, done.stderr
    assert "What cheaper ensembles lose could not be shown" in " ".join(done.stdout.split())
    assert "Cheaper ensembles" not in page.read_text(encoding="utf-8")


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
