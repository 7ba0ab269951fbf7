"""What a language model is asked, and which label its answer names."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
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
# If the tokens that begin labels have less than this probability together, no label is named.
_LEAST_MASS = 0.01
_LEAST_SHARE = 1e-6
# Characters around a label that don't count, among them the blanks of tokenizers.
_AROUND = " \t\r\n\"'`*()[]{}<>.:,;!ĠĊ▁“”‘’"
# What may follow a label: the end, punctuation, or a dash or bracket before an explanation.
_AFTER = r"\s*(?:$|[.,;:!)\]\n\"'*`]|[-–—(]\s*\w)"
_THINK = re.compile(r"(</?think>)")
# What separates several labels in an answer.
_BETWEEN = re.compile(r"[,;/\n]|\band\b|\bor\b")
# What announces a label in a sentence: "the answer is".
_ANNOUNCED = re.compile(r"\b(?:answer|label)(?:\s+is)?\s*[:=]?\s*[\"'(*`]*")


def default_template(scale: Scale, context: bool) -> str:
    """The template of an answer scale, for a text with or without a context."""
    template = _DEFAULTS[scale.kind]
    if context:
        return template.replace(_TEXT, _CONTEXT + _TEXT)
    return template


def fields_of(template: str) -> frozenset[str]:
    """The fields of a template; one without text is refused, and so are unknown fields."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise InputError(
            f"the {option('prompt')} template has an unpaired brace: {error}",
            "write {{ and }} for literal braces",
            code="invalid-prompt",
        ) from error
    fields: set[str] = set()
    for _, name, format_spec, conversion in parts:
        if name is None:
            continue
        if format_spec or conversion:
            fields.add(f"{name} with a format")
        else:
            fields.add(name)
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
        """The label of each text that names one; a key comes before an equal name."""
        forms: dict[str, int] = {}
        for texts in (self.keys, self.names):
            for label, text in enumerate(texts):
                form = _normalized(text) or text.casefold()
                forms.setdefault(form, label)
        return forms

    @cached_property
    def _label_pattern(self) -> re.Pattern[str]:
        """What names a label at the beginning of a text; the longest name that fits."""
        longest_first = sorted(self._forms, key=len, reverse=True)
        return re.compile(rf"({'|'.join(map(re.escape, longest_first))})(?={_AFTER})")

    @property
    def sentence(self) -> str:
        """The possible answers for people and models: ``A, B or C``."""
        answers = self.keys or self.names
        if len(answers) == 1:
            return answers[0]
        return f"{', '.join(answers[:-1])} or {answers[-1]}"

    def lines(self, descriptions: Mapping[str, str]) -> str:
        """The labels, a line each, with key and description."""
        lines = []
        for key, name in zip(self.keys or self.names, self.names, strict=True):
            line = described(name, descriptions)
            if key != name:
                line = f"{key}. {line}"
            lines.append(line)
        return "\n".join(lines)

    def find_label(self, answer: str) -> int | None:
        """The label that an answer names: alone, at its beginning, or as "the answer is …".

        None if it names no label, or several.
        """
        text = without_thoughts(answer).casefold()
        label = self._forms.get(_normalized(text))
        if label is not None:
            return label
        listed_labels = {self._forms.get(_normalized(part)) for part in _BETWEEN.split(text)}
        listed_labels.discard(None)
        if len(listed_labels) > 1:
            return None
        beginning = self._label_pattern.match(text.lstrip(_AROUND))
        if beginning is not None:
            return self._forms[beginning[1]]
        announced_labels = set()
        for announcement in _ANNOUNCED.finditer(text):
            match = self._label_pattern.match(text, announcement.end())
            if match is not None:
                announced_labels.add(self._forms[match[1]])
        if len(announced_labels) == 1:
            return announced_labels.pop()
        return None

    def shares(self, positions: Sequence[Sequence[Sequence[float | str]]]) -> Floats | None:
        """Probabilities [C] from the alternatives to each token of an answer.

        Each position has the token itself, then its alternatives, with their log-probabilities. A
        token that begins one label alone counts for it. Where the model's own token begins several,
        the next token decides between them. A label that no listed token begins gets what such a
        token can have at most. None if tokens that begin labels are too improbable.
        """
        mass = np.zeros(len(self.names))
        prefix = ""  # the model's own tokens before this position
        prefix_probability = 1.0
        # No token that is not listed has a larger probability.
        unlisted_mass = 1.0
        is_ambiguous = True
        for position in positions:
            listed = {str(token): math.exp(min(0.0, float(p))) for token, p in position}
            for token, p in listed.items():
                labels = self._possible_labels(prefix + token)
                if len(labels) == 1:
                    mass[labels[0]] += prefix_probability * p
            unlisted_probability = max(0.0, 1.0 - sum(listed.values()))
            unlisted_mass = min(
                unlisted_mass, prefix_probability * min(*listed.values(), unlisted_probability)
            )
            own_token = str(position[0][0])
            prefix += own_token
            prefix_probability *= listed[own_token]
            is_ambiguous = len(self._possible_labels(prefix)) >= 2
            if not is_ambiguous:
                break
        if is_ambiguous:
            # The answer ended where it may still begin several labels: it may be one of them.
            label = self._forms.get(_normalized(prefix))
            if label is not None:
                mass[label] += prefix_probability
        if mass.sum() < _LEAST_MASS:
            return None
        is_missing = mass == 0
        n_missing = max(int(is_missing.sum()), 1)
        mass[is_missing] = max(unlisted_mass / n_missing, _LEAST_SHARE)
        shares: Floats = mass / mass.sum()
        return shares

    def _possible_labels(self, start: str) -> list[int]:
        """The labels that an answer which starts like this may name."""
        start = start.casefold().lstrip(_AROUND)
        single_keys = [key.casefold() for key in self.keys if len(key) == 1]
        if start in single_keys:
            return [self._forms[start]]
        labels = set()
        for form, label in self._forms.items():
            if form.startswith(start):
                labels.add(label)
            elif start.startswith(form) and not start[len(form)].isalnum():
                labels.add(label)  # the label is complete, and something else follows
        return sorted(labels)


def described(name: str, descriptions: Mapping[str, str]) -> str:
    """A label with its description, if it has one."""
    if name in descriptions:
        return f"{name}: {descriptions[name]}"
    return name


def read_descriptions(text: str, labels: Collection[str]) -> dict[str, str]:
    """Descriptions of labels from lines such as ``rude: hurts somebody``."""
    descriptions = {}
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if not line:
            continue
        # A label may begin with another: the longest one that a sign follows is described.
        endings = {name: line[len(name) :].lstrip() for name in labels if line.startswith(name)}
        matches = [name for name, ending in endings.items() if ending.startswith((":", "="))]
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
    """Texts with an annotator's answers, for the field {examples}; empty if there are none."""
    if not answered:
        return ""
    blocks = ["Answer as one annotator would, who answered about other texts like this:\n\n"]
    for text, answer in answered:
        shown_text = text
        if not isinstance(text, str):
            shown_text = "\nContext: ".join(text)
        blocks.append(f"Text: {shown_text}\nAnswer: {answer}\n\n")
    return "".join(blocks)


def without_thoughts(answer: str) -> str:
    """The answer without what a model thought before it, between ``<think>`` and ``</think>``.

    Servers may leave out the first mark. An answer that is cut off lacks the second: then all that
    follows the first is a thought. Takes time proportional to the length of the answer.
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


# The possible answers about a single label.
_NO_YES = ("no", "yes")


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
        # Possible answers, and the labels that each text is asked about, one prompt for each.
        self.labels: tuple[str, ...]
        if self.by_label:
            self.choices = Choices(_NO_YES)
            self.labels = self.classes
        else:
            self.choices = Choices.from_classes(classes, listed="labels" in fields)
            self.labels = ("",)
        self._has_persona = "persona" in fields

    def messages(
        self, text: Text, label: str, examples: Sequence[tuple[Text, Sequence[int]]]
    ) -> list[dict[str, str]]:
        """The prompt about a text, after examples with the codes of their labels."""
        if isinstance(text, str):
            string = text
            context = ""
        else:
            string, context = text
        template = self.template or default_template(self.scale, bool(context.strip()))
        all_labels = self.choices
        if self.by_label:
            all_labels = Choices(self.classes)
        answered = [(example, self._answer(codes, label)) for example, codes in examples]
        prompt = template.format(
            text=string,
            context=context,
            labels=all_labels.lines(self.descriptions),
            label=described(label, self.descriptions),
            answers=self.choices.sentence,
            persona=self.persona,
            examples=example_lines(answered),
        )
        messages = []
        if self.persona and not self._has_persona:
            messages.append({"role": "system", "content": self.persona})
        messages.append({"role": "user", "content": prompt})
        return messages

    def _answer(self, codes: Sequence[int], label: str) -> str:
        """An annotator's labels in the words of an answer."""
        if self.by_label:
            return _NO_YES[self.classes.index(label) in codes]
        keys = self.choices.keys or self.choices.names
        return ", ".join(keys[k] for k in codes)


def _normalized(text: str) -> str:
    """A text without the characters around it that don't count, in lower case."""
    return text.casefold().strip(_AROUND)
