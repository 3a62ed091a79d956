"""`xscl test`: cases beside a query file say which documents match, and are held to it.

casefile   the text of a case file -> its cases, or diagnostics
trial      a case's documents through an engine, in their own time -> what was found
report     what was found -> text, JSON, JUnit, or the case file as it would have to be

Invariant: a case needs no broker and no clock; what it finds, a broker finds.

Begin with `trial`.
"""
