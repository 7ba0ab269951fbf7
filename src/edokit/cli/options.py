"""Options that several commands share, each written once, and how their texts are read."""

# Annotations are evaluated here: classes in other modules inherit them.
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from edokit._errors import InputError, local_path, option
from edokit.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress

    from edokit.annotations.core import Annotations
    from edokit.fitdata.reading import ShardOptions
    from edokit.predict import TextSource

FLAT = Parameter(name="*")
"""The fields of a class of options are options of the command."""
POSITIONAL = Parameter(allow_leading_hyphen=False)
TWO_SIDED = Parameter(negative_bool="no-")
"""A switch that has ``--no-…``."""


def split_names(text: str) -> list[str]:
    """``"no, yes"`` as ``["no", "yes"]``; a name with a comma or blanks is in double quotes."""
    try:
        names = next(csv.reader([text], skipinitialspace=True), [""])
    except csv.Error:  # a line break outside quotes
        names = text.split(",")
    if '"' in text:
        return names
    return [name.strip() for name in names]


def key_values(texts: Sequence[str], option: str, form: str) -> dict[str, str]:
    """``["item=id"]`` as ``{"item": "id"}``."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise InputError(
                f"{option} {text} is not of the form {form}",
                f"write {option} {form}",
                code="malformed-option",
            )
        if key in values:
            raise InputError(
                f"{option} gives {key!r} twice", "name each once", code="repeated-option"
            )
        values[key] = value
    return values


def numbers(texts: Sequence[str], option: str, form: str) -> dict[str, float]:
    """``["f1=0.9"]`` as ``{"f1": 0.9}``."""
    values = {}
    for name, text in key_values(texts, option, form).items():
        try:
            values[name] = float(text)
        except ValueError:
            raise InputError(
                f"{option} {name}={text} does not end in a number",
                f"write {option} {form}",
                code="malformed-option",
            ) from None
    return values


def whole_numbers(texts: Sequence[str], option: str, form: str) -> tuple[int, ...]:
    """``["1,3", "5"]`` as ``(1, 3, 5)``."""
    names = read_names(texts, option, form)
    if not names:
        raise InputError(f"{option} is empty", f"write {option} 1,3,5", code="empty-option")
    if not all(name.isdecimal() for name in names):
        raise InputError(
            f"{option} {','.join(names)} is not a list of whole numbers",
            f"write {option} 1,3,5",
            code="malformed-option",
        )
    return tuple(map(int, names))


def parser(parse: Callable[[list[str], str, str], object], form: str) -> Parameter:
    """An option that may be given several times; ``parse(texts, option, form)`` reads its texts."""

    def convert(kind: object, tokens: Sequence[Token]) -> Any:
        return parse([token.value for token in tokens], tokens[0].keyword or "", form)

    # The choices of a type say nothing about the texts that `parse` reads.
    return Parameter(
        metavar=form, converter=convert, accepts_keys=False, n_tokens=-1, show_choices=False
    )


def key_value(form: str) -> Parameter:
    """A repeatable option ``KEY=VALUE`` that is a dictionary."""
    return parser(key_values, form)


def read_names(texts: Sequence[str], _option: str, _form: str) -> list[str]:
    """``["no,yes", "maybe"]`` as ``["no", "yes", "maybe"]``."""
    names: list[str] = []
    for text in texts:
        names += split_names(text)
    return names


Names = Annotated[list[str] | None, parser(read_names, "NAMES")]
"""Names, separated by commas."""
Argument = Annotated[Path, POSITIONAL]
AnnotationsSource = Annotated[
    Path,
    POSITIONAL,
    Parameter(
        help="A table (CSV, TSV, Parquet, JSONL, XLSX), a LeWiDi JSON or a folder of its splits, a"
        " Label Studio, Argilla, doccano or Potato export."
    ),
]
TableOut = Annotated[Path, POSITIONAL, Parameter(help="The table: .csv, .tsv, .parquet or .jsonl.")]
AnnotationsPath = Annotated[Path, Parameter(help="The annotations of these items (any source).")]
PredictionsPath = Annotated[
    Path, Parameter(help="The members' predictions: .npz, Parquet or a folder of shards.")
]
Json = Annotated[bool, Parameter(help="One JSON object on stdout, nothing else.")]
Overwrite = Annotated[
    bool, Parameter(help="Replace existing files, even those that edo did not write.")
]
By = Annotated[
    list[str] | None,
    Parameter(
        help="Also for each value of this item column, e.g. lang (repeatable); agreement stands for"
        " the division of an item's votes.",
        metavar="COLUMN",
    ),
]
Normalize = Annotated[bool, Parameter(help="Divide probabilities by their sum.")]
Raw = Annotated[
    bool,
    Parameter(help="In a CSV, put no ' before text that a spreadsheet would run as a formula."),
]
WithReport = Annotated[bool, TWO_SIDED, Parameter(help="Also make the page report.html in OUT.")]


@dataclass(frozen=True, kw_only=True)
class SplitNames:
    """Which items of a source are read.

    Parameters
    ----------
    split : list of str, optional
        Only this split, e.g. dev, or these: train,dev.
    """

    split: Names = None


@dataclass(frozen=True, kw_only=True)
class ColumnNames:
    """How the columns of a table are called.

    Parameters
    ----------
    columns : dict of str, optional
        Another column name, e.g. item=id (repeatable).
    """

    columns: Annotated[dict[str, str] | None, key_value("ROLE=NAME")] = None


@dataclass(frozen=True, kw_only=True)
class Reading(ColumnNames):
    """How a source of annotations is read: arguments of `read_annotations`.

    Parameters
    ----------
    columns : dict of str, optional
        Another column name, e.g. item=id (repeatable); group=thread keeps the items of a thread
        together in folds, splits and intervals.
    annotator_columns : list of str, optional
        The columns with the labels of one annotator each, if the table has one row per item.
    classes : list of str, optional
        All classes in order, separated by commas, e.g. no,yes.
    label_map : dict of str, optional
        Read a label as another (repeatable).
    duplicates : str, optional
        An annotator twice on an item: error, first or all.
    empty : str, optional
        A row without an item, an annotator or a label, or an item without a text: error or drop.
    skip_rows : int, optional
        Rows above the header of a CSV or XLSX file, such as a title.
    sheet : str, optional
        The sheet of an XLSX file; by default the first one.
    ignore_case : bool, optional
        Labels, annotators and splits that differ only in case or blanks are the same.
    drop_label : list of str, optional
        Drop annotations with these labels, e.g. skip,unsure.
    drop_annotator : list of str, optional
        Drop the annotations of these annotators.
    scale : str, optional
        The answer scale: nominal, ordinal, multi-label, or with its classes, e.g.
        ordinal:low=0,mid=1,high=3.
    format : str, optional
        What the source is, if not recognised: table, lewidi, label-studio, argilla,
        doccano, potato.
    question : str, optional
        Exports: the question, labelling control or annotation scheme that labels answer.
    people : Path, optional
        A table of people: an annotator column and a column per attribute, e.g. gender.
    attributes : list of str, optional
        Only these columns describe annotators, e.g. gender,age; else all that have one value per
        annotator.
    no_attributes : bool, optional
        No column describes annotators.
    """

    annotator_columns: Names = None
    classes: Names = None
    label_map: Annotated[dict[str, str] | None, key_value("OLD=NEW")] = None
    duplicates: str | None = None
    empty: Annotated[str | None, Parameter(metavar="error|drop")] = None
    skip_rows: int | None = None
    sheet: str | None = None
    ignore_case: bool | None = None
    drop_label: Names = None
    drop_annotator: Names = None
    scale: str | None = None
    format: str | None = None
    question: str | None = None
    columns: Annotated[dict[str, str] | None, key_value("ROLE=NAME")] = None
    people: Path | None = None
    attributes: Names = None
    no_attributes: bool | None = None

    def annotations(self, source: Path) -> "Annotations":
        """The annotations in a source, or those of ``--split``."""
        from edokit.fitdata.inputs import load_annotations
        from edokit.fitdata.reading import ReadOptions

        arguments = given_arguments(self)
        split = arguments.pop("split", None)
        reading = ReadOptions.from_arguments(arguments, split=split)
        return load_annotations(source, reading, "source").annotations


@dataclass(frozen=True, kw_only=True)
class SplitReading(Reading, SplitNames):
    """How some splits of a source are read."""


@dataclass(frozen=True, kw_only=True)
class FitReading(SplitReading):
    """How the labels are read that weights are learned from.

    Parameters
    ----------
    learn : str, optional
        From predictions for annotators: pairs (what each annotator answers), items (what those of
        an item answer together), or pairs+anonymous (the members' anonymous answers join as
        members).
    """

    learn: str | None = None


@dataclass(frozen=True, kw_only=True)
class TextReading(ColumnNames, SplitNames):
    """How texts are read."""

    def source(self, path: Path) -> "TextSource":
        """A file of texts that is read so."""
        from edokit.predict import TextSource

        return TextSource(path, self.columns or {}, self.split or ())


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """Whether and how shards are read one by one.

    Parameters
    ----------
    stream : bool, optional
        Read shard by shard; by default a folder that would need more than 2 GiB.
    jobs : int, optional
        Shards at a time; by default one per core, as far as 2 GiB of memory go.
    engine : str, default="local"
        Where shards are read: local, or a Dask cluster: dask://host:port.
    scratch : Path, optional
        Folder for the cache of shards; by default TMPDIR, or /var/tmp.
    """

    stream: Annotated[bool | None, TWO_SIDED] = None
    jobs: int | None = None
    engine: str = "local"
    scratch: Path | None = None

    def shard_options(
        self, bars: "Progress", predictions: Path, learn: str | None = None
    ) -> "ShardOptions | None":
        """Return how shards are read one by one, with a progress bar; None to read all at once.

        They are read one by one if that is asked for, or if they would need too much memory.
        """
        from edokit._parallel import SHARD_MEMORY
        from edokit.fitdata.reading import ShardOptions
        from edokit.predictions.shards import Shards

        is_required = self.stream or (self.stream is None and self.engine != "local")
        is_possible = self.stream is not False and predictions.is_dir()
        if not is_required and not is_possible:
            return None
        shards = Shards.open(predictions, learn=learn)
        if not is_required and shards.needs <= SHARD_MEMORY:
            return None
        return ShardOptions(
            jobs=self.jobs,
            engine=self.engine,
            scratch=self.scratch,
            progress=console.add_stages(bars, "reading", total=len(shards.files)),
        )


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How members are loaded.

    Parameters
    ----------
    device : str, optional
        Where to compute, e.g. cpu or cuda.
    trust : list of str, optional
        Packages other than scikit-learn whose types may be loaded, and endpoints to which members
        may send texts.
    """

    device: str | None = None
    trust: Names = None


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What requests to language models may cost, and how they are sent.

    Parameters
    ----------
    budget : float, optional
        Maximum cost of this run's requests to language models (prices are options of the recipe);
        the same command continues a run that stopped there.
    allow_http : bool, default=False
        Allow members to send texts, and your key, to other machines over http, unencrypted.
    """

    budget: float | None = None
    allow_http: bool = False


@dataclass(frozen=True, kw_only=True)
class TestFiles:
    """Test data.

    Parameters
    ----------
    test_predictions : Path, optional
        The same members' predictions of the test items. Without them, `edo compare`
        cross-validates on --predictions, such as fit.npz of `edo train --cross-fit`.
    test_annotations : Path, optional
        The annotations of the test items; else those of --annotations.
    test_split : list of str, optional
        The split of the test annotations, e.g. test.
    """

    test_predictions: Path | None = None
    test_annotations: Path | None = None
    test_split: Names = None


@dataclass(frozen=True, kw_only=True)
class TrainFiles:
    """Training data, whose label shares are the constant answer.

    Parameters
    ----------
    train_split : list of str, optional
        The split of the training items. The constant answer is the shares of their labels.
    """

    train_split: Names = None


def given_arguments(options: Any) -> dict[str, Any]:
    """The fields of a class of options that have a value, as arguments of a function.

    The function takes the path of ``people`` as a string, and an empty list of attributes for
    ``no_attributes``.
    """
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    if values.pop("no_attributes", None):
        if values["attributes"]:
            raise InputError(
                f"{option('attributes')} and {option('no_attributes')} contradict each other",
                "leave one of them out",
                code="conflicting-options",
            )
        values["attributes"] = []
    if values.get("people") is not None:
        values["people"] = str(values["people"])
    return {name: value for name, value in values.items() if value is not None}


def refuse_given(options: Any, purpose: str) -> None:
    """Refuse the options of a class if any is given."""
    for field in fields(options):
        if getattr(options, field.name) != field.default:
            raise InputError(
                f"{option(field.name)} is for {purpose}", "leave it out", code="inapplicable-option"
            )


def named_file(text: str) -> tuple[str | None, Path]:
    """``"NAME=FILE"`` or ``"FILE"`` as name and path; a file whose name has a = in it is a file."""
    name, equals, file = text.partition("=")
    if equals and name and file and not Path(text).exists():
        return name, local_path(file)
    return None, local_path(text)
