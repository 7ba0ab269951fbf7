"""A folder of shards that are read one by one, as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pa_parquet

from edokit._errors import InputError
from edokit._io.npz import array_shape, read_arrays
from edokit._names import as_names, encode
from edokit._types import Strings
from edokit.predictions.check import policy_for
from edokit.predictions.core import Predictions
from edokit.predictions.storage import check_alike, read_file, shard_files


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """Predictions of K members for N items in C classes, in files that need not fit into memory."""

    files: tuple[Path, ...]
    """The shards, in order of their names."""
    counts: tuple[int, ...]
    """Items in each, as their headers say."""
    members: tuple[str, ...]
    """Member names [K], of the first shard; every shard that is read must have the same."""
    classes: tuple[str, ...]
    """Class names [C], likewise."""
    groups: tuple[str, ...] | None
    """The recipe each member comes from [K], likewise."""
    number_bytes: int
    """Bytes per probability: 4 or 8."""
    invalid: str = "error"
    """What happens to probabilities that do not sum to one."""
    first: Path | None = None
    """The shard that all must agree with, where that is not ``files[0]``."""

    @classmethod
    def open(cls, path: str | Path, *, invalid: str = "error") -> Shards:
        """Look into a folder of .npz or Parquet shards (or a single file), without reading it all.

        The first shard is read, of the others only what their headers say.
        """
        files = shard_files(path)
        first = read_file(files[0], policy_for(invalid))
        known = (first.members, first.classes, first.groups)
        counts = [len(first)]
        for file in files[1:]:
            count = _count(file, len(first.members))
            if count is None:
                # Without a sound header it is read, to say what is wrong.
                shard = read_file(file, policy_for(invalid))
                check_alike(shard, file, known, files[0])
                count = len(shard)
            counts.append(count)
        return cls(
            tuple(files),
            tuple(counts),
            first.members,
            first.classes,
            first.groups,
            first.probabilities.itemsize,
            invalid,
        )

    def __repr__(self) -> str:
        return (
            f"Shards({len(self.files)} files, {len(self)} items, {len(self.members)} members,"
            f" classes {', '.join(self.classes)})"
        )

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def nbytes(self) -> int:
        """Bytes of all probabilities, were they in memory."""
        return len(self) * len(self.members) * len(self.classes) * self.number_bytes

    @property
    def needs(self) -> int:
        """About the bytes that fitting an ensemble would take with all of it in memory."""
        numbers = len(self) * len(self.members) * len(self.classes)
        # As they are read, in float64, laid out for a solver, and what it computes with; ids.
        return numbers * (self.number_bytes + 3 * 8) + 200 * len(self)

    def read(self, number: int) -> Predictions:
        """One shard, checked, and with the members, classes and groups of the first."""
        shard = read_file(self.files[number], policy_for(self.invalid))
        known = (self.members, self.classes, self.groups)
        check_alike(shard, self.files[number], known, self.first or self.files[0])
        if len(shard) != self.counts[number]:
            raise InputError(
                f"a shard must stay as it is while it is read, but {self.files[number]} now holds"
                f" {len(shard)} items instead of {self.counts[number]}",
                "start again when the files are complete",
            )
        return shard

    def part(self, number: int) -> Shards:
        """One shard alone; it must still agree with the first."""
        files, counts = (self.files[number],), (self.counts[number],)
        return replace(self, files=files, counts=counts, first=self.first or self.files[0])

    def read_items(self, number: int) -> Strings:
        """The item ids of one shard, in the order in which ``read`` gives them."""
        file = self.files[number]
        try:
            if file.suffix.lower() == ".npz":
                names = as_names(read_arrays(file, ["items"])["items"])
            else:
                column = pa_parquet.read_table(file, columns=["item"])["item"]
                names = encode(column, "item").names
        except Exception:  # whatever is wrong, the reader names it
            names = self.read(number).items
        return names

    def __iter__(self) -> Iterator[Predictions]:
        """One shard after the other."""
        return (self.read(number) for number in range(len(self.files)))


def _count(file: Path, members: int) -> int | None:
    """Items in a file, from its header; None where that does not say."""
    try:
        if file.suffix.lower() == ".npz":
            return array_shape(file, "probabilities")[0]
        rows = int(pa_parquet.read_metadata(file).num_rows)
    except Exception:  # a damaged header fails in as many ways as there are libraries
        return None
    return rows // members if rows and rows % members == 0 else None
