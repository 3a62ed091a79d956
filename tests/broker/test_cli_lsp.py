"""`xscl lsp` serves an editor: a client of the protocol talks to it over its standard streams."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest_asyncio
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from support.api_house import open_house
from support.later import Later

from xscl.highlight import XsclLexer

lsp, client = Later("lsprotocol.types"), Later("pygls.lsp.client")
ROOT = Path(__file__).parents[2]

URI, OTHER = "file:///queries/pair.xscl", "file:///queries/pairs.xscl"
TEXT = "FROM news//item->a FOLLOWED BY {a/link = bb/link, 1 day} news//item->b\nPUBLISH pairs"
MENDED = TEXT.replace("bb/", "b/")


class Editor:
    """An editor with the server; `told` has the diagnostics that it was told last, by file."""

    def __init__(self) -> None:
        self.client = client.LanguageClient("test", "1")
        self.told: dict[str, list[lsp.Diagnostic]] = {}
        self.news = asyncio.Event()

        def hear(given: lsp.PublishDiagnosticsParams) -> None:
            self.told[given.uri] = list(given.diagnostics)
            self.news.set()

        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(hear)

    async def start(self, *options: str, folder: Path = ROOT) -> None:
        """Start the server as an editor does, and say what this client can do."""
        await self.client.start_io(sys.executable, "-m", "broker.cli", *options, "lsp", cwd=folder)
        asked = lsp.InitializeParams(lsp.ClientCapabilities())
        self.capabilities = (await self.client.initialize_async(asked)).capabilities
        self.client.initialized(lsp.InitializedParams())

    async def open(self, uri: str, text: str) -> list[lsp.Diagnostic]:
        """Open a file; return what is told of it."""
        self.news.clear()
        item = lsp.TextDocumentItem(uri, "xscl", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        async with asyncio.timeout(60):
            await self.news.wait()
        return self.told[uri]

    def at(self, word: str, text: str = MENDED) -> tuple[lsp.TextDocumentIdentifier, lsp.Position]:
        """Return the place of a word in the file."""
        before = text[: text.index(word)]
        column = len(before) - (before.rfind("\n") + 1)
        return lsp.TextDocumentIdentifier(URI), lsp.Position(before.count("\n"), column)


@contextlib.asynccontextmanager
async def started(*options: str, folder: Path = ROOT) -> AsyncIterator[Editor]:
    made = Editor()
    await made.start(*options, folder=folder)
    yield made
    await made.client.shutdown_async(None)
    made.client.exit(None)
    await made.client.stop()  # type: ignore[no-untyped-call]


@pytest_asyncio.fixture
async def editor() -> AsyncIterator[Editor]:
    async with started() as made:
        yield made


async def test_an_editor_is_told_what_is_wrong_and_how_to_mend_it(editor: Editor) -> None:
    [wrong] = await editor.open(URI, TEXT)
    assert wrong.code == "XS201"
    line = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    actions = await editor.client.text_document_code_action_async(
        lsp.CodeActionParams(lsp.TextDocumentIdentifier(URI), line, lsp.CodeActionContext([]))
    )
    assert actions is not None
    [action] = actions
    assert isinstance(action, lsp.CodeAction)
    assert action.edit is not None
    assert action.edit.changes is not None
    [edit] = action.edit.changes[URI]
    assert TEXT[edit.range.start.character : edit.range.end.character] == "bb"
    assert edit.new_text == "b"


async def test_an_editor_completes_renames_formats_and_finds_publishers(editor: Editor) -> None:
    assert await editor.open(URI, MENDED) == []
    assert await editor.open(OTHER, "pairs//match->m") == []

    found = await editor.client.text_document_completion_async(
        lsp.CompletionParams(*editor.at("/link"))
    )
    assert isinstance(found, list)
    said = await editor.client.text_document_hover_async(lsp.HoverParams(*editor.at("FOLLOWED")))
    assert said is not None
    assert "within the window" in str(said.contents)

    identifier, position = editor.at("a/link")
    renamed = await editor.client.text_document_rename_async(
        lsp.RenameParams(identifier, position, "item")
    )
    assert renamed is not None
    assert renamed.changes is not None
    assert [edit.new_text for edit in renamed.changes[URI]] == ["item", "item"]

    places = await editor.client.text_document_definition_async(
        lsp.DefinitionParams(lsp.TextDocumentIdentifier(OTHER), lsp.Position(0, 1))
    )
    assert isinstance(places, list)
    assert [(place.uri, place.range.start.line) for place in places] == [(URI, 1)]

    options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
    edits = await editor.client.text_document_formatting_async(
        lsp.DocumentFormattingParams(identifier, options)
    )
    assert edits is not None
    assert edits[0].new_text.startswith("SELECT *\nFROM")


async def test_a_broker_that_answers_says_how_many_documents_have_a_name(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        token = house.secrets["admin"]
        headers = {"Authorization": f"Bearer {token}"}
        for item in (b"<item><title/><link/></item>", b"<item><title/></item>"):
            await house.client.post("/v1/streams/news/documents", data=item, headers=headers)
        url = str(house.client.make_url(""))
        async with started("--broker", url, "--token", token) as editor:
            await editor.open(URI, MENDED)
            place = lsp.HoverParams(*editor.at("link = "))
            said = await editor.client.text_document_hover_async(place)
            assert said is not None
            assert isinstance(said.contents, lsp.MarkupContent)
            assert said.contents.value == "`link`: in recent documents, 1 of 2 of `news`"
            asked = lsp.CompletionParams(*editor.at("item"))
            offered = await editor.client.text_document_completion_async(asked)
            assert isinstance(offered, list)
            labels = [each.label for each in offered]
            assert {*labels[:2]} == {"item", "title"}, "the most frequent first"
            assert labels[2:] == ["link"]
            house.tokens.revoke("admin")
            said = await editor.client.text_document_hover_async(place)
            assert said is None or "documents" not in str(said.contents)
            offered = await editor.client.text_document_completion_async(asked)
            assert isinstance(offered, list), "the server goes on by itself"


async def test_settings_of_a_folder_lead_to_no_other_machine(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.2") as elsewhere:
        port = elsewhere.sockets[0].getsockname()[1]
        (tmp_path / "xscl.toml").write_text(f"[http]\nhost = '127.0.0.2'\nport = {port}\n")
        for options in ([], ["--broker", f"http://127.0.0.2:{port}"]):
            async with started(*options, folder=tmp_path) as editor:
                await editor.open(URI, MENDED)
                place = lsp.HoverParams(*editor.at("FOLLOWED"))
                said = await editor.client.text_document_hover_async(place)
                assert "within the window" in str(said)
            assert bool(asked) == bool(options)


async def test_an_editor_colours_all_examples_as_pygments_does(editor: Editor) -> None:
    paths = [*ROOT.glob("examples/**/*.xscl"), *ROOT.glob("tests/cases/**/*.xscl")]
    texts = {path.as_uri(): path.read_text() for path in sorted(paths)}
    texts["file:///odd.xscl"] = (
        "(: \U0001f600 two\r\nlines :) news//item->\U00010330b[. = '\U0001f600']"
    )
    assert len(texts) >= 16
    capabilities = editor.capabilities.semantic_tokens_provider
    assert isinstance(capabilities, lsp.SemanticTokensOptions)
    types = capabilities.legend.token_types
    for uri, text in texts.items():
        await editor.open(uri, text)
        found = await editor.client.text_document_semantic_tokens_full_async(
            lsp.SemanticTokensParams(lsp.TextDocumentIdentifier(uri))
        )
        assert found is not None
        wanted = [
            (part, KINDS[kind])
            for _, kind, value in XsclLexer().get_tokens_unprocessed(text)
            if kind in KINDS
            for part in re.split("[\r\n]+", value)
            if part
        ]
        assert [*decoded(text, list(found.data), types)] == wanted, uri


KINDS = {
    **dict.fromkeys((Comment.Multiline, Comment.Single), "comment"),
    **dict.fromkeys((Name, Name.Tag, Name.Attribute), "property"),
    **dict.fromkeys((String, String.Escape, Name.Entity), "string"),
    Keyword: "keyword",
    Keyword.Type: "type",
    Name.Function: "function",
    Name.Variable: "variable",
    Name.Variable.Global: "parameter",
    Number: "number",
    Operator: "operator",
}


def decoded(text: str, data: list[int], types: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield parts of a text with their types; columns are in UTF-16."""
    lines = [line.encode("utf-16-le") for line in text.splitlines()]
    line = column = 0
    for further, after, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
        line, column = line + further, after if further else column + after
        part = lines[line][2 * column : 2 * (column + length)]
        yield part.decode("utf-16-le"), types[kind]
