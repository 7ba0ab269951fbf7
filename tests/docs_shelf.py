"""Small invented files for the commands of the documentation."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from edokit import Annotations, EDOEnsemble, Predictions, simulate, write_predictions
from edokit._io.tables import write_table
from edokit._types import Floats, Strings

SPLITS = ("train", "dev", "test")
EXPORTS = Path(__file__).parent / "datasets" / "files"
"""Exports of annotation tools."""
NOISE = {"bert": 0.1, "llm": 0.4, "linear": 0.2}


def fill(folder: Path) -> None:
    """Write all files that pages of the documentation name."""
    simulation = simulate("partial-panel", random_state=0, items=(90, 60, 60))
    # The pages' examples have the classes 0 and 1.
    people = replace(simulation.annotations, classes=("0", "1"))
    truth = simulation.truth
    _annotations(people, folder)
    _exports(people, folder)
    _lewidi(people, folder / "lewidi2023")
    _lewidi2025(folder / "lewidi2025")
    rng = np.random.default_rng(0)
    pools: dict[str, Predictions] = {}
    for split in SPLITS:
        rows = simulation.rows(split)
        pools[split] = _pool(people.items[rows], truth[rows, 1], rng)
    _models(pools, folder)
    _outputs(pools["dev"], folder)
    _shards(pools["dev"], people.split("dev"), folder)
    learned = EDOEnsemble(ties="random").fit(pools["dev"], people.split("dev"))
    learned.save(folder / "ensemble")
    everything = np.concatenate([pools[split].probabilities for split in SPLITS])
    all_splits = Predictions.from_arrays(
        everything,
        items=np.concatenate([pools[split].items for split in SPLITS]),
        members=list(NOISE),
        classes=people.classes,
        layout="NKC",
    )
    write_table(learned.describe(all_splits).to_table(), folder / "pooled.csv")
    for name in ("bystanders", "concerned"):
        panel = f"attribute,value,share\ngroup,{name},1\n"
        (folder / f"{name}.csv").write_text(panel, encoding="utf-8")
    mixed = "attribute,value,share,size\ngroup,bystanders,0.3,20\ngroup,concerned,0.7,20\n"
    (folder / "mixed.csv").write_text(mixed, encoding="utf-8")


def _outputs(pool: Predictions, folder: Path) -> None:
    """Sampled answers of a jury: a sheet of outputs, and a plain table."""
    rng = np.random.default_rng(1)
    rows = []
    jury = [("small", "plain", ""), ("small", "careful", ""), ("large", "plain", "a nurse")]
    for i, item in enumerate(pool.items):
        for k, (model, prompt, persona) in enumerate(jury):
            p = pool.probabilities[i, k, 1]
            for _ in range(4):
                answers = ["no", "yes", "No.", "Yes."]
                answer = answers[int(rng.random() < p) + 2 * int(rng.random() < 0.1)]
                if rng.random() < 0.01:
                    answer = "I can't say"
                rows.append([item, model, prompt, persona, answer])
    names = ["id", "model", "prompt", "persona", "output"]
    sheet = pd.DataFrame(rows, columns=names)
    sheet.to_csv(folder / "outputs.csv", index=False)
    asked = sheet.rename(columns={"id": "item", "model": "member", "output": "answer"})
    asked = asked[["item", "member", "answer"]]
    asked["answer"] = asked["answer"].str.replace("Yes.", "yes", regex=False)
    asked.to_csv(folder / "asked.csv", index=False)


def _annotations(people: Annotations, folder: Path) -> None:
    write_table(people.to_table(), folder / "annotations.csv")
    table = pd.read_csv(folder / "annotations.csv", dtype=str)
    gender = {name: "fm"[k % 2] for k, name in enumerate(sorted(people.annotators))}
    table["gender"] = table["annotator"].map(gender)
    langs = {item: ("en", "it")[k % 2] for k, item in enumerate(people.items)}
    table["lang"] = table["item"].map(langs)
    for name in ("annotations.csv", "people.csv", "data.csv"):
        table.to_csv(folder / name, index=False)
    table.to_parquet(folder / "annotations.parquet")
    table[table["split"] == "dev"].to_csv(folder / "dev.csv", index=False)
    votes = table[table["split"] == "dev"][["item", "annotator", "label"]]
    votes = votes.assign(label=votes["label"].map({"0": "no", "1": "yes"}))
    votes.to_csv(folder / "votes.csv", index=False)
    renamed = table.rename(columns={"item": "post_id", "annotator": "rater"})
    renamed.to_csv(folder / "crowd.csv", index=False)
    table.drop(columns="split").to_csv(folder / "unsplit.csv", index=False)
    sets = table.drop(columns="hard_label").assign(
        label=table["label"].map({"0": "[]", "1": '["rude", "mocking"]'})
    )
    sets.to_csv(folder / "sets.csv", index=False)
    wide = {"item": ["post-1", "post-2"], "ann": ["rude", ""], "ben": ["rude", "ok"]}
    wide |= {"cem": ["ok", "ok"], "text": ["What a rude reply.", "The bus is late again."]}
    pd.DataFrame(wide).to_csv(folder / "by_person.csv", index=False)
    texts = table[["item", "text"]].drop_duplicates().head(20)
    texts.to_csv(folder / "new.csv", index=False)


def _exports(people: Annotations, folder: Path) -> None:
    tones = ("calm", "heated")
    answers: list[list[tuple[int, str]]] = [[] for _ in people.items]
    for item, person, label in zip(
        people.item_codes, people.annotator_codes, people.label_codes, strict=True
    ):
        answers[item].append((int(person) + 1, tones[label]))
    assert people.texts is not None
    items = list(zip(people.items, people.texts, answers, strict=True))
    for name, control in (("project.json", "tone"), ("export.json", "label")):
        tasks = []
        for number, (item, text, item_answers) in enumerate(items, start=1):
            tasks.append(
                {
                    "id": number,
                    "data": {"text": str(text), "item": str(item)},
                    "annotations": [_choice(control, *answer) for answer in item_answers],
                    "predictions": [],
                }
            )
        _write_json(tasks, folder / name)
    records = []
    for item, text, item_answers in items:
        records.append(
            {
                "id": str(item),
                "text": str(text),
                "tone.responses": [tone for _, tone in item_answers],
                "tone.responses.users": [f"user-{person}" for person, _ in item_answers],
                "tone.responses.status": ["submitted"] * len(item_answers),
            }
        )
    _write_json(records, folder / "records.json")
    shutil.copytree(EXPORTS / "doccano-1.8.4" / "tone", folder / "doccano-export")
    shutil.copytree(
        EXPORTS / "potato-2.12.1" / "tone" / "annotation_output", folder / "annotation_output"
    )


def _choice(control: str, person: int, tone: str) -> dict[str, object]:
    """An annotation as Label Studio exports it."""
    result = {
        "from_name": control,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [tone]},
    }
    return {"id": person, "completed_by": person, "was_cancelled": False, "result": [result]}


def _lewidi(people: Annotations, folder: Path) -> None:
    turns = {"prev_agent": "Hello", "prev_user": "Hi", "agent": "Tea?", "user": "No tea, thanks"}
    for dataset, text in (("HS-Brexit", "A calm post."), ("ConvAbuse", json.dumps(turns))):
        for split in SPLITS:
            item = {
                "text": text,
                "annotation task": "offensiveness detection",
                "number of annotations": 3,
                "annotations": "0,1,0",
                "annotators": "Ann1,Ann2,Ann3",
                "lang": "en",
                "hard_label": "0",
                "soft_label": {"0": 0.67, "1": 0.33},
                "split": split,
                "other_info": {},
            }
            (folder / dataset).mkdir(parents=True, exist_ok=True)
            _write_json({"1": item}, folder / dataset / f"{dataset}_{split}.json")


def _lewidi2025(folder: Path) -> None:
    texts = {
        "CSC": ({"context": "Late again.", "response": "How lovely."}, ["4", "6", "5"]),
        "VariErrNLI": (
            {"context": "The bus is late.", "statement": "It came."},
            ["neutral", "contradiction,neutral", "neutral"],
        ),
    }
    for dataset, (text, labels) in texts.items():
        (folder / dataset).mkdir(parents=True, exist_ok=True)
        for split in SPLITS:
            item = {
                "text": text,
                "annotators": "Ann1,Ann2,Ann3",
                "annotations": dict(zip(("Ann1", "Ann2", "Ann3"), labels, strict=True)),
                "split": split,
                "lang": "en",
                "other_info": {},
            }
            _write_json({"1": item}, folder / dataset / f"{dataset}_{split}.json")


def _pool(items: Strings, share: Floats, rng: np.random.Generator) -> Predictions:
    """Three members that see the truth through more or less noise."""
    positive = []
    for scale in NOISE.values():
        noise = rng.normal(0, scale, len(share))
        positive.append(np.clip(share + noise, 0.02, 0.98))
    return Predictions.from_arrays(
        positive, items=items, members=list(NOISE), classes=["0", "1"], layout="KN"
    )


def _models(pools: dict[str, Predictions], folder: Path) -> None:
    for split in ("dev", "test"):
        pool = pools[split]
        write_predictions(pool, folder / f"{split}.npz")
        for place in ("random", "soft-ce", "per-annotator"):
            write_predictions(pool, folder / place / f"{split}.npz")
        for k, name in enumerate(pool.members):
            rows = zip(pool.items, pool.probabilities[:, k], strict=True)
            lines = [f"{item},{no:.17g},{yes:.17g}" for item, (no, yes) in rows]
            _write_csv(["item,p_0,p_1", *lines], folder / f"{name}-{split}.csv")
            if split == "dev":
                place = folder / {"bert": "bert.csv", "llm": "answers.csv"}.get(name, f"{name}.csv")
                _write_csv(["item,p_0,p_1", *lines], place)
    dev = pools["dev"]
    positive = zip(dev.items, dev.probabilities[:, :2, 1], strict=True)
    _write_csv(
        ["item,bert,llm", *(f"{item},{bert:.17g},{llm:.17g}" for item, (bert, llm) in positive)],
        folder / "wide.csv",
    )
    rows = list(zip(dev.items, dev.probabilities[:, 1], strict=True))
    odds = [f"{item},{np.log(no)},{np.log(yes)}" for item, (no, yes) in rows]
    _write_csv(["id,negative,positive", *odds], folder / "scores.csv")
    lines = [f"{item},{no:.17g},{yes:.17g}" for item, (no, yes) in rows]
    _write_csv(["item,p_LABEL_0,p_LABEL_1", *lines], folder / "hub.csv")


def _shards(pool: Predictions, people: Annotations, folder: Path) -> None:
    for part in range(2):
        rows = np.arange(part * 30, part * 30 + 30)
        piece = pool.take(rows)
        write_predictions(piece, folder / "predictions" / f"part-0000{part}.npz")
        answers = people.take(rows).to_table()
        write_table(answers, folder / "annotations" / f"part-0000{part}.parquet")


def _write_json(value: object, path: Path) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _write_csv(lines: list[str], path: Path) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
