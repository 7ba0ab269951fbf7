"""The result of a diagnosis."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edokit._package import notebook_html
from edokit.analysis.diagnose.advice import Advice
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.scales import DeclaredScale, Scale


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What kind of disagreement is in annotations, as `edokit.diagnose` returns it.

    Every figure is a plain value; what is unknown is None. ``print`` shows it in words.

    Attributes
    ----------
    items : int
        Number of items.
    annotators : int
        Number of annotators.
    annotations : int
        Number of annotations.
    classes : list[str]
        Names of the classes.
    scale : str
        The answer scale with its classes, as in ``ordinal:1,2,3``; ``nominal`` has none.
    coverage : dict[str, Any]
        Numbers of labels per item and per annotator, and what is missing or repeated.
    balance : dict[str, Any]
        Classes by share of labels and by hard label.
    agreement : dict[str, Any]
        Agreeing pairs, and Krippendorff's alpha, Fleiss' and Cohen's kappa and Gwet's AC1 (on an
        ordinal scale AC2), each with ``estimate``, ``low`` and ``high``; see `edokit.agreement`.
    entropy : dict[str, Any]
        Mean entropy of the items in nats, the largest that a distribution over the classes can
        have, and the share of unanimous items, to which those with a single label belong.
    per_annotator : list[dict[str, Any]]
        Labels, base rates, agreement with the others, mean Cohen's kappa and group of each
        annotator.
    clusters : dict[str, Any]
        Groups of annotators, found as agreeing with each other or declared: size and base rates.
    variance : dict[str, Any] or None
        Shares of the variance: items, annotators, groups by items, rest.
    test : dict[str, Any] or None
        p-values of the permutation test; None without permutations.
    careless : dict[str, Any] or None
        Annotators whose labels look partly random, and the test without them; None if there are
        none.
    advice : list[Advice]
        What to try first, and why.
    limits : list[str]
        What these data can't show.
    commands : list[dict[str, str]]
        What to run next: each ``command``, with ANNOTATIONS for the file, and its ``purpose``.
    splits : list[str]
        The splits that the annotations are from, where they have some.
    groups : GroupComparison or None
        Do people with different attributes answer differently? None unless asked for.
    people : str
        Which columns are attributes of the annotators, in one line; empty without such columns.
    """

    items: int
    annotators: int
    annotations: int
    classes: list[str]
    scale: str
    coverage: dict[str, Any]
    balance: dict[str, Any]
    agreement: dict[str, Any]
    entropy: dict[str, Any]
    per_annotator: list[dict[str, Any]]
    clusters: dict[str, Any]
    variance: dict[str, Any] | None
    test: dict[str, Any] | None
    careless: dict[str, Any] | None
    advice: list[Advice]
    limits: list[str]
    commands: list[dict[str, str]] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    groups: GroupComparison | None = None
    people: str = ""

    @property
    def answer_scale(self) -> Scale:
        """The answer scale, which ``scale`` names."""
        return DeclaredScale(self.scale).resolve(self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo diagnose --json`` prints it.

        Returns
        -------
        dict
            The attributes by name, ``per_annotator`` as ``people``, ``people`` as ``attributes``;
            ``groups`` is a list with an entry per level of the attributes that were asked for.
        """
        content = dict(vars(self))
        content["attributes"] = content.pop("people")
        content["people"] = content.pop("per_annotator")
        content["advice"] = [advice.to_dict() for advice in self.advice]
        content["groups"] = []
        if self.groups is not None:
            content |= self.groups.to_dict()
        return content

    def with_source(
        self, source: str | Path, flags: Sequence[str] = (), run: Path | None = None
    ) -> Diagnosis:
        """Return the diagnosis with commands for this file instead of ANNOTATIONS.

        Parameters
        ----------
        source : str or Path
            The file of the annotations.
        flags : sequence of str, default=()
            The flags with which the file is read. The first command then writes a table, which the
            later ones read without these flags.
        run : Path, optional
            The finished run that the annotations are from: commands use it, and none makes another
            one.

        Returns
        -------
        Diagnosis
        """
        file = shlex.quote(str(source))
        conversion = []
        commands = self.commands
        if run is not None:
            commands = [_use_run(entry, run) for entry in commands if not _makes_run(entry)]
        if flags and commands:
            command = f"edo data convert {file} annotations.csv {shlex.join(flags)}"
            conversion = [
                {"command": command, "purpose": "Write the annotations as they were read"}
            ]
            file = "annotations.csv"
        commands = [
            entry | {"command": entry["command"].replace("ANNOTATIONS", file)} for entry in commands
        ]
        return replace(self, commands=[*conversion, *commands])

    def lines(self) -> list[str]:
        """Return the diagnosis in words, line by line.

        Returns
        -------
        list of str
        """
        from edokit.analysis.diagnose.text import lines

        return lines(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Verdict, advice, agreement and differences between groups, in a notebook."""
        return notebook_html("diagnosis_html", self)

    def __repr__(self) -> str:
        return f"Diagnosis({self.items} items, {self.annotators} annotators)"


def _makes_run(entry: Mapping[str, str]) -> bool:
    """Whether a command is ``edo run``."""
    return entry["command"].startswith("edo run ")


def _use_run(entry: Mapping[str, str], run: Path) -> dict[str, str]:
    """The command with the folder of a finished run in place of ``run``."""
    folder = shlex.quote(str(run))
    predictions = "members/predictions/fit.npz"
    command = entry["command"]
    command = command.replace("edo predict run ", f"edo predict {folder} ")
    command = command.replace(f"run/{predictions}", shlex.quote(str(run / predictions)))
    return {**entry, "command": command}
