"""Run the slow tests, damaged files, faults and a server under load, and collect their results.

    python tools/soak.py --jobs 2 --write docs/reliability.md

Each part prints what it did in its last line. The exit status is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path


def parts(share: float, jobs: int, page: Path | None) -> dict[str, list[str]]:
    """The command of each part, with this share of its full length."""
    processes = ["--jobs", f"{jobs}"]
    seconds = f"{400 * share:.0f}"
    inputs = f"{20_000 * share:.0f}"
    faults = ["tools/faults", "--minutes", f"{10 * share:g}"]
    if page is not None:
        faults += ["--write", str(page)]
    return {
        "slow tests": ["-m", "pytest", "-q", "-m", "slow"],
        "files damaged by coverage": [
            *("tools/fuzz_guided.py", "--seconds", seconds),
            *processes,
        ],
        "files damaged at random": [
            *("tools/fuzz_loaders.py", "--inputs", inputs, "--seed", "0", "--networks"),
            *processes,
        ],
        "files that amplify": ["tools/amplify.py", "--seconds", "120"],
        "faults (below)": faults,
        "hostile endpoint": ["tools/hostile_endpoint.py", "--minutes", f"{3 * share:g}"],
        "server": [
            *("tools/serve_soak.py", "--requests", f"{10_000 * share:.0f}"),
            *("--minutes", f"{4 * share:g}"),
            *("--pipelined", f"{200_000 * share:.0f}"),
        ],
    }


def with_rows(table: str, page: Path) -> str:
    """The table of a page in which these rows replace those of the same parts, or are added."""
    rows = {}
    lines = page.read_text(encoding="utf-8").splitlines()
    begin = lines.index("<!-- soak: begin -->")
    end = lines.index("<!-- soak: end -->")
    for line in (*lines[begin + 1 : end], *table.splitlines()):
        rows[line.split(" | ")[0]] = line
    return "\n".join(rows.values())


def put_between(page: Path, mark: str, text: str) -> None:
    """Replace what is between the marks of a page."""
    begin = f"<!-- {mark}: begin -->"
    end = f"<!-- {mark}: end -->"
    marked = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    content = page.read_text(encoding="utf-8")
    if not marked.search(content):
        raise SystemExit(f"{page} must hold {begin} and {end}, but does not")
    page.write_text(marked.sub(lambda _: f"{begin}\n{text}\n{end}", content), encoding="utf-8")


def run(command: list[str]) -> tuple[str, int]:
    """Run a command, print its output, and return its last line and its exit status."""
    last_line = ""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last_line = line.strip(" =\n") or last_line
    return last_line, process.returncode


def main() -> int:
    """Run all parts, also those after one that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the full length")
    parser.add_argument("--only", help="the part whose name begins so; other rows of the page stay")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    rows = ["| part | minutes | what it did |", "|---|---:|---|"]
    failed = False
    for name, command in parts(arguments.share, arguments.jobs, arguments.write).items():
        if not name.startswith(arguments.only or ""):
            continue
        print(f"== {name}: python {' '.join(command)}", flush=True)
        started = time.monotonic()
        last_line, status = run(command)
        failed |= status != 0
        outcome = last_line
        if status:
            outcome = f"**failed** ({status}): {last_line}"
        rows.append(f"| {name} | {(time.monotonic() - started) / 60:.0f} | {outcome} |")
    table = "\n".join(rows)
    print(table)
    if arguments.write is not None:
        if arguments.only:
            table = with_rows(table, arguments.write)
        put_between(arguments.write, "soak", table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
