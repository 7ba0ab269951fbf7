"""A run in words: the commands that do the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from edokit._errors import typed_values


def step_commands(
    folder: Path,
    annotations: Path,
    reading: Mapping[str, object],
    splits: Sequence[str],
    methods: Sequence[str],
    folds: int,
    seed: int,
    by: Sequence[str] = (),
    texts: bool = True,
    people: bool = True,
) -> list[str]:
    """The commands that do the same as a run, one after the other.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    annotations : Path
        The file of annotations.
    reading : mapping
        Arguments of `read_annotations`.
    splits : sequence of str
        The splits to learn from; empty if items are not split.
    methods : sequence of str
        The methods that are compared.
    folds, seed : int
        Folds of the training, and its seed.
    by : sequence of str, default=()
        The attributes of annotators whose levels are compared.
    texts : bool, default=True
        Whether the page holds the texts of the items.
    people : bool, default=True
        Whether the ensemble estimates how annotators differ from its pool.
    """
    source = [str(annotations), *reading_flags(reading)]
    seed_flags = ["--seed", str(seed)]
    training = ["--cross-fit", str(folds), *seed_flags]
    labels = ["--predictions", str(folder / "members" / "predictions" / "fit.npz")]
    labels += ["--annotations", *source]
    if splits:
        labels += ["--split", ",".join(splits)]
    soft_label_model = ["--recipe", "linear", "--supervision", "soft", "--members", "1"]
    compared_methods = ["--methods", ",".join(methods)]
    compared_methods += [
        "--extra",
        f"soft={folder / 'soft' / 'predictions' / 'fit.npz'}",
        "--no-report",
    ]
    pool = ["--recipe", str(folder / "pool.toml")]
    bundle = ["--members", str(folder / "members"), "--out", str(folder / "bundle")]
    fit = ["fit", *labels, *seed_flags]
    if not people:
        fit.append("--no-people")
    report = ["report", str(folder)]
    if not texts:
        report.append("--no-texts")
    commands = [
        ["train", *source, *soft_label_model, *training, "--out", str(folder / "soft")],
        ["train", *source, *pool, *training, "--out", str(folder / "members")],
        [*fit, "--out", str(folder / "ensemble")],
        [
            "compare",
            *labels,
            *compared_methods,
            *seed_flags,
            "--out",
            str(folder / "comparison"),
        ],
        ["bundle", str(folder / "ensemble"), *bundle],
        report,
    ]
    if by:
        diagnosis = ["diagnose", *source, "--by", *typed_values(list(by)), *seed_flags]
        if splits:
            diagnosis += ["--split", ",".join(splits)]
        commands.insert(-1, diagnosis)
    return [shlex.join(["edo", *words]) for words in commands]


def reading_flags(reading: Mapping[str, object]) -> list[str]:
    """Arguments of `read_annotations` as flags of the command line."""
    words: list[str] = []
    for name, value in reading.items():
        flag = f"--{name.replace('_', '-')}"
        if name == "columns":
            flag = "--column"
        if name == "attributes":
            flag = "--attribute"
            if not value:
                words.append("--no-attributes")
                continue
        if isinstance(value, bool):
            if value:
                words.append(flag)
            continue
        for text in typed_values(value):
            words += [flag, text]
    return words
