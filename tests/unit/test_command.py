"""From the typed words to the program that really runs: PATH, first lines, version managers' shims."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.measure.command import Command, default_id, resolve

TRUE = "/bin/true"


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def found(cwd: Path, *typed: str, path: str = "/nowhere") -> Command:
    return resolve(typed, {"PATH": path}, cwd)


def refusal(cwd: Path, *typed: str, path: str = "/nowhere") -> UsageError:
    with pytest.raises(UsageError) as caught:
        found(cwd, *typed, path=path)
    return caught.value


# Where the program is


def test_a_name_is_looked_up_on_path(tmp_path: Path) -> None:
    command = found(tmp_path, "true", "x", path="/nowhere:/bin")
    assert (command.typed, command.argv, command.executable) == (("true", "x"), (TRUE, "x"), TRUE)
    assert command.notes == ()
    assert command.script is None


def test_a_folder_of_path_starts_where_the_program_is_executed(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "own", "#!/bin/true\n")
    assert found(tmp_path, "own", path="/nowhere:bin").script == f"{tmp_path}/bin/own"


def test_a_path_starts_at_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "true").symlink_to(TRUE)
    for name in ("./true", f"{tmp_path}/true", ".//true"):
        assert found(tmp_path, name).executable == f"{tmp_path}/true"


def test_a_path_through_a_link_and_up_again_is_what_the_kernel_makes_of_it(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/deep")
    (tmp_path / "real" / "prog").symlink_to(TRUE)
    command = found(tmp_path, "link/../prog")
    assert os.path.samefile(command.executable, TRUE)
    assert found(tmp_path, "real/deep/../prog").executable == f"{tmp_path}/real/prog"


@pytest.mark.parametrize("typed", [[], [""], ["", "x"]])
def test_no_command_is_refused(tmp_path: Path, typed: list[str]) -> None:
    assert refusal(tmp_path, *typed).message == "no command was given"


def test_a_nul_byte_is_refused(tmp_path: Path) -> None:
    assert "NUL" in refusal(tmp_path, TRUE, "a\0b").message


def test_a_missing_program_is_reported_with_path_or_the_file_that_was_meant(tmp_path: Path) -> None:
    error = refusal(tmp_path, "nonesuch")
    assert (error.message, error.hint) == ("command not found: nonesuch", "PATH is /nowhere")
    (tmp_path / "nonesuch").touch()
    assert refusal(tmp_path, "nonesuch").hint == "to run the file here: ./nonesuch"
    assert refusal(tmp_path, "./missing").message == "command not found: ./missing"
    assert refusal(tmp_path, "x" * 300).hint == "PATH is /nowhere"  # a name that no folder can hold


def test_what_cannot_be_executed_is_reported(tmp_path: Path) -> None:
    assert refusal(tmp_path, "/tmp").message == "cannot execute /tmp: it is a directory"
    script(tmp_path / "a b", "x", 0o644)
    error = refusal(tmp_path, "./a b")
    assert (error.message, error.hint) == (
        "cannot execute ./a b: permission denied",
        "chmod +x './a b', or name its interpreter",
    )


# First lines


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ("#!/bin/true", [TRUE]),
        ("#! /bin/true -x", [TRUE, "-x"]),
        ("#!/bin/true -x -y  z", [TRUE, "-x -y  z"]),  # one argument, as the kernel does
        ("#!/usr/bin/env true", [TRUE]),
        ("#!/usr/bin/env -S true -x 'a b'", [TRUE, "-x", "a b"]),
        ("#!/usr/bin/env -Strue", [TRUE]),
    ],
)
def test_a_script_is_run_as_the_kernel_would(tmp_path: Path, line: str, argv: list[str]) -> None:
    path = script(tmp_path / "s", f"{line}\nrest\n")
    command = found(tmp_path, "./s", "1", path="/bin")
    assert command.argv == (*argv, str(path), "1")
    assert (command.executable, command.script) == (TRUE, str(path))
    assert command.notes == ()


@pytest.mark.parametrize(
    "line",
    [
        "#!",
        "#!   ",
        "#!/usr/bin/env -i true",
        "#!/usr/bin/env A=1 true",
        "#!/usr/bin/env -S true $HOME",
        "#!/usr/bin/env -S 'true",
        "#!/usr/bin/env nonesuch",
        "#!/usr/bin/env -S",
    ],
)
def test_a_script_that_is_not_certain_is_run_as_it_is_and_named(tmp_path: Path, line: str) -> None:
    path = script(tmp_path / "s", f"{line}\n")
    command = found(tmp_path, "./s", path="/bin")
    assert command.argv == (str(path),)
    assert command.notes == (f"{path} is a script whose interpreter could not be determined",)


def test_a_missing_interpreter_is_reported(tmp_path: Path) -> None:
    path = script(tmp_path / "s", "#!/no/such/thing\n")
    assert refusal(tmp_path, "./s").message == f"cannot execute {path}: its interpreter /no/such/thing is missing"


def test_scripts_that_interpret_scripts_are_followed_but_not_for_ever(tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", "#!/bin/true -i\n")
    outer = script(tmp_path / "outer", f"#!{inner} -o\n")
    command = found(tmp_path, str(outer), "x")
    assert command.argv == (TRUE, "-i", str(inner), "-o", str(outer), "x")
    assert command.script == str(outer)
    circle = tmp_path / "circle"
    script(circle, f"#!{circle}\n")
    assert found(tmp_path, str(circle)).notes != ()


def test_a_file_that_cannot_be_read_is_not_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path / "s", "#!/bin/true\n")
    monkeypatch.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert found(tmp_path, str(path)).argv == (str(path),)


# Shims


def manager(folder: Path, body: str) -> Path:
    return script(folder / "libexec" / "pyenv", f"#!/bin/sh\n{body}\n")


def shim(folder: Path, manager_path: Path | str) -> Path:
    return script(
        folder / "shims" / "python",
        f'#!/usr/bin/env bash\nset -e\nprogram="${{0##*/}}"\nexport PYENV_ROOT="{folder}"\nexec "{manager_path}" exec "$program" "$@"\n',
    )


def test_the_program_behind_a_shim_is_measured_and_named(tmp_path: Path) -> None:
    path = shim(tmp_path, manager(tmp_path, 'test "$1 $2" = "which python" && echo /bin/true'))
    command = found(tmp_path, "python", "x.py", path=f"{path.parent}:/bin:/usr/bin")
    assert command.argv == (TRUE, "x.py")
    assert command.notes == (f"{path} is a shim of pyenv: measured /bin/true itself",)


def test_the_folder_that_a_program_is_executed_in_chooses_what_is_behind_a_shim(tmp_path: Path) -> None:
    path = shim(tmp_path, manager(tmp_path, "cat .python-version"))
    script(tmp_path / "old" / ".python-version", "/bin/false")
    script(tmp_path / "new" / ".python-version", TRUE)
    programs = [found(tmp_path / name, str(path), path="/bin:/usr/bin").executable for name in ("old", "new")]
    assert programs == ["/bin/false", TRUE]


@pytest.mark.parametrize("body", ["exit 1", "echo relative/path", "echo /no/such/file", "echo"])
def test_a_shim_that_does_not_answer_is_run_as_the_script_it_is(tmp_path: Path, body: str) -> None:
    path = shim(tmp_path, manager(tmp_path, body))
    command = found(tmp_path, str(path), path="/bin:/usr/bin")
    assert command.argv[-1] == str(path)
    assert command.script == str(path)


def test_a_shim_whose_manager_is_gone_is_run_as_the_script_it_is(tmp_path: Path) -> None:
    path = shim(tmp_path, "/no/such/pyenv")
    assert found(tmp_path, str(path), path="/bin:/usr/bin").script == str(path)


# Python that ignores its environment

IGNORING = "ignores PYTHONHASHSEED"


def python_note(tmp_path: Path, *arguments: str) -> bool:
    if not (tmp_path / "python3.11").exists():
        (tmp_path / "python3.11").symlink_to(TRUE)
    return any(IGNORING in note for note in found(tmp_path, "./python3.11", *arguments).notes)


@pytest.mark.parametrize(
    "arguments",
    [
        "-I",
        "-sE",
        "-bIc pass",
        "-X utf8 -I x.py",
        "-Xutf8 -E",
        "-Wignore -I",
        "-u -O -I -m mod",
    ],
)
def test_python_that_ignores_the_seed_is_warned_of(tmp_path: Path, arguments: str) -> None:
    assert python_note(tmp_path, *arguments.split())


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "x.py -I",
        "-c I",
        "-m I -E",
        "-mI",
        "-X -I",
        "-WI",
        "- -I",
        "-u x.py -E",
    ],
)
def test_python_that_keeps_to_the_seed_is_not(tmp_path: Path, arguments: str) -> None:
    assert not python_note(tmp_path, *arguments.split())


def test_another_program_may_have_such_options(tmp_path: Path) -> None:
    assert found(tmp_path, TRUE, "-I").notes == ()


def test_a_script_whose_first_line_ignores_the_seed_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(TRUE)
    script(tmp_path / "s", f"#!{tmp_path}/python3 -I\n")
    (note,) = found(tmp_path, "./s").notes
    assert note.startswith("Python with -I ignores PYTHONHASHSEED")


# Names


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["/usr/bin/python3", "bench.py"], "python3 bench.py"),
        (["./build/p", "a b", "$x"], "p 'a b' '$x'"),
        (["p", "/tree/src/x.py"], "p src/x.py"),
        (["p", "--file=/tree/src/x", "-I/tree/include"], "p --file=src/x -Iinclude"),
        (["p", "/tree/a:/tree/b,/tree/c"], "p a:b,c"),
        (["p", "/tree", "/tree/", "--dir=/tree"], "p . . --dir=."),
        (["p", "/home/tree/x", "/treeshop/x", "/x/tree/y"], "p /home/tree/x /treeshop/x /x/tree/y"),
        (["p", "open('/tree/x')"], "p 'open('\"'\"'x'\"'\"')'"),
        (["/opt/\udcff"], "'\\xff'"),
    ],
)
def test_the_default_name_is_the_same_in_every_checkout(typed: list[str], name: str) -> None:
    assert default_id(typed, Path("/tree")) == name


def test_at_the_root_every_path_stays_as_it_is() -> None:
    assert default_id(["p", "/x", "/"], Path("/")) == "p /x /"


def test_a_command_is_shown_as_one_would_type_it(tmp_path: Path) -> None:
    assert found(tmp_path, "true", "a b", path="/bin").shown == "true 'a b'"


def test_this_python_is_found(tmp_path: Path) -> None:
    assert found(tmp_path, sys.executable).argv == (os.path.normpath(sys.executable),)


@pytest.mark.parametrize("content", [b"echo hello\n", b"MZ\x90\0", b"\xca\xfe\xba\xbe"])
def test_a_file_that_only_a_shell_would_take_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tool").write_bytes(content)
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(UsageError, match="neither a program nor a script with a #! line") as caught:
        resolve(["./tool"], {}, tmp_path)
    assert caught.value.hint == f"name its interpreter: sh {tmp_path / 'tool'}"
