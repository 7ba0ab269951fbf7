"""Small run folders, as `edo search` and `edo compare` write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

from edokit import Annotations, Predictions, write_predictions
from edokit._io.digests import digest_input
from edokit._io.documents import write_json
from edokit._io.tables import write_table
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord
from flat_options import flat_ensemble

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "line\u2028and\u2029paragraph",
    "{{ 7 * 7 }} {% raw %} %{x} $\\alpha$",
    "&lt;b&gt;not bold&lt;/b&gt; &amp;",
    "<b>not bold</b><br><a href='javascript:window.hacked=1'>x</a>",
]
ARABIC = "الطقس جميل اليوم في المدينة"
MILD = ["the trains are late again", "nice weather in the north", "the referee should go home"]


def texts_for(items: int, special: Sequence[str] = ()) -> list[str]:
    """The special texts and as many mild ones as are needed."""
    return [*special, *(f"{MILD[i % 3]} {i}" for i in range(items))][:items]


def people_and_pool(
    items: int = 60,
    members: Sequence[str] = ("good", "fair", "noise"),
    classes: Sequence[str] = ("no", "yes"),
    texts: Sequence[str] | None = None,
    seed: int = 0,
    prefix: str = "item",
    opinions: bool = True,
) -> tuple[Annotations, Predictions]:
    """Five annotators per item and members of decreasing quality.

    Without opinions all annotators choose the first class.
    """
    rng = np.random.default_rng(seed)
    share = rng.dirichlet([0.6] * len(classes), size=items)
    if not opinions:
        share = np.tile(np.eye(len(classes))[0], (items, 1))
    codes = np.array([rng.choice(len(classes), size=5, p=row) for row in share])
    table: dict[str, list[str]] = {"item": [], "annotator": [], "label": []}
    for i, a in product(range(items), range(5)):
        table["item"].append(f"{prefix}-{i}")
        table["annotator"].append(f"ann-{a}")
        table["label"].append(classes[codes[i, a]])
    if texts is not None:
        table["text"] = [texts[i] for i, _ in product(range(items), range(5))]
    people = Annotations.from_table(table, classes=list(classes))
    noise = np.linspace(0.3, 3.0, len(members))
    logits = (
        np.log(share + 0.1)[:, None]
        + rng.normal(size=(items, len(members), len(classes))) * (noise[None, :, None])
    )
    P = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    pool = Predictions.from_arrays(
        P, items=people.items, members=members, classes=classes, layout="NKC"
    )
    return people, pool


POINTS = "ordinal:1,2,3,4,5,6,7"
LABELS = "multi-label:mocking,rude,warm"


def ratings_and_pool(
    items: int = 60, scale: str = POINTS, seed: int = 0
) -> tuple[Annotations, Predictions]:
    """Five ratings per item on a scale, and three members of decreasing quality."""
    rng = np.random.default_rng(seed)
    names = scale.partition(":")[2].split(",")
    classes = [name.partition("=")[0] for name in names]
    at = np.arange(len(classes))
    middle = rng.uniform(0, at[-1], items)
    members = {}
    codes = np.rint(middle[:, None] + rng.normal(0, 1, (items, 5))).clip(0, at[-1]).astype(int)
    for k, name in enumerate(("good", "fair", "noise")):
        guess = middle + rng.normal(0, 0.5 + k, items)
        logits = -0.5 * (at - guess[:, None]) ** 2
        members[name] = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array(classes, dtype=object)[codes]
    people = Annotations.from_matrix(labels, items=[f"item-{i}" for i in range(items)], scale=scale)
    return people, Predictions.from_arrays(
        members, items=people.items, classes=people.classes, scale=scale
    )


def sets_and_pool(items: int = 60, seed: int = 0) -> tuple[Annotations, Predictions]:
    """Five sets of labels per item, and three members of decreasing quality."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1.5, (items, 3))
    share = 1 / (1 + np.exp(-score))
    names = np.array(LABELS.partition(":")[2].split(","))
    table: dict[str, list[object]] = {"item": [], "annotator": [], "label": []}
    for i, a in product(range(items), range(5)):
        table["item"].append(f"item-{i}")
        table["annotator"].append(f"ann-{a}")
        table["label"].append(names[rng.random(3) < share[i]].tolist())
    people = Annotations.from_table(table, scale=LABELS)
    members = {}
    for k, name in enumerate(("good", "fair", "noise")):
        noisy_score = score + rng.normal(0, 0.4 + k, score.shape)
        members[name] = 1 / (1 + np.exp(-noisy_score))
    return people, Predictions.from_arrays(members, items=people.items, scale=LABELS)


def make_run(
    folder: Path,
    *,
    items: int = 60,
    members: Sequence[str] = ("good", "fair", "noise"),
    classes: Sequence[str] = ("no", "yes"),
    texts: Sequence[str] | None = None,
    test: bool = True,
    search: int = 0,
    compare: bool = False,
    opinions: bool = True,
    names: Sequence[str] = (),
    **parameters: object,
) -> Path:
    """A run with an ensemble and its inputs; ``search`` trials; ``names`` of compared methods."""
    inputs = {}
    for role, prefix, seed in (("", "dev", 0), ("test_", "test", 1)):
        if role and not test:
            continue
        people, pool = people_and_pool(items, members, classes, texts, seed, prefix, opinions)
        write_table(people.to_table(), folder / f"{prefix}.parquet")
        write_predictions(pool, folder / f"{prefix}.npz")
        inputs[f"{role}predictions"] = Input(
            f"{prefix}.npz", digest_input(folder / f"{prefix}.npz")
        )
        inputs[f"{role}annotations"] = Input(
            f"{prefix}.parquet",
            digest_input(folder / f"{prefix}.parquet"),
            {"classes": list(classes)},
        )
        if not role:
            flat_ensemble({"ties": "random", **parameters}).fit(pool, people).save(
                folder / "ensemble"
            )
    RunRecord("search", inputs, 7, "edo search --predictions dev.npz --out run").save(folder)
    if search:
        make_search(folder / "search", search)
    if compare:
        write_json(methods(names), folder / "compare" / "methods.json")
    return folder


def make_search(folder: Path, trials: int, seed: int = 0, failed: int = 0) -> None:
    """Trials of a search; the first is on the front and chosen."""
    rng = np.random.default_rng(seed)
    done = trials - failed
    gaps = [None] * failed

    def scores(low: float, high: float) -> list[float | None]:
        return [*rng.uniform(low, high, done).tolist(), *gaps]

    f1 = scores(0.8, 0.9)
    ce = scores(0.3, 0.4)
    md = scores(0.2, 0.3)
    if done:
        f1[0] = 0.91
        ce[0] = 0.29
        md[0] = 0.19
    signs = [("preserve", "suppress")[i % 2] for i in range(trials)]
    write_table(
        pa.table(
            {
                "number": list(range(trials)),
                "generation": [i // 10 for i in range(trials)],
                "state": ["complete"] * done + ["failed"] * failed,
                "diversity": signs,
                "ce_variant": ["mean"] * trials,
                "lambda_ce": rng.random(trials).tolist(),
                "f1": pa.array(f1, pa.float64()),
                "ce": pa.array(ce, pa.float64()),
                "md": pa.array(md, pa.float64()),
                "optimistic_ce": pa.array(ce, pa.float64()),
                "size": [3] * trials,
                "weights": ["{}"] * trials,
                "on_front": [i == 0 and done > 0 for i in range(trials)],
                "chosen": [i == 0 and done > 0 for i in range(trials)],
            }
        ),
        folder / "trials.parquet",
    )
    correlations = []
    for sign in ("preserve", "suppress"):
        for metric, rho, p_value in (("f1", 0.4, 0.2), ("ce", -0.7, 0.002)):
            correlations.append(
                {
                    "diversity": sign,
                    "parameter": "lambda_ce",
                    "metric": metric,
                    "rho": rho,
                    "p_value": p_value,
                    "trials": trials // 2,
                }
            )
    chosen_trial = {
        "rule": "lowest-ce",
        "estimates": {"optimistic": {"ce": 0.281}, "cross-fitted": {"ce": 0.29}},
    }
    search = {"chosen": chosen_trial, "correlations": correlations}
    write_json(search, folder / "search.json")


def methods(names: Sequence[str] = ()) -> dict[str, object]:
    """The output of `edo compare --json`."""
    rows = []
    for place, name in enumerate(["edo", "uniform", "top-5", *names]):
        ce = 0.3 + 0.01 * place
        against_reference = {}
        if name != "uniform":
            against_reference["ce"] = {
                "difference": -0.01,
                "low": -0.02,
                "high": -0.001,
                "p_value": 0.1,
                "n": 9,
            }
        rows.append(
            {
                "name": name,
                "about": f"about {name}",
                "f1": 0.9 - 0.01 * place,
                "ce": ce,
                "md": 0.2,
                "bs": 0.1,
                "intervals": {"ce": [ce - 0.02, ce + 0.03]},
                "against_reference": against_reference,
            }
        )
    return {"methods": rows, "reference": "uniform", "level": 0.95}
