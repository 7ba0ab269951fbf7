"""What a language model is asked, and which label its answer names."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from string import Formatter, ascii_uppercase

import numpy as np

from edokit._errors import InputError, examples, option
from edokit._types import Floats
from edokit.members.contexts import Text
from edokit.scales import Scale, ScaleKind

FIELDS = ("text", "context", "labels", "label", "answers", "persona", "examples")
_ENDS = "Answer with {answers} and nothing else.\n\nAnswer:"
_TEXT = "Text:\n{text}\n\n"
_CONTEXT = "Context:\n{context}\n\n"
_DEFAULTS: dict[ScaleKind, str] = {
    "nominal": "{examples}Which label fits the text best?\n\n{labels}\n\n" + _TEXT + _ENDS,
    "ordinal": "{examples}How do you rate the text on this scale? Its points, in their order:\n\n"
    "{labels}\n\n" + _TEXT + _ENDS,
    "multi-label": "{examples}Does this label fit the text? Others may fit as well.\n\n{label}\n\n"
    + _TEXT
    + _ENDS,
}
_LEAST_MASS = 0.01  # tokens that name labels with less than this probability name none
_FLOOR = 1e-6
_AROUND = " \t\r\n\"'`*()[]{}<>.:,;!ĠĊ▁“”‘’"
_AFTER = r"\s*(?:$|[.,;:!)\]\n\"'*`]|[-–—(]\s*\w)"
_THINK = re.compile(r"(</?think>)")
_BETWEEN = re.compile(r"[,;/\n]|\band\b|\bor\b")


def default_template(scale: Scale, context: bool) -> str:
    """The template of an answer scale, for a text with or without a context."""
    template = _DEFAULTS[scale.kind]
    return template.replace(_TEXT, _CONTEXT + _TEXT) if context else template


def fields_of(template: str) -> frozenset[str]:
    """The fields of a template; one without text is refused, and so are unknown fields."""
    fields: set[str] = set()
    with suppress(ValueError):  # an unpaired brace
        for _, name, form, sign in Formatter().parse(template):
            if name is not None:
                fields.add(f"{name} with a format" if form or sign else name)
    if "text" not in fields or not fields <= {*FIELDS}:
        raise InputError(
            f"the {option('prompt')} template must have the field {{text}}, and no others than"
            f" {', '.join('{' + name + '}' for name in FIELDS)}, but has"
            f" {examples('{' + name + '}' for name in sorted(fields)) or 'none'}",
            "check the spelling, and write {{ and }} for literal braces; a file with a"
            " template ends in .txt or .md",
            code="invalid-prompt",
        )
    return frozenset(fields)


@dataclass(frozen=True)
class Choices:
    """Possible answers: C names and, where the prompt lists them, a key for each.

    Parameters
    ----------
    names : tuple of str
        Names of the labels.
    keys : tuple of str
        What the prompt asks for in place of a name; empty if it asks for names.
    """

    names: tuple[str, ...]
    keys: tuple[str, ...] = ()

    @classmethod
    def from_classes(cls, names: Sequence[str], *, listed: bool) -> Choices:
        """Keys are single tokens: the names where each is one character, else letters.

        More labels than letters are numbered; numbers may begin alike.
        """
        if not listed:
            return cls(tuple(names))
        single_characters = {name.casefold() for name in names if len(name) == 1}
        if len(single_characters) == len(names):
            keys = tuple(names)
        elif len(names) <= len(ascii_uppercase):
            keys = tuple(ascii_uppercase[: len(names)])
        else:
            keys = tuple(str(number + 1) for number in range(len(names)))
        return cls(tuple(names), keys)

    @property
    def first_token_decides(self) -> bool:
        """Whether the first token of an answer may name each label."""
        return all(len(key) == 1 for key in self.keys)

    @cached_property
    def _forms(self) -> dict[str, int]:
        """Every text that names a label; none that names two."""
        forms: dict[str, int] = {}
        for k, form in (*enumerate(self.keys), *enumerate(self.names)):
            forms.setdefault(_bare(form) or form.casefold(), k)  # a key comes before a name
        return forms

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        longest = sorted(self._forms, key=len, reverse=True)
        return re.compile(rf"({'|'.join(map(re.escape, longest))})(?={_AFTER})")

    @property
    def sentence(self) -> str:
        """The possible answers for people and models: ``A, B or C``."""
        *answers, final = self.keys or self.names
        return " or ".join(filter(None, [", ".join(answers), final]))

    def lines(self, descriptions: Mapping[str, str]) -> str:
        """The labels, a line each, with key and description."""
        return "\n".join(
            ("" if key == name else f"{key}. ") + described(name, descriptions)
            for key, name in zip(self.keys or self.names, self.names, strict=True)
        )

    def named(self, answer: str) -> int | None:
        """The label that an answer names: alone, at its beginning, or as "the answer is …"."""
        text = without_thoughts(answer).casefold()
        if (label := self._forms.get(_bare(text))) is not None:
            return label
        labels = {self._forms.get(_bare(part)) for part in _BETWEEN.split(text)} - {None}
        if len(labels) > 1:
            return None
        if start := self._begins.match(text.lstrip(_AROUND)):
            return self._forms[start[1]]
        declared = {
            self._forms[match[1]]
            for before in re.finditer(r"\b(?:answer|label)(?:\s+is)?\s*[:=]?\s*[\"'(*`]*", text)
            if (match := self._begins.match(text, before.end()))
        }
        return declared.pop() if len(declared) == 1 else None

    def shares(self, positions: Sequence[Sequence[Sequence[float | str]]]) -> Floats | None:
        """Probabilities [C] from the alternatives to each token of an answer.

        A token that begins one label alone counts for it. Where the model's own token begins
        several, the next token decides between them. A label that no listed token begins gets
        what such a token can have at most. None if tokens that begin labels are too improbable.
        """
        mass = np.zeros(len(self.names))
        prefix = ""
        reach = 1.0  # the probability of the tokens before this one
        floor = 1.0
        for position in positions:
            listed = {str(token): math.exp(min(0.0, float(p))) for token, p in position}
            for token, p in listed.items():
                fitting = self._fitting(prefix + token)
                if len(fitting) == 1:
                    mass[fitting[0]] += reach * p
            unlisted = max(0.0, 1.0 - sum(listed.values()))
            floor = min(floor, reach * min(*listed.values(), unlisted))
            token = str(position[0][0])
            prefix += token
            reach *= listed[token]
            if len(self._fitting(prefix)) < 2:
                break
        else:
            label = self._forms.get(_bare(prefix))
            if label is not None:
                mass[label] += reach
        if mass.sum() < _LEAST_MASS:
            return None
        missing = mass == 0
        n_missing = max(int(missing.sum()), 1)
        mass[missing] = max(floor / n_missing, _FLOOR)
        shares: Floats = mass / mass.sum()
        return shares

    def _fitting(self, start: str) -> list[int]:
        """The labels that an answer which starts like this may name."""
        start = start.casefold().lstrip(_AROUND)
        if start in (key.casefold() for key in self.keys if len(key) == 1):
            return [self._forms[start]]
        return sorted(
            {
                k
                for form, k in self._forms.items()
                if form.startswith(start)
                or (start.startswith(form) and not start[len(form)].isalnum())
            }
        )


def described(name: str, descriptions: Mapping[str, str]) -> str:
    """A label with its description."""
    return f"{name}: {descriptions[name]}" if name in descriptions else name


def read_descriptions(text: str, labels: Collection[str]) -> dict[str, str]:
    """Descriptions of labels from lines such as ``rude: hurts somebody``."""
    descriptions = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        endings = {name: line[len(name) :].lstrip() for name in labels if line.startswith(name)}
        matches = [name for name in endings if endings[name][:1] in (":", "=")]
        if not matches:
            raise InputError(
                f"{option('label_descriptions')} has a line {examples([line])} for no label; the"
                f" labels are {examples(labels, 20)}",
                "write a line for each label: LABEL: what it means",
                code="unknown-label",
            )
        name = max(matches, key=len)
        descriptions[name] = endings[name][1:].strip()
    return descriptions


def example_lines(answered: Sequence[tuple[Text, str]]) -> str:
    """Texts with an annotator's answers, for the field {examples}; none: an empty text."""
    head = "Answer as one annotator would, who answered about other texts like this:\n\n"
    blocks = []
    for text, answer in answered:
        parts = text if isinstance(text, str) else "\nContext: ".join(text)
        blocks.append(f"Text: {parts}\nAnswer: {answer}\n\n")
    return "".join([head, *blocks]) if blocks else ""


def without_thoughts(answer: str) -> str:
    """The answer without what a model thought before it, between ``<think>`` and ``</think>``.

    Servers may leave out the first mark. An answer that is cut off lacks the second: then all of it
    is a thought. Takes time proportional to the length of the answer.
    """
    spoken_parts: list[str] = []
    is_thought = False
    for part in _THINK.split(answer):
        if part == "<think>":
            is_thought = True
        elif part == "</think>":
            if not is_thought:
                spoken_parts.clear()
            is_thought = False
        elif not is_thought:
            spoken_parts.append(part)
    return "".join(spoken_parts)


_YES = ("no", "yes")


class Questions:
    """The prompts about texts, for the classes of an answer scale, and the possible answers.

    For multi-label data, each label is asked about on its own.
    """

    def __init__(
        self, template: str, persona: str, descriptions: str, classes: Sequence[str], scale: Scale
    ) -> None:
        self.template = template
        self.persona = persona
        self.classes = tuple(classes)
        self.scale = scale
        self.descriptions = read_descriptions(descriptions, classes)
        fields = fields_of(template or default_template(scale, context=True))
        self.by_label = scale.is_multi_label
        if self.by_label != ("label" in fields):
            raise InputError(
                f"the {option('prompt')} template must ask about one {{label}} at a time where"
                " annotators chose sets of labels, and nowhere else",
                "write {label} for sets, else {labels}, which lists all of them",
                code="invalid-prompt",
            )
        listed = Choices.from_classes(classes, listed="labels" in fields)
        self.choices = Choices(_YES) if self.by_label else listed
        # What each text is asked about, one prompt at a time.
        self.labels = self.classes if self.by_label else ("",)
        self._has_persona = "persona" in fields

    def messages(
        self, text: Text, label: str, examples: Sequence[tuple[Text, Sequence[int]]]
    ) -> list[dict[str, str]]:
        """The prompt about a text, after examples with the codes of their labels."""
        if isinstance(text, str):
            utterance = text
            context = ""
        else:
            utterance, context = text
        template = self.template or default_template(self.scale, bool(context.strip()))
        listed = Choices(self.classes) if self.by_label else self.choices
        prompt = template.format(
            text=utterance,
            context=context,
            labels=listed.lines(self.descriptions),
            label=described(label, self.descriptions),
            answers=self.choices.sentence,
            persona=self.persona,
            examples=example_lines(
                [(text, self._answer(codes, label)) for text, codes in examples]
            ),
        )
        system = "" if self._has_persona else self.persona
        head = [{"role": "system", "content": system}] if system else []
        return [*head, {"role": "user", "content": prompt}]

    def _answer(self, codes: Sequence[int], label: str) -> str:
        """An annotator's labels in the words of an answer."""
        if self.by_label:
            return _YES[self.classes.index(label) in codes]
        keys = self.choices.keys or self.choices.names
        return ", ".join(keys[k] for k in codes)


def _bare(text: str) -> str:
    return text.casefold().strip(_AROUND)
