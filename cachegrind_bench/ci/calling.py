"""How GitHub is called: what is tried again, how long we wait, and how it is told that it did not do what it was asked."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cachegrind_bench.ci.values import ApiError

if TYPE_CHECKING:
    from collections.abc import Generator

    from github.GithubRetry import GithubRetry

_TRIES = 5
# Each time: a job must not wait for an hour for the sake of a comment.
_LONGEST_WAIT_S = 60.0
_STATUSES = [429, 500, 502, 503, 504]
_METHODS = frozenset({"GET", "POST", "PATCH", "DELETE"})


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait when GitHub asks to, or fails: seconds after a secondary rate limit, and the first pause otherwise."""

    secondary_s: float = 30.0
    backoff_s: float = 1.0


def retrying(patience: Patience) -> GithubRetry:
    """Return when a request is tried again, and after how long."""
    from github.GithubRetry import GithubRetry

    return GithubRetry(
        total=_TRIES,
        backoff_factor=patience.backoff_s,
        status_forcelist=_STATUSES,
        allowed_methods=_METHODS,
        secondary_rate_wait=patience.secondary_s,
        max_rate_limit_wait=_LONGEST_WAIT_S,
        raise_on_status=False,  # the last answer says more than that there were too many
        retry_after_max=int(_LONGEST_WAIT_S),
    )


@contextmanager
def telling(what: str) -> Generator[None]:
    """Turn what goes wrong inside into ApiError: GitHub could not `what`."""
    import requests
    from github import BadAttributeException, GithubException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except GithubException as error:
        status = error.status or 0
        data: Any = error.data
        said = cast("dict[str, Any]", data).get("message") if isinstance(data, dict) else None
        raise ApiError(
            f"GitHub did not {what}: {said or error.message or 'no reason given'} (HTTP status {status})",
            status=status,
            hint=_advice(status),
        ) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        raise ApiError(f"GitHub did not {what}: {error}", status=0) from error
    except (
        BadAttributeException,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        RuntimeError,
    ) as error:
        raise ApiError(f"GitHub did not {what}: its answer makes no sense ({error})", status=0) from error


def _advice(status: int) -> str | None:
    advice = {
        401: "the token is wrong or has expired",
        403: "the token may not do this: see 'permissions' of the job; a pull request from a fork, or of Dependabot, may only read",
        404: "it is not there, or the token may not see it: see 'permissions' of the job",
    }
    return advice.get(status)
