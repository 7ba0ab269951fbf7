"""The command `edo`: one file a command, no logic."""

__all__ = ["main"]


def main() -> None:
    """Run the command line. Ctrl-C ends it with one line and exit 130, also while it loads."""
    try:
        from edokit.cli.app import main as run

        run()
    except KeyboardInterrupt:
        import sys

        sys.stderr.write("edo: interrupted\n")
        sys.exit(130)
