"""`edo data info`: what is in a source of annotations."""

from __future__ import annotations

from edokit.cli import console, options


def info(
    source: options.Source,
    split: options.Split = None,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    format: options.Format = None,
    control: options.Control = None,
    question: options.Question = None,
    multi_choice: options.MultiChoice = None,
    json: options.Json = False,
) -> None:
    """Count items, annotators, answers and near-duplicate texts, split by split."""
    from edokit.datasets import describe_annotations

    people = options.read_people(
        source,
        column=column,
        split=split,
        classes=classes,
        duplicates=duplicates,
        format=format,
        control=control,
        question=question,
        multi_choice=multi_choice,
    )
    result = describe_annotations(people)
    if json:
        console.print_json(result)
        return
    console.print_described(str(source), result)
