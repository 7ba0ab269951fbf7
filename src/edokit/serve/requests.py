"""What a request must be; what is wrong with one is said without quoting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edokit._errors import EDOError, InputError, counted, word
from edokit._io.documents import parse_json
from edokit.ensemble.escalation import Escalation
from edokit.ensemble.people import PeopleEffects
from edokit.ensemble.views import panel_of_levels
from edokit.panels import unknown_hint

_HINT = 'send {"texts": ["…"]}; GET /openapi.json lists the fields'


class RefusedError(EDOError):
    """A request is refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    message, hint : str
        What is wrong, and what to do.
    code : str
        The rule that is broken.
    **headers : str
        Headers of the response, with underscores for hyphens.
    """

    def __init__(
        self, status: int, message: str, hint: str = "", *, code: str, **headers: str
    ) -> None:
        super().__init__(message, hint, code=code)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True)
class About:
    """What requests may ask of a bundle.

    Attributes
    ----------
    version : str
    classes : list of str
    annotators : frozenset of str
        The annotators whom the bundle knows by name.
    people : PeopleEffects or None
        Their attributes, and how they differ from the pool.
    metrics : tuple of str
        Metrics that there are answers for.
    has_contexts : bool or None
        Whether texts need contexts; None if both are possible.
    escalation : Escalation or None
        Which items are handed to people.
    scale : str
        The kind of the answer scale.
    endpoints : tuple of str
        Addresses to which members send texts.
    """

    version: str
    classes: list[str]
    annotators: frozenset[str]
    metrics: tuple[str, ...]
    has_contexts: bool | None
    people: PeopleEffects | None = None
    escalation: Escalation | None = None
    scale: str = "nominal"
    endpoints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """Texts, or pairs of text and context, and the annotators to answer for.

    ``annotators`` are those of each text, ``panel`` those of all texts.
    """

    texts: list[Any]
    annotators: list[list[str]] | None = None
    panel: tuple[str, ...] | None = None
    answer_for: str | None = None

    @property
    def is_anonymous(self) -> bool:
        """Whether it asks what all annotators would answer."""
        return self.annotators is None and self.panel is None

    @property
    def kind(self) -> tuple[Any, ...]:
        """What questions of one batch have in common."""
        has_contexts = isinstance(self.texts[0], tuple)
        return self.annotators is None, self.panel, self.answer_for, has_contexts

    def __getitem__(self, part: slice) -> Question:
        annotators = None
        if self.annotators is not None:
            annotators = self.annotators[part]
        return replace(self, texts=self.texts[part], annotators=annotators)

    @classmethod
    def joined(cls, questions: Sequence[Question]) -> Question:
        """Questions of one kind as one."""
        texts: list[Any] = []
        annotators: list[list[str]] = []
        for question in questions:
            texts += question.texts
            annotators += question.annotators or []
        return replace(questions[0], texts=texts, annotators=annotators or None)


def request_model(max_texts: int, max_length: int) -> type[BaseModel]:
    """The schema of a request within these limits."""
    # Validation ends at the first wrong entry: there may be a million of them.
    list_limits = Field(min_length=1, max_length=max_texts, fail_fast=True)
    Texts = Annotated[list[Annotated[str, Field(max_length=max_length)]], list_limits]
    Names = Annotated[list[str], list_limits]

    class PredictRequest(BaseModel):
        model_config = ConfigDict(
            extra="forbid",
            strict=True,
            json_schema_extra={"example": {"texts": ["How kind of you.", "What a rude reply."]}},
        )

        texts: Texts = Field(description="The texts.")
        contexts: Texts | None = Field(
            None, description="What precedes each text, for members that were trained on pairs."
        )
        annotators: Annotated[list[Names], list_limits] | None = Field(
            None, description="For each text a list of annotators, known to the bundle, to predict."
        )
        panel: Names | dict[str, str | Names] | None = Field(
            None,
            description="Or one panel for all texts: a list of annotators, or levels of attributes,"
            ' as in {"race": "Black"}, for all who have them (GET /people).',
        )
        answer_for: str | None = Field(
            None,
            alias="for",
            description="A metric that the answers are for (ce, md, w1, f1) instead of the pool.",
        )

    return PredictRequest


def read_request(
    body: bytes, model: type[BaseModel], about: About, *, show_people: bool = False
) -> Question:
    """The question that the body of a request asks; messages name people with ``show_people``."""
    try:
        request: Any = model.model_validate_json(body)
        parse_json(body.decode(), "the request")  # pydantic takes the last of repeated keys
    except ValidationError as error:
        raise _invalid(error) from None
    except InputError as error:
        raise RefusedError(422, error.message, error.hint, code=error.code) from None
    _check_fields(request, about)
    for position, names in enumerate(request.annotators or (), start=1):
        _check_annotators(names, f"text {position}", about, show_people)
    panel = _panel(request.panel, about, show_people)
    texts = request.texts
    if request.contexts is not None:
        texts = list(zip(texts, request.contexts, strict=True))
    return Question(
        texts,
        request.annotators,
        panel,
        request.answer_for,
    )


def _panel(
    panel: list[str] | dict[str, str | list[str]] | None, about: About, show_people: bool
) -> tuple[str, ...] | None:
    """The annotators of the panel that a request asks for."""
    if panel is None:
        return None
    if isinstance(panel, dict):
        try:
            return panel_of_levels(panel, about.people).annotators
        except InputError as error:
            raise RefusedError(422, error.message, error.hint, code=error.code) from None
    _check_annotators(panel, "the panel", about, show_people)
    return tuple(panel)


def _check_fields(request: Any, about: About) -> None:
    """Refuse fields that the bundle or another field rules out."""
    for number, text in enumerate(request.texts, start=1):
        if not text.strip():
            raise RefusedError(422, f"text {number} is empty", "leave it out", code="missing-value")
    if about.has_contexts is True and request.contexts is None:
        message = "the members were trained on texts with contexts"
        raise RefusedError(422, message, "send the context of each text", code="contexts-differ")
    if about.has_contexts is False and request.contexts is not None:
        message = "the members were trained on texts without contexts"
        raise RefusedError(422, message, "leave contexts out", code="contexts-differ")
    if request.annotators is not None and request.panel is not None:
        message = "both annotators and a panel are given"
        raise RefusedError(422, message, "leave one of them out", code="conflicting-options")
    if request.answer_for not in (None, *about.metrics):
        hint = f"known metrics: {', '.join(about.metrics)}; without one, the pool answers"
        raise RefusedError(
            422, "this bundle makes no answers for this metric", hint, code="unknown-metric"
        )
    _check_count(request.contexts, "context", len(request.texts))
    _check_count(request.annotators, "list of annotators", len(request.texts))


def _check_count(values: Sequence[object] | None, noun: str, texts: int) -> None:
    """Refuse another number of values than of texts."""
    if values is not None and len(values) != texts:
        message = f"{counted(texts, 'text')}, but {len(values)} times a {noun}"
        raise RefusedError(422, message, f"send one {noun} for each text", code="lengths-differ")


def _check_annotators(names: list[str], place: str, about: About, show_people: bool) -> None:
    """Refuse annotators whom the bundle does not know, and repeats."""
    for position, name in enumerate(names):
        annotator = f"annotator {position + 1} of {len(names)} of {place}"
        if name not in about.annotators:
            count = counted(len(about.annotators), "annotator")
            hint = "their names are not shown (edo serve --show-people shows them)"
            if show_people or not about.annotators:
                hint = unknown_hint(about.annotators)
            hint += "; or leave the name out"
            raise RefusedError(
                422, f"{annotator} is unknown, among {count}", hint, code="unknown-annotator"
            )
        if name in names[:position]:
            raise RefusedError(
                422, f"{annotator} is named twice", "name each once", code="duplicate-name"
            )


def _invalid(error: ValidationError) -> RefusedError:
    """What is wrong with a value, without the value."""
    details = error.errors(include_url=False, include_input=False)[0]
    message = details["msg"][0].lower() + details["msg"][1:]
    if details["type"] == "json_invalid":
        return RefusedError(400, message, _HINT, code="invalid-json")
    if not details["loc"]:
        return RefusedError(422, "the body is not a JSON object", _HINT, code="invalid-json")
    if details["type"] == "extra_forbidden":
        name = word(details["loc"][-1])
        return RefusedError(
            422, f"the request has an unknown field, {name}", _HINT, code="unknown-field"
        )
    field, *keys = details["loc"]
    if field == "panel" and details["type"] in ("list_type", "dict_type"):
        message = "must be a list of annotators, or levels of attributes"
        hint = 'such as {"race": "Black"}; GET /people lists attributes and levels'
        return RefusedError(422, f"panel: {message}", hint, code="invalid-field")
    numbers = [key for key in keys if isinstance(key, int)]
    place = f"{str(field).removesuffix('s')} {numbers[-1] + 1}" if numbers else str(field)
    status = 413 if details["type"] == "too_long" else 422
    return RefusedError(status, f"{place}: {message}", _HINT, code="invalid-field")
