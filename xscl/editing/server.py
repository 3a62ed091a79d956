"""The language server: `xscl lsp` speaks the Language Server Protocol on its standard streams.

It is a thin layer over this folder's functions: places are converted, and what the other open files
publish is known.  What may stand somewhere, and what a word means, a running broker is asked first:
it is the same functions there, with the names in its recent documents.  Needs pygls, which the
extra `lsp` brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

import xscl
from xscl.diagnostics import Diagnostic
from xscl.editing.colours import COLOURS, coloured
from xscl.editing.completion import Completion, CompletionKind, complete
from xscl.editing.fixes import fixes
from xscl.editing.hover import Hover, hover
from xscl.editing.mentions import Mention, mentions_of
from xscl.lexer import is_name
from xscl.path import Span

__all__ = ["Ask", "server"]

Ask = Callable[[str, str, int], Mapping[str, Any] | None]
"""Asks a broker for `completions` or `hover` of a text at a place; None where none answers."""

_KINDS = {
    CompletionKind.STREAM: lsp.CompletionItemKind.Module,
    CompletionKind.ELEMENT: lsp.CompletionItemKind.Field,
    CompletionKind.ATTRIBUTE: lsp.CompletionItemKind.Property,
    CompletionKind.VARIABLE: lsp.CompletionItemKind.Variable,
    CompletionKind.FUNCTION: lsp.CompletionItemKind.Function,
    CompletionKind.WORD: lsp.CompletionItemKind.Keyword,
}

_TYPES = sorted({*COLOURS.values()})


def server(version: str, ask: Ask = lambda *_: None) -> LanguageServer:
    """Return a server, not started; `version` is what it says of itself."""
    made = LanguageServer("xscl", version)

    @made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: LanguageServer, given: lsp.DidOpenTextDocumentParams) -> None:
        _tell(ls, given.text_document.uri)

    @made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: LanguageServer, given: lsp.DidChangeTextDocumentParams) -> None:
        _tell(ls, given.text_document.uri)

    @made.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["/", "[", "{", "@"])
    )
    async def completed(
        ls: LanguageServer, given: lsp.CompletionParams
    ) -> list[lsp.CompletionItem]:
        document = ls.workspace.get_text_document(given.text_document.uri)
        place = document.offset_at_position(given.position)
        found = await asyncio.to_thread(_completions, ask, document.source, place)
        return [
            lsp.CompletionItem(
                each.text,
                kind=_KINDS[each.kind],
                detail=each.detail,
                sort_text=f"{place:04}",
                text_edit=lsp.TextEdit(_range(document, each.span), each.text),
            )
            for place, each in enumerate(found)
        ]

    @made.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(ls: LanguageServer, given: lsp.HoverParams) -> lsp.Hover | None:
        document = ls.workspace.get_text_document(given.text_document.uri)
        place = document.offset_at_position(given.position)
        found = await asyncio.to_thread(_meaning, ask, document.source, place)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, _range(document, found.span))

    @made.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(ls: LanguageServer, given: lsp.DefinitionParams) -> list[lsp.Location]:
        document = ls.workspace.get_text_document(given.text_document.uri)
        mention = _mention(document, given.position)
        if mention is None:
            return []
        mentions = mentions_of(document.source)
        if mention not in mentions.streams:
            bound = [each for each in mentions.same(mention) if each.is_binding]
            return [lsp.Location(document.uri, _range(document, each.span)) for each in bound]
        return list(_publishers(ls, mention.name))

    @made.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def referred(ls: LanguageServer, given: lsp.ReferenceParams) -> list[lsp.Location]:
        document = ls.workspace.get_text_document(given.text_document.uri)
        mention = _mention(document, given.position)
        same = [] if mention is None else mentions_of(document.source).same(mention)
        return [lsp.Location(document.uri, _range(document, each.span)) for each in same]

    @made.feature(lsp.TEXT_DOCUMENT_RENAME)
    def renamed(ls: LanguageServer, given: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document = ls.workspace.get_text_document(given.text_document.uri)
        mention = _mention(document, given.position)
        mentions = mentions_of(document.source)
        if mention is None or mention in mentions.streams or not is_name(given.new_name):
            return None
        edits = [
            lsp.TextEdit(_range(document, each.span), given.new_name)
            for each in mentions.same(mention)
        ]
        return lsp.WorkspaceEdit({document.uri: edits})

    @made.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(
        ls: LanguageServer, given: lsp.DocumentFormattingParams
    ) -> list[lsp.TextEdit] | None:
        document = ls.workspace.get_text_document(given.text_document.uri)
        try:
            text = xscl.render(document.source)
        except xscl.XsclError:
            return None
        return [lsp.TextEdit(_range(document, Span(0, len(document.source))), text)]

    @made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def mended(ls: LanguageServer, given: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = ls.workspace.get_text_document(given.text_document.uri)
        line = given.range.start.line
        return [
            lsp.CodeAction(
                fix.title,
                kind=lsp.CodeActionKind.QuickFix,
                edit=lsp.WorkspaceEdit(
                    {document.uri: [lsp.TextEdit(_range(document, fix.span), fix.text)]}
                ),
            )
            for diagnostic in xscl.check(document.source)[1]
            for fix in fixes(diagnostic)
            if _range(document, fix.span).start.line == line
        ]

    @made.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend(_TYPES, []))
    def told_colours(ls: LanguageServer, given: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        document = ls.workspace.get_text_document(given.text_document.uri)
        return lsp.SemanticTokens(list(_semantic_tokens(document)))

    return made


def _completions(ask: Ask, text: str, place: int) -> list[Completion]:
    told = ask("completions", text, place)
    if told is None:
        return complete(text, place)
    return [
        Completion(each["text"], CompletionKind(each["kind"]), _span(each), each["detail"])
        for each in told["completions"]
    ]


def _meaning(ask: Ask, text: str, place: int) -> Hover | None:
    told = ask("hover", text, place)
    if told is None:
        return hover(text, place)
    found = told["hover"]
    return found and Hover(_span(found), found["text"])


def _span(told: Mapping[str, Any]) -> Span:
    return Span(told["start"], told["end"])


def _semantic_tokens(document: TextDocument) -> Iterator[int]:
    """Yield five numbers for each part with a colour: lines and columns from the one before, ..."""
    line = column = 0
    for span, colour in coloured(document.source):
        place = _range(document, span)
        if place.start.line != place.end.line:
            continue  # a separator of lines to the client that is none to the language
        column = place.start.character - (column if place.start.line == line else 0)
        length = place.end.character - place.start.character
        yield from (place.start.line - line, column, length, _TYPES.index(colour), 0)
        line, column = place.start.line, place.start.character


def _tell(ls: LanguageServer, uri: str) -> None:
    document = ls.workspace.get_text_document(uri)
    _, found = xscl.check(document.source)
    shown = [_diagnostic(document, each) for each in found]
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown))


def _diagnostic(document: TextDocument, found: Diagnostic) -> lsp.Diagnostic:
    severity = lsp.DiagnosticSeverity
    message = f"{found.message}\n{found.hint}" if found.hint else found.message
    return lsp.Diagnostic(
        _range(document, found.span),
        message,
        severity=severity.Error if found.is_error else severity.Warning,
        code=found.code,
        source="xscl",
    )


def _mention(document: TextDocument, position: lsp.Position) -> Mention | None:
    return mentions_of(document.source).at(document.offset_at_position(position))


def _publishers(ls: LanguageServer, stream: str) -> Iterator[lsp.Location]:
    for uri, document in ls.workspace.text_documents.items():
        for each in mentions_of(document.source).streams:
            if each.is_binding and each.name == stream:
                yield lsp.Location(uri, _range(document, each.span))


def _range(document: TextDocument, span: Span) -> lsp.Range:
    """Return the lines and columns of a span, as the client counts characters."""
    return lsp.Range(
        document.client_position_at_offset(span.start), document.client_position_at_offset(span.end)
    )
