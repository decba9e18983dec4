"""GitLab's API as far as a comment on a merge request needs it, and what the variables of a job say of that.

Knows requests, pages and predefined variables; must not know what is said. Format: https://docs.gitlab.com/api/notes/
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from cachegrind_bench.ci.event import needed
from cachegrind_bench.ci.github import (
    AGENT,
    LONGEST_WAIT_S,
    ApiError,
    Comment,
    Patience,
    Thread,
)
from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    import requests

Value = TypeVar("Value")

_TIMEOUT_S = 30
_PER_PAGE = 100
_HINT = "'cg-bench ci gitlab-comment' is for merge request pipelines of GitLab"
_ADVICE = {
    401: "the token is wrong or has expired",
    403: "the token may not do this: it needs the scope 'api' and the role Reporter or higher",
    404: "it is not there, or the token may not see it: it needs the scope 'api' and the role Reporter or higher",
}
# A line that begins with a slash is a command to GitLab, done with the token's rights.
_QUICK_ACTION = re.compile(r"^(\s*)/", re.MULTILINE)


class MergeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The merge request that the job is for, at `api_url`; `project` is the number of its project.

    `head_sha` is the last commit of its branch when the pipeline began, `url` the pipeline's page.
    """

    api_url: str
    project: int
    number: int
    head_sha: str
    job: str
    url: str


# Of answers, what matters here.
class _User(msgspec.Struct):
    username: str


class _Note(msgspec.Struct):
    id: int
    author: _User
    body: str | None = None


class _State(msgspec.Struct):
    state: str
    sha: str | None


def read_merge_request(environ: Mapping[str, str]) -> MergeRequest:
    """Return the merge request of the job we are in. UsageError if the job is not for one."""
    api_url, server = _needed(environ, "CI_API_V4_URL"), _needed(environ, "CI_SERVER_URL")
    parts = urlsplit(api_url)
    if parts.scheme not in ("https", "http") or parts[:2] != urlsplit(server)[:2]:
        raise UsageError(f"CI_API_V4_URL is {api_url!r}, which is not at CI_SERVER_URL, {server!r}", hint=_HINT)
    # Empty unless the pipeline is of merged results, whose own commit is GitLab's.
    head = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or _needed(environ, "CI_COMMIT_SHA")
    return MergeRequest(
        api_url=api_url,
        project=_number(environ, "CI_MERGE_REQUEST_PROJECT_ID"),
        number=_number(environ, "CI_MERGE_REQUEST_IID"),
        head_sha=head,
        job=environ.get("CI_JOB_NAME", ""),
        url=environ.get("CI_PIPELINE_URL", ""),
    )


def _needed(environ: Mapping[str, str], name: str) -> str:
    return needed(environ, name, "a job of a merge request pipeline of GitLab", _HINT)


def _number(environ: Mapping[str, str], name: str) -> int:
    text = _needed(environ, name)
    if not re.fullmatch("[1-9][0-9]{0,17}", text, re.ASCII):
        raise UsageError(f"{name} is {text!r}, not a number", hint=_HINT)
    return int(text)


@contextmanager
def _asking(what: str) -> Generator[None]:
    """Turn what goes wrong inside into ApiError: GitLab could not `what`."""
    import requests

    try:
        yield
    except requests.RequestException as error:
        raise ApiError(f"GitLab did not {what}: {error}") from error
    except FileFormatError as error:
        raise ApiError(f"GitLab did not {what}: its answer makes no sense ({error.what})") from error
    except ApiError as error:
        raise ApiError(f"GitLab did not {what}: {error.message}", status=error.status, hint=error.hint) from error


class Client:
    """What may be done to one merge request with one token. Every method raises ApiError.

    The token goes to this one address: no answer leads it elsewhere.
    """

    def __init__(
        self,
        request: MergeRequest,
        token: str,
        patience: Patience | None = None,
    ) -> None:
        if importlib.util.find_spec("requests") is None:
            raise UsageError("GitLab's API needs the package requests, which is not there", hint="pip install requests")
        self._api_url, self._token = request.api_url.rstrip("/"), token
        self._place = f"/projects/{request.project}/merge_requests/{request.number}"
        self._patience, self._waiting = patience or Patience(), Waiting()

    def login(self) -> str:
        """Return whose token this is, as notes name their author."""
        with self._asking("say whose token this is"):
            return self._ask("GET", "/user", _User)[0].username

    def thread(self) -> Thread:
        """Return the comments on the merge request."""
        return Thread(
            login=self.login,
            comments=self.comments,
            add=self.add_comment,
            edit=self.edit_comment,
            delete=self.delete_comment,
        )

    def open_head(self) -> str | None:
        """Return the last commit of the merge request's branch; None if it is no longer open."""
        with self._asking("read the merge request"):
            found, _ = self._ask("GET", self._place, _State)
            return (found.sha or "") if found.state == "opened" else None

    def comments(self) -> list[Comment]:
        """Return all comments on the merge request, the oldest first."""
        found = list[Comment]()
        with self._asking("read the merge request's comments"):
            page = "1"
            while page:
                query = f"sort=asc&order_by=created_at&per_page={_PER_PAGE}&page={page}"
                notes, page = self._ask("GET", f"{self._place}/notes?{query}", list[_Note])
                found += [Comment(id=note.id, author=note.author.username, body=note.body or "") for note in notes]
        return found

    def add_comment(self, body: str) -> None:
        """Write a new comment."""
        with self._asking("comment on the merge request"):
            self._ask("POST", f"{self._place}/notes", _Note, _inactive(body))

    def edit_comment(self, identity: int, body: str) -> None:
        """Replace the text of a comment."""
        with self._asking(f"update the comment {identity}"):
            self._ask("PUT", f"{self._place}/notes/{identity}", _Note, _inactive(body))

    def delete_comment(self, identity: int) -> None:
        """Remove a comment."""
        with self._asking(f"remove the comment {identity}"):
            self._ask("DELETE", f"{self._place}/notes/{identity}", msgspec.Raw)

    @contextmanager
    def _asking(self, what: str) -> Generator[None]:
        with self._waiting.watched(f"GitLab to {what}"), _asking(what):
            yield

    def _ask(self, method: str, path: str, kind: type[Value], body: str | None = None) -> tuple[Value, str]:
        """Return the value of an answer, and the number of the page after it, if there is one."""
        content = None if body is None else {"body": body}
        # A redirection is not followed: requests would take the token along.
        how: dict[str, Any] = {"json": content, "allow_redirects": False, "timeout": _TIMEOUT_S}
        answer = self._session.request(method, self._api_url + path, **how)
        status = answer.status_code
        if not 200 <= status < 300:
            raise ApiError(f"HTTP status {status}", status=status, hint=_ADVICE.get(status))
        return parse(answer.content or b"null", kind, "the answer"), answer.headers.get("X-Next-Page", "")

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request, and nothing that a .netrc has for the host."""
        request.headers["PRIVATE-TOKEN"] = self._token
        return request

    @cached_property
    def _session(self) -> requests.Session:
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3 import Retry

        session = requests.Session()
        session.headers["User-Agent"] = AGENT
        session.auth = self._signed
        retry = Retry(
            total=5,
            backoff_factor=self._patience.backoff_s,
            status_forcelist=[429, 500, 502, 503, 504],
            allowed_methods=None,
            redirect=False,
            raise_on_status=False,  # the last answer says more than that there were too many
            retry_after_max=LONGEST_WAIT_S,
        )
        session.mount("https://", HTTPAdapter(max_retries=retry))
        session.mount("http://", HTTPAdapter(max_retries=retry))
        return session


def _inactive(body: str) -> str:
    """Return text without the commands that GitLab sees in lines that begin with a slash."""
    return _QUICK_ACTION.sub(r"\1\\/", body)
