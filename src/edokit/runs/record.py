"""The record of a run, ``run.json``: its command, the files that it read, and its seed.

It is kept beside the results. The report reads the same files with the same options, and says
whether they have changed.
"""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from edokit._credentials import argument_without_credentials
from edokit._errors import InputError, errors_in
from edokit._io.atomic import cannot_write
from edokit._io.documents import Count, read_model, write_json
from edokit._package import checkout_commit, result_versions
from edokit.annotations.core import Annotations
from edokit.predictions.core import Predictions
from edokit.runs.inputs import Input, read_annotations_file, read_predictions_file

RUN_RECORD = "run.json"


@dataclass(frozen=True)
class RunRecord:
    """The command, inputs and versions from which results were computed.

    Attributes
    ----------
    kind : str
        ``demo``, ``search``, ``fit``, ``compare`` or ``run``.
    inputs : Mapping[str, Input]
        The inputs by role: ``predictions`` and ``annotations`` (for the fit),
        ``test_predictions`` and ``test_annotations`` (for the evaluation).
    command : str
        The command line without credentials; empty from Python.
    python, platform : str
        The versions of Python and of the system; empty in records of earlier builds.
    commit : str
        The commit of EDO if it runs from a checkout, with "-dirty" after changes; else empty.
    """

    kind: str
    inputs: Mapping[str, Input]
    seed: Count = 0
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=result_versions)
    python: str = ""
    platform: str = ""
    commit: str = ""

    def save(self, folder: Path) -> None:
        """Write ``run.json`` with the current system; its existence marks results as complete."""
        record = replace(
            self,
            python=platform.python_version(),
            platform=platform.platform(),
            commit=checkout_commit(),
        )
        write_json(asdict(record), folder / RUN_RECORD)

    @classmethod
    def load(cls, folder: Path) -> RunRecord:
        """Read a record that `save` wrote."""
        return read_model(folder / RUN_RECORD, cls, title="a run record", hint="run it again")

    def path(self, role: str, folder: Path) -> Path | None:
        """The current path of the input of this role, if there is one."""
        source = self.inputs.get(role)
        if source is None:
            return None
        inside = folder / source.path
        if os.path.exists(inside):
            return inside
        return Path(source.path)

    def is_inside(self, role: str, folder: Path) -> bool:
        """Whether the input of this role is within the folder of the run, following links."""
        path = self.path(role, folder)
        home = os.path.realpath(folder)
        return path is not None and Path(os.path.realpath(path)).is_relative_to(home)

    def predictions(self, role: str, folder: Path) -> Predictions | None:
        """The predictions of this role, if there are any."""
        path = self.path(role, folder)
        if path is None:
            return None
        with errors_in(folder / RUN_RECORD):
            return read_predictions_file(path, self.inputs[role].options)

    def annotations(
        self, role: str, folder: Path, *, all_splits: bool = False
    ) -> Annotations | None:
        """The annotations of this role, if there are any, read with the options of the run.

        With ``all_splits``, those of all splits are read.
        """
        path = self.path(role, folder)
        if path is None:
            return None
        options = dict(self.inputs[role].options)
        if all_splits:
            options |= {"split": None, "splits": None}
        try:
            with errors_in(folder / RUN_RECORD):
                return read_annotations_file(path, options)
        except InputError:
            raise
        except (TypeError, AttributeError, ValueError, LookupError) as error:
            raise InputError(
                f"{folder / RUN_RECORD} has invalid options for reading {role}: {error}",
                "run it again",
                code="damaged-file",
            ) from error


def begin_run(folder: Path) -> None:
    """Remove the ``run.json`` of earlier results, which are about to be replaced.

    Its existence marks results as complete.
    """
    try:
        (folder / RUN_RECORD).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder / RUN_RECORD, error) from error


def command_text(arguments: Sequence[str]) -> str:
    """A command line as text, without the credentials of URLs."""
    return shlex.join(map(argument_without_credentials, arguments))
