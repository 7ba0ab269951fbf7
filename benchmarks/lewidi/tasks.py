"""The trainings of a shared task; ``benchmarks/<task>/pools.py`` defines its `Task`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from edokit.annotations.core import Annotations
from edokit.members import Group
from edokit.members.texts import Texts

SEED = 0
BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path.append(str(BENCHMARKS.parent))  # pools may use the package `reproduction`
sys.path.append(str(BENCHMARKS))  # and members of knowing.py


@dataclass(frozen=True)
class Run:
    """Members of one dataset that are trained in one folder.

    A group named ``pool.part`` belongs to the pool ``pool``, any other to the pool of its own name.
    """

    dataset: str
    groups: Sequence[Group]
    cross_fit: int | None = None
    manifest: str | None = None
    """Where its manifest goes, relative to the dataset, if another program makes the pool of it."""
    keep_models: bool = False
    """Whether other runs start from these members."""


class Data(NamedTuple):
    """What members of a dataset train on and predict."""

    annotations: Annotations
    unlabelled: Mapping[str, Texts] | None = None


@dataclass(frozen=True)
class Task:
    """A shared task: its runs by the name of their folder."""

    runs: Mapping[str, Run]
    read: Callable[[Path, str], Data]
    """A dataset in a folder."""
    decoder_datasets: Sequence[str]
    """Datasets whose texts the decoder reads (gemma.py)."""


def load_task(name: str) -> Task:
    """The task of this name."""
    spec = spec_from_file_location(f"{name}_pools", BENCHMARKS / name / "pools.py")
    if spec is None or spec.loader is None or not (BENCHMARKS / name / "pools.py").is_file():
        raise SystemExit(f"there is no task {name!r}: benchmarks/{name}/pools.py does not exist")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    task: Task = module.TASK
    return task
