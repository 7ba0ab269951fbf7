"""The command `edo`: one file a command, no logic."""

from edokit.cli.app import main

__all__ = ["main"]
