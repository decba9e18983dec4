"""GitHub's API as far as we need it: pull requests, comments, artifacts, issues; what is tried again, and how long we wait.

Only this module uses PyGithub. Knows requests and pages; must not know what is said to whom. Everything that comes back is a
plain value.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import UsageError
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    import requests
    from github import Github
    from github.GithubRetry import GithubRetry
    from github.Issue import Issue as GithubIssue
    from github.IssueComment import IssueComment
    from github.Repository import Repository

# Whose the token of a job is, as comments name their author.
JOB_BOT = "github-actions[bot]"


class ApiError(UsageError):
    """GitHub or GitLab did not do what it was asked; `status` is that of HTTP, 0 if it was not reached."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class OpenPull(msgspec.Struct, frozen=True, kw_only=True):
    """An open pull request, as it is now."""

    number: int
    head_sha: str
    head_repository: str | None


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment under a pull request or issue."""

    id: int
    author: str
    body: str


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """The comments under one pull or merge request, and what may be done to them. Each raises ApiError."""

    login: Callable[[], str]
    comments: Callable[[], list[Comment]]
    add: Callable[[str], None]
    edit: Callable[[int, str], None]
    delete: Callable[[int], None]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that can still be fetched. `branch` and `sha` are those of its run; `own`: whether that was of this repository."""

    id: int
    name: str
    size: int
    branch: str | None
    sha: str | None
    own: bool
    created_at: str

    @property
    def age(self) -> tuple[str, int]:
        """What orders artifacts by age, the oldest first: ids do not, as several makers give them out."""
        return self.created_at, self.id


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue."""

    number: int
    author: str
    title: str
    body: str
    open: bool


# Each time: a job must not wait for an hour for the sake of a comment.
LONGEST_WAIT_S = 60
_FORBIDDEN = 403

_ADVICE = {
    401: "the token is wrong or has expired",
    403: "the token may not do this: see 'permissions' of the job; a pull request from a fork, or of Dependabot, may only read",
    404: "it is not there, or the token may not see it: see 'permissions' of the job",
}


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait when GitHub asks to, or fails: seconds after a secondary rate limit, and the first pause otherwise."""

    secondary_s: float = 30.0
    backoff_s: float = 1.0


def _retrying(patience: Patience) -> GithubRetry:
    """Return when a request is tried again, and after how long."""
    from github.GithubRetry import GithubRetry

    return GithubRetry(
        total=5,
        backoff_factor=patience.backoff_s,
        status_forcelist=[429, 500, 502, 503, 504],
        allowed_methods=frozenset({"GET", "POST", "PATCH", "DELETE"}),
        secondary_rate_wait=patience.secondary_s,
        max_rate_limit_wait=LONGEST_WAIT_S,
        raise_on_status=False,  # the last answer says more than that there were too many
        retry_after_max=LONGEST_WAIT_S,
    )


# What follows the path of an address may be the right to read what is there, for some time.
_QUERY = re.compile(r"\?[^\s'\")]+")


@contextmanager
def _asking(what: str) -> Generator[None]:
    """Turn what goes wrong inside into ApiError: GitHub could not `what`. No signed address is in it."""
    import requests
    from github import BadAttributeException, GithubException

    try:
        yield
    except GithubException as error:
        status = error.status or 0
        data: Any = error.data
        said = cast("dict[str, Any]", data).get("message") if isinstance(data, dict) else None
        raise ApiError(
            f"GitHub did not {what}: {said or error.message or 'no reason given'} (HTTP status {status})",
            status=status,
            hint=_ADVICE.get(status),
        ) from error
    except requests.RequestException as error:
        raise ApiError(f"GitHub did not {what}: {_QUERY.sub('?…', str(error))}") from error
    except (
        BadAttributeException,
        AssertionError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ApiError(f"GitHub did not {what}: its answer makes no sense ({error})") from error


AGENT = f"cachegrind-bench/{__version__}"
# Beyond this, GitHub refuses a comment or the body of an issue.
LONGEST_BODY = 65_536
_TIMEOUT_S = 30
_PER_PAGE = 100
_CHUNK = 1 << 16


class Client:
    """What may be done to one repository, OWNER/NAME, with one token. Every method raises ApiError."""

    def __init__(
        self,
        *,
        api_url: str,
        repository: str,
        token: str,
        patience: Patience | None = None,
    ) -> None:
        self._api_url, self._name, self._token = api_url.rstrip("/"), repository, token
        self._patience, self._waiting = patience or Patience(), Waiting()

    def login(self) -> str:
        """Return whose token this is, as comments name their author; where it may not be asked, it is a job's."""
        try:
            with self._asking("say whose token this is"):
                # Of the ways to ask, this one is open to the token of a job as well.
                _, data = self._github.requester.graphql_query("query { viewer { login } }", {})
                login: str = data["data"]["viewer"]["login"]
                return login
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            return JOB_BOT

    def pull(self, number: int) -> OpenPull | None:
        """Return a pull request as it is now; None if it is no longer open."""
        with self._asking(f"read pull request {number}"):
            found = self._repository.get_pull(number)
            return None if found.state == "closed" else _pull(found)

    def open_pulls(self, owner: str, branch: str) -> list[OpenPull]:
        """Return the open pull requests from this branch of this owner's fork, or of the repository itself."""
        with self._asking("list the pull requests"):
            found = self._repository.get_pulls(state="open", head=f"{owner}:{branch}")
            return [_pull(item) for item in found]

    def thread(self, number: int) -> Thread:
        """Return the comments under a pull request or issue."""
        return Thread(
            login=self.login,
            comments=partial(self.comments, number),
            add=partial(self.add_comment, number),
            edit=self.edit_comment,
            delete=self.delete_comment,
        )

    def comments(self, number: int) -> list[Comment]:
        """Return all comments under a pull request or issue, the oldest first."""
        with self._asking(f"read the comments under {number}"):
            return [
                Comment(id=item.id, author=_login(item), body=item.body or "")
                for item in self._issue(number).get_comments()
            ]

    def add_comment(self, number: int, body: str) -> None:
        """Write a new comment."""
        with self._asking(f"comment on {number}"):
            _made(self._issue(number).create_comment(body).id)

    def edit_comment(self, identity: int, body: str) -> None:
        """Replace the text of a comment."""
        with self._asking(f"update the comment {identity}"):
            self._comment(identity).edit(body)

    def delete_comment(self, identity: int) -> None:
        """Remove a comment."""
        with self._asking(f"remove the comment {identity}"):
            self._comment(identity).delete()

    def artifacts(self, run: int) -> list[Artifact]:
        """Return the artifacts of a run of a workflow that have not expired, by name."""
        from github.Artifact import Artifact as GithubArtifact
        from github.PaginatedList import PaginatedList

        with self._asking(f"list the artifacts of run {run}"):
            address = f"{self._repository.url}/actions/runs/{run}/artifacts"
            requester = self._github.requester
            found = PaginatedList(GithubArtifact, requester, address, None, list_item="artifacts")
            left = (item for item in found if not item.expired)
            return sorted(map(_artifact, left), key=lambda item: item.name)

    def last_own(self, name: str, wanted: Callable[[Artifact], bool], *, most: int) -> Artifact | None:
        """Return the newest artifact of this name that a run of this repository left and that is `wanted`; None if there is none.

        Of all there are, the `most` recent are looked at. Pull requests of forks may leave artifacts of any name.
        """
        with self._asking(f"list the artifacts {name}"):
            left = (_artifact(item) for item in self._repository.get_artifacts(name) if not item.expired)
            found = [item for item in islice(left, most) if item.own and wanted(item)]
        return max(found, key=lambda item: item.age, default=None)

    def download(self, artifact: Artifact, most: int) -> bytes:
        """Return the zip of an artifact. ApiError, before all of it has come, if it has more than `most` bytes."""
        import requests
        from requests.adapters import HTTPAdapter

        too_large = ApiError(f"the artifact {artifact.name} is too large: more than {most} bytes")
        if artifact.size > most:
            raise too_large
        data = bytearray()
        with self._asking(f"fetch the artifact {artifact.name}"), requests.Session() as session:
            session.headers["User-Agent"] = AGENT
            for scheme in ("https://", "http://"):
                session.mount(scheme, HTTPAdapter(max_retries=_retrying(self._patience)))
            address = f"{self._api_url}/repos/{self._name}/actions/artifacts/{artifact.id}/zip"
            # This leads to a store elsewhere, where requests does not show the token.
            with session.get(address, auth=self._signed, stream=True, timeout=_TIMEOUT_S) as answer:
                if answer.status_code != requests.codes.ok:
                    hint = "the job needs 'permissions: actions: read'"
                    what = f"cannot fetch the artifact {artifact.name}: HTTP status {answer.status_code}"
                    raise ApiError(what, status=answer.status_code, hint=hint)
                for chunk in answer.iter_content(_CHUNK):
                    data += chunk
                    if len(data) > most:
                        raise too_large
        return bytes(data)

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request, whatever a .netrc has for the host."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def issues(self, label: str) -> list[Issue]:
        """Return all issues with this label, closed ones too, but no pull requests."""
        with self._asking("list the issues"):
            return [
                _issue(item)
                for item in self._repository.get_issues(state="all", labels=[label])
                # Not by what only pull requests have: asking an issue for it would be a request of its own.
                if item.html_url.split("/")[-2:-1] != ["pull"]
            ]

    def add_issue(self, title: str, body: str, label: str) -> int:
        """Open an issue and return its number. A label that is not there yet is made by GitHub."""
        with self._asking("open an issue"):
            return _made(self._repository.create_issue(title=title, body=body, labels=[label]).number)

    def edit_issue(self, number: int, *, title: str, body: str, is_open: bool) -> None:
        """Replace title and text of an issue, and open or close it."""
        with self._asking(f"update the issue {number}"):
            self._issue(number).edit(title=title, body=body, state="open" if is_open else "closed")

    @contextmanager
    def _asking(self, what: str) -> Generator[None]:
        with self._waiting.watched(f"GitHub to {what}"), _asking(what):
            yield

    @cached_property
    def _github(self) -> Github:
        from github import Auth, Github, set_log_level

        set_log_level(logging.WARNING)  # else it reports each pause in the middle of our lines
        return Github(
            auth=Auth.Token(self._token),
            base_url=self._api_url,
            user_agent=AGENT,
            per_page=_PER_PAGE,
            timeout=_TIMEOUT_S,
            retry=_retrying(self._patience),
            # What GitHub asks of writers; a report writes a handful of times.
            seconds_between_writes=self._patience.backoff_s,
            seconds_between_requests=None,
            lazy=True,
        )

    @cached_property
    def _repository(self) -> Repository:
        return self._github.get_repo(self._name)

    def _issue(self, number: int) -> GithubIssue:
        return self._repository.get_issue(number)

    def _comment(self, identity: int) -> IssueComment:
        from github.IssueComment import IssueComment

        return IssueComment(self._github.requester, url=f"{self._repository.url}/issues/comments/{identity}")


def _made(number: int) -> int:
    """Return the number of what was made. ValueError for an answer without one, as of a redirection, which PyGithub takes for success."""
    if not number:
        raise ValueError("nothing was made: was the repository renamed?")
    return number


def _pull(found: Any) -> OpenPull:
    home = found.head.repo  # None once the fork was deleted
    name = None if home is None else home.full_name
    return OpenPull(number=found.number, head_sha=found.head.sha, head_repository=name)


def _issue(found: Any) -> Issue:
    return Issue(
        number=found.number,
        author=_login(found),
        title=found.title or "",
        body=found.body or "",
        open=found.state == "open",
    )


def _artifact(found: Any) -> Artifact:
    data: Any = found.raw_data
    run: dict[str, Any] = data.get("workflow_run") or {}
    return Artifact(
        id=found.id,
        name=found.name,
        size=found.size_in_bytes,
        branch=run.get("head_branch"),
        sha=run.get("head_sha"),
        created_at=str(data.get("created_at") or ""),
        own=run.get("repository_id") is not None and run.get("repository_id") == run.get("head_repository_id"),
    )


def _login(found: Any) -> str:
    return found.user.login if found.user is not None else ""  # of an account that is gone
