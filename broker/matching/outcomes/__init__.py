"""Outcomes: what a statement makes of its matches, once they are decided: rows, or some of them.

    gathered  the matches of a batch
    matched   a match with what rows and limits read of it
    aside     WINDOW: matches of keys that have too few for a row, by key
    asidehits columns of which such matches are made once their key has enough
    series    the matches of one key by their end, and aggregates over any stretch of them
    columns   aggregates that are kept up to date: every stretch by two searches
    asking    WINDOW: who asks for the rows of a source, looked up by windows and numbers
    compared  what HAVING compares with numbers, for many windows at once
    rows      WINDOW: which rows there are, and what is in them
    kept      LIMIT and DISJOINT: what has been given, which decides what is given further
    held      WINDOW behind a WHERE that asks tables: which matches held, for a restart
    learned   DELAY learned: the delays of matches, which say how sure others are
    graphs    COMPRESSED: matches that end together, as one graph whose paths they are
    rowlines  rows are spelled as matches are
    outcome   what rows and graphs have in common
    standing  what of all this goes on from batch to batch
    giving    what is given in one batch

Invariant: what is given depends on what is decided at positions up to its own, and on nothing else.

Begin with `giving`.
"""
