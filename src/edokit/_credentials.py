"""Passwords and users in addresses and connection strings, which no message or file may show."""

from __future__ import annotations

import re

# What is before the last @ of a URL (a path folds its slashes into one).
_URL = re.compile(r"(://|\b[A-Za-z][\w+.-]+:/{1,2})\S+@")
# The same where the text is one argument, known to its end: a password may have spaces in it.
_WHOLE_URL = re.compile(r"(?s)(?<=://).+@")
# Passwords among the parameters of a URL or in a connection string, where the user is hidden, too.
_VALUE = r"\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^&\s]+)"
_PASSWORDS = re.compile(rf"(?i)(\b(?=\w*pass)\w+{_VALUE}")
_USERS = re.compile(rf"(?i)(\buser{_VALUE}")
# Part of a connection string, as in ``host=… user=… password=…``.
_CONNECTION = re.compile(r"(?i)\b(?:host|hostaddr|dbname|\w*pass\w*)\s*=")
PARAMETERS = frozenset({"user", "password", "sslpassword"})
"""Parameters of the URL of a database that are credentials."""


def is_connection(text: str) -> bool:
    """Whether a text has parts of a connection string."""
    return _CONNECTION.search(text) is not None


def without_credentials(text: str) -> str:
    """The text without the credentials that a URL in it may carry."""
    if is_connection(text):
        text = _USERS.sub(r"\1***", text)
    text = _URL.sub(r"\1***@", text)
    return _PASSWORDS.sub(r"\1***", text)


def argument_without_credentials(argument: str) -> str:
    """As `without_credentials`, for one argument of a command line."""
    return without_credentials(_WHOLE_URL.sub("***@", argument))
