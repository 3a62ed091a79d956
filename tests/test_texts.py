"""The texts that the code leans on: what they name is there, and what is there they name."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(
    subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")[:-1]
)
PRESENT = [name for name in FILES if (ROOT / name).is_file()]
FOLDERS = {str(folder) for name in PRESENT for folder in Path(name).parents} - {"."}
PYTHON = [name for name in PRESENT if name.endswith(".py")]
PAGES = [name for name in PRESENT if name.endswith(".md") and name != "CHANGELOG.md"]
"""The changelog speaks of what was."""

PACKAGES = ("broker", "feeds", "joins", "templates", "xpath_eval", "xscl")
ROOMS = sorted(
    str(Path(name).parent)
    for name in PYTHON
    if name.endswith("/__init__.py") and name.startswith(PACKAGES)
)


@cache
def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def docstring(name: str) -> str:
    return ast.get_docstring(ast.parse(read(name))) or ""


@cache
def prose(name: str) -> str:
    """What a file says to people: a page whole, of a module its strings and comments."""
    if not name.endswith(".py"):
        return read(name)
    kept = {tokenize.STRING, tokenize.COMMENT}
    tokens = tokenize.generate_tokens(io.StringIO(read(name)).readline)
    return "\n".join(token.string for token in tokens if token.type in kept)


# Sections of the semantics.

HEADINGS = re.findall(r"^##+ ([\d.]*\d)\.? ", read("docs/semantics.md"), re.MULTILINE)
_NUMBERS = r"\d+(?:\.\d+)*"
_SECTIONS = re.compile(rf"\b[Ss]ections?\s+({_NUMBERS}(?:(?:,| and| to|, and)\s+{_NUMBERS})*)")
_ELSEWHERE = re.compile(r"\b(Hong|paper|dissertation|RFC \d+)\b")


def citations(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each place that cites sections of the semantics, with their numbers.

    A place that names another text shortly before the word cites that one.
    """
    text = re.sub(r"[\s#]+", " ", text)
    for found in _SECTIONS.finditer(text):
        before = text[max(0, found.start() - 40) : found.start()]
        if not _ELSEWHERE.search(before) and not text[found.end() :].startswith(" of the paper"):
            yield before + found[0], re.findall(_NUMBERS, found[1])


def test_the_sections_of_the_semantics_have_their_numbers() -> None:
    assert HEADINGS == [
        "1",
        "1.1",
        "2",
        "2.1",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "10",
        "12",
        "12.1",
        "12.2",
        "13",
        "13.1",
        "13.2",
        "13.3",
        "13.4",
        "13.5",
        "13.6",
        "14",
        "15",
        "16",
        "18",
        "19",
        "20",
    ]


def test_sections_that_are_cited_are_headings_of_the_semantics() -> None:
    cited = [
        (name, place, number)
        for name in (*PYTHON, *PAGES)
        if re.search(r"\b[Ss]ections?\b", read(name))
        for place, numbers in citations(prose(name))
        for number in numbers
    ]
    assert len(cited) > 40
    assert [each for each in cited if each[2] not in HEADINGS] == []


def test_a_citation_is_read_with_its_source() -> None:
    assert [numbers for _, numbers in citations("sections 4, 5 and 2.1")] == [["4", "5", "2.1"]]
    assert [*citations("(Hong 2009,\n# section 6.5)"), *citations("section 6 of the paper")] == []


# Paths in backticks.

_PATH = re.compile(r"(?<!`)`([\w.-]+(?:/[\w.-]+)*/?)`(?!`)")
_SUFFIX = re.compile(
    r"\w\.(case|css|db|ebnf|html|j2|js|jsonl|json|md|py|service|sh|svg|test|toml|txt|xml|xscl|ya?ml)$"
)

OUTSIDE = {
    "made by a broker in its data directory": {
        "audit.db",
        "checkpoint/",
        "copy.json",
        "deliveries.db",
        "feeds.db",
        "kafka/",
        "outbox.db",
        "plans/",
        "registry.db",
        "shards/",
        "spill/",
        "state/",
        "tokens.db",
    },
    "made by a reader who follows a page": {
        "broker.py",
        "documents.jsonl",
        "same-author.xscl",
        "xscl-quickstart/",
    },
    "asked of other hosts": {"robots.txt"},
    "recorded data, beside the checkout": {"data/"},
    "folders of the examples, in the checkout or in the package": {"documents/", "queries/"},
}
"""Paths that are not of the tree, by the reason why a text may name them."""

_KNOWN = frozenset().union(*OUTSIDE.values())


def paths(name: str) -> Iterator[str]:
    """Yield what a text has in backticks that looks like a path of the tree."""
    found = _paths(read(name))
    if found and name.endswith(".py"):
        found = [path for text in docstrings(name) for path in _paths(text)]
    yield from found


def _paths(text: str) -> list[str]:
    return [
        path
        for path in _PATH.findall(text)
        if path.endswith("/") or _SUFFIX.search(path) or path.startswith(_TOPS)
    ]


_TOPS = tuple(f"{folder}/" for folder in sorted(FOLDERS) if "/" not in folder)


def docstrings(name: str) -> list[str]:
    """The strings of a module that stand alone: what documents it and its parts."""
    return [
        node.value.value
        for node in ast.walk(ast.parse(read(name)))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def is_there(path: str, source: str) -> bool:
    """Whether a path leads somewhere from the root, or from the text; a file's name, anywhere."""
    wanted = path.rstrip("/")
    beside = str(Path(source).parent / wanted)
    there = FOLDERS if path.endswith("/") else FOLDERS | set(PRESENT)
    return (
        wanted in there
        or beside in there
        or ("/" not in path and any(name.endswith(f"/{path}") for name in PRESENT))
    )


def test_paths_in_backticks_exist_and_every_exception_is_needed() -> None:
    missing = [
        (name, path)
        for name in (*PAGES, *PYTHON)
        for path in paths(name)
        if not is_there(path, name)
    ]
    assert [each for each in missing if each[1] not in _KNOWN] == []
    assert {path for _, path in missing} == _KNOWN


# Rooms.


@pytest.mark.parametrize("room", ROOMS)
def test_the_architecture_has_the_first_line_of_every_room(room: str) -> None:
    first = docstring(f"{room}/__init__.py").split("\n")[0]
    assert f"| `{room}/` | {first} |\n" in read("ARCHITECTURE.md")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_always_holds_and_where_to_begin(room: str) -> None:
    text = docstring(f"{room}/__init__.py")
    assert re.search(r"^Invariants?: ", text, re.MULTILINE)
    begin = re.search(r"^Begin with (.*)", text, re.MULTILINE | re.DOTALL)
    assert begin
    for module in re.findall(r"`([\w.]+)`", begin[1]):
        place = ROOT / room / module.replace(".", "/")
        assert place.with_suffix(".py").is_file() or place.is_dir(), f"{room} has no {module}"


CHAINS = {
    text.split(" > ")[0]: text.split(" > ")
    for text in re.findall(r"^    (\w+ > .*)$", read("ARCHITECTURE.md"), re.MULTILINE)
}


def imports(name: str, package: str) -> Iterator[str]:
    """Yield the rooms of a package that a module imports from."""
    for node in ast.walk(ast.parse(read(name))):
        modules = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == package and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize(("package", "top"), [("broker", "cli"), ("joins", "shards")])
def test_arrows_run_as_the_architecture_draws_them(package: str, top: str) -> None:
    chain = CHAINS[top]
    for name in (name for name in PYTHON if name.startswith(f"{package}/")):
        room = Path(name).parts[1].removesuffix(".py")
        if room in chain:
            above = set(chain[: chain.index(room)])
            assert not above & set(imports(name, package)), name


# Words.


def test_the_glossary_has_each_word_once() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", read("docs/glossary.md"), re.MULTILINE)
    assert len(words) > 80
    assert len(words) == len(set(words))
