"""The pages of the server: one to try it, and one that shows the API. Both need no network.

A page is the same for every bundle: what it shows of texts and people, its script asks for and puts
in as text. Its policy lets only its own script and style run, and lets it talk to this server only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edokit._io.digests import policy_digest

_WORDS_FOR_TYPES = {
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "integer": "whole number",
}


@dataclass(frozen=True)
class Page:
    """A page and the headers that it is sent with.

    Attributes
    ----------
    content : bytes
    headers : dict of str to str
    """

    content: bytes
    headers: dict[str, str]

    @classmethod
    def from_html(cls, html: str, style: str, script: str = "") -> Page:
        """A page with this style and this script in it, and nothing else that may run."""
        policy = [
            "default-src 'none'",
            f"style-src '{policy_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
        if script:
            policy += [f"script-src '{policy_digest(script)}'", "connect-src 'self'"]
        headers = {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": "; ".join(policy),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cache-control": "no-store",
        }
        return cls(html.encode(), headers)


def try_page() -> Page:
    """The page to try the server: type texts, and see what people would say."""
    style = _asset("page.css")
    script = _asset("try.js")
    template = _environment().get_template("try.html")
    html = template.render(style=Markup(style), script=Markup(script))
    return Page.from_html(html, style, script)


def docs_page(schema: Mapping[str, Any], *, has_token: bool, has_page: bool) -> Page:
    """The page that shows an OpenAPI document, without a script.

    Parameters
    ----------
    schema : mapping
        The OpenAPI document.
    has_token : bool
        Whether requests need a token.
    has_page : bool
        Whether there is a page to try the server.
    """
    style = _asset("page.css")
    schemas = schema.get("components", {}).get("schemas", {})
    html = (
        _environment()
        .get_template("docs.html")
        .render(
            style=Markup(style),
            info=schema["info"],
            paths=schema["paths"],
            schemas=schemas,
            has_token=has_token,
            has_page=has_page,
            fields=_fields,
            request_schema=_request_schema,
            response_schema=lambda operation: _response_schema(operation, schemas),
        )
    )
    return Page.from_html(html, style)


def _asset(name: str) -> str:
    """The text of a file in the folder ``assets``."""
    return (files("edokit.serve") / "assets" / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    """Templates in which everything that is put in is escaped."""
    return Environment(
        loader=PackageLoader("edokit.serve", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _request_schema(operation: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the body that an operation takes; empty where it takes none."""
    content = operation.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = content.get("application/json", {}).get("schema", {})
    if schema:
        schema = {"example": None, **schema}
    return schema


def _response_schema(
    operation: Mapping[str, Any], schemas: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """The schema of the answer of an operation; empty where it has none."""
    content = operation["responses"].get("200", {}).get("content", {})
    schema: dict[str, Any] = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas.get(name, schema)


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Name, kind and description of each field of an object."""
    required = schema.get("required", ())
    fields: list[dict[str, Any]] = []
    for name, part in schema.get("properties", {}).items():
        fields.append(
            {
                "name": name,
                "kind": _kind(part),
                "required": name in required,
                "description": part.get("description", ""),
            }
        )
    return fields


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in schema:
        kinds = [_kind(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(filter(None, kinds)))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2]).lower()
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})) or 'values'}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        kind = ""
        if isinstance(values, Mapping):
            kind = _kind(values)
        if not kind:
            return "object"
        return f"object of {kind}"
    return _WORDS_FOR_TYPES.get(str(schema.get("type")), "")
