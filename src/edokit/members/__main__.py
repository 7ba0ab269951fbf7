"""Train what `edo train … --prepare` planned, where little more than numpy, scikit-learn, torch
and transformers is installed: ``python -m edokit.members DIR``.

Bring ``DIR/members`` back and start `edo train` again: it finds everything trained.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from edokit._errors import EDOError
from edokit._outputs import output_folder
from edokit.members.jobs import Plan
from edokit.members.train import train_plan


def main() -> int:
    """Exit code 0, or 2 if a member failed."""
    parser = argparse.ArgumentParser(prog="python -m edokit.members")
    parser.add_argument("folder", type=Path, help="What edo train … --prepare wrote to.")
    parser.add_argument("--jobs", type=int, help="Members at a time.")
    parser.add_argument("--device", help="Where to compute, e.g. cuda.")
    parser.add_argument("--only", help="Only groups of these names, separated by commas.")
    parser.add_argument(
        "--trust", default="", help="Packages whose recipes the plan may name, with commas between."
    )
    parser.add_argument(
        "--forget-models", action="store_true", help="Keep the predictions, not the models."
    )
    given = parser.parse_args()
    try:
        plan = Plan.load(given.folder, given.trust.split(","))
        if given.only:
            wanted = given.only.split(",")
            jobs = tuple(job for job in plan.jobs if job.group in wanted)
            plan = Plan(plan.data, jobs, plan.folds)
        with output_folder(given.folder, "members"):
            failed = train_plan(
                plan,
                given.folder,
                jobs=given.jobs,
                device=given.device,
                keep_models=not given.forget_models,
                step=_print,
            )
    except EDOError as error:
        shown = re.sub(r"\btrust='([^']*)'", r"--trust \1", str(error))
        sys.stderr.write(f"edo: {shown}\n")
        return 2
    for outcome in failed:
        sys.stderr.write(f"edo: {outcome.job.path} failed: {outcome.reason}\n")
    return 2 if failed else 0


def _print(event: dict[str, Any]) -> None:
    line = ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in event.items()
    )
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
