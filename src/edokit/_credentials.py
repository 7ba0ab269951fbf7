"""Passwords and user names in URLs and connection strings, which messages and files must hide."""

from __future__ import annotations

import re

# The part before the last @ of a URL (as a path, its two slashes become one).
_URL = re.compile(r"(://|\b[A-Za-z][\w+.-]+:/{1,2})\S+@")
# The same where the text is a single argument: then a password may contain spaces.
_WHOLE_URL = re.compile(r"(?s)(?<=://).+@")
# Passwords in the parameters of a URL or in a connection string, where user names are hidden, too.
_VALUE = r"(?:'(?:[^'\\]|\\.)*'|[^&\s]+)"  # in quotes, or up to a blank or &
_PASSWORDS = re.compile(rf"(?i)(\b(?=\w*pass)\w+\s*=\s*){_VALUE}")
_USERS = re.compile(rf"(?i)(\buser\s*=\s*){_VALUE}")
# Part of a connection string, as in ``host=… user=… password=…``.
_CONNECTION = re.compile(r"(?i)\b(?:host|hostaddr|dbname|\w*pass\w*)\s*=")
CREDENTIAL_PARAMETERS = frozenset({"user", "password", "sslpassword"})
"""Parameters of a database URL that are credentials."""


def is_connection(text: str) -> bool:
    """Whether a text contains parts of a connection string."""
    return _CONNECTION.search(text) is not None


def without_credentials(text: str) -> str:
    """The text without the credentials in its URLs and connection strings."""
    if is_connection(text):
        text = _USERS.sub(r"\1***", text)
    text = _URL.sub(r"\1***@", text)
    return _PASSWORDS.sub(r"\1***", text)


def argument_without_credentials(argument: str) -> str:
    """Like `without_credentials`, for one argument of a command line."""
    return without_credentials(_WHOLE_URL.sub("***@", argument))
