"""`edo serve`: an HTTP endpoint for a bundle."""

from __future__ import annotations

import os
from json import dumps
from typing import TYPE_CHECKING, Annotated, cast

from edokit._errors import InputError, check_number, counted, one_of, option
from edokit.cli import console, options
from edokit.ensemble.escalation import parse_share
from edokit.serve import TOKEN, About, Limits
from edokit.serve import serve as run
from edokit.serve.access_log import STDOUT

if TYPE_CHECKING:
    from edokit.ensemble.escalation import Against
    from edokit.members.familiarity import UnfamiliarPolicy


def serve(
    bundle: options.Argument,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    show_people: bool = False,
    unfamiliar: str | None = None,
    escalate: str | None = None,
    against: str = "majority",
    page: Annotated[bool, options.TWO_SIDED] = True,
    log: str | None = None,
    limits: Annotated[Limits, options.FLAT] = Limits(),
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    json: options.Json = False,
) -> None:
    """Answer texts over HTTP, with a page to try it: POST /predict, GET / and /docs.

    GET /about says what can be asked, /people lists attributes of annotators and their levels (for
    panels); /health, /metrics and /openapi.json are for programs.

    SIGTERM or Ctrl-C ends it; requests under way are answered first.

    Parameters
    ----------
    bundle : Path
        A folder made by `edo bundle` or `edo run`.
    host : str, default="127.0.0.1"
        Where to listen. Anywhere but on this machine itself needs a bearer token in the environment
        variable EDO_SERVE_TOKEN.
    port : int, default=8000
        0 chooses a free one.
    show_people : bool, default=False
        Let GET /people list the names of annotators beside their attributes and levels.
    unfamiliar : str, optional
        What texts unlike those of the fit get: answer, constant (the mean distribution of the fit)
        or people (the field decision). By default those that can't be read get the constant answer,
        and others are answered.
    escalate : str, optional
        Hand texts to people, so that at most this share of the answers, e.g. 5%, would be overruled
        (with 95 % confidence): the field decision has the label or people.
    against : str, default="majority"
        With --escalate: overruled by a majority of annotators, or by an annotator drawn at random.
    page : bool, default=True
        Answer GET / with a page to try it in a browser; it needs no network.
    log : str, optional
        Append a line of JSON for each request to this file (time, path, status, seconds, number of
        texts, and nothing of any text); - for stdout.
    """
    check_number("port", port, 0, 65535, whole=True)
    if unfamiliar is not None:
        one_of("unfamiliar", unfamiliar, ("answer", "constant", "people"))

    if escalate is not None:
        parse_share(escalate)
    one_of("against", against, ("majority", "annotator"))
    if escalate is None and against != "majority":
        raise InputError(
            f"{option('against', against)} is about {option('escalate')}, which is not given",
            f"add {option('escalate', '5%')}, or leave it out",
            code="missing-option",
        )
    if json and log == STDOUT:
        raise InputError(
            f"{option('log', STDOUT)} and {option('json', True)} both write to stdout",
            f"name a file: {option('log', 'access.jsonl')}",
            code="conflicting-options",
        )

    def ready(loaded: About, url: str) -> None:
        startup: dict[str, object] = {
            "url": url,
            "version": loaded.version,
            "classes": loaded.classes,
        }
        promises = []
        if loaded.escalation is not None:
            startup["escalation"] = loaded.escalation.to_dict()
            promises.append(str(loaded.escalation))
        invitation = "Try it"
        if page:
            invitation = "Open it in a browser, or try it"
        line = (
            f"{url} answers with {bundle} (version {loaded.version},"
            f" {counted(len(loaded.classes), 'class')}); Ctrl-C ends it. {invitation} in another"
            " terminal:"
        )

        def show() -> None:
            console.print_lines([*promises, line])
            console.print_lines([_example(loaded, url)], copied=True)

        console.print_result(startup, show, json)

    run(
        bundle,
        host=host,
        port=port,
        limits=limits,
        token=os.environ.get(TOKEN),
        show_people=show_people,
        unfamiliar=cast("UnfamiliarPolicy | None", unfamiliar),
        escalate=escalate,
        against=cast("Against", against),
        page=page,
        access_log=log,
        ready=ready,
        # A thread that waits for a full pipe would hold the lock of sys.stderr, so it is not used.
        log=lambda line: os.write(2, f"edo serve: {line}\n".encode()),
        **options.given_arguments(loading),
    )


def _example(loaded: About, url: str) -> str:
    """A request as it is typed in a terminal."""
    token = ""
    if os.environ.get(TOKEN):
        token = f' -H "authorization: Bearer ${TOKEN}"'
    body = {"texts": ["How kind of you."]}
    if loaded.has_contexts:
        body["contexts"] = ["What came before it."]
    return f"curl {url}/predict{token} -H 'content-type: application/json' -d '{dumps(body)}'"
