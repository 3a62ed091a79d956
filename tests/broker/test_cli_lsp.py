"""`xscl lsp` serves an editor: a client of the protocol talks to it over its standard streams."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest_asyncio
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

URI, OTHER = "file:///queries/pair.xscl", "file:///queries/pairs.xscl"
TEXT = "FROM news//item->a FOLLOWED BY {a/link = bb/link, 1 day} news//item->b\nPUBLISH pairs"
MENDED = TEXT.replace("bb/", "b/")


class Editor:
    """An editor with the server; `told` has the diagnostics that it was told last, by file."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.told: dict[str, list[lsp.Diagnostic]] = {}
        self.news = asyncio.Event()

        def hear(given: lsp.PublishDiagnosticsParams) -> None:
            self.told[given.uri] = list(given.diagnostics)
            self.news.set()

        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(hear)

    async def start(self) -> None:
        """Start the server as an editor does, and say what this client can do."""
        await self.client.start_io(sys.executable, "-m", "broker.cli", "lsp")
        await self.client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
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


@pytest_asyncio.fixture
async def editor() -> AsyncIterator[Editor]:
    made = Editor()
    await made.start()
    yield made
    await made.client.shutdown_async(None)
    made.client.exit(None)
    await made.client.stop()  # type: ignore[no-untyped-call]


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
