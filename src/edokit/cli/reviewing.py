"""What `edo predict --review N` picks and writes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOWarning, counted
from edokit.cli import options

if TYPE_CHECKING:
    from edokit.ensemble import Pooled, Review


@dataclass
class Queue:
    """The items to review, if any are asked for, and where they go."""

    count: int | None
    where: Path | None
    out: Path
    source: Path | None
    split: str | None
    column: list[str] | None
    items: list[Review] = field(default_factory=list)
    texts: dict[str, str] | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        from edokit.ensemble.review import check_path

        if self.count is not None:
            check_path(self.path)

    def add(self, pooled: Pooled) -> None:
        """Look at further items."""
        from edokit.ensemble.review import add_urgent

        if self.count is not None:
            self.classes = pooled.classes
            self.items = add_urgent(self.items, pooled, self.count)

    @property
    def path(self) -> Path:
        """Where the tasks go."""
        return self.where or self.out.with_name(f"{self.out.stem}-review.json")

    def find_texts(self) -> None:
        """Read what people will see, before anything is written."""
        if self.count is None or self.source is None:
            return
        from edokit.ensemble.review import label_studio_tasks
        from edokit.members import read_texts

        columns = options.pairs(self.column, "--column", "ROLE=NAME")
        read = read_texts(self.source, columns=columns, split=self.split)
        self.texts = dict(zip(read.items, map(str, read.texts), strict=True))
        label_studio_tasks(self.items, self.texts)

    def write(self) -> dict[str, Any]:
        """Write the queue; what was written, for JSON."""
        if self.count is None:
            return {}
        from edokit.ensemble.review import write_review

        if self.texts is None:
            self.find_texts()
        if self.texts is None:
            warnings.warn(
                "people who review will see ids of items and no texts, since none are given; give"
                " --annotations or --texts with the texts of the items",
                EDOWarning,
                stacklevel=2,
            )
        config = write_review(self.items, self.classes, self.path, self.texts)
        return {
            "review": {"out": str(self.path), "config": str(config), "items": len(self.items)},
        }

    def said(self) -> str:
        """The same for people."""
        if self.count is None:
            return ""
        some = counted(len(self.items), "item")
        fewer = len(self.items) < self.count
        first = (
            f"all {some} to review, most urgent first" if fewer else f"the {some} to review first"
        )
        interface = self.path.with_suffix(".xml")
        return f"; {first}, for Label Studio: {self.path} (interface: {interface})"
