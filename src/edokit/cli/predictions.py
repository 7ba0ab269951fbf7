"""`edo predictions`: join files of single models, and see what is in a predictions file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from edokit._errors import InputError, counted, money
from edokit.cli import console, options

COLUMNS = 3
"""Most classes whose mean probabilities are shown in columns."""
KNOWN = ("model", "prompt", "persona", "cost", "answers", "failures")
"""What is shown of members where it is known."""


def join(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]FILE[:logits]...",
            help="One CSV, Parquet, JSONL or npz per model; the name defaults to the file's. A file"
            " of several members keeps their names, with NAME- before them if one is given. :logits"
            " after a file says that its numbers are logits. A table with the columns item, member"
            " and answer holds sampled answers, one per row, whose shares become probabilities.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The predictions: .npz or .parquet.")],
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=GROUP", help="The recipe of a member (repeatable)."),
    ] = None,
    logits: Annotated[
        bool, typer.Option("--logits", help="All files hold logits; else FILE:logits for one.")
    ] = False,
    normalize: options.Normalize = False,
    positive: Annotated[
        str | None,
        typer.Option(
            help="Tables hold one column per member: the probability of this class of two."
        ),
    ] = None,
    negative: Annotated[
        str | None, typer.Option(help="Name of the other class, with --positive.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=NAME",
            help="Another column name for item, member, group or p_CLASS, e.g. item=id or"
            " p_yes=score; of sampled answers also for answer, annotator, model, prompt, persona or"
            " cost; with --positive also MEMBER=NAME (repeatable).",
        ),
    ] = None,
    label_map: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="Read a class, or a sampled answer, as another (repeatable).",
        ),
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Items that a file has no prediction for: error or drop.")
    ] = "error",
    scale: Annotated[
        str | None,
        typer.Option(
            help="The answer scale of files that note none: ordinal, multi-label, or with its"
            " classes, e.g. ordinal:low=0,mid=1,high=3. Multi-label columns are probabilities of"
            " each label on its own."
        ),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="All classes in order, separated by commas, e.g. no,yes.")
    ] = None,
    answer_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns with sampled answers, one member each, of a sheet with a column per"
            " model, e.g. small,large."
        ),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="What is added to the count of each class where answers were sampled; else 0.5."
        ),
    ] = None,
    unparsed: Annotated[
        str,
        typer.Option(
            help="Sampled answers that are no class: error, or drop, which counts and lists them."
        ),
    ] = "error",
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COST",
            help="What a member costs per item, in any one unit (repeatable); kept with the"
            " predictions and the ensembles fitted on them.",
        ),
    ] = None,
    member_info: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="A table with the column member and what is known about each: model, prompt,"
            " persona, cost, ….",
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(help="Keep only the items of these annotations."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="With --annotations, keep only the items of this split.")
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Put one file per model side by side, items matched by id."""
    from edokit._outputs import output_files
    from edokit.predictions import join_models, write_predictions
    from edokit.scales import NOMINAL

    in_logits = [text.endswith(":logits") and not Path(text).exists() for text in files]
    pairs = [
        options.named_file(text.removesuffix(":logits") if marked else text)
        for text, marked in zip(files, in_logits, strict=True)
    ]
    costs = options.numbers(cost, "--cost", "NAME=COST")
    inputs = [*(path for _, path in pairs), *filter(None, (member_info, annotations))]
    if split is not None and annotations is None:
        raise InputError(
            "--split chooses items of annotations, but none are given", "add --annotations FILE"
        )
    wanted = None
    if annotations is not None:
        from edokit.datasets import read_annotations

        wanted = read_annotations(annotations, split=split).items
    with output_files(out, inputs=inputs, overwrite=overwrite):
        joined = join_models(
            [path for _, path in pairs],
            names=[name for name, _ in pairs],
            groups=options.pairs(group, "--group", "NAME=GROUP"),
            logits=[logits or marked for marked in in_logits],
            invalid="normalize" if normalize else "error",
            positive=positive,
            negative=negative,
            columns=options.pairs(column, "--column", "ROLE=NAME"),
            label_map=options.pairs(label_map, "--label-map", "OLD=NEW"),
            missing=cast(Any, missing),
            scale=scale,
            member_info=member_info,
            classes=options.names(classes),
            answer_columns=options.names(answer_columns) or (),
            smoothing=smoothing,
            unparsed=cast(Any, unparsed),
            items=wanted,
        ).with_info({name: {"cost": value} for name, value in costs.items()})
        write_predictions(joined, out)
    n, k, c = joined.shape
    info = joined.member_info
    sampled = {name: own["answers"] for name, own in info.items() if "answers" in own}
    noted = {} if joined.scale == NOMINAL else {"scale": joined.scale.to_text(joined.classes)}
    kind = f" ({joined.scale.kind})" if noted else ""
    console.done(
        {
            "out": str(out),
            "items": n,
            "members": list(joined.members),
            "classes": c,
            **noted,
            **({"member_info": info} if info else {}),
        },
        f"{out}: {counted(n, 'item' if joined.annotators is None else 'pair')},"
        f" {counted(k, 'member')}, {c} classes{kind}"
        + (f", from {counted(sum(sampled.values()), 'sampled answer')}" if sampled else ""),
        json,
    )


def info(
    path: Annotated[
        Path,
        typer.Argument(help="An .npz, a Parquet file or a folder of shards."),
    ],
    json: options.Json = False,
) -> None:
    """Show items, members, classes and how far the members are from each other."""
    from edokit.predictions import describe_predictions

    result = describe_predictions(path)
    if json:
        console.print_json(result)
        return
    members, classes = result["members"], result["classes"]
    shown = counted(result["items"], "item")
    if "annotators" in result:
        some = counted(result["annotators"], "annotator")
        shown = f"{counted(result['items'], 'pair')} of item and annotator ({some})"
    # The columns of more classes do not fit into a terminal: they become rows.
    kind = f" ({result['scale'].partition(':')[0]})" if "scale" in result else ""
    few = classes if len(classes) <= COLUMNS else []
    console.print_table(
        f"{path}: {shown}, {counted(len(members), 'member')},"
        f" {len(classes)} classes{kind}, {counted(result['shards'], 'file')}",
        ["member", "group", *(f"mean p({name})" for name in few), "entropy", "distance"],
        [
            [
                member["name"],
                member["group"] or "–",
                *(f"{member['mean'][name]:.4f}" for name in few),
                f"{member['entropy']:.4f}",
                f"{member['distance']:.4f}",
            ]
            for member in members
        ],
        ["distance: mean L1 distance to the uniform mean of all members (0 to 2)."],
    )
    about = {member["name"]: member.get("info", {}) for member in members}
    known = [key for key in KNOWN if any(key in own for own in about.values())]
    if known:
        rows = [[name, *(own.get(key, "–") for key in known)] for name, own in about.items()]
        console.print_table(
            "What is known about them (cost: of one item)",
            ["member", *known],
            [[money(v) if isinstance(v, float) else str(v)[:24] for v in row] for row in rows],
        )
    if not few:
        rows = []
        for name in classes:
            means = [member["mean"][name] for member in members]
            uniform = sum(means) / len(means)
            rows.append([name, *(f"{p:.4f}" for p in (uniform, min(means), max(means)))])
        console.print_table(
            "Mean probability of each class",
            ["class", "uniform mean", "lowest member", "highest member"],
            rows,
        )
