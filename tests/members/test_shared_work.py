"""Groups share what their recipe prepares from the same texts and options."""

from __future__ import annotations

import inspect

from member_cases import small_people

from edokit.members.groups import Group
from edokit.members.jobs import Outcome, plan_jobs
from edokit.members.recipes._tokens import Reader
from edokit.members.recipes.transformer import TransformerMember
from edokit.members.train import TrainingOptions, _job_context
from edokit.members.training_data import TrainingData


def test_groups_that_read_texts_alike_share_their_tokens(model: str) -> None:
    options = {"model": model, "max_length": 16}
    groups = [
        Group("transformer", 1, "a", options=options).checked(),
        Group("transformer", 1, "b", options={**options, "learning_rate": 1e-3}).checked(),
        Group("transformer", 1, "c", options={**options, "max_length": 12}).checked(),
    ]
    plan = plan_jobs(groups, TrainingData.from_annotations(small_people()))
    failed: list[Outcome] = []
    shared = _job_context(plan, plan.jobs, TrainingOptions(device="cpu"), failed).shared
    assert not failed
    assert shared["a"] is shared["b"] is not shared["c"]
    reading = {*inspect.signature(Reader.__init__).parameters} - {"self", "tokenizer", "known"}
    assert {"model", *reading} == {*TransformerMember.prepares_from}
