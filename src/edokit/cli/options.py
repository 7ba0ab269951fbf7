"""Options that several commands share, each written once, and how their texts are read."""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from edokit._errors import InputError, local_path
from edokit.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress

    from edokit.annotations import Annotations
    from edokit.members.texts import Texts
    from edokit.predictions import Shards

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace what is there already, also what edo did not write."),
]
Source = Annotated[
    Path,
    typer.Argument(
        help="A table (CSV, TSV, Parquet, JSONL), a LeWiDi JSON or a folder of its splits, a Label"
        " Studio or Argilla export."
    ),
]
TableOut = Annotated[Path, typer.Argument(help="The table: .csv, .tsv, .parquet or .jsonl.")]
Labels = Annotated[Path, typer.Option(help="The annotations of these items (any source).")]
Predictions = Annotated[
    Path, typer.Option(help="The members' predictions: .npz, Parquet or a folder of shards.")
]
TestSplit = Annotated[
    str | None, typer.Option(help="The split of the test annotations, e.g. test.")
]
TrainAnnotations = Annotated[
    Path | None,
    typer.Option(help="Annotations of the training items: the constant answer has their shares."),
]
TrainSplit = Annotated[
    str | None,
    typer.Option(help="The split of the training annotations; else all of --train-annotations."),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        help="Also for each value of this item column, e.g. lang (repeatable).", metavar="COLUMN"
    ),
]
Groups = Annotated[
    bool | None,
    typer.Option("--groups/--no-groups", help="Average the members of each group first."),
]
Ties = Annotated[
    str, typer.Option(help="Hard label of evenly split items: first, error or random.")
]
Bootstrap = Annotated[int, typer.Option(min=0, help="Bootstrap samples; 0 for none.")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas",
        help="In a CSV for a spreadsheet, put ' before text that it would run as a formula.",
    ),
]
Normalize = Annotated[bool, typer.Option("--normalize", help="Divide probabilities by their sum.")]
Device = Annotated[str | None, typer.Option(help="Where to compute, e.g. cpu or cuda.")]
Budget = Annotated[
    float | None,
    typer.Option(
        help="Maximum cost of requests to language models (prices are options of the recipe);"
        " the same command resumes a run that stopped there."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show one prompt, the number of requests, their tokens and cost, and send none.",
    ),
]
Trust = Annotated[
    str | None,
    typer.Option(
        help="Packages other than scikit-learn whose types may be loaded, and endpoints to which"
        " members may send texts."
    ),
]
Pairs = Annotated[
    bool,
    typer.Option("--pairs", help="The first line of a text is labelled, the rest is context."),
]
Judges = Annotated[
    Path | None,
    typer.Option(
        help="The annotators of each item (item and annotator columns, or a source of annotations):"
        " members that know annotators predict for these."
    ),
]

Annotators = Annotated[
    Path | None,
    typer.Option(
        help="Predict each annotator of each item (item and annotator columns, or a source of"
        " annotations; annotators alone, as in a panel, are asked about every item): a row per item"
        " and annotator, and one without annotator, the anonymous answer."
    ),
]

SPLIT = {
    "split": Annotated[
        str | None, typer.Option(help="Only this split, e.g. dev, or these: train,dev.")
    ]
}
LEARNING = {
    "learn": Annotated[
        str | None,
        typer.Option(
            help="From predictions for annotators: pairs (what each annotator answers), items (what"
            " those of an item answer together), or pairs+anonymous (the members' anonymous answers"
            " join as members)."
        ),
    ]
}
COLUMNS = {
    "column": Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=NAME", help="Another column name, e.g. item=id (repeatable)."),
    ]
}
LABELS = {
    **COLUMNS,
    "classes": Annotated[
        str | None, typer.Option(help="All classes in order, separated by commas, e.g. no,yes.")
    ],
    "label_map": Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Read a label as another (repeatable)."),
    ],
    "duplicates": Annotated[
        str | None, typer.Option(help="An annotator twice on an item: error, first or all.")
    ],
    "multi_choice": Annotated[
        str | None,
        typer.Option(help="Several labels in one annotation: error, first, split or join."),
    ],
    "scale": Annotated[
        str | None,
        typer.Option(
            help="The answer scale: nominal, ordinal, multi-label, or with its classes, e.g."
            " ordinal:low=0,mid=1,high=3."
        ),
    ],
}
FORMATS = {
    **LABELS,
    "format": Annotated[
        str | None,
        typer.Option(
            help="What the source is, if not recognised: table, lewidi, lewidi2025, label-studio,"
            " argilla.",
        ),
    ],
    "control": Annotated[
        str | None, typer.Option(help="Label Studio: the name of the labelling control.")
    ],
    "question": Annotated[str | None, typer.Option(help="Argilla: the name of the question.")],
}
DIALOGUE = {
    "dialogue": Annotated[
        str | None,
        typer.Option(help="ConvAbuse's conversations: user-last, user-first or user-only."),
    ]
}
TEXTS = {
    "clean": Annotated[
        bool | None,
        typer.Option("--clean", help="Clean texts as the paper does (markup, URLs, mentions, …)."),
    ],
    **DIALOGUE,
}
STREAMING = {
    "stream": Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read shard by shard; by default a folder that would need more than --memory.",
        ),
    ],
    "memory": Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory for shards, e.g. 500MiB; else 2GiB."),
    ],
    "jobs": Annotated[
        int | None,
        typer.Option(help="Shards at a time; else one per core, as far as --memory goes."),
    ],
    "engine": Annotated[
        str | None,
        typer.Option(help="Where shards are read: local, or a Dask cluster: dask://host:port."),
    ],
    "scratch": Annotated[
        Path | None, typer.Option(help="Folder for the cache of shards; else TMPDIR or /var/tmp.")
    ],
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b?", re.IGNORECASE)


class Reading:
    """How annotations are read, as the options of a command say."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.given = {name: value for name, value in values.items() if value is not None}

    def keywords(self) -> dict[str, Any]:
        """Arguments of `read_annotations`; several splits are a list."""
        found = dict(self.given)
        if "column" in found:
            found["columns"] = pairs(found.pop("column"), "--column", "ROLE=NAME")
        if "label_map" in found:
            found["label_map"] = pairs(found["label_map"], "--label-map", "OLD=NEW")
        for name in ("classes", "split"):
            if name in found:
                found[name] = names(found[name])
        return found

    def annotations(self, source: Path, split: list[str] | None = None) -> Annotations:
        """The annotations in a source: these splits, else those of ``--split``."""
        from edokit.datasets import read_annotations

        how = self.keywords()
        splits = how.pop("split", [])
        splits = splits if split is None else split
        if len(splits) == 1:
            return read_annotations(source, split=splits[0], **how)
        annotations = read_annotations(source, **how)
        return annotations.split(*splits) if splits else annotations

    def texts(
        self, source: Path, judges: Path | None = None, *, pairs: bool = False
    ) -> tuple[Texts, dict[str, tuple[str, ...]] | None]:
        """Texts, and the annotators of each item where these are known."""
        from edokit.members import read_annotators, read_texts

        texts = read_texts(source, pairs=pairs, **self._texts(judges is not None))
        if judges is None:
            return texts, None
        given = self.keywords().get("columns")
        return texts, read_annotators(judges, columns=given, items=texts.items)

    def attributes(self, members: Path, people: Path | None) -> dict[str, dict[str, str]]:
        """Attributes by annotator, as far as the members use them and the file has them."""
        from edokit.members.score import attributes_of_members
        from edokit.members.texts import read_attributes

        if people is None or not (names := attributes_of_members(members)):
            return {}
        return read_attributes(people, names, columns=self.keywords().get("columns"))

    def text_parts(self, source: Path, rows: int, *, pairs: bool = False) -> Iterator[Texts]:
        """Texts, so many at a time."""
        from edokit.members import read_text_parts

        return read_text_parts(source, rows, pairs=pairs, **self._texts(False))

    def _texts(self, judges: bool) -> dict[str, Any]:
        """Arguments of `read_texts`."""
        how = self.keywords()
        columns = how.pop("columns", {})
        if judges and "split" not in how:
            # The column of the annotators is in their own table, not among the texts.
            columns = {role: name for role, name in columns.items() if role != "annotator"}
        return {**how, "columns": columns, "split": ",".join(how.pop("split", ())) or None}


class Streaming:
    """Whether and how shards are read one by one, as the options of a command say."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.stream = values["stream"]
        self.memory = parse_size(values["memory"] or "2GiB")
        self.engine = values["engine"] or "local"
        self.jobs, self.scratch = values["jobs"], values["scratch"]

    def shards(self, predictions: Path, learn: str | None = None) -> Shards | None:
        """The shards, if they are to be read one by one: as asked, else if they are large."""
        from edokit.predictions import Shards

        asked = self.stream or (self.stream is None and self.engine != "local")
        if not asked and (self.stream is False or not predictions.is_dir()):
            return None
        shards = Shards.open(predictions, learn=learn)
        return shards if asked or shards.needs > self.memory else None

    def fit_inputs(self, bars: Progress, predictions: Path, reading: Reading) -> dict[str, Any]:
        """What a fit needs besides files: splits, how annotations and how shards are read."""
        how = reading.keywords()
        shards = self.shards(predictions, how.get("learn"))
        return {
            "split": how.pop("split", None),
            "read_options": how,
            "streaming": None if shards is None else self.keywords(bars, shards),
        }

    def keywords(self, bars: Progress, shards: Shards) -> dict[str, Any]:
        """Arguments of `FitData.open`, with a bar among ``bars`` for each pass."""
        update = console.add_bar(bars, "reading", total=len(shards.files))
        return {
            "memory": self.memory,
            "jobs": self.jobs,
            "engine": self.engine,
            "scratch": self.scratch,
            "progress": lambda what, done, total: update(done, total, description=what),
        }


def takes(
    parameter: str, make: Callable[[dict[str, Any]], Any], *options: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, which reach it as one argument: ``make`` of their values."""
    types = {name: kind for group in options for name, kind in group.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            values = {name: given.pop(name) for name in types}
            command(**given, **{parameter: make(values)})

        hints = get_type_hints(command, include_extras=True)
        shown = []
        for own in inspect.signature(command).parameters.values():
            kind = inspect.Parameter.KEYWORD_ONLY
            if own.name == parameter:
                shown += [
                    inspect.Parameter(name, kind, default=None, annotation=types[name])
                    for name in types
                ]
            else:
                shown.append(own.replace(kind=kind, annotation=hints[own.name]))
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__module__ = command.__module__
        run.__annotations__ = {one.name: one.annotation for one in shown}
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return run

    return decorate


def reads(
    *options: Mapping[str, Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options for reading annotations, as its argument ``reading``."""
    return takes("reading", Reading, *options)


streams = takes("streaming", Streaming, STREAMING)


def parse_size(text: str) -> int:
    """``"2GiB"`` in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise InputError(f"--memory {text!r} is not a size above 0", "write --memory 2GiB")
    return int(float(found[1]) * _UNITS[(found[2] or "").lower()])


def pairs(given: list[str] | None, option: str, form: str) -> dict[str, str]:
    """``["item=id"]`` as ``{"item": "id"}``."""
    result = {}
    for pair in given or []:
        left, equals, right = pair.partition("=")
        if not (left and equals and right):
            raise InputError(f"{option} {pair} is not of the form {form}", f"write {option} {form}")
        if left in result:
            raise InputError(f"{option} gives {left!r} twice", "name each once")
        result[left] = right
    return result


def numbers(given: list[str] | None, option: str, form: str) -> dict[str, float]:
    """``["f1=0.9"]`` as ``{"f1": 0.9}``."""
    result = {}
    for name, text in pairs(given, option, form).items():
        try:
            result[name] = float(text)
        except ValueError:
            raise InputError(
                f"{option} {name}={text} does not end in a number", f"write {option} {form}"
            ) from None
    return result


def refuse(given: Mapping[str, bool], why: str) -> None:
    """Refuse the first of these options that is given."""
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} is for {why}", "leave one of them out")


def named_file(text: str) -> tuple[str | None, Path]:
    """``"NAME=FILE"`` or ``"FILE"`` as name and path; a file whose name has a = in it is a file."""
    name, equals, file = text.partition("=")
    if equals and name and file and not Path(text).exists():
        return name, local_path(file)
    return None, local_path(text)


def names(text: str | None) -> list[str] | None:
    """``"no, yes"`` as ``["no", "yes"]``; a name with a comma or blanks is in double quotes."""
    if text is None:
        return None
    parts = next(csv.reader([text], skipinitialspace=True), [""])
    return parts if '"' in text else [part.strip() for part in parts]
