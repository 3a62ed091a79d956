"""Why documents do not match: `why_not` says it as a value, a tree of reasons.

`attempts` holds a plain statement against documents in given orders: `blocks` each block against a
document, `operators` each operator against what its sides have found.  `cells` asks what tables
have said; `reason` is what all of them answer, `text` prints it.

Invariant: it finds a match exactly where the engine does, from which it takes only the normal form,
the patterns and the reading of single steps; but what was decided, `surroundings` has it decide.

Begin with `why`.
"""

from __future__ import annotations

from broker.whynot.cells import KnownRows, Rules
from broker.whynot.reason import Reason
from broker.whynot.surroundings import SURROUNDINGS_MAX, Surroundings
from broker.whynot.why import why_not

__all__ = ["SURROUNDINGS_MAX", "KnownRows", "Reason", "Rules", "Surroundings", "why_not"]
