"""The configuration of a Potato project: its output folder, questions and items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, JsonValue

from edokit._errors import InputError, warn
from edokit._io.documents import Document, read_json, read_json_lines, read_text, to_model
from edokit._io.tables import read_records
from edokit._names import as_name
from edokit.datasets.exports import Name, is_plain

_LARGEST_CONFIGURATION = 2**20


class ItemProperties(Document):
    """The fields of the data files with the id and the text of an item."""

    id_key: str = "id"
    text_key: str = "text"


class Scheme(Document):
    """A question of the project."""

    name: Name
    annotation_type: str = ""


class Configuration(Document):
    """The files and questions of a project."""

    task_dir: str = "."
    output_annotation_dir: str = "annotation_output"
    data_files: list[str | dict[str, JsonValue]] = Field(default_factory=list)
    item_properties: ItemProperties = ItemProperties()
    annotation_schemes: list[Scheme] = Field(default_factory=list)


class Project(NamedTuple):
    """A configuration and the file that it was read from."""

    file: Path
    configuration: Configuration

    @property
    def folder(self) -> Path:
        """The folder to which the other paths are relative."""
        return self.file.parent / self.configuration.task_dir

    @property
    def output(self) -> Path:
        """The folder that answers are written to."""
        return self.folder / self.configuration.output_annotation_dir

    @property
    def data_files(self) -> list[Path]:
        """The files with the items."""
        files = []
        for entry in self.configuration.data_files:
            name: JsonValue = entry
            if isinstance(entry, dict):
                name = entry.get("path")
            if isinstance(name, str):
                files.append(self.folder / name)
        return files


def as_text(value: JsonValue) -> str | None:
    """Text, or a number as text; None for any other value and for empty text."""
    if value == "" or not is_plain(value):
        return None
    return as_name(value)


def find_project(output: Path) -> Project | None:
    """The project with this output folder; its configuration is there or up to two levels above."""
    output = output.resolve()
    for folder in (output, output.parent, output.parent.parent):
        for project in projects_in(folder):
            if project.output.resolve() == output:
                return project
    return None


def projects_in(folder: Path) -> list[Project]:
    """The projects whose configurations are in a folder; other YAML files are ignored."""
    projects = []
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        content = _read_yaml(file)
        if isinstance(content, dict) and {"annotation_schemes", "data_files"} <= content.keys():
            fields = {name: content[name] for name in Configuration.model_fields if name in content}
            configuration = to_model(
                fields, Configuration, file, title="a configuration of Potato", hint="correct it"
            )
            projects.append(Project(file, configuration))
    return projects


def _read_yaml(file: Path) -> object:
    """The content of a YAML file; None if it can't be read."""
    try:
        import yaml
    except ImportError:
        return None
    try:
        text = read_text(file, _LARGEST_CONFIGURATION)
        # Aliases let a short document become a huge one.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            return None
        return yaml.safe_load(text)
    except (InputError, RecursionError, ValueError, yaml.YAMLError):
        return None


def read_project_items(project: Project) -> dict[str, dict[str, Any]]:
    """The fields of each item in the data files of a project, by its id."""
    id_key = project.configuration.item_properties.id_key
    items: dict[str, dict[str, Any]] = {}
    inside = project.file.parent.resolve()
    for file in project.data_files:
        if not file.is_file() or not file.resolve().is_relative_to(inside):
            warn(
                f"{project.file} names {file}, which is not a file within the project's folder; it"
                " is not read"
            )
            continue
        for row in _read_rows(file):
            if not isinstance(row, dict):
                continue
            name = as_text(row.get(id_key))
            if name is not None:
                items[name] = row
    return items


def _read_rows(file: Path) -> Sequence[Any]:
    """The items in a data file; a file that ends in .json may have one item per line."""
    suffix = file.suffix.lower()
    if suffix in (".csv", ".tsv", ".parquet"):
        return read_records(file)
    if suffix == ".json":
        with file.open(encoding="utf-8-sig", errors="replace") as stream:
            is_array = stream.read(1000).lstrip().startswith("[")
        if is_array:
            records: list[Any] = read_json(file, math.inf)
            return records
    return [row for _, row in read_json_lines(file)]
