"""Members that are language models behind an OpenAI-compatible endpoint, asked with a prompt."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, are, check_number, counted, errors_in, one_of, warn
from edokit._io import read_json, read_text
from edokit._io.schema import (
    distinct,
    listed,
    mapping,
    needs,
    number,
    optional,
    plain,
    read_document,
    record,
    text,
)
from edokit._types import Floats
from edokit.annotator_effects import KnownAnnotators, label_shares, mean_over_pairs
from edokit.members.recipe import (
    Member,
    MemberData,
    Progress,
    Text,
    check_options,
    known_labels,
    known_options,
)
from edokit.members.recipes import _endpoint as endpoints
from edokit.members.recipes._prompts import (
    Choices,
    default_template,
    described,
    example_lines,
    fields_of,
    read_descriptions,
)
from edokit.scales import NOMINAL, Declared, Scale

_FILE = "llm.json"
_PROBABILITIES = ("auto", "logprobs", "samples")
_TOP = (20, 5)
"""Alternatives to ask for at each token; not every server gives the first number."""
_FIRST_LOOK = 20
"""If none of the answers to this many prompts names a label, the run stops."""
_KEY_TOKENS = 3
"""Tokens of an answer in which a key must come where tokens have probabilities; blanks may be
first."""
_YES = ("no", "yes")


class LanguageModel(Member):
    """A model behind an endpoint, a prompt and perhaps a persona: nothing is trained."""

    multi_label = True
    remote = True
    usual_members = 1
    operational = ("concurrency", "timeout", "retries", "price_in", "price_out")

    def __init__(
        self,
        n_classes: int,
        *,
        base_url: str = "",
        model: str = "",
        prompt: str = "",
        prompt_name: str = "",
        persona: str = "",
        persona_name: str = "",
        label_descriptions: str = "",
        examples: int = 0,
        probabilities: str = "auto",
        samples: int = 5,
        smoothing: float = 0.5,
        temperature: float | None = 1.0,
        max_tokens: int | None = 16,
        extra: str = "",
        price_in: float | None = None,
        price_out: float | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        """``base_url`` is the endpoint (else OPENAI_BASE_URL), ``model`` its name there.

        ``prompt`` is a template or a file with one, ``persona`` who the model is to be (tables show
        ``prompt_name`` and ``persona_name`` instead, the names that a TOML file gives them),
        ``label_descriptions`` lines such as "rude: hurts somebody" (or a file), ``examples`` how
        many of an annotator's own labels are shown to answer for that annotator. Probabilities are
        those of the labels' tokens ("logprobs") where the server gives them, else shares among
        ``samples`` answers at this ``temperature``, with ``smoothing`` added to each count.
        ``max_tokens`` limits an answer, ``extra`` is a JSON object of further parameters.
        ``price_in`` and ``price_out`` are per million tokens; ``concurrency`` requests run at a
        time, each ends after ``timeout`` seconds and is repeated up to ``retries`` times."""
        given = locals()
        self._options = {name: given[name] for name in known_options(type(self))}
        if not model.strip():
            raise InputError(
                "the recipe llm needs the name of a model on the server",
                "name it with the option model",
                parameters=("model",),
            )
        one_of("probabilities", probabilities, _PROBABILITIES)
        check_number("examples", examples, 0, 1000, whole=True)
        check_number("samples", samples, 1, 1000, whole=True)
        check_number("smoothing", smoothing, 0.0, 1e6)
        check_number("concurrency", concurrency, 1, 1000, whole=True)
        check_number("timeout", timeout, 0.0, 86400, above=True)
        check_number("retries", retries, 0, 100, whole=True)
        for name, value in (("price_in", price_in), ("price_out", price_out)):
            if value is not None:
                check_number(name, value, 0.0, 1e9)
        if max_tokens is not None:
            check_number("max_tokens", max_tokens, 1, 10**7, whole=True)
        if temperature is not None:
            check_number("temperature", temperature, 0.0, 100)
        self.n_classes, self.model, self.persona = n_classes, model, persona
        self.prompt_name, self.persona_name = prompt_name, persona_name
        self.prompt, self.label_descriptions = prompt, label_descriptions
        self.probabilities, self.samples, self.smoothing = probabilities, samples, smoothing
        self.temperature, self.max_tokens, self.examples = temperature, max_tokens, examples
        self._extra = _object(extra)
        self._fields = fields_of(prompt) if prompt else frozenset[str]()
        if prompt and examples and "examples" not in self._fields:
            raise InputError(
                f"examples={examples}, but the prompt template has no field {{examples}}",
                "add {examples} where they belong",
                parameters=("prompt",),
            )
        prices = (price_in or 0.0, price_out or 0.0)
        known = price_in is not None or price_out is not None
        base_url = base_url or os.environ.get(endpoints.ADDRESS, "")
        if not base_url:
            raise InputError(
                "the recipe llm needs an endpoint to ask",
                f"name it with the option base_url, or in the environment: {endpoints.ADDRESS}",
                parameters=("base_url",),
            )
        self._server = endpoints.Endpoint(
            endpoints.check_address(base_url),
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            prices=prices if known else None,
        )
        self._options["base_url"] = self._server.base_url
        key = os.environ.get(endpoints.KEY, "").strip()
        if key and any(key in str(value) for value in self._options.values()):
            raise InputError(
                f"an option contains the key in {endpoints.KEY}, and options are written to files",
                "remove it: the key is read from the environment",
            )
        self._classes: tuple[str, ...] = ()
        self._scale = NOMINAL
        self._examples: dict[str, list[tuple[Text, list[int]]]] = {}
        self._progress: Progress | None = None
        self._tally = dict.fromkeys(("items", "requests", "failures"), 0)
        self._tokens = [0, 0]
        self._cost = 0.0
        self._proven = False
        self._top: int | None = None

    @classmethod
    def read_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """With the texts of the files that options name, and the endpoint of the environment."""
        read = dict(options)
        read["base_url"] = read.get("base_url") or os.environ.get(endpoints.ADDRESS, "")
        for name, endings in (
            ("prompt", (".txt", ".md")),
            ("persona", (".txt", ".md")),
            ("label_descriptions", (".txt", ".md", ".json")),
        ):
            given = str(read.get(name, ""))
            if "\n" not in given and given.lower().endswith(endings):
                read[name] = _content(Path(given))
        return read

    @classmethod
    def refuse_file(
        cls, where: str, options: Mapping[str, Any], trust: Collection[str] | None
    ) -> None:
        """Refuse a file that decides where texts and keys go."""
        if base_url := options.get("base_url"):
            endpoints.refuse_address(where, str(base_url), trust)

    @classmethod
    def learns(cls, options: Mapping[str, Any]) -> bool:
        """Whether it shows examples, the only part that depends on training items."""
        return bool(options.get("examples"))

    @property
    def known(self) -> KnownAnnotators:
        """The annotators whose own labels it can show the model."""
        return KnownAnnotators.named(self._examples)

    @property
    def endpoint(self) -> str:
        """The address that it sends texts to."""
        return self._server.base_url

    @property
    def details(self) -> Mapping[str, Any]:
        """Model, prompt, persona, numbers of requests and tokens, and the cost per item."""
        tally = self._tally
        info: dict[str, Any] = {"model": self.model}
        info["prompt"] = self.prompt_name or _short(self.prompt) or "default"
        if self.persona or self.persona_name:
            info["persona"] = self.persona_name or _short(self.persona)
        if self.examples:
            info["examples"] = self.examples
        if self._top is not None:
            info["probabilities"] = "logprobs" if self._top else f"{self.samples} samples"
        info |= {"requests": tally["requests"], "failures": tally["failures"]}
        if self._top == 0:
            info["answers"] = tally["requests"] - tally["failures"]
        info |= {"tokens_in": self._tokens[0], "tokens_out": self._tokens[1]}
        if self._server.prices is not None and tally["items"]:
            info |= {"cost": self._cost / tally["items"], "total_cost": self._cost}
        return info

    def check_data(self, data: Any) -> None:
        """Refuse descriptions of labels that these data do not have, and contexts without field."""
        self._ask_about(data.classes, data.scale)
        unseen = self.prompt and "context" not in self._fields
        if unseen and any(not isinstance(one, str) and one[1].strip() for one in data.texts):
            start = _short(self.prompt, 40)
            warn(f"the prompt {start!r} has no field {{context}}: the model sees no context")

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> LanguageModel:
        """Keep the classes, and examples of each annotator; nothing is asked yet."""
        self._progress = progress
        self._ask_about(data.classes or [str(k) for k in range(self.n_classes)], data.scale)
        self._examples = {}
        if self.examples:
            self._examples = _own_labels(
                data, known_labels(data), self.examples, self.n_classes, random_state
            )
        return self

    def predict_proba(
        self, texts: Sequence[Text], annotators: Sequence[Iterable[str]] | None = None
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        if not self._classes:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        if not texts:
            return np.zeros((0, self.n_classes))
        # An annotator without labels is nobody in particular.
        known, nobody = (*self._examples, ""), [()] * len(texts)
        rows, codes = self.known.asked(nobody if annotators is None else annotators, len(texts))
        asked = [(texts[row], known[code]) for row, code in zip(rows, codes[:, 0], strict=True)]
        units = list(dict.fromkeys(asked))
        found = dict(zip(units, self._predicted(units), strict=True))
        return mean_over_pairs(np.array([found[unit] for unit in asked]), rows)

    def save(self, folder: Path) -> None:
        """Write one JSON file: options, classes, and the examples that it shows; no key."""
        stored = {
            "options": self._options,
            "classes": list(self._classes),
            "scale": self._scale.to_text(self._classes),
            "top": self._top,
            "examples": self._examples,
        }
        content = json.dumps(stored, ensure_ascii=False, indent=1) + "\n"
        (folder / _FILE).write_text(content, encoding="utf-8", errors="surrogatepass")

    @classmethod
    def load(cls, folder: Path, *, trust: Sequence[str] = ()) -> LanguageModel:
        """Read what ``save`` wrote; an endpoint on another machine must be trusted."""
        path = folder / _FILE
        stored = read_document(path, _stored, "a language model of EDO's", "train it again")
        cls.refuse_file(f"the member in {folder}", stored["options"], trust)
        with errors_in(path):
            options = check_options("a language model", known_options(cls), stored["options"])
            member = cls(len(stored["classes"]), **options)
            member._ask_about(stored["classes"], Declared(stored["scale"]).on(stored["classes"]))
        member._examples = stored["examples"]
        member._top, member._proven = stored["top"], True
        return member

    def _ask_about(self, classes: Sequence[str], scale: Scale) -> None:
        """Take the classes, and make what may be answered."""
        self._classes, self._scale = tuple(classes), scale
        self._descriptions = read_descriptions(self.label_descriptions, classes)
        fields = self._fields or fields_of(default_template(scale, context=True))
        self._by_label = "label" in fields
        if self._by_label and not scale.is_multi_label:
            raise InputError(
                "the prompt template asks about one {label} at a time, but annotators chose one"
                " label of several",
                "write {labels}, which lists all of them",
                parameters=("prompt",),
            )
        self._sets = scale.is_multi_label and not self._by_label
        self._choices = (
            Choices(_YES) if self._by_label else Choices.of(classes, listed="labels" in fields)
        )
        if self.probabilities == "logprobs" and not self._may_score:
            what = "a list of labels" if self._sets else counted(len(classes), "label")
            raise InputError(
                f"log-probabilities are of one token, which can't tell {what} apart",
                "choose probabilities='samples'",
                parameters=("probabilities",),
            )

    @property
    def _may_score(self) -> bool:
        """Whether probabilities of labels can be read from those of tokens."""
        return not self._sets and self._choices.first_token_decides

    def _messages(self, one: Text, whose: str, label: str) -> list[dict[str, str]]:
        """What the model is sent about a text, for an annotator or nobody, about a label or all."""
        own, context = (one, "") if isinstance(one, str) else one
        template = self.prompt or default_template(self._scale, bool(context.strip()))
        shown = [
            (text, self._answered(codes, label)) for text, codes in self._examples.get(whose, ())
        ]
        choices = self._choices
        filled = template.format(
            text=own,
            context=context,
            labels=(Choices(self._classes) if self._by_label else choices).lines(
                self._descriptions
            ),
            label=described(label, self._descriptions),
            answers=choices.shown,
            persona=self.persona,
            examples=example_lines(shown),
        )
        system = self.persona if self.persona and "persona" not in self._fields else ""
        head = [{"role": "system", "content": system}] if system else []
        return [*head, {"role": "user", "content": filled}]

    def _answered(self, codes: Sequence[int], label: str) -> str:
        """An annotator's label in the words of an answer."""
        if self._by_label:
            return _YES[self._classes.index(label) in codes]
        keys = self._choices.keys or self._choices.names
        return ", ".join(keys[k] for k in codes) or "none"

    def _request(self, messages: Sequence[Any], top: int, draw: int = 0) -> endpoints.Request:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if self.max_tokens is not None:
            short = top and (self._choices.keys or self._by_label)
            body["max_tokens"] = min(self.max_tokens, _KEY_TOKENS) if short else self.max_tokens
        if self.temperature is not None:
            body["temperature"] = 0.0 if top else self.temperature
        if top:
            body |= {"logprobs": True, "top_logprobs": top}
        return endpoints.Request({**body, **self._extra}, draw)

    def _requests(self, prompts: Sequence[Any], top: int) -> list[endpoints.Request]:
        draws = 1 if top else self.samples
        return [self._request(one, top, draw) for one in prompts for draw in range(draws)]

    def _predicted(self, units: Sequence[tuple[Text, str]]) -> Floats:
        """Probabilities [N, C] of distinct texts for annotators."""
        asked = self._classes if self._by_label else ("",)
        prompts = [self._messages(*unit, label) for unit in units for label in asked]
        limits = endpoints.current_session()
        if limits.dry:
            self._preview(limits, prompts)
            return np.full((len(units), self.n_classes), 1 / self.n_classes)
        self._top = self._how(prompts[0], units[0][0])
        each = 1 if self._top else self.samples
        found: list[Floats] = []
        before = self._tally["failures"]
        # A model that never names a label is known by its first answers; the rest is then saved.
        for start, end in ((0, _FIRST_LOOK), (_FIRST_LOOK, len(prompts))):
            part = prompts[start:end]
            about = [units[k // len(asked)][0] for k in range(start, start + len(part))]
            answers = self._asked(
                self._requests(part, self._top),
                [text for text in about for _ in range(each)],
                self._reporter(start * each, len(prompts) * each),
            )
            for answer in answers:
                self._tokens[0] += answer.tokens_in
                self._tokens[1] += answer.tokens_out
                self._cost += self._server.cost(answer) or 0.0
            self._tally["requests"] += len(answers)
            for k in range(len(part)):
                found.append(self._shares(answers[k * each : (k + 1) * each]))
            silent = self._tally["failures"] - before == len(found) * each
            if silent and (not self._proven or len(found) >= _FIRST_LOOK):
                self._refuse_silence(len(found) * each)
        self._tally["items"] += len(units)
        if missed := self._tally["failures"] - before:
            some = are(missed, len(prompts) * each, ("names", "name"), "answer")
            warn(
                f"{self.model}: {some} no label and {'is' if missed == 1 else 'are'} left out;"
                " where no answer names one, all labels are equally likely"
            )
        rows = np.array(found)
        return rows[:, 1].reshape(len(units), -1) if self._by_label else rows

    def _shares(self, answers: Sequence[endpoints.Answer]) -> Floats:
        """Probabilities from the answers to one prompt; failures are counted and left out."""
        n = len(self._choices.names)
        if self._top:
            shares = self._choices.shares(answers[0].logprobs or [])
            self._proven |= shares is not None
            self._tally["failures"] += shares is None
            return np.full(n, 1 / n) if shares is None else shares
        if self._sets:
            chosen = [self._choices.all_named(answer.text) for answer in answers]
        else:
            one = [self._choices.named(answer.text) for answer in answers]
            chosen = [None if k is None else [k] for k in one]
        named = [codes for codes in chosen if codes is not None]
        self._proven |= bool(named)
        self._tally["failures"] += len(chosen) - len(named)
        counts = np.bincount([k for codes in named for k in codes], minlength=n).astype(float)
        # Additive smoothing; where no answer names a label, all labels are equally likely.
        more = self.smoothing if named else 1.0
        return self._scale.smoothed(counts, len(named), more)

    def _asked(
        self,
        requests: Sequence[endpoints.Request],
        texts: Sequence[Text],
        report: Callable[[int], None] | None = None,
    ) -> list[endpoints.Answer]:
        """The answers to requests about these texts; a refusal names the item."""
        try:
            return self._server.ask(requests, report)
        except endpoints.RefusedError as error:
            place = endpoints.current_session().place
            text = texts[[self._server.key(one) for one in requests].index(error.key)]
            about = place(text) if place is not None else "a text"
            size = sum(map(len, (text,) if isinstance(text, str) else text))
            raise endpoints.RefusedError(
                f"{self.model}: {about} ({size:,} characters): {error.message}",
                f"shorten it, leave it out or choose a model that takes it; else {error.hint}",
            ) from error

    def _how(self, prompt: Any, text: Text) -> int:
        """How many alternatives the server gives at each token; 0: answers must be sampled."""
        if self.probabilities == "samples" or not self._may_score:
            return 0
        if self._top is not None:
            return self._top
        fact = f"top_logprobs of {self.model}"
        known = self._server.known(fact)
        if known is not None and (known or self.probabilities == "auto"):
            return int(known)
        gives = 0
        for top in _TOP:
            with suppress(endpoints.RefusedError):
                answer = self._server.ask([self._request(prompt, top)])[0]
                gives = 0 if answer.logprobs is None else top
                break
        if not gives and self.probabilities == "logprobs":
            raise InputError(
                f"{self._server.base_url} returns no log-probabilities for {self.model}",
                "choose probabilities='samples'",
                parameters=("probabilities",),
            )
        if not gives:
            self._asked([self._request(prompt, 0)], [text])  # or the reason is another
        self._server.known(fact, gives)
        return gives

    def _refuse_silence(self, answers: int) -> None:
        raise InputError(
            f"{self.model} never names a label: none of its first {counted(answers, 'answer')}"
            f" does, where {self._choices.shown} was asked for",
            "look at the prompt (a dry run shows it), and have it ask for the label alone; a model"
            " that thinks first needs a larger max_tokens",
        )

    def _reporter(self, before: int, total: int) -> Callable[[int], None]:
        progress, now = self._progress, endpoints.current_session()

        def report(done: int) -> None:
            if progress is not None:
                progress({"requests": before + done, "of": total})
            elif now.report is not None:
                now.report(f"{now.member}, request {before + done} of {total}")

        return report

    def _preview(self, limits: endpoints.Session, prompts: Sequence[Any]) -> None:
        """Add the requests that would be sent, and how many are cached, to the session."""
        known = self._server.known(f"top_logprobs of {self.model}")
        top = 0 if self.probabilities == "samples" or not self._may_score else known
        requests = self._requests(prompts, _TOP[0] if top is None else int(top))
        distinct = list({self._server.key(one): one for one in requests}.values())
        cached = self._server.cached(distinct)
        # A token is about four characters; an answer has as many as it may, at most.
        new = 1 - cached / max(len(distinct), 1)
        characters = sum(len(m["content"]) for one in distinct for m in one.body["messages"])
        tokens = [characters / 4, sum(one.body.get("max_tokens", 0) for one in distinct)]
        tokens_in, tokens_out = (round(number * new) for number in tokens)
        limits.preview(
            {
                "requests": len(distinct),
                "cached": cached,
                "tokens_in": tokens_in,
                "tokens_out": tokens_out,
                "cost": self._server.cost(endpoints.Answer("", None, tokens_in, tokens_out)),
            },
            model=self.model,
            base_url=self._server.base_url,
            messages=prompts[0] if prompts else [],
            logprobs=None if top is None else bool(top),
            samples=self.samples,
        )


def _object(extra: str) -> dict[str, Any]:
    """The option ``extra``, a JSON object."""
    with suppress(ValueError):
        found = json.loads(extra or "{}")
        json.dumps(found, allow_nan=False)
        if isinstance(found, dict) and not found.keys() & {"model", "messages", "stream", "n"}:
            return found
    raise InputError(
        "extra is not a JSON object of request parameters (without model, messages, stream and n)",
        'write it as extra={"top_p": 0.9}',
        parameters=("extra",),
    )


def _content(path: Path) -> str:
    """The text of a file; of JSON a line for each label."""
    if path.suffix.lower() == ".json":
        found = read_json(path)
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise InputError(f"{path} does not map labels to texts", "correct the file")
        return "\n".join(f"{name}: {' '.join(one.split())}" for name, one in found.items())
    return read_text(path).strip()


def _own_labels(
    data: MemberData, annotations: Any, most: int, n_classes: int, seed: int
) -> dict[str, list[tuple[Text, list[int]]]]:
    """Some of each annotator's own labels to train on, as many labels as possible among them."""
    shares = label_shares(annotations, n_classes)
    chosen = data.scale.indicators(data.scale.hard(shares), n_classes)
    turns: dict[str, list[tuple[int, Text, list[int]]]] = {}
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for row in np.random.default_rng(seed).permutation(len(shares)):
        name = str(annotations.annotators[annotations.annotator_codes[row]])
        codes = np.flatnonzero(chosen[row]).tolist()
        counts[name, tuple(codes)] += 1
        one = (counts[name, tuple(codes)], data.texts[annotations.item_codes[row]], codes)
        turns.setdefault(name, []).append(one)
    # The first of each label come before the second of any.
    return {
        name: [one[1:] for one in sorted(each, key=lambda one: one[0])[:most]]
        for name, each in sorted(turns.items())
    }


def _short(given: str, most: int = 80) -> str:
    line = " ".join(given.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _example(value: Any, at: str) -> Any:
    """A text, or a pair of texts, and the codes of its labels."""
    own, codes = listed(plain, 2)(value, at)
    own = tuple(listed(text, 2)(own, at)) if isinstance(own, list) else text(own, at)
    return own, listed(number(0, whole=True))(codes, at)


def _stored(value: Any, at: str) -> Any:
    """What `save` writes; codes name classes."""
    held = record(
        {
            "options": mapping(plain),
            "classes": distinct(listed(text, least=2)),
            "scale": text,
            "top": optional(number(0, 100, whole=True)),
            "examples": mapping(listed(_example)),
        }
    )(value, at)
    codes = [k for each in held["examples"].values() for _, codes in each for k in codes]
    needs(max(codes, default=0) < len(held["classes"]), "examples", "have labels that are none")
    return held
