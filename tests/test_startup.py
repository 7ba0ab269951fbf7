"""Importing the package loads nothing that is slow to load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from edokit import Predictions, write_predictions

HEAVY = (
    "{'numpy', 'pandas', 'pyarrow', 'scipy', 'sklearn', 'optuna', 'altair', 'vl_convert', 'torch'}"
)


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages a fresh Python has loaded after this code."""
    ask = f"import sys\n{code}\nprint(*({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import edokit") == set()


def test_what_fits_nothing_is_imported_without_scikit_learn() -> None:
    code = "from edokit import Objective, Predictions, evaluate, read_annotations"
    assert loaded_by(code) <= {"numpy", "pandas", "pyarrow"}


def test_metrics_are_imported_without_anything_that_fits() -> None:
    code = "from edokit.metrics import w1, bootstrap"
    ours = (
        f"{code}\nimport sys\nprint(*(name for name in sys.modules if name.startswith('edokit.')))"
    )
    done = subprocess.run([sys.executable, "-c", ours], capture_output=True, text=True, check=True)
    packages = {name.split(".")[1] for name in done.stdout.split()}
    assert not packages & {"objective", "fitdata", "solvers", "ensemble", "members", "analysis"}
    assert loaded_by(code) <= {"numpy", "pandas", "pyarrow"}


FITTING = {"sklearn", "joblib", "multiprocessing.process", "optuna", "torch"}
OPTIONAL = {"optuna", "torch", "altair", "vl_convert"}
LANGUAGE_MODELS = {"edokit.members.recipes.llm", "edokit.members.recipes._endpoint"}
NOT_LOADED = {
    "data info DIR/labels.csv": FITTING | {"altair", "vl_convert"},
    # The ensemble is an estimator of scikit-learn, which brings scipy and joblib.
    "fit --predictions DIR/dev.npz --annotations DIR/labels.csv --out DIR/ensemble": OPTIONAL,
    "predict DIR/ensemble --predictions DIR/dev.npz --out DIR/dev.csv": OPTIONAL | LANGUAGE_MODELS,
    "evaluate --probabilities DIR/dev.csv --annotations DIR/labels.csv": FITTING
    | {"altair", "vl_convert"},
    "report DIR/ensemble --out DIR/report.html": {"optuna", "torch", "altair"},
    "train DIR/texts.csv --members 2 --jobs 1 --out DIR/members": LANGUAGE_MODELS,
    "score --members DIR/members --texts DIR/texts.csv --out DIR/scored.npz": LANGUAGE_MODELS,
}


def test_commands_load_only_what_they_use(tmp_path: Path) -> None:
    rows = "".join(f"i{k},{who},{(k + k % 3 * who) % 2}\n" for k in range(40) for who in range(2))
    (tmp_path / "labels.csv").write_text(f"item,annotator,label\n{rows}", encoding="utf-8")
    texts = "".join(
        f"i{k},a,{k % 2},{['tea', 'bus'][k % 2]} {k},{'dev' if k > 29 else 'train'}\n"
        for k in range(40)
    )
    (tmp_path / "texts.csv").write_text(f"item,annotator,label,text,split\n{texts}", "utf-8")
    P = np.random.default_rng(0).dirichlet([1.0, 1.0], size=(40, 3))
    items = [f"i{k}" for k in range(40)]
    predictions = Predictions.from_arrays(P, items=items, classes=["0", "1"], layout="NKC")
    write_predictions(predictions, tmp_path / "dev.npz")
    for command, unwanted in NOT_LOADED.items():
        code = f"""import sys
sys.argv = {["edo", *command.replace("DIR", str(tmp_path)).split()]}
from edokit.cli import main
try:
    main()
finally:
    print(*sys.modules)"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        loaded = set(done.stdout.split())
        assert "numpy" in loaded  # the list of modules is there
        assert not unwanted & loaded, command


def test_reading_a_table_loads_few_modules_and_no_other_reader(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,no\na,y,yes\n", encoding="utf-8")
    code = f"import sys, edokit\nedokit.read_annotations({str(path)!r})\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = [name for name in done.stdout.split() if name.startswith("edokit")]
    assert not {f"edokit.datasets.{name}" for name in ("lewidi", "label_studio", "argilla")} & {
        *ours
    }
    # Among them the guess of roles and the list of open decisions, which every table may need.
    assert len(ours) <= 27
