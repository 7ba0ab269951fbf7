"""Write tests/messages.txt, all messages of errors and warnings, and the list of their codes.

    python tools/messages.py

The list is in docs/reference/errors.md. A test compares both with what this writes, so that
a change of wording or of a code is one line of a diff. Expressions are shown in short.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "edokit"
SNAPSHOT = ROOT / "tests" / "messages.txt"
PAGE = ROOT / "docs" / "reference" / "errors.md"
START = "<!-- codes -->\n"
END = "<!-- end of codes -->\n"

# Where the message is among the arguments; the hint follows it.
MESSAGE_POSITION = {
    "EDOError": 0,
    "InputError": 0,
    "NothingLeftError": 0,
    "MissingExtraError": 0,
    "RequestRefusedError": 0,
    "UnknownLayoutError": 0,
    "RefusedError": 1,
    "Decision": 0,
    "open_decision": 0,
    "missing_extra": 0,
    "warn": 0,
    "_refuse": 1,
}
DEFAULT_CODE = {"missing_extra": "missing-package", "warn": "warning"}
CODE = re.compile(r"[a-z]+(-[a-z]+)+")


@dataclass(frozen=True)
class Message:
    """A message in the source.

    Attributes
    ----------
    module, function : str
        Where it is.
    code : str
        The broken rule; "warning" for a warning.
    text, hint : str
        What it says, with expressions in braces.
    """

    module: str
    function: str
    code: str
    text: str
    hint: str


@cache
def messages() -> tuple[Message, ...]:
    """All messages, by module and line."""
    found: list[Message] = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += _messages_of(tree, module, "", {})
    return tuple(found)


def _messages_of(
    node: ast.AST, module: str, function: str, names: dict[str, list[str]]
) -> Iterator[Message]:
    for child in ast.iter_child_nodes(node):
        child_function = function
        child_names = names
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            child_function = child.name
            child_names = {**names, **_texts_of_names(child)}
        if isinstance(child, ast.Call):
            message = _message(child, module, function, names)
            if message is not None:
                yield message
        yield from _messages_of(child, module, child_function, child_names)


def _message(
    call: ast.Call, module: str, function: str, names: dict[str, list[str]]
) -> Message | None:
    """The message of a call that makes an error or a warning."""
    callee = ""
    if isinstance(call.func, ast.Name):
        callee = call.func.id
    if isinstance(call.func, ast.Attribute):
        callee = call.func.attr
    if callee not in MESSAGE_POSITION:
        return None
    code = DEFAULT_CODE.get(callee, "")
    for keyword in call.keywords:
        if keyword.arg == "code":
            code = _text(keyword.value, names)
    arguments = call.args[MESSAGE_POSITION[callee] :]
    if not code or not arguments:
        return None
    text = _text(arguments[0], names)
    has_words = re.search(r"\w\s+\w", re.sub(r"\{[^}]*\}", "", text))
    # A call that passes an error on contains no message itself.
    if not has_words and not CODE.fullmatch(code):
        return None
    hint = ""
    if len(arguments) > 1 and callee != "missing_extra":
        hint = _text(arguments[1], names)
    return Message(module, function, code, text, hint)


def _texts_of_names(function: ast.AST) -> dict[str, list[str]]:
    """The texts that local names get, such as a message that is made in several steps."""
    texts: dict[str, list[str]] = {}
    for node in ast.walk(function):
        target: ast.expr | None = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AugAssign):
            target = node.target
        if isinstance(target, ast.Name) and _has_words(node.value):
            texts.setdefault(target.id, []).append(_text(node.value, {}))
    return texts


def _has_words(node: ast.AST) -> bool:
    """Whether an expression is a text, or chooses one."""
    if isinstance(node, ast.IfExp):
        return _has_words(node.body) or _has_words(node.orelse)
    if isinstance(node, ast.BinOp):
        return _has_words(node.left) or _has_words(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(node.value)
    return isinstance(node, ast.JoinedStr)


def _text(node: ast.expr, names: dict[str, list[str]]) -> str:
    """The source of a text, with expressions in braces; for a name, all texts assigned to it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split("\n"))
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, {}) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, names) + _text(node.right, names)
    if isinstance(node, ast.Name) and node.id in names:
        return " | ".join(names[node.id])
    if isinstance(node, ast.FormattedValue):
        node = node.value
    return "{" + _expression(node) + "}"


def _expression(node: ast.expr) -> str:
    """An expression in short: names, calls and constants."""
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_expression(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        arguments = ", ".join(_expression(argument) for argument in node.args)
        return f"{_expression(node.func)}({arguments})"
    if isinstance(node, ast.Subscript):
        return f"{_expression(node.value)}[…]"
    if isinstance(node, ast.IfExp):
        return f"{_expression(node.body)} or {_expression(node.orelse)}"
    if isinstance(node, ast.JoinedStr):
        return repr(_text(node, {}))
    if isinstance(node, ast.BoolOp):
        return " or ".join(_expression(value) for value in node.values)
    return "…"


def snapshot() -> str:
    """The file of all messages: a paragraph per module, and a line per message or hint."""
    lines = ["# All messages of errors and warnings, written by: python tools/messages.py"]
    module = ""
    for message in messages():
        if message.module != module:
            module = message.module
            lines += ["", f"## {module}"]
        lines.append(f"{message.code} · {message.function or module}: {message.text}")
        if message.hint:
            lines.append(f"    → {message.hint}")
    return "\n".join(lines) + "\n"


def codes() -> list[str]:
    """All codes, sorted."""
    written: set[str] = set()
    for message in messages():
        written.update(message.code.split(" | "))
    return sorted(code for code in written if CODE.fullmatch(code))


def page(text: str) -> str:
    """The page on errors with its list of codes replaced."""
    before, remainder = text.split(START)
    _, after = remainder.split(END)
    families: dict[str, list[str]] = {}
    for code in codes():
        families.setdefault(code.partition("-")[0], []).append(f"`{code}`")
    other_lines = []
    lines = []
    for family in families.values():
        if len(family) < 3:
            other_lines += family
        else:
            lines.append(f"- {', '.join(family)}\n")
    lines.append(f"- {', '.join(other_lines)}\n")
    return f"{before}{START}\n{''.join(lines)}\n{END}{after}"


def main() -> None:
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
