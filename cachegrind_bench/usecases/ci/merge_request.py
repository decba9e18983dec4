"""The comment on a merge request of GitLab, kept up to date by a job of its own, which measures nothing and may write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cachegrind_bench.ci.gitlab import Client, MergeRequest, read_merge_request
from cachegrind_bench.ci.posts import marker, post
from cachegrind_bench.errors import UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.render.comparison import markdown
from cachegrind_bench.render.comparison.view import view
from cachegrind_bench.usecases.ci.report import ALWAYS, NEVER
from cachegrind_bench.usecases.ci.reproduce import failures

if TYPE_CHECKING:
    from cachegrind_bench.compare.explained import Explained


def comment(environ: Mapping[str, str], token: str | None, when: str, compare: Callable[[], Explained]) -> None:
    """Call `compare`, and comment what it returns on the merge request of this job, or update the comment there is.

    The report is made here, of results, which are data: a job that ran a contributor's code may have written any text. The
    verdict ends nothing. UsageError, of which ApiError is one, where it was not commented though it should be.
    """
    if when == NEVER:
        return
    place = read_merge_request(environ)
    if not token:
        raise UsageError(
            "there is no token for GitLab's API", hint="set the variable CG_BENCH_TOKEN, for this job alone"
        )
    made = compare()
    client = Client(place, token)
    head = client.open_head()
    if head != place.head_sha:
        why = "was closed or merged" if head is None else "has a newer commit, whose pipeline will comment"
        LOG.info(f"no comment: merge request {place.number} {why}")
        return
    wanted = made.changed or when == ALWAYS
    outcome = post(client.thread(), _text(made, place), marker("gitlab", place.job), wanted=wanted)
    LOG.info(f"comment on merge request {place.number}: {outcome.value}")


def _text(made: Explained, place: MergeRequest) -> str:
    safe = re.fullmatch(r"https?://[\w.:/-]+", place.url, re.ASCII)
    link = f"\n[the pipeline]({place.url})\n" if safe else ""
    return markdown.render(view(made)) + failures(made.comparison) + link
