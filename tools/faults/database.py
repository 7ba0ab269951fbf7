"""PostgreSQL goes away in the middle of a search that two workers share, and comes back."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from faults.cases import Case, clear, nothing
from faults.disk import judge
from faults.kills import Disturbed, undisturbed
from faults.tally import Tally
from faults.zygote import Zygote

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "analysis" / "search"))
MORE = ("--trials", 60, "--population", 10, "--folds", 5)
"""Enough to be in the middle of."""


def database_away(
    zygote: Zygote, case: Case, out: Path, tally: Tally, *, seconds: Sequence[float]
) -> None:
    """Once for each of these times, the server is stopped at once and started again after it."""
    from postgres import find_programs, running_server

    if find_programs() is None:
        tally.skipped.append("the database going away (no PostgreSQL server is installed)")
        return
    case = replace(
        case,
        name="search, two workers",
        argv=lambda out, argv=case.argv: [*argv(out), *MORE],
        finished=nothing,
        finishes=0,
        expected={},
    )
    undisturbed(zygote, case, out)
    with running_server() as server:
        for away in seconds:
            row = tally.row(f"database away {away:g} s", case.name)
            with row.watched():
                clear(out)
                url = server.new_database()
                shared = replace(
                    case,
                    argv=lambda out, url=url: [*case.argv(out), "--storage", url, "--worker"],
                    finished=lambda out, url=url: _trials(url),
                )
                disturbed = Disturbed(zygote, shared, out)
                words = shared.argv(out)
                other_words = [word for word in words if word not in ("--out", out)]
                running = [zygote.start(words), zygote.start(other_words)]
                while len(_trials(url)) < 15 and not running[0].done():
                    time.sleep(0.02)
                disturbed.look()
                server.stop()
                back = threading.Timer(away, server.start)
                back.start()
                ended = [one_of_them.wait() for one_of_them in running]
                back.join()
                for ran in ended[1:]:
                    assert ran.status == 0 or ran.one_line, ran.stderr[-400:]
                judge(row, disturbed, ended[0])
                disturbed.finish()
                row.well += 1


def _trials(url: str) -> dict[str, tuple[object, ...]]:
    """Complete trials, by number."""
    import psycopg

    command = (
        "SELECT t.number, t.trial_id, t.datetime_complete, array_agg(v.value ORDER BY v.objective)"
        " FROM trials t JOIN trial_values v USING (trial_id) WHERE t.state = 'COMPLETE'"
        " GROUP BY t.number, t.trial_id, t.datetime_complete"
    )
    try:
        with psycopg.connect(url) as connection:
            return {str(row[0]): row[1:] for row in connection.execute(command)}
    except psycopg.errors.UndefinedTable:
        return {}
