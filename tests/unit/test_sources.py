"""Source files of two builds in different directories, and what is shown of their paths."""

from __future__ import annotations

import pytest

from cachegrind_bench.compare.pairing import normalised, pair_sources


def paired(base: list[str], candidate: list[str]) -> dict[str, tuple[str | None, str]]:
    """What each file of the base became, and how it is shown; the same is checked with the sides swapped."""
    found, mirrored = pair_sources(base, candidate), pair_sources(candidate, base)
    for side, other in zip(found, reversed(mirrored), strict=True):
        assert {path: (item.shown, item.base, item.candidate) for path, item in side.items()} == {
            path: (item.shown, item.candidate, item.base) for path, item in other.items()
        }
    return {path: (source.candidate, source.shown) for path, source in found[0].items()}


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("./elf/../elf/dl-tls.c", "elf/dl-tls.c"),
        ("./string/../sysdeps/x86_64/multiarch/../multiarch/memcmp-sse2.S", "sysdeps/x86_64/multiarch/memcmp-sse2.S"),
        ("/a//b/./c.c", "/a/b/c.c"),
        ("/../a.c", "/a.c"),
        ("../../a.c", "../../a.c"),
        (
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/fmt/mod.rs",
            "/rustc/library/core/src/fmt/mod.rs",
        ),
        ("/root/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/a.rs", "/rustc/library/core/src/a.rs"),
        (
            "/home/a/.cargo/registry/src/index.crates.io-6f17d22bba15001f/serde-1.0.1/src/de.rs",
            "/registry/serde-1.0.1/src/de.rs",
        ),
        ("/home/a/.cargo/git/checkouts/tool-0123456789abcdef/abc1234/src/a.rs", "/checkouts/tool/src/a.rs"),
        ("/nix/store/" + "a" * 32 + "-glibc-2.38/x.c", "/nix/store/glibc-2.38/x.c"),
        ("???", "???"),
        ("", ""),
        (".", "."),
        ("/", "/"),
    ],
)
def test_paths_lose_what_differs_from_place_to_place(path: str, plain: str) -> None:
    assert normalised(path) == plain
    assert normalised(plain) == plain


def test_files_are_paired_by_the_longest_common_end_and_shown_by_it() -> None:
    assert paired(
        ["/tmp/a/src/x/util.c", "/tmp/a/src/y/util.c", "/tmp/a/src/main.c"],
        ["/build/1/src/main.c", "/build/1/src/y/util.c", "/build/1/src/x/util.c"],
    ) == {
        "/tmp/a/src/x/util.c": ("/build/1/src/x/util.c", "src/x/util.c"),
        "/tmp/a/src/y/util.c": ("/build/1/src/y/util.c", "src/y/util.c"),
        "/tmp/a/src/main.c": ("/build/1/src/main.c", "src/main.c"),
    }


def test_a_file_at_the_same_path_is_never_paired_with_another_one() -> None:
    assert paired(["/usr/x/a.c", "/tmp/1/x/a.c"], ["/usr/x/a.c", "/tmp/2/x/a.c"])["/usr/x/a.c"] == (
        "/usr/x/a.c",
        "/usr/x/a.c",
    )


def test_where_several_files_are_as_alike_the_directories_of_the_others_decide() -> None:
    found = paired(
        ["/z/mine/util.c", "/a/lib/util.c", "/z/mine/one.c", "/z/mine/two.c", "/a/lib/three.c"],
        ["/b/util.c", "/y/util.c", "/b/one.c", "/b/two.c", "/y/three.c"],
    )
    assert found["/z/mine/util.c"][0] == "/b/util.c"
    assert found["/a/lib/util.c"][0] == "/y/util.c"


def test_a_file_of_one_side_only_is_shown_without_the_build_directory_too() -> None:
    found = paired(["/tmp/a/src/x.c", "/tmp/a/src/old.c", "/opt/other.c"], ["/tmp/b/src/x.c"])
    assert found["/tmp/a/src/old.c"] == (None, "src/old.c")
    assert found["/opt/other.c"] == (None, "/opt/other.c")


def test_files_that_would_look_the_same_are_shown_in_full() -> None:
    found = paired(["/a/util.c", "/q/util.c"], ["/b/util.c", "/r/util.c"])
    assert len({shown for _, shown in found.values()}) == 2


def test_a_missing_name_is_not_a_file_and_is_paired_with_itself_only() -> None:
    assert paired(["???"], ["/a/???"]) == {"???": (None, "???")}
    assert paired(["???"], ["???"]) == {"???": ("???", "???")}


def test_many_files_of_one_name_are_paired_quickly() -> None:
    base = [f"/one/{number}/mod.rs" for number in range(3000)]
    candidate = [f"/two/x{number}/mod.rs" for number in range(3000)]
    assert all(other is not None for other, _ in paired(base, candidate).values())


def test_a_file_of_one_side_in_deep_folders_is_shown_quickly() -> None:
    deep = "a/" * 2_000_000 + "x.c"  # took most of an hour
    assert paired(["/1/a.c", deep], ["/2/a.c"])[deep] == (None, deep)


def test_deep_paths_are_no_trouble() -> None:
    deep = "/d" * 5000
    assert paired([f"/a{deep}/x.c", f"/b{deep}/x.c"], [f"/c{deep}/x.c", f"/e{deep}/x.c"])
