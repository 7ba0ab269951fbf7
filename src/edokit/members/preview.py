"""What a training would ask language models, and what that would cost; nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from edokit._errors import InputError, counted, money
from edokit._io.markup import Table
from edokit.members.groups import Group, attributes_of, check_groups
from edokit.members.jobs import member_data
from edokit.members.plan import TrainingJob, TrainingOptions, TrainingPlan, make_plan
from edokit.members.registry import find_recipe, make_member
from edokit.members.training_data import TrainingData

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.members.contexts import Text
    from edokit.members.recipes._endpoint import Forecast, Request
    from edokit.members.recipes.llm import LanguageModel

_SHOWN_ITEMS = 3


@dataclass(frozen=True)
class PromptPreview:
    """The messages about an item, each with ``role`` and ``content``."""

    item: str
    messages: list[dict[str, str]]


@dataclass(frozen=True)
class MemberPreview:
    """What one member would ask.

    Attributes
    ----------
    member, model, base_url : str
        The member, the model and the endpoint.
    prompts : list of PromptPreview
        The prompts of three items.
    forecasts : dict of str to Forecast
        Requests, tokens and cost by how probabilities are obtained: ``log-probabilities`` if the
        server returns them, else ``samples``; a single one if that is known.
    """

    member: str
    model: str
    base_url: str
    prompts: list[PromptPreview]
    forecasts: dict[str, Forecast]


@dataclass(frozen=True)
class TrainingPreview:
    """What the members of a training would ask, as `preview_training` returns it.

    Attributes
    ----------
    members : tuple of MemberPreview
        The members that ask a server.
    silent : int
        Number of members that ask no server.
    """

    members: tuple[MemberPreview, ...]
    silent: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as ``edo train --dry-run --json`` prints it."""
        members = [asdict(member) for member in self.members]
        return {"members": members, "silent": self.silent, "total": self._totals()}

    def to_table(self) -> Table:
        """Return requests, tokens and cost, a row for each member and way of asking."""
        records = []
        for member in self.members:
            for way, forecast in member.forecasts.items():
                tokens_out = "no limit"
                if forecast.tokens_out is not None:
                    tokens_out = f"{forecast.tokens_out:,}"
                records.append(
                    {
                        "member": member.member,
                        "model": member.model,
                        "by": way,
                        "requests": f"{forecast.requests:,}",
                        "cached": f"{forecast.cached:,}",
                        "tokens in": f"{forecast.tokens_in:,}",
                        "tokens out": tokens_out,
                        "cost": _cost(forecast.cost),
                        "at most": _cost(forecast.most_cost),
                    }
                )
        title = f"Nothing was sent: requests of {counted(len(self.members), 'member')}"
        return Table.from_records(title, records, self._notes())

    def _notes(self) -> list[str]:
        """What the figures are, and what is missing."""
        addresses = dict.fromkeys(member.base_url for member in self.members)
        notes = [f"Endpoint: {', '.join(addresses)}."]
        notes.append(
            "Tokens are estimated: one per four bytes of a prompt, and as many as max_tokens allows"
            " in answers. A prompt has at most one token per byte, which a budget reserves."
        )
        forecasts: list[Forecast] = []
        for member in self.members:
            forecasts += member.forecasts.values()
        if any(len(member.forecasts) > 1 for member in self.members):
            notes.append("A server that returns no log-probabilities is asked for samples instead.")
        if any(forecast.tokens_out is None for forecast in forecasts):
            notes.append("Without the option max_tokens, the cost of answers is unbounded.")
        elif all(forecast.cost is None for forecast in forecasts):
            notes.append("The options price_in and price_out, per million tokens, add the cost.")
        for way, total in self._totals().items():
            if total is not None and len(self.members) > 1:
                notes.append(f"All members by {way}: about {money(total)}.")
        if self.silent:
            notes.append(f"{counted(self.silent, 'member')} of other recipes ask no server.")
        return notes

    def _totals(self) -> dict[str, float | None]:
        """The cost of all members by way of asking; None if the cost of some member is unknown.

        A member with a single way of asking counts in the totals of both.
        """
        totals: dict[str, float | None] = {}
        for member in self.members:
            totals |= dict.fromkeys(member.forecasts)
        for way in totals:
            costs: list[float] = []
            for member in self.members:
                forecast = member.forecasts.get(way) or next(iter(member.forecasts.values()))
                if forecast.cost is not None:
                    costs.append(forecast.cost)
            if len(costs) == len(self.members):
                totals[way] = sum(costs)
        return totals


def _cost(cost: float | None) -> str | None:
    if cost is None:
        return None
    return money(cost)


def preview_training(
    annotations: Annotations,
    groups: Sequence[Group],
    *,
    options: TrainingOptions | None = None,
    **changes: Any,
) -> TrainingPreview:
    """Show what a training would ask language models; nothing is sent, and nothing is written.

    Parameters
    ----------
    annotations : Annotations
        As in `train_members`.
    groups : sequence of Group
        What would be trained; members that ask no server are counted only.
    options : TrainingOptions, default=None
        How to train. None: the defaults.
    **changes
        Fields of `TrainingOptions` that differ from ``options``.

    Returns
    -------
    TrainingPreview
        For each member the prompts of three items, and requests, tokens and cost.

    Raises
    ------
    InputError
        If the data or an option is invalid, or no member asks a server.

    Examples
    --------
    >>> from edokit import Annotations
    >>> from edokit.members import Group, preview_training
    >>> rows = {
    ...     "item": ["a", "a", "b", "b"],
    ...     "annotator": ["x", "y", "x", "y"],
    ...     "label": ["polite", "polite", "rude", "rude"],
    ...     "text": ["a fine day"] * 2 + ["so rude"] * 2,
    ...     "split": ["dev"] * 4,
    ... }
    >>> llm = {"base_url": "http://localhost:8000/v1", "model": "small"}
    >>> preview = preview_training(Annotations.from_table(rows), [Group("llm", 1, options=llm)])
    >>> preview.members[0].forecasts["log-probabilities"].requests
    2
    """
    settings = replace(options or TrainingOptions(), **changes)
    checked_groups = check_groups(groups)
    data = TrainingData.from_annotations(
        annotations,
        unlabelled=settings.unlabelled,
        attributes=attributes_of(checked_groups),
    )
    plan = make_plan(data, checked_groups, settings)
    asking = [job for job in plan.jobs if find_recipe(job.recipe).capabilities.endpoint]
    if not asking:
        raise InputError(
            "a dry run shows the requests of members that ask a server, but there are none here",
            "leave it out, or choose the recipe llm",
            code="inapplicable-option",
        )
    silent = {job.member for job in plan.jobs} - {job.member for job in asking}
    members = tuple(_preview_job(plan, job) for job in asking)
    return TrainingPreview(members, len(silent))


def _preview_job(plan: TrainingPlan, job: TrainingJob) -> MemberPreview:
    """What the member of a job would ask about all texts that it predicts."""
    member = make_member(job.recipe, len(plan.data.classes), job.options)
    # Checked before `fit`, since fitting members of other recipes may ask their server.
    if not _is_language_model(member):
        raise InputError(
            f"the recipe {job.recipe} does not support a dry run",
            "leave it out",
            code="inapplicable-option",
        )
    member.fit(member_data(plan, job), random_state=job.seed)
    requests: dict[str, list[Request]] = {}
    items: list[int] = []
    for positions in plan.rows(job).predict.values():
        items += [int(position) for position in positions]
        texts: list[Text] = [plan.data.texts[position] for position in positions]
        _extend(requests, member.forecast(texts))
        if member.known_annotators:
            pairs = plan.annotator_pairs(positions)
            texts = [plan.data.texts[position] for position, _ in pairs]
            _extend(requests, member.forecast(texts, [[name] for _, name in pairs]))
    prompts = []
    for position in items[:_SHOWN_ITEMS]:
        messages = member.messages(plan.data.texts[position])
        prompts.append(PromptPreview(str(plan.data.items[position]), messages))
    forecasts = {way: member.server.forecast(sent) for way, sent in requests.items()}
    return MemberPreview(job.path, member.model, member.base_url, prompts, forecasts)


def _is_language_model(member: object) -> TypeGuard[LanguageModel]:
    from edokit.members.recipes.llm import LanguageModel

    return isinstance(member, LanguageModel)


def _extend(requests: dict[str, list[Request]], more: dict[str, list[Request]]) -> None:
    """Add requests to those of the same way of asking."""
    for way, sent in more.items():
        requests.setdefault(way, []).extend(sent)
