"""The commands put together, and the one place where errors become a line and an exit code.

Errors and warnings are lines on stderr, with options written as one types them; with ``--json``, an
error is an object there.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import get_args

from cyclopts import (
    App,
    Argument,
    ArgumentCollection,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnusedCliTokensError,
    default_name_transform,
)

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    OpenDecisionsError,
    local_path,
    one_line,
    option,
    show_options,
    typed_values,
)
from edokit._package import __version__

USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell shows for most commands: 128 plus the number of SIGPIPE. It is not 0, since the
command may have stopped early."""
HELP = ("-h", "--help")
COMMANDS = {
    "run": "Train a diverse pool, learn its weights, compare, and write a page and a bundle.",
    "demo": "Simulate annotators who disagree, train ten quick members, and pool them with EDO.",
    "diagnose": "Show coverage, agreement and groups of annotators: structure or noise? Advice.",
    "train": "Train members and write their predictions for dev and test; run it again to resume.",
    "score": "Write the predictions of trained members, or of models that you have, for texts.",
    "fit": "Learn member weights and ensemble size, so that the pool matches the annotators.",
    "search": "Try many configurations (NSGA-II), keep the Pareto front, choose and fit one.",
    "predict": "Pool the members' predictions: probabilities, entropy, spread and a label.",
    "bundle": "Put an ensemble and its members into one folder that predicts texts.",
    "evaluate": "Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals.",
    "estimate": "Estimate the share of each class among many texts, from answers and a few labels.",
    "plan": "Plan annotation from a pilot: annotators per item, items, and what a budget buys.",
    "audit": "Show whether a jury is several judges or one, and whether it can replace annotators.",
    "cite": "Print BibTeX of EDO, of its paper, and of the packages and models that a run used.",
    "report": "Show what a run found: one self-contained page that opens from disk.",
    "serve": "Answer texts over HTTP, with a page to try it: POST /predict, GET / and /docs.",
    "compare": "Compare EDO with every baseline on the same members, with intervals and tests.",
    "data info": "Count items, annotators, annotations and near-duplicate texts, split by split.",
    "data convert": "Write any source as a table with one row per annotation.",
    "data split": "Split by item, stratified by hard label; groups of items stay together.",
    "data get": "Download a dataset from its official repository, or copy it; verify checksums.",
    "data simulate": "Simulate annotators of short posts, whose true label distribution is known.",
    "models get": "Download a sentence encoder into the hub's cache; verify digests, resume.",
    "models list": "List the sentence encoders with short names: size, licence, which are here.",
    "members add": "Make a fitted pipeline (skops) or a text classifier a member of a folder.",
    "predictions join": "Put one file per model side by side, items matched by id.",
    "predictions info": "Show items, members, classes and how far the members are from each other.",
}
"""The first line of each command's docstring, so that `edo --help` imports no command."""
GROUPS = {
    "data": "See, convert, split, obtain and simulate data.",
    "members": "Add existing models to members.",
    "models": "Get pretrained sentence encoders.",
    "predictions": "Join and inspect predictions.",
}
OPTION_NAMES = {
    "answer_for": "for",
    "as_annotator": "as",
    "attributes": "attribute",
    "columns": "column",
    "random_state": "seed",
    "samples": "bootstrap",
}
"""The name of the option for each parameter that is called otherwise in Python."""


def make_app() -> App:
    """The command line. The module of a command is imported when the command is first used."""
    app = App(
        name="edo",
        help="Learn from people who disagree.\n\n"
        "edo --debug COMMAND … also shows where in the code an error arose.",
        help_format="plaintext",
        help_flags=HELP,
        version=f"edo {__version__}",
        default_parameter=Parameter(
            name_transform=lambda name: OPTION_NAMES.get(name) or default_name_transform(name),
            negative_bool=(),
            negative_iterable=(),
            allow_leading_hyphen=True,
            allow_repeating=True,
            json_dict=False,
            json_list=False,
            show_default=lambda value: None if value is False else value,
        ),
        config=_check_tokens,
        exit_on_error=False,
        print_error=False,
    )
    for name, text in GROUPS.items():
        app.command(App(name=name, help=text))
    for number, (command, summary) in enumerate(COMMANDS.items()):
        module, _, function = command.partition(" ")
        name = function or module
        parent = app[module] if function else app
        target = f"edokit.cli.{module}:{name}"
        # Help of several lines is Markdown, which takes longer to load.
        parent.command(target, name=name, help=summary, sort_key=number, help_format="markdown")
    return app


def _check_tokens(app: App, commands: Sequence[str], arguments: ArgumentCollection) -> None:
    """Refuse what cyclopts would convert silently, such as empty paths and rounded numbers.

    Words that are no numbers are refused, too, since cyclopts speaks of types of Python.
    """
    for argument in arguments:
        kinds = {argument.hint, *get_args(argument.hint)}
        for token in argument.tokens:
            if Path in kinds:
                _check_path(argument.name, token.value)
            elif int in kinds and not token.value.lstrip("+-").isdecimal():
                raise InputError(
                    f"{argument.name} {token.value} is not a whole number",
                    f"write {argument.name} 1, for example",
                    code="invalid-number",
                )
            elif float in kinds and not _is_number(token.value):
                raise InputError(
                    f"{argument.name} {token.value} is not a number",
                    f"write {argument.name} 0.5, for example",
                    code="invalid-number",
                )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_path(name: str, text: str) -> None:
    """Refuse an address or an empty text where a path is expected; the message names the option."""
    try:
        local_path(text)
    except InputError as error:
        raise InputError(f"{name}: {error._message}", error._hint, code=error.code) from error


def main() -> None:
    """Run the command line: exit 0, or 2 with one line on what is wrong and what to do.

    It exits with 130 if it was interrupted, and with 141 if nobody reads its output.
    """
    words = sys.argv[1:]
    debug = words[:1] == ["--debug"]
    if debug:
        words = words[1:]
    app = make_app()
    options = Options(app, words)
    with warnings.catch_warnings():
        # Users see what EDO decided for them, not what libraries tell programmers.
        warnings.simplefilter("default" if debug else "ignore")
        warnings.filterwarnings("always", category=EDOWarning)
        warnings.showwarning = Notes(options).show
        try:
            code = _run(app, words, options, debug)
        except (BrokenPipeError, SystemExit) as error:
            # rich turns a broken pipe into an exit.
            causes = (error, error.__context__)
            if not any(isinstance(cause, BrokenPipeError) for cause in causes):
                raise
            _drop_output()
            code = BROKEN_PIPE
    raise SystemExit(code)


def _run(app: App, words: Sequence[str], options: Options, debug: bool) -> int:
    """Run a command; its exit code."""
    try:
        code = call(app, words)
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk shows here, not when Python ends
        return code
    except KeyboardInterrupt:
        say("edo: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if debug:
            traceback.print_exc()
        _drop_output()
        if "--json" in words:
            print(json.dumps(_as_json(error, options)), file=sys.stderr, flush=True)  # noqa: T201
            return USAGE
        for line in _reasons(error, options):
            say(line)
        return USAGE


def call(app: App, words: Sequence[str]) -> int:
    """Run a command, whose errors are raised; without a command, show the help."""
    _, apps, _ = app.parse_commands(list(words))
    for part in apps:
        if part.default_command is not None:
            # The app has the summary, which lists of commands show; a command's own help is longer.
            part.help = part.default_command.__doc__
    command, bound, _ = app.parse_args(words)
    command(*bound.args, **bound.kwargs)
    is_help_requested = any(flag in words for flag in HELP)
    if command == app.help_print and not is_help_requested:
        return USAGE
    return 0


def _reasons(error: Exception, options: Options) -> list[str]:
    """The lines on stderr: one, or one for each decision that the input leaves open.

    Decisions end in the whole command: the words that were typed, and the options that are missing.
    """
    for cause in _causes(error):
        if isinstance(cause, OpenDecisionsError):
            command = options.command_with(cause.remedy)
            if len(cause.decisions) > 1:
                rendered = [options.render(line) for line in cause.lines]
                closing = cause.closing(command or options.render(cause.remedy_text))
                return [f"edo: {rendered[0]}", *rendered[1:], closing]
            if command and cause.remedy:
                text = options.render(cause.text)
                if not text.endswith("?"):
                    text += "."
                return [f"edo: {text} For example: {command}"]
            break
        if isinstance(cause, EDOError):
            break
    return [f"edo: {_reason(error, options)}"]


def _as_json(error: Exception, options: Options) -> dict[str, object]:
    """What went wrong, for a program: one object in place of the lines."""
    causes = _causes(error)
    for cause in causes:
        if not isinstance(cause, EDOError):
            continue
        content: dict[str, object] = {
            "error": options.render(cause._message),
            "hint": options.render(cause._hint),
            "code": cause.code,
        }
        if isinstance(cause, OpenDecisionsError):
            content["decisions"] = [
                {
                    "error": one_line(options.render(decision.message)),
                    "hint": one_line(options.render(decision.hint)),
                    "code": decision.code,
                }
                for decision in cause.decisions
            ]
            content["command"] = one_line(options.command_with(cause.remedy))
        return content
    code = "internal-error"
    if isinstance(error, CycloptsError):
        code = "invalid-command"
    elif isinstance(error, OSError):
        code = "system-error"
    elif any(isinstance(cause, MemoryError) for cause in causes):
        code = "too-little-memory"
    elif any(isinstance(cause, ImportError) for cause in causes):
        code = "missing-package"
    return {"error": one_line(_reason(error, options)), "hint": "", "code": code}


def _reason(error: Exception, options: Options) -> str:
    """What went wrong: with the input, the machine or EDO itself, in one line."""
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, EDOError):
            return options.render(cause.text)
    if isinstance(error, CycloptsError):
        command = " ".join(["edo", *(error.command_chain or ())])
        reason = options.misspelt() or _command_reason(error, options)
        return f"{reason} See `{command} --help`."
    if isinstance(error, OSError):
        # A full disk for temporary files, a connection that broke.
        reason = str(error)
        if error.filename:
            reason = f"{error.filename}: {error.strerror}"
        return f"{reason}; check the disk and the network, then run it again"
    return _memory_or_import_reason(causes) or _bug(error)


def _command_reason(error: CycloptsError, options: Options) -> str:
    """What is wrong with the words of a command, none of which is a misspelt option."""
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return options.missing(error.argument)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument {', '.join(map(repr, error.unused_tokens))}."
    return str(error)


def _causes(error: BaseException) -> list[BaseException]:
    """An error, and the errors that caused it."""
    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    return causes


def _memory_or_import_reason(causes: Sequence[BaseException]) -> str:
    """Too little memory or a damaged installation; empty if it is neither."""
    for cause in reversed(causes):
        if isinstance(cause, MemoryError):
            return "out of memory; close other programs, or use a smaller file or shards"
        if isinstance(cause, ImportError):
            name = (cause.name or "edokit").partition(".")[0]
            remedy = f"install it again: pip install --force-reinstall {name}"
            return f"can't import {name}: {cause}; {remedy}"
    return ""


def _bug(error: Exception) -> str:
    """The type and the place of an unexpected error; its message may quote somebody's text."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__} in line {place.lineno} of"
        f" {os.path.basename(place.filename)}; this is a bug in edo: please report it with what"
        " `edo --debug …` shows"
    )


def _drop_output() -> None:
    """Discard buffered output that can't be written, which Python would report when it exits."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:  # closed from the start
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# --- Messages -------------------------------------------------------------------------------------

_NOT_IN_RECIPES = frozenset({"ties"})
"""Python options that are neither options of a recipe nor parameters of a search space."""


def say(line: str) -> None:
    """One line on stderr."""
    print(one_line(line), file=sys.stderr, flush=True)  # noqa: T201


def arguments_of(app: App, words: Sequence[str], help: bool = False) -> list[Argument]:
    """The arguments and options of the command that these words invoke, perhaps with their help."""
    _, apps, _ = app.parse_commands(list(words))
    if apps[-1].default_command is None:
        return []
    with app.app_stack(apps):
        arguments = apps[-1].assemble_argument_collection(parse_docstring=help)
    return [argument for argument in arguments if argument.parse and not argument.children]


class Options:
    """The options of the command that these words invoke, for messages that name them."""

    def __init__(self, app: App, words: Sequence[str]) -> None:
        self.app = app
        self.words = words

    @cached_property
    def by_name(self) -> dict[str, Argument]:
        """The options by their name in Python."""
        return {
            argument.field_info.name: argument
            for argument in arguments_of(self.app, self.words)
            if argument.name.startswith("--")
        }

    @cached_property
    def flags(self) -> list[str]:
        """The words by which options are given, ``--no-…`` included."""
        flags: list[str] = []
        for argument in self.by_name.values():
            flags.extend(argument.names)
            flags.extend(argument.negatives)
        return flags

    def misspelt(self) -> str:
        """The first flag that the command does not take and one that it does, in a sentence."""
        # The hyphens, which all flags begin with, make no two of them alike.
        proposals = {
            default_name_transform(name): argument.name for name, argument in self.by_name.items()
        }  # as in Python: --samples is --bootstrap
        proposals.update({flag.lstrip("-"): flag for flag in self.flags})
        for word in self.words:
            flag = word.partition("=")[0]
            if not flag.startswith("--") or flag in self.flags or flag in HELP:
                continue
            close = get_close_matches(flag.lstrip("-"), proposals, 1)
            if close:
                return f"there is no option {flag}; did you mean {proposals[close[0]]}?"
        return ""

    def missing(self, argument: Argument) -> str:
        """The argument or option that is missing, or that was typed without a value."""
        for position, word in enumerate(self.words):
            if word not in argument.names:
                continue
            previous = self.words[position - 1]
            if position > 0 and previous in self.flags:  # which took this option for its value
                return f"{previous} needs a value, but {word} follows it."
            return f"{word} needs a value."
        return f"{argument.name} is missing."

    def command_with(self, arguments: Mapping[str, object]) -> str:
        """The command as it was typed, with these arguments; empty if it does not take them."""
        from edokit.runs.record import command_text

        words = list(self.words)
        flags = []
        for name, value in arguments.items():
            if name not in self.by_name:
                return ""
            words = _without_replaced(words, self.by_name[name], value)
            flags.append(self._written(name, value))
        return " ".join([command_text(["edo", *words]), *flags])

    def render(self, text: str) -> str:
        """A message with its references to options as the command takes them."""
        return show_options(text, self._written)

    def _written(self, name: str, *value: object) -> str:
        """An option as the command takes it, alone or with one value.

        One that it does not take is written as in Python.
        """
        argument = self.by_name.get(name)
        if argument is None:
            return self._python_option(name, *value)
        if not value or value[0] is True:
            return argument.name
        if value[0] is False:
            if argument.negatives:
                return str(argument.negatives[0])
            return show_options(option(name, *value))
        return " ".join(f"{argument.name} {shlex.quote(word)}" for word in typed_values(value[0]))

    def _python_option(self, name: str, *value: object) -> str:
        """An option that the command does not have by this name.

        It may be a switch, an option of a recipe or a parameter of a search space.
        """
        if not value:
            return name
        switch = self.by_name.get(str(value[0]))
        if switch is not None and switch.is_flag():
            return switch.name  # invalid='normalize' is --normalize
        for dictionary in ("option", "space"):
            if dictionary in self.by_name and name not in _NOT_IN_RECIPES:
                text = str(value[0])
                if isinstance(value[0], bool):
                    text = text.lower()
                return f"{self.by_name[dictionary].name} {name}={text}"
        return f"{show_options(option(name, *value))} in Python"


def _without_replaced(words: Sequence[str], argument: Argument, value: object) -> list[str]:
    """The words of a command without those that give this option, or one of its keys, a value.

    Names are added to those of a list, which may be given several times.
    """
    if isinstance(value, list) or argument.is_flag():
        return list(words)
    remaining: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        flag, equals, text = word.partition("=")
        length = 1  # --flag=text
        if not equals:
            text = "".join(words[position + 1 : position + 2])
            length = 2  # --flag text
        key = text.partition("=")[0]
        is_replaced = not isinstance(value, Mapping) or key in value
        if flag in argument.names and is_replaced:
            position += length
        else:
            remaining.append(word)
            position += 1
    return remaining


class Notes:
    """Shows warnings as lines that begin with ``note:``, the same text once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.texts: set[str] = set()

    def show(self, message: Warning | str, *_place: object, **_stream: object) -> None:
        """Show a warning, as `warnings.showwarning` does, but without its place in the code."""
        text = self.options.render(getattr(message, "text", str(message)))
        if text not in self.texts:
            self.texts.add(text)
            say(f"note: {text}")
