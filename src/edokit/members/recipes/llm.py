"""Members that are language models behind an OpenAI-compatible endpoint, asked with a prompt."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from edokit._errors import InputError, are, counted, errors_in, option, warn
from edokit._io.documents import Count, Document, Json, Names, read_model, read_text, write_json
from edokit._progress import Progress
from edokit._types import Floats, Ints
from edokit.annotator_effects import label_shares, mean_over_pairs, pairs_of_texts
from edokit.members.contexts import Context, Text, with_context
from edokit.members.recipe import Annotators, Capabilities, Member, MemberData, required_annotations
from edokit.members.recipe_options import Range, check_options, check_values, known_options
from edokit.members.recipes import _endpoint as endpoints
from edokit.members.recipes._completions import Completion
from edokit.members.recipes._prompts import Questions, fields_of
from edokit.members.spending import Prices, current_session
from edokit.scales import NOMINAL, DeclaredScale, Scale

_FILE = "llm.json"
# Alternatives to ask for at each token; not every server accepts the larger number.
_ALTERNATIVES = (20, 5)
# If no answer to the first prompts, this many, names a label, the run stops.
_FIRST_PROMPTS = 20
# Largest number of tokens of an answer from whose log-probabilities a key is read.
_KEY_TOKENS = 3
# Options that may name a file with their text, and how the names of such files end.
_FILE_OPTIONS = ("prompt", "persona", "label_descriptions")
_ENDINGS = (".txt", ".md")
# A text, and the messages that ask about it.
Prompt = tuple[Text, list[dict[str, str]]]
# A text that an annotator labelled, and the codes of the labels.
PromptExample = tuple[str | tuple[str, str], list[Count]]


class SavedModel(Document):
    """The content of ``llm.json``."""

    options: dict[str, Json]
    classes: Annotated[Names, Field(min_length=2)]
    scale: str
    top: Annotated[int, Field(ge=0, le=100)] | None
    examples: dict[str, list[PromptExample]]

    @model_validator(mode="after")
    def _check_codes(self) -> SavedModel:
        for examples in self.examples.values():
            for _, codes in examples:
                if max(codes, default=0) >= len(self.classes):
                    raise ValueError("has examples with labels that are not among its classes")
        return self


@dataclass(eq=False)
class LanguageModel(Member):
    """A language model behind an endpoint, with a prompt and perhaps a persona; it is not trained.

    Parameters
    ----------
    n_classes : int
        Number of labels.
    base_url : str, default=""
        The endpoint; empty: that of the environment, OPENAI_BASE_URL.
    model : str, default=""
        The name of the model at the endpoint; required.
    prompt : str, default=""
        A template, or a file with one; empty: that of the answer scale.
    prompt_name, persona_name : str, default=""
        What tables show instead of prompt and persona: their names in a TOML file.
    persona : str, default=""
        The persona that the model takes on: a text, or a file with one.
    label_descriptions : str, default=""
        Lines such as "rude: hurts somebody", or a file with them.
    examples : int, default=0
        How many of an annotator's own labels are shown to answer for that annotator.
    probabilities : {"auto", "samples"}, default="auto"
        Probabilities of the labels' tokens if the server returns them ("auto"), or the shares of
        labels among sampled answers ("samples").
    samples : int, default=5
        Number of sampled answers to each prompt.
    smoothing : float, default=0.5
        Added to the count of each label among the answers.
    temperature : float or None, default=1
        Temperature of sampled answers; None: the server's.
    max_tokens : int or None, default=16
        The most tokens of an answer; None: the server's limit.
    extra : str, default=""
        A JSON object of further request parameters.
    price_in, price_out : float, default=None
        Prices per million tokens of prompts and of answers.
    concurrency : int, default=8
        Requests at a time.
    timeout : float, default=60
        Seconds after which a request fails.
    retries : int, default=5
        How often a failed request is repeated.
    """

    capabilities = Capabilities(
        endpoint=True,
        multi_label=True,
        trained=False,
        people="examples",
        trust=True,
        operational=("concurrency", "timeout", "retries", "price_in", "price_out"),
        titled=("prompt", "persona"),
    )

    n_classes: int
    _: KW_ONLY
    base_url: str = ""
    model: str = ""
    prompt: str = ""
    prompt_name: str = ""
    persona: str = ""
    persona_name: str = ""
    label_descriptions: str = ""
    examples: Annotated[int, Range(0, 1000)] = 0
    probabilities: Literal["auto", "samples"] = "auto"
    samples: Annotated[int, Range(1, 1000)] = 5
    smoothing: Annotated[float, Range(0, 1e6)] = 0.5
    temperature: Annotated[float | None, Range(0, 100)] = 1.0
    max_tokens: Annotated[int | None, Range(1, 10**7)] = 16
    extra: str = ""
    price_in: Annotated[float | None, Range(0, 1e9)] = None
    price_out: Annotated[float | None, Range(0, 1e9)] = None
    concurrency: Annotated[int, Range(1, 1000)] = 8
    timeout: Annotated[float, Range(0, 86400, above=True)] = 60.0
    retries: Annotated[int, Range(0, 100)] = 5

    def __post_init__(self) -> None:
        check_values(self)
        if self.prompt and "examples" not in fields_of(self.prompt) and self.examples:
            raise InputError(
                f"{option('examples', self.examples)}, but the {option('prompt')} template"
                " lacks the field {examples}",
                "add {examples} where they belong",
                code="invalid-prompt",
            )
        self.extra_parameters()
        base_url = self.base_url or os.environ.get(endpoints.ADDRESS_VARIABLE, "")
        if not (base_url and self.model.strip()):
            raise InputError(
                "the recipe llm needs an endpoint to ask, and the name of a model there",
                f"name them with {option('base_url')}, or {endpoints.ADDRESS_VARIABLE} in the"
                f" environment, and with {option('model')}",
                code="missing-option",
            )
        self.base_url = endpoints.check_address(base_url)
        key = os.environ.get(endpoints.KEY_VARIABLE, "").strip()
        if key and any(key in str(value) for value in self.get_params().values()):
            raise InputError(
                f"an option contains the key in {endpoints.KEY_VARIABLE}, and options are written"
                " to files",
                "remove it: the key is read from the environment",
                code="exposed-key",
            )
        prices = None
        if self.price_in is not None or self.price_out is not None:
            prices = Prices(self.price_in or 0.0, self.price_out or 0.0)
        self._server = endpoints.Endpoint(
            self.base_url,
            timeout=self.timeout,
            retries=self.retries,
            concurrency=self.concurrency,
            prices=prices,
        )
        self._questions: Questions  # once the classes are known
        self._examples: dict[str, list[PromptExample]] = {}
        self._progress: Progress | None = None
        # Numbers of items, requests, failures (answers that name no label) and tokens so far.
        self._usage: Counter[str] = Counter()
        self._has_named_labels = False  # whether an answer has named a label before
        # Number of alternatives that the server returns at each token; 0 if answers are sampled,
        # None before it is known.
        self._n_alternatives: int | None = None

    def extra_parameters(self) -> dict[str, Any]:
        """The option ``extra``, a JSON object."""
        with suppress(ValueError):
            content = json.loads(self.extra or "{}")
            json.dumps(content, allow_nan=False)  # a ValueError for NaN and infinity
            reserved = {"model", "messages", "stream", "n"}
            if isinstance(content, dict) and not content.keys() & reserved:
                return content
        raise InputError(
            f"{option('extra')} is not a JSON object of request parameters (without model,"
            " messages, stream and n)",
            'write it as extra={"top_p": 0.9}',
            code="invalid-json",
        )

    @classmethod
    def checked_options(cls, options: Mapping[str, object], source: str = "") -> dict[str, Any]:
        """Options with the texts of the files that they name, and the endpoint of the environment.

        A file may not decide where texts and keys go.
        """
        if source and options.get("base_url"):
            endpoints.refuse_address(source, str(options["base_url"]), None)
        texts = dict(options)
        texts["base_url"] = texts.get("base_url") or os.environ.get(endpoints.ADDRESS_VARIABLE, "")
        for name in _FILE_OPTIONS:
            text = str(texts.get(name, ""))
            if "\n" not in text and text.lower().endswith(_ENDINGS):
                texts[name] = read_text(Path(text)).strip()
        return texts

    @property
    def address(self) -> str:
        """The endpoint, which it sends texts to."""
        return self.base_url

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """The annotators whose own labels it can show the model."""
        return tuple(self._examples)

    @property
    def details(self) -> Mapping[str, Any]:
        """Model, prompt, persona, numbers of requests and tokens, and the cost per item."""
        usage = self._usage
        info: dict[str, object] = {"model": self.model}
        info["prompt"] = self.prompt_name or _short(self.prompt) or "default"
        if self.persona or self.persona_name:
            info["persona"] = self.persona_name or _short(self.persona)
        if self.examples:
            info["examples"] = self.examples
        if self._n_alternatives == 0:
            info["probabilities"] = f"{self.samples} samples"
        elif self._n_alternatives is not None:
            info["probabilities"] = "logprobs"
        info |= {name: usage[name] for name in ("requests", "failures", "tokens_in", "tokens_out")}
        if usage["without_usage"]:
            info["tokens"] = "estimated"
        if self._n_alternatives == 0:
            info["answers"] = usage["requests"] - usage["failures"]
        cost = self._server.cost(usage["tokens_in"], usage["tokens_out"])
        if cost is not None and usage["items"]:
            info |= {"cost": cost / usage["items"], "total_cost": cost}
        return info

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> LanguageModel:
        """Take the classes, and examples of each annotator; nothing is asked yet."""
        self._progress = progress
        self._ask_about(data.classes or [str(k) for k in range(self.n_classes)], data.scale)
        self._examples = self._annotator_examples(data, random_state) if self.examples else {}
        return self

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        texts = with_context(texts, context)
        if not texts:
            return np.zeros((0, self.n_classes))
        pairs, rows = self._pairs(texts, annotators)
        distinct = list(dict.fromkeys(pairs))
        answers = dict(zip(distinct, self._predict_pairs(distinct), strict=True))
        return mean_over_pairs(np.array([answers[pair] for pair in pairs]), rows)

    def save(self, folder: Path) -> None:
        """Write one JSON file: options, classes, and the examples that it shows; no key."""
        questions = self._questions
        content = {
            "options": {name: getattr(self, name) for name in known_options(type(self))},
            "classes": list(questions.classes),
            "scale": questions.scale.to_text(questions.classes),
            "top": self._n_alternatives,
            "examples": self._examples,
        }
        write_json(content, folder / _FILE)

    @classmethod
    def load(cls, folder: Path, *, trust: Sequence[str] = ()) -> LanguageModel:
        """Read what ``save`` wrote; an endpoint on another machine must be trusted."""
        path = folder / _FILE
        saved = read_model(path, SavedModel, title="a saved language model", hint="train it again")
        if base_url := saved.options.get("base_url"):
            endpoints.refuse_address(f"the member in {folder}", str(base_url), trust)
        with errors_in(path):
            options = check_options("a language model", known_options(cls), saved.options)
            if options.get("probabilities") == "logprobs":  # of earlier builds
                options["probabilities"] = "auto"
            member = cls(len(saved.classes), **options)
            member._ask_about(saved.classes, DeclaredScale(saved.scale).resolve(saved.classes))
        member._examples = saved.examples
        member._n_alternatives = saved.top
        member._has_named_labels = True
        return member

    def _ask_about(self, classes: Sequence[str], scale: Scale = NOMINAL) -> None:
        """Take the classes, and make the questions about them."""
        descriptions = self.label_descriptions
        self._questions = Questions(self.prompt, self.persona, descriptions, classes, scale)

    def _annotator_examples(self, data: MemberData, seed: int) -> dict[str, list[PromptExample]]:
        """Some of each annotator's own labels, as many different labels as possible among them."""
        annotations = required_annotations(data)
        shares = label_shares(annotations, self.n_classes)
        indicators = data.scale.indicators(data.scale.hard(shares), self.n_classes)
        texts = with_context(data.texts, data.context)
        ranked: dict[str, list[tuple[int, PromptExample]]] = {}
        counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
        for row in np.random.default_rng(seed).permutation(len(shares)):
            name = str(annotations.annotators[annotations.annotator_codes[row]])
            codes = np.flatnonzero(indicators[row]).tolist()
            counts[name, tuple(codes)] += 1
            example = (texts[annotations.item_codes[row]], codes)
            ranked.setdefault(name, []).append((counts[name, tuple(codes)], example))
        # The first example of each label comes before the second of any.
        examples_by_name = {}
        for name, pairs in sorted(ranked.items()):
            first_pairs = sorted(pairs, key=itemgetter(0))[: self.examples]
            examples_by_name[name] = [example for _, example in first_pairs]
        return examples_by_name

    def forecast(
        self, texts: Sequence[Text], annotators: Annotators = None
    ) -> dict[str, list[endpoints.Request]]:
        """The requests that ``predict_proba`` would send, by how probabilities are obtained.

        With ``"log-probabilities"`` there is one request for each prompt, with ``"samples"``
        several. Where only the server knows which of them it supports, both are listed.
        """
        pairs, _ = self._pairs(texts, annotators)
        prompts = self._prompts(list(dict.fromkeys(pairs)))
        forecast: dict[str, list[endpoints.Request]] = {}
        if self._may_use_logprobs and self._n_alternatives != 0:
            n_alternatives = self._n_alternatives or _ALTERNATIVES[0]
            forecast["log-probabilities"] = self._requests(prompts, n_alternatives)
        if not self._may_use_logprobs or not self._n_alternatives:
            forecast["samples"] = self._requests(prompts, 0)
        return forecast

    def messages(self, text: Text) -> list[dict[str, str]]:
        """The anonymous prompt about a text; about the first label if each label has a prompt.

        Each message has ``role`` and ``content``.
        """
        return self._prompts([(text, "")])[0][1]

    @property
    def server(self) -> endpoints.Endpoint:
        """The endpoint that it asks."""
        return self._server

    def _pairs(
        self, texts: Sequence[Text], annotators: Annotators
    ) -> tuple[list[tuple[Text, str]], Ints]:
        """Pairs of a text and an annotator, and the position of each pair's text.

        The annotator is empty for an anonymous answer, also to an annotator without examples.
        """
        names = (*self._examples, "")  # the code of unknown annotators is -1
        rows, codes = pairs_of_texts(annotators, len(texts), self._examples)
        pairs = [(texts[row], names[code]) for row, code in zip(rows, codes, strict=True)]
        return pairs, rows

    def _prompts(self, pairs: Sequence[tuple[Text, str]]) -> list[Prompt]:
        """The prompts about pairs of a text and an annotator: one, or one for each label."""
        prompts: list[Prompt] = []
        for text, annotator in pairs:
            examples = self._examples.get(annotator, ())
            for label in self._questions.labels:
                prompts.append((text, self._questions.messages(text, label, examples)))
        return prompts

    def _predict_pairs(self, pairs: Sequence[tuple[Text, str]]) -> Floats:
        """Probabilities [P, C] of distinct pairs of a text and an annotator (see `_pairs`)."""
        prompts = self._prompts(pairs)
        self._n_alternatives = self._find_alternatives(prompts[0])
        n_answers = len(prompts) * self._answers_per_prompt
        failures_before = self._usage["failures"]
        # The first answers show whether the model names labels at all, before others are paid for.
        shares = self._ask_prompts(prompts[:_FIRST_PROMPTS], n_answers)
        first_answers = len(shares) * self._answers_per_prompt
        first_failures = self._usage["failures"] - failures_before
        # A few answers tell little about a model that has named labels before.
        is_proven = self._has_named_labels and len(shares) < _FIRST_PROMPTS
        if first_failures == first_answers and not is_proven:
            raise InputError(
                f"{self.model} never names a label: none of its first"
                f" {counted(first_answers, 'answer')} does, where"
                f" {self._questions.choices.sentence} was asked for",
                "look at the prompt (a dry run shows it), and have it ask for the label alone;"
                " a model that thinks first needs a larger max_tokens",
                code="unusable-answers",
            )
        shares += self._ask_prompts(prompts[_FIRST_PROMPTS:], n_answers, first_answers)
        self._usage["items"] += len(pairs)
        failures = self._usage["failures"] - failures_before
        if failures:
            counts = are(failures, n_answers, ("names", "name"), "answer")
            verb = "is" if failures == 1 else "are"
            warn(
                f"{self.model}: {counts} no label and {verb} left out; where no answer names one,"
                " all labels are equally likely"
            )
        rows = np.array(shares)
        if self._questions.by_label:
            return rows[:, 1].reshape(len(pairs), -1)
        return rows

    @property
    def _answers_per_prompt(self) -> int:
        """Number of answers to each prompt."""
        if self._n_alternatives:
            return 1
        return self.samples

    def _ask_prompts(self, prompts: Sequence[Prompt], total: int, done: int = 0) -> list[Floats]:
        """Probabilities from the answers to each prompt; ``done`` of ``total`` came before."""

        def report(answers: int) -> None:
            session = current_session()
            if self._progress is not None:
                task = f"request {done + answers} of {total}"
                self._progress(done + answers, total, task)
            elif session.report is not None:
                session.report(f"{session.member}, request {done + answers} of {total}")

        requests = self._requests(prompts, self._n_alternatives or 0)
        answers = self._server.ask(requests, report)
        self._usage["requests"] += len(answers)
        for request, answer in zip(requests, answers, strict=True):
            tokens_in, tokens_out = endpoints.counted_tokens(request, answer)
            self._usage["tokens_in"] += tokens_in
            self._usage["tokens_out"] += tokens_out
            self._usage["without_usage"] += not answer.has_usage
        starts = range(0, len(answers), self._answers_per_prompt)
        return [self._shares(answers[k : k + self._answers_per_prompt]) for k in starts]

    def _shares(self, answers: Sequence[Completion]) -> Floats:
        """Probabilities from the answers to one prompt; failures are counted and left out."""
        if self._n_alternatives:
            return self._shares_of_tokens(answers[0])
        choices = self._questions.choices
        n_choices = len(choices.names)
        choice_labels = [choices.find_label(answer.text) for answer in answers]
        labels = [label for label in choice_labels if label is not None]
        self._usage["failures"] += len(answers) - len(labels)
        if not labels:
            return np.full(n_choices, 1 / n_choices)
        self._has_named_labels = True
        counts = np.bincount(labels, minlength=n_choices)
        return NOMINAL.smoothed(counts, len(labels), self.smoothing)

    def _shares_of_tokens(self, answer: Completion) -> Floats:
        """Probabilities from the log-probabilities of an answer's tokens."""
        choices = self._questions.choices
        shares = choices.shares(answer.logprobs or [])
        if shares is None:
            self._usage["failures"] += 1
            return np.full(len(choices.names), 1 / len(choices.names))
        self._has_named_labels = True
        return shares

    def _requests(self, prompts: Sequence[Prompt], n_alternatives: int) -> list[endpoints.Request]:
        """The requests for prompts: one each for log-probabilities, else as many as samples."""
        body: dict[str, object] = {"model": self.model}
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
            has_keys = self._questions.by_label or len(self._questions.choices.keys) > 0
            if n_alternatives and has_keys:
                body["max_tokens"] = min(self.max_tokens, _KEY_TOKENS)
        if self.temperature is not None:
            body["temperature"] = 0.0 if n_alternatives else self.temperature
        if n_alternatives:
            body["logprobs"] = True
            body["top_logprobs"] = n_alternatives
        body.update(self.extra_parameters())
        draws = 1 if n_alternatives else self.samples
        requests: list[endpoints.Request] = []
        for text, messages in prompts:
            for draw in range(draws):
                requests.append(endpoints.Request({**body, "messages": messages}, draw, text))
        return requests

    @property
    def _may_use_logprobs(self) -> bool:
        """Whether the log-probabilities of tokens can tell labels apart, if a server has them."""
        return self.probabilities == "auto" and self._questions.choices.first_token_decides

    def _find_alternatives(self, prompt: Prompt) -> int:
        """How many alternatives the server returns at each token; 0: answers must be sampled."""
        if not self._may_use_logprobs:
            return 0
        if self._n_alternatives is not None:
            return self._n_alternatives
        for n_alternatives in _ALTERNATIVES:
            with suppress(endpoints.RequestRefusedError):
                answer = self._server.ask(self._requests([prompt], n_alternatives))[0]
                if answer.logprobs is None:
                    return 0
                return n_alternatives
        return 0


def _short(text: str) -> str:
    """A text in one line of at most 80 characters."""
    line = " ".join(text.split())
    if len(line) > 80:
        return line[:79] + "…"
    return line
