"""What is to be trained end to end: which heads, on which data, towards which objective."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edokit._errors import InputError, examples, one_of
from edokit._types import Floats
from edokit.ensemble import PRESETS
from edokit.members.end_to_end import EndToEndMembers, JointData
from edokit.members.jobs import member_seed
from edokit.members.recipe import check_options, known_options
from edokit.members.recipes.transformer import check_number
from edokit.members.supervision import Draw, Supervision, majority, random_select, soft
from edokit.members.training_data import Rows, TrainingData, check_splits, rows_for_job
from edokit.torch.head import EDOHead

HEAD = "head"
"""The group of the members; they are named after it."""
_OBJECTIVES = ("default", "paper-fixed")
_SUPERVISION = (Supervision.RANDOM_SELECT, Supervision.SOFT, Supervision.MAJORITY)
# The number of members has an argument of its own, and there is a head per member already.
_NO_OPTIONS = ("n_members", "annotator_heads")


@dataclass(frozen=True, eq=False)
class JointPlan:
    """Members and weights to be learned together."""

    course: TrainingData
    """Texts and answers of all splits."""
    members: int
    options: Mapping[str, Any]
    """Of `EndToEndMembers`, all of them."""
    preset: str
    supervision: str
    draw: str
    seed: int

    @classmethod
    def of(
        cls,
        course: TrainingData,
        *,
        members: int,
        options: Mapping[str, Any],
        preset: str,
        supervision: str,
        draw: str,
        seed: int,
    ) -> JointPlan:
        """A plan that can be carried out, or an error that says what is in the way."""
        one_of("preset", preset, _OBJECTIVES)
        one_of("supervision", supervision, [mode.value for mode in _SUPERVISION])
        one_of("draw", draw, [mode.value for mode in Draw])
        if seed < 0:
            raise InputError(f"the seed must not be negative, but got {seed}", "choose 0 or more")
        check_number("members", members, 1, float("inf"), whole=True)
        known = known_options(EndToEndMembers)
        known = {name: value for name, value in known.items() if name not in _NO_OPTIONS}
        given = check_options("training end to end", known, options)
        every = EndToEndMembers(len(course.classes), n_members=members, **given).options()
        every = {name: every[name] for name in known}
        plan = cls(course, members, every, preset, supervision, draw, seed)
        plan._check_data()
        return plan

    @cached_property
    def rows(self) -> Rows:
        """Which items are learned from, stopped on and answered."""
        return rows_for_job(self.course, None, None)

    @property
    def dev(self) -> str:
        """The name of the split that the best epoch is chosen on."""
        return str(self.course.splits[self.rows.stop[0]])

    @property
    def names(self) -> list[str]:
        """The names of the members [K]."""
        return [f"{HEAD}-{k + 1:02d}" for k in range(self.members)]

    @cached_property
    def fingerprint(self) -> str:
        """A name for exactly this training on exactly this data."""
        how = [self.members, self.options, self.preset, self.supervision, self.draw, self.seed]
        text = json.dumps([how, self.course.digest], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def network(self, device: str | None) -> EndToEndMembers:
        """Members that are not fitted yet."""
        classes = len(self.course.classes)
        return EndToEndMembers(classes, n_members=self.members, **self.options, device=device)

    def head(self) -> EDOHead:
        """Weights that are not fitted yet."""
        learn = self.course.hard[self.rows.learn]
        most = PRESETS[self.preset]["max_members"]
        return EDOHead(
            self.members,
            settings=self.preset,
            max_members=self.members if most is None else most,
            class_counts=np.bincount(learn, minlength=len(self.course.classes)).tolist(),
        )

    def lesson(self) -> JointData:
        """What members and weights learn from."""
        learn, stop = self.course.take(self.rows.learn), self.course.take(self.rows.stop)
        seeds = [member_seed(self.seed, HEAD, k) for k in range(self.members)]
        once = self.draw == Draw.ONCE.value

        def targets(epoch: int) -> Floats:
            if self.supervision == Supervision.RANDOM_SELECT.value:
                each = [random_select(learn, own, 0 if once else epoch) for own in seeds]
            else:
                same = soft if self.supervision == Supervision.SOFT.value else majority
                each = [same(learn)] * self.members
            return np.stack(each, axis=1)

        return JointData(
            texts=learn.texts,
            member_targets=targets,
            soft_labels=learn.soft_labels,
            hard_labels=learn.hard,
            dev_texts=stop.texts,
            dev_soft_labels=stop.soft_labels,
            dev_hard_labels=stop.hard,
        )

    def _check_data(self) -> None:
        check_splits(self.course, None)
        if not len(self.rows.stop):
            raise InputError(
                "training end to end chooses its epoch on the split 'dev', which must have items,"
                " but the data has none",
                "make one with `edo data split`",
            )
        if not PRESETS[self.preset]["class_weights"]:
            return
        for split, rows in (("train", self.rows.learn), (self.dev, self.rows.stop)):
            counts = np.bincount(self.course.hard[rows], minlength=len(self.course.classes))
            absent = [self.course.classes[c] for c in np.flatnonzero(counts == 0)]
            if absent:
                raise InputError(
                    f"the preset {self.preset!r} weighs classes by how often they are the hard"
                    f" label, but in {split!r} {examples(absent)} never is",
                    "choose --preset default",
                )
