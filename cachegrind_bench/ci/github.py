"""GitHub's API as far as we need it: pull requests, comments, artifacts, issues; what is tried again, and how long we wait.

Only this module uses PyGithub. Knows requests and pages; must not know what is said to whom. Everything that comes back is a
plain value.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

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
    from github.PaginatedList import PaginatedList
    from github.Repository import Repository

# Whose the token of a job is, as comments name their author.
JOB_BOT = "github-actions[bot]"


class ApiError(UsageError):
    """GitHub or GitLab did not do what it was asked; `status` is that of HTTP, 0 if it was not reached."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


# The id or number of something in an answer, which is checked as it is read: anything in one may be null.
Number = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]


_State = Literal["open", "closed"]


class OpenPull(msgspec.Struct, frozen=True, kw_only=True):
    """An open pull request, as it is now."""

    number: Number
    head_sha: str
    head_repository: str | None


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment under a pull request or issue."""

    id: Number
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

    id: Number
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

    number: Number
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


def retrying(patience: Patience) -> GithubRetry:
    """Return when a request is tried again, and after how long."""
    from github.GithubRetry import GithubRetry

    found: GithubRetry = bounded_retry(GithubRetry)(
        total=5,
        backoff_factor=patience.backoff_s,
        status_forcelist=[429, 500, 502, 503, 504],
        allowed_methods=frozenset({"GET", "POST", "PATCH", "DELETE"}),
        secondary_rate_wait=patience.secondary_s,
        max_rate_limit_wait=LONGEST_WAIT_S,
        raise_on_status=False,  # the last answer says more than that there were too many
        retry_after_max=LONGEST_WAIT_S,
    )
    return found


def bounded_retry(kind: Any) -> Any:
    """Return a class like this one of urllib3's or PyGithub's, which reads no answer that is an error without end."""

    def increment(retry: Any, *of: Any, response: Any = None, **more: Any) -> Any:
        if response is not None:
            response.drain_conn = response.close  # for the sake of the connection, all of it would be read
        return kind.increment(retry, *of, response=response, **more)

    def get_content(response: Any, _url: str) -> Any:
        return response.read(_MOST_ANSWER, decode_content=True)

    return type(kind.__name__, (kind,), {"increment": increment, "get_content": staticmethod(get_content)})


# What follows the path of an address may be the right to read what is there, for some time.
_QUERY = re.compile(r"\?[^\s'\")]+")


@contextmanager
def telling(what: str, token: str) -> Generator[None]:
    """Turn what goes wrong inside into ApiError: GitHub could not `what`. Neither the token nor a signed address is in it."""
    import requests
    from github import BadAttributeException, GithubException
    from urllib3.exceptions import HTTPError

    def shown(text: object) -> str:
        return _QUERY.sub("?…", str(text).replace(token, "…"))

    try:
        yield
    except GithubException as error:
        status = error.status or 0
        data: Any = error.data
        said = cast("dict[str, Any]", data).get("message") if isinstance(data, dict) else None
        raise ApiError(
            f"GitHub did not {what}: {shown(said or error.message or 'no reason given')} (HTTP status {status})",
            status=status,
            hint=_ADVICE.get(status),
        ) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        raise ApiError(f"GitHub did not {what}: {shown(error)}") from error
    except (
        BadAttributeException,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        AssertionError,
        RuntimeError,
        MemoryError,
        msgspec.ValidationError,
    ) as error:
        raise ApiError(f"GitHub did not {what}: its answer makes no sense ({shown(error)})") from error


AGENT = f"cachegrind-bench/{__version__}"
# Beyond this, GitHub refuses a comment or the body of an issue.
LONGEST_BODY = 65_536
_TIMEOUT_S = 30
_LONGEST_DOWNLOAD_S = 600.0
_PER_PAGE, _MOST_PAGES = 100, 100
_MOST_ANSWER = 80_000_000  # bytes; a hundred of the longest comments have less, even if each character is escaped
_CHUNK = 1 << 16
_NO_CONTENT, _MOVED, _FIRST_ERROR = 204, 301, 400


class Client:
    """What may be done to one repository, OWNER/NAME, with one token. Every method raises ApiError.

    `note` gets a line while GitHub is waited for.
    """

    def __init__(
        self,
        *,
        api_url: str,
        repository: str,
        token: str,
        patience: Patience | None = None,
        note: Callable[[str], object] | None = None,
    ) -> None:
        self._api_url, self._name, self._token = api_url.rstrip("/"), repository, token
        self._patience, self._waiting = patience or Patience(), Waiting(note)

    def login(self) -> str:
        """Return whose token this is, as comments name their author; where it may not be asked, it is a job's."""
        try:
            with self._asking("say whose token this is"):
                # Of the ways to ask, this one is open to the token of a job as well.
                _, data = self._github.requester.graphql_query("query { viewer { login } }", {})
                login = data["data"]["viewer"]["login"]
                return login if isinstance(login, str) and login else JOB_BOT
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            return JOB_BOT

    def pull(self, number: int) -> OpenPull | None:
        """Return a pull request as it is now; None if it is no longer open."""
        with self._asking(f"read pull request {number}"):
            found = self._repository.get_pull(number)
            return _pull(found) if msgspec.convert(found.state, _State) == "open" else None

    def open_pulls(self, owner: str, branch: str) -> list[OpenPull]:
        """Return the open pull requests from this branch of this owner's fork, or of the repository itself."""
        with self._asking("list the pull requests"):
            found = self._repository.get_pulls(state="open", head=f"{owner}:{branch}")
            return [_pull(item) for item in _items(found)]

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
                msgspec.convert({"id": item.id, "author": _login(item), "body": item.body or ""}, Comment)
                for item in _items(self._issue(number).get_comments())
            ]

    def add_comment(self, number: int, body: str) -> None:
        """Write a new comment."""
        with self._asking(f"comment on {number}"):
            msgspec.convert(self._issue(number).create_comment(body).id, Number)

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
            left = (item for item in _items(found) if not item.expired)
            return sorted(map(_artifact, left), key=lambda item: item.name)

    def last_own(self, name: str, wanted: Callable[[Artifact], bool], *, most: int) -> Artifact | None:
        """Return the newest artifact of this name that a run of this repository left and that is `wanted`; None if there is none.

        Of all there are, the `most` recent are looked at. Pull requests of forks may leave artifacts of any name.
        """
        with self._asking(f"list the artifacts {name}"):
            left = (_artifact(item) for item in _items(self._repository.get_artifacts(name)) if not item.expired)
            found = [item for item in islice(left, most) if item.own and wanted(item)]
        return max(found, key=lambda item: item.age, default=None)

    def download(self, artifact: Artifact, most: int) -> bytes:
        """Return the zip of an artifact. ApiError, before all of it has come, if it has more than `most` bytes or takes too long."""
        import requests
        from requests.adapters import HTTPAdapter

        too_large = ApiError(f"the artifact {artifact.name} is too large: more than {most} bytes")
        address = f"{self._api_url}/repos/{self._name}/actions/artifacts/{artifact.id}/zip"
        if artifact.size > most:
            raise too_large
        data = bytearray()
        what = f"fetch the artifact {artifact.name}"
        with self._asking(what), requests.Session() as session:
            session.headers["User-Agent"] = AGENT
            follow_nothing(session)
            for scheme in ("https://", "http://"):
                session.mount(scheme, HTTPAdapter(max_retries=retrying(self._patience)))
            headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/vnd.github+json"}
            # Without an `auth` of ours, what a .netrc has for a host would replace the token, or be shown to the store.
            how: dict[str, Any] = {"auth": as_it_is, "stream": True, "allow_redirects": False, "timeout": _TIMEOUT_S}
            with session.get(address, headers=headers, **how) as answer:
                place = answer.headers.get("Location", "")
                if not answer.is_redirect or not place.startswith(("https://", "http://")):
                    raise _no_artifact(artifact, answer.status_code)
            # The answer leads to a store elsewhere, which must not see the token.
            with session.get(place, **how) as answer:
                if answer.status_code != requests.codes.ok:
                    raise _no_artifact(artifact, answer.status_code)
                with _in_time(answer, what):
                    for chunk in answer.iter_content(_CHUNK):
                        data += chunk
                        if len(data) > most:
                            raise too_large
        return bytes(data)

    def issues(self, label: str) -> list[Issue]:
        """Return all issues with this label, closed ones too, but no pull requests."""
        with self._asking("list the issues"):
            return [
                _issue(item)
                for item in _items(self._repository.get_issues(state="all", labels=[label]))
                # Not by what only pull requests have: asking an issue for it would be a request of its own.
                if item.html_url.split("/")[-2:-1] != ["pull"]
            ]

    def add_issue(self, title: str, body: str, label: str) -> int:
        """Open an issue and return its number. A label that is not there yet is made by GitHub."""
        with self._asking("open an issue"):
            made = self._repository.create_issue(title=title, body=body, labels=[label])
            return msgspec.convert(made.number, Number)

    def edit_issue(self, number: int, *, title: str, body: str, is_open: bool) -> None:
        """Replace title and text of an issue, and open or close it."""
        with self._asking(f"update the issue {number}"):
            self._issue(number).edit(title=title, body=body, state="open" if is_open else "closed")

    @contextmanager
    def _asking(self, what: str) -> Generator[None]:
        with self._waiting.watched(f"GitHub to {what}"), telling(what, self._token):
            yield

    @cached_property
    def _github(self) -> Github:
        from github import Auth, Github, Requester, set_log_level

        connections = Requester.HTTPRequestsConnectionClass, Requester.HTTPSRequestsConnectionClass
        Requester.Requester.injectConnectionClasses(*map(_bounded, connections))
        set_log_level(logging.WARNING)  # else it reports each pause in the middle of our lines
        return Github(
            auth=Auth.Token(self._token),
            base_url=self._api_url,
            user_agent=AGENT,
            per_page=_PER_PAGE,
            timeout=_TIMEOUT_S,
            retry=retrying(self._patience),
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


def _bounded(kind: Any) -> Any:
    """Return a class like this one of PyGithub's, which reads no more than `_MOST_ANSWER` bytes of an answer, and only of one.

    PyGithub takes no content, and what it does not follow, for an empty list or for done; at "later" it asks for ever.
    """

    def getresponse(connection: Any) -> Any:
        connection.session.stream = True  # an answer is read when it is asked for its text
        follow_nothing(connection.session)
        found: Any = kind.getresponse(connection)
        leads = found.status == _MOVED and "location" in found.response.headers
        expected = {_NO_CONTENT} if connection.verb == "DELETE" else {200, 201}
        if found.status not in expected and not leads and found.status < _FIRST_ERROR:
            found.response.close()
            raise OSError(f"it has no answer to that: HTTP status {found.status}; was the repository renamed?")
        may_be_empty = leads or found.status == _NO_CONTENT or found.status >= _FIRST_ERROR
        found.response.iter_content = partial(_parts, found.response.iter_content, may_be_empty=may_be_empty)
        return found

    return type(kind.__name__, (kind,), {"getresponse": getresponse})


def _parts(read: Callable[..., Iterator[bytes]], *how: Any, may_be_empty: bool) -> Iterator[bytes]:
    answer = bytearray()  # a million parts of a few bytes would take much more
    for part in read(*how):
        answer += part
        if len(answer) > _MOST_ANSWER:
            raise OSError(f"its answer has more than {_MOST_ANSWER:,} bytes")
    if not may_be_empty and not answer.lstrip().startswith((b"{", b"[")):  # PyGithub takes null for an empty list
        raise OSError("its answer is neither a list nor an object")
    yield bytes(answer)


def _items(found: PaginatedList[Any]) -> Iterator[Any]:
    """Return all items of a list in pages. ApiError if it does not end: each page names the next one, and may be empty."""
    pages = 0
    while found._couldGrow():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if pages == _MOST_PAGES:
            raise ApiError(f"GitHub has a list of more than {_MOST_PAGES} pages, which is not read")
        pages += 1
        page = found._grow()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if len(page) > _PER_PAGE:
            raise ApiError(f"GitHub has a page of {len(page):,} items where {_PER_PAGE} were asked for")
        yield from page


@contextmanager
def _in_time(answer: requests.Response, what: str) -> Generator[None]:
    """Break an answer off that is read inside for too long: the time-out holds for each part of it. ApiError then."""
    raw: Any = answer.raw
    late, cause = threading.Event(), None

    def give_up() -> None:
        late.set()
        with suppress(OSError, ValueError, RuntimeError):  # it has just ended
            getattr(raw, "shutdown", raw.close)()  # urllib3 before 2.3 can only close it

    try:
        with Waiting().watched(what, _LONGEST_DOWNLOAD_S, give_up):
            yield
    except Exception as error:
        if not late.is_set():
            raise
        cause = error
    if late.is_set():  # what has no length just seems to end
        raise ApiError(f"GitHub did not {what} within {_LONGEST_DOWNLOAD_S:g} s") from cause


def as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Return a request with no other token or password than its own."""
    return request


def follow_nothing(session: Any) -> None:
    """Let a session of requests see no redirection: it reads all that such an answer has, also where it is not to follow it."""

    def nowhere(_answer: requests.Response) -> None:
        return None

    session.get_redirect_target = nowhere


def _no_artifact(artifact: Artifact, status: int) -> ApiError:
    hint = "the job needs 'permissions: actions: read'"
    return ApiError(f"cannot fetch the artifact {artifact.name}: HTTP status {status}", status=status, hint=hint)


def _pull(found: Any) -> OpenPull:
    home = found.head.repo  # None once the fork was deleted
    name = None if home is None else home.full_name
    return msgspec.convert({"number": found.number, "head_sha": found.head.sha, "head_repository": name}, OpenPull)


def _issue(found: Any) -> Issue:
    values = {"number": found.number, "author": _login(found), "title": found.title or "", "body": found.body or ""}
    return msgspec.convert({**values, "open": found.state == "open"}, Issue)


def _artifact(found: Any) -> Artifact:
    data: Any = found.raw_data
    run: dict[str, Any] = data.get("workflow_run") or {}
    values = {
        "id": found.id,
        "name": found.name,
        "size": found.size_in_bytes,
        "branch": run.get("head_branch"),
        "sha": run.get("head_sha"),
        "created_at": str(data.get("created_at") or ""),
        "own": run.get("repository_id") is not None and run.get("repository_id") == run.get("head_repository_id"),
    }
    return msgspec.convert(values, Artifact)


def _login(found: Any) -> str:
    return found.user.login if found.user is not None else ""  # of an account that is gone
