"""`git bisect run cg-bench check` finds the commit that made a program slower, past one that does not compile."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import textwrap

import pytest

from tests.valgrind.conftest import COMMAND, LIMIT_S, CgBench, environment

# The program at its first commit: it counts words of a made-up text in a hash table.
FIRST = {
    ".gitignore": "*.o\nwords\n",
    "Makefile": """\
        CFLAGS = -O1 -g -Wall
        OBJECTS = main.o text.o table.o
        words: $(OBJECTS)
        \t$(CC) $(CFLAGS) -o $@ $(OBJECTS)
        $(OBJECTS): words.h Makefile
        """,
    "words.h": """\
        #include <stddef.h>
        #define SLOTS 4096
        struct entry { char word[12]; unsigned count; };
        struct table { struct entry slots[SLOTS]; unsigned used; };
        size_t next_word(char *word, size_t room);
        struct entry *find(struct table *table, const char *word);
        unsigned most_frequent(const struct table *table);
        """,
    "text.c": """\
        #include "words.h"
        static unsigned state = 1;
        static unsigned number(void) {
            state = state * 1103515245u + 12345u;
            return state >> 16;
        }
        size_t next_word(char *word, size_t room) {
            size_t length = 2 + number() % 3;
            if (length >= room) length = room - 1;
            for (size_t i = 0; i < length; i++) word[i] = 'a' + number() % 6;
            word[length] = 0;
            return length;
        }
        """,
    "table.c": """\
        #include <string.h>
        #include "words.h"
        static unsigned hash(const char *word) {
            unsigned value = 5381;
            while (*word) value = value * 33 + (unsigned char)*word++;
            return value;
        }
        struct entry *find(struct table *table, const char *word) {
            unsigned slot = hash(word) % SLOTS;
            while (table->slots[slot].count && strcmp(table->slots[slot].word, word)) slot = (slot + 1) % SLOTS;
            struct entry *entry = &table->slots[slot];
            if (!entry->count) {
                strcpy(entry->word, word);
                table->used++;
            }
            return entry;
        }
        unsigned most_frequent(const struct table *table) {
            unsigned best = 0;
            for (unsigned slot = 1; slot < SLOTS; slot++)
                if (table->slots[slot].count > table->slots[best].count) best = slot;
            return best;
        }
        """,
    "main.c": """\
        #include <stdio.h>
        #include "words.h"
        static struct table table;
        int main(void) {
            char word[12];
            for (int i = 0; i < 20000; i++) {
                next_word(word, sizeof word);
                find(&table, word)->count++;
            }
            printf("%s\\n", table.slots[most_frequent(&table)].word);
            return 0;
        }
        """,
}

# Every further commit: its message, and in a file one text that is replaced by another ("" begins a new file).
EDITS = (
    ("Begin a readme", "README", "", "words: counts made-up words\n"),
    ("Say what the word is", "main.c", '"%s\\n", table', '"%s is the most frequent\\n", table'),
    ("More warnings", "Makefile", "-Wall", "-Wall -Wextra"),
    ("Explain the table", "table.c", "static unsigned hash", "/* Open addressing. */\nstatic unsigned hash"),
    ("A licence", "LICENSE", "", "Do what you like.\n"),
    ("Say what the numbers are", "text.c", "static unsigned number", "/* ISO C's */\nstatic unsigned number"),
    ("The number of words gets a name", "main.c", "i < 20000", "i < WORDS"),
    ("Oh, it needs a value as well", "words.h", "#define SLOTS", "#define WORDS 20000\n#define SLOTS"),
    (
        "Tell how many words there were",
        "main.c",
        "    return 0;",
        '    printf("%u words\\n", table.used);\n    return 0;',
    ),
    ("Longer readme", "README", "words: ", "words, a program that "),
    ("Never search a table that is full", "table.c", "    unsigned slot = ", "    GUARD\n    unsigned slot = "),
    ("The seed can be found", "text.c", "state = 1;", "state = 1; /* the seed */"),
    ("Check for no words at all", "main.c", '    printf("%u', '    if (!table.used) return 1;\n    printf("%u'),
    ("Name the author of the hash", "table.c", "static unsigned hash", "/* Bernstein's */\nstatic unsigned hash"),
    ("Call libc without a detour", "Makefile", "-O1", "-O1 -fno-plt"),
)
# One instruction or two more for every word: about two percent.
GUARD = "if (table->used == SLOTS) return 0;"
PLANTED = "Never search a table that is full"
BROKEN = "The number of words gets a name"


class Repository:
    """A git repository of sixteen commits, in the working directory of a `cg-bench`."""

    def __init__(self, cg_bench: CgBench) -> None:
        self.folder = cg_bench.cwd
        self.env = environment(
            {
                **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
                **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A U Thor"),
                **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "author@example.org"),
            }
        )
        self.commits: dict[str, str] = {}
        self.git("init", "-q")
        for name, text in FIRST.items():
            self._write(name, textwrap.dedent(text))
        self._commit("The first words")
        for message, name, old, new in EDITS:
            text = (self.folder / name).read_text() if old else ""
            assert old in text, message
            self._write(name, text.replace(old, new.replace("GUARD", GUARD), 1) if old else new)
            self._commit(message)

    def git(self, *words: str, code: int = 0) -> str:
        """Run git; return what it and the programs it ran wrote."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def _commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        self.commits[message] = self.git("rev-parse", "HEAD").strip()

    def bisect(self, *command: str, code: int = 0) -> str:
        """Measure the first commit as the base, search the culprit of the last, and return what was said."""
        first, *_, last = self.commits.values()
        self.git("checkout", "-q", first)
        for words in (["make", "-s"], [*COMMAND, "run", "-q", "--save-baseline", "good", "--", "./words"]):
            subprocess.run(words, cwd=self.folder, env=self.env, check=True)
        self.git("bisect", "start", last, first)
        return self.git("bisect", "run", *command, code=code)


@pytest.fixture
def repository(cg_bench: CgBench) -> Repository:
    return Repository(cg_bench)


def culprit(repository: Repository) -> str:
    """Return the message of the commit that bisecting found."""
    found = repository.git("rev-parse", "refs/bisect/bad").strip()
    return {sha: message for message, sha in repository.commits.items()}[found]


CHECK = (*COMMAND, "check", "--base", "good")


@pytest.mark.slow
def test_the_commit_is_found_where_check_builds_the_program(repository: Repository) -> None:
    said = repository.bisect(*CHECK, "--prepare", "make -s", "--", "./words")
    assert culprit(repository) == PLANTED
    assert f"{repository.commits[PLANTED]} is the first bad commit\n" in said
    # The commit that does not compile was tried, and left out.
    assert f"# skip: [{repository.commits[BROKEN]}]" in repository.git("bisect", "log")
    assert "the --prepare command failed with exit status 2: make -s\n" in said
    # The function is named, and the baseline is no change of the repository.
    assert re.search(r"^✗ regression +words .* find$", said, re.MULTILINE)
    assert repository.git("status", "--porcelain") == ""


def test_the_commit_is_found_where_a_shell_builds_the_program(repository: Repository) -> None:
    repository.bisect("sh", "-c", f"make -s || exit 125; exec {shlex.join(CHECK)} -q -- ./words")
    assert culprit(repository) == PLANTED
    assert f"# skip: [{repository.commits[BROKEN]}]" in repository.git("bisect", "log")


def test_a_mistake_stops_the_bisection_at_once(repository: Repository) -> None:
    said = repository.bisect(*CHECK, "--treshold", "1%", "--", "./words", code=128)
    assert said.count("cg-bench: error: 'check' has no option --treshold") == 1
    assert "did you mean --threshold" in said
    assert "first bad commit" not in said
