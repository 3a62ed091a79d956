"""Random blocks over the whole fragment of paths, and random documents that they match often."""

from __future__ import annotations

import random

import xscl
from xscl.query import Block

__all__ = ["random_block", "random_nested_block", "random_xml"]

STEPS = ("a", "b", "*", "c", "text()", "@k", "@*", "n:a", "*:b")
TESTS = (
    "[{0}]",
    "[{0} = 'x']",
    "[{0} = '']",
    "[. = 'x']",
    "[{0} != 'x']",
    "[{0} > 1]",
    "[{0} <= 1]",
    "[{0} = 1]",
    "[{0} != 2]",
    "[not({0})]",
    "[not({0} = 'x')]",
    "[{0} or {1} = 'y']",
    "[contains({0}, 'x') or {1} < 2]",
    "[{0} and {1}]",
    "[contains({0}, 'x')]",
    "[contains({0}, '')]",
    "[contains({0}, 'x')][starts-with({1}, 'y')]",
    "[starts-with({0}, 'x') and ends-with({1}, 'y')]",
    "[1]",
    "[last()]",
    "[position() > 1]",
    "[{0}][1]",
    "[{0} = 'x'][2]",
    "[contains({0}, 'x')][1]",
    "[2][{0}]",
    "[position() mod 2 = 1]",
    "[count({0})]",
    "[last() div 2 < position()][{0}]",
    "[{0} = 'x'][position() = count(../{1})]",
    "[{0} or position() mod 2 = 0]",
    "[not(last() mod 2 = 1) and {0} = 'x']",
    "[{0}[last() - position() = 1]]",
    "[count({0}[position() mod 2 = 1]) = 1]",
    "[string-length({0}) = 1]",
    "[string-length({0}) > 1]",
    "[string-length({0}) = '2']",
    "[string-length({0}) != '02']",
    "[not(string-length({0}) = '01')]",
    "[lower-case({0}) = 'x']",
    "[matches({0}, '^x')]",
    "[count({0}) = 2]",
    "[{0}[{1}]]",
    "[{0}[contains(., 'x')]]",
    "[.//{0}]",
    "[.//{0}[. = 'y']]",
)
BINDING = ("[{0}->{2}]", "[{0}->{2} = 'x']", "[.//{0}->{2}[{1}]]", "[contains({0}->{2}, 'x')]")
DECLARE = "DECLARE NAMESPACE n = 'urn:n'; "
VALUES = ("x", "y", "xy", "1", "2", "", "<!-- no -->", "x<!-- no -->y", "<?pi?>", "<![CDATA[x]]>")


def random_block(random_: random.Random) -> Block:
    """Return a block with variables at some of its steps."""
    names = iter(f"v{i}" for i in range(50))
    text = "S"
    for i in range(random_.randint(1, 3)):
        step = random_.choice(STEPS[:4] + STEPS[7:]) if i == 0 else random_.choice(STEPS)
        text += random_.choice(("/", "//")) + step
        if random_.random() < 0.5:
            text += f"->{next(names)}"
        if "text" in step or "@" in step:
            break
        for _ in range(random_.choice((0, 1, 1, 2))):
            form = random_.choice(BINDING if random_.random() < 0.4 else TESTS)
            text += form.format(random_.choice(STEPS), random_.choice(STEPS), next(names))
    (query,) = xscl.parse(DECLARE + text)
    return query.blocks[0]


def random_nested_block(random_: random.Random) -> Block:
    """Return a block of elements with nested paths only, as filters."""

    def steps(count: int) -> str:
        return "".join(
            random_.choice(("/", "/", "//")) + random_.choice(("a", "b", "c", "*", "n:a", "*:b"))
            for _ in range(count)
        )

    text = "S"
    for _ in range(random_.randint(1, 4)):
        text += steps(1)
        for _ in range(random_.choice((0, 0, 1, 1, 2))):
            text += f"[.{steps(random_.randint(1, 3))}]"
    (query,) = xscl.parse(DECLARE + text)
    return query.blocks[0]


def random_xml(random_: random.Random) -> bytes:
    """Return a document up to five levels deep, with all that XML has in the way."""

    def element(depth: int) -> str:
        name = random_.choice(("a", "b", "c", "n:a", "n:b"))
        attributes = "".join(
            f' {k}="{random_.choice("xy1")}"' for k in ("k", "n:k") if random_.random() < 0.2
        )
        if depth > 3:
            content = ""
        else:
            content = "".join(
                element(depth + 1) if random_.random() < 0.6 else random_.choice(VALUES)
                for _ in range(random_.randint(0, 4))
            )
        return f"<{name}{attributes}>{content}</{name}>"

    xml = element(0)
    end = xml.index(">")
    return f'{xml[:end]} xmlns:n="urn:n"{xml[end:]}'.encode()
