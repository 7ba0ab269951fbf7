"""Look up pinned versions among known vulnerabilities, if the advisories can be reached.

    python tools/audit.py path/to/pip-audit constraints.txt

Where no advisories can be reached, pip-audit may find every version free of vulnerabilities. It is
therefore first asked about a version that has some. The exit status is 0 if the versions have no
known vulnerabilities, 1 if one has or was not found, and 3 if no advisories can be reached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

VULNERABLE = "jinja2==2.4.1"
SERVICES = ("pypi", "osv")
NOT_AUDITED = 3


def audit_command(program: str, service: str, requirements: Path) -> list[str]:
    """The command that audits exactly the versions in a file."""
    return [
        *(program, "--vulnerability-service", service, "--requirement", str(requirements)),
        *("--disable-pip", "--no-deps", "--progress-spinner", "off"),
    ]


def finds_vulnerabilities(program: str, service: str) -> bool:
    """Whether the advisories of a version that has some are found."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(VULNERABLE + "\n", encoding="utf-8")
        command = [*audit_command(program, service, requirements), "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return False
    return any(dependency.get("vulns") for dependency in dependencies)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="pip-audit")
    parser.add_argument("requirements", type=Path)
    arguments = parser.parse_args()
    for service in SERVICES:
        if finds_vulnerabilities(arguments.program, service):
            print(f"advisories of {service}:", flush=True)
            # Strict: a version that is not found counts as a failure, not as safe.
            command = audit_command(arguments.program, service, arguments.requirements)
            return min(1, subprocess.run([*command, "--strict"], check=False).returncode)
    print(f"not audited: neither service ({', '.join(SERVICES)}) has advisories of {VULNERABLE}")
    return NOT_AUDITED


if __name__ == "__main__":
    sys.exit(main())
