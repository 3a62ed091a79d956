"""Workloads of rules: hygiene in a hospital (HYG), and the pool of statements of ACEP.

Both are from *Active Complex Event Processing over Event Streams* (Wang, Rundensteiner, Ellison,
2011): the statements from its sections 2 and 3, the pool from section 6 and appendix G.  What the
paper leaves open is ours: how many workers there are, and how often something happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.documents.document import Document

__all__ = ["HYGIENE", "Numbers", "document", "hygiene", "pool", "pooled"]

HYGIENE = """CREATE TABLE worker (id KEY, status DEFAULT 'safe');
S//exit[hcw->h1][loc->l1] FOLLOWED BY {h1 = h2 AND l1 != l2, 45 s} S//enter[hcw->h2][loc->l2]
    UNLESS {h1 = h3} S//sanitize[hcw->h3] WHERE worker[h2].status = 'safe' GRACE 0 s
    ON MATCH SET worker[h2].status = 'warning';
S//mask[hcw->h1] FOLLOWED BY {h1 = h2, 5 s} S//exit[hcw->h2]
    WHERE worker[h2].status = 'warning' GRACE 0 s
    ON MATCH SET worker[h2].status = 'safe';
S//exit[hcw->h1][loc->l1] FOLLOWED BY {h1 = h2 AND l1 != l2, 45 s} S//enter[hcw->h2][loc->l2]
    UNLESS {h1 = h3} S//sanitize[hcw->h3] WHERE worker[h2].status = 'warning' GRACE 0 s
    ON MATCH SET worker[h2].status = 'violation';
S//sanitize[hcw->h] WHERE worker[h].status = 'violation' GRACE 0 s
    ON MATCH SET worker[h].status = 'safe'"""

STATES = ("safe", "warning", "violation")
TYPES = 8


class Numbers:
    """The linear congruential generator of the C standard, so that others can repeat it."""

    def __init__(self, seed: int = 42) -> None:
        self._state = seed

    def below(self, most: int) -> int:
        """Return the next number below a bound."""
        self._state = (1_103_515_245 * self._state + 12_345) % 2**31
        return (self._state >> 16) % most


def document(number: int, xml: str, per_second: float = 1.0) -> Document:
    """Return a document of the stream S, so many of which come in a second."""
    at_us = int(number * 1_000_000 / per_second)
    return Document(
        docid=number,
        stream="S",
        key=str(number),
        start_us=at_us,
        end_us=at_us,
        arrival_us=at_us,
        watermark_us=int((number - 1) * 1_000_000 / per_second),
        xml=xml.encode(),
    )


def hygiene(count: int, workers: int, locations: int = 5) -> Iterator[Document]:
    """Yield a document a second: a worker leaves, enters, sanitises, or puts a mask on."""
    numbers = Numbers()
    for number in range(1, count + 1):
        worker, kind = numbers.below(workers), numbers.below(4)
        kind_name = ("exit", "sanitize", "enter", "mask")[kind]
        inside = f"<hcw>w{worker}</hcw><loc>l{numbers.below(locations)}</loc>"
        yield document(number, f"<{kind_name}>{inside}</{kind_name}>")


def pool(*, reads: int = 1, writes: float = 0.25, length: int = 3) -> str:
    """Return statements of which each event makes so many reads, and so many writes on average.

    A statement follows `length` types of events of one worker, and reads the worker's row at the
    last of them; `8 * writes` of the types have one that writes it.
    """
    statements = ["CREATE TABLE status (w KEY, s DEFAULT 'safe')"]
    for kind in range(TYPES):
        blocks = [
            f"S//e{(kind - back) % TYPES}[@w->w{length - back}]" for back in reversed(range(length))
        ]
        chain = blocks[0]
        for position, block in enumerate(blocks[1:], 2):
            chain += f" FOLLOWED BY {{w{position - 1} = w{position}}} {block}"
        within = " WITHIN 45 s" if length > 1 else ""
        for read in range(reads):
            text = f"{chain}{within} WHERE status[w{length}].s = '{STATES[read % 3]}' GRACE 0 s"
            if read == 0 and kind < TYPES * writes:
                text += f" ON MATCH SET status[w{length}].s = '{STATES[(kind + 1) % 3]}'"
            statements.append(text)
    return ";\n".join(statements)


def pooled(count: int, workers: int, per_second: float) -> Iterator[Document]:
    """Yield events of eight types, each of a worker."""
    numbers = Numbers()
    for number in range(1, count + 1):
        worker, kind = numbers.below(workers), numbers.below(TYPES)
        yield document(number, f'<e{kind} w="w{worker}"/>', per_second)
