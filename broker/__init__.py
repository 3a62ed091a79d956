"""The broker: accepts documents, holds queries against them, and hands their matches over.

Its rooms, in the order of the imports, each of which may use those behind it:

    cli > service > web > api > operations > delivery > pipeline > registry > settings
        > matching > documents

`explain`, `whynot`, `estimate` and `testing` answer questions about queries, for `api` and `cli`;
`demo` is the world around the demonstration.  ARCHITECTURE.md follows a document through them.

Invariant: no import runs the other way.

Begin with `service.lifecycle`, which starts everything, or with `pipeline.steps`, which does it.
"""
