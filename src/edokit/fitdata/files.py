"""Inputs that are given as files: read in one way, and remembered for the record of the run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edokit._errors import InputError, one_of, option
from edokit._io.digests import digest_input
from edokit._io.documents import Json
from edokit.annotations.core import Annotations
from edokit.fitdata.reading import LabelsLike, PredictionsLike, ReadOptions
from edokit.predictions.core import LEARN
from edokit.runs.inputs import Input, read_recorded_annotations, read_recorded_predictions


class InputFiles:
    """Reads predictions and annotations that are given as files, and remembers the files.

    Whatever else is given (objects, arrays) passes through.

    Attributes
    ----------
    inputs : dict of str to Input
        The files that were read, by role.
    """

    def __init__(self, reading: ReadOptions) -> None:
        if reading.learn is not None:
            one_of("learn", reading.learn, LEARN)
        self._reading = reading
        self.inputs: dict[str, Input] = {}

    def predictions(self, role: str, source: PredictionsLike) -> PredictionsLike:
        """Return the predictions in a file; other predictions are returned as they are."""
        if not isinstance(source, str | Path):
            return source
        return read_recorded_predictions(Path(source), self.note_predictions(role, source))

    def annotations(self, role: str, source: LabelsLike) -> LabelsLike:
        """Return the annotations in a file, or of the splits asked for of annotations in memory."""
        if isinstance(source, str | Path):
            return read_recorded_annotations(Path(source), self.note_annotations(role, source))
        # The scale applies to arrays and to annotations without one as well.
        unused = [name for name in self._reading.file_options() if name != "scale"]
        if unused:
            raise InputError(
                f"{', '.join(map(option, sorted(unused)))}: for annotations that are files, but"
                f" {role} is not a file",
                "leave it out",
            )
        split = self._reading.split
        if not split:
            return source
        if not isinstance(source, Annotations):
            raise InputError(f"{role} is an array, without splits", f"leave {option('split')} out")
        names = [split] if isinstance(split, str) else split
        return source.split(*names)

    def note_predictions(self, role: str, path: str | Path) -> Mapping[str, Json]:
        """Remember a file of predictions; return how it is read."""
        options = {}
        for name, value in self._reading.file_options().items():
            if name in ("scale", "learn"):
                options[name] = value
        return self._note(role, path, options)

    def note_annotations(self, role: str, path: str | Path) -> Mapping[str, Json]:
        """Remember a file of annotations; return how it is read."""
        options = self._reading.file_options()
        if self._reading.split:
            options["split"] = self._reading.split
        return self._note(role, path, options)

    def _note(self, role: str, path: str | Path, options: Mapping[str, Json]) -> Mapping[str, Json]:
        """Record the digest of a file before it is read: it may be modified meanwhile."""
        sha256 = None
        with suppress(InputError):  # reading it says what is wrong
            sha256 = digest_input(Path(path))
        self.inputs[role] = Input(str(path), sha256, options)
        return options
