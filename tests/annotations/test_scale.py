"""Millions of annotations: nothing is done row by row in Python, and little memory is needed."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pyarrow as pa

from edokit import Annotations

CLASSES = 3


def long_table(items: int, per_item: int) -> pa.Table:
    """Text as it comes from a file, each text once per chunk."""
    rng = np.random.default_rng(0)
    rows = items * per_item
    table = pa.table(
        {
            "item": np.repeat(np.arange(items), per_item).astype(str),
            "annotator": np.tile(np.arange(per_item), items).astype(str),
            "label": rng.integers(0, CLASSES, rows).astype(str),
            "text": np.repeat(np.arange(items), per_item).astype(str),
            "home": np.tile(np.arange(per_item), items).astype(str),
        }
    )
    return pa.table({name: table[name].dictionary_encode() for name in table.column_names})


def everything(table: pa.Table) -> Annotations:
    made = Annotations.from_table(table)
    _ = made.soft_labels, made.entropy, made.coverage, made.hard_labels("random")
    return made


def steps(table: pa.Table) -> int:
    """How many calls of Python and C functions it takes."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        everything(table)
    finally:
        sys.setprofile(None)
    return count


def test_ten_times_the_rows_take_no_more_steps_in_python() -> None:
    few = long_table(20, 50)
    many = long_table(20, 500)
    everything(few)
    assert steps(many) < steps(few) + 50


def test_memory_is_a_small_multiple_of_the_table() -> None:
    table = long_table(items=60_000, per_item=5)
    everything(table.slice(0, 100))
    tracemalloc.start()
    made = everything(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made) == table.num_rows
    assert peak < 4 * table.nbytes
