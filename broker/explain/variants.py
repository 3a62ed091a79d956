"""What LOSS makes of a query, in words: its variants with their factors, and what is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from templates.factor import Factor
from templates.factortext import spell_delay, spell_unit
from templates.variants import Variant, variants
from xscl.delays import LEARNED_LEAST, LEARNED_MOST
from xscl.path import Parameter
from xscl.query import Query

__all__ = ["asked_line", "factor_lines", "unasked_lines", "variant_title"]


def variant_title(query: Query, variant: Variant) -> str:
    """Return what a variant is called, and how sure it can be."""
    lost = [spell_unit(query, block) for block in variant.lost]
    name = f"without {' and '.join(lost)}" if lost else "all units are there"
    return f"{name}: confidence {float(variant.most):.6g}{' at most' if variant.factors else ''}"


def factor_lines(query: Query, variant: Variant) -> Iterator[str]:
    """Yield a line for each factor of a variant."""
    for factor in variant.factors:
        yield _line(query, factor)


def _line(query: Query, factor: Factor) -> str:
    names = " and ".join(spell_unit(query, block) for block in factor.blocks)
    delays = " and ".join(map(spell_delay, factor.losses))
    of_root = {block.root: number for number, block in enumerate(query.blocks)}
    sides = [" | ".join(str(of_root[r]) for r in side) for side in (factor.left, factor.right)]
    gap = f"T from block {sides[0]} to block {sides[1]}"
    if not factor.right:
        gap = f"T from block {sides[0]} until the absence is certain"
    if not factor.is_lost:
        return f"(1 - F(T)) / (eps F(T) + 1 - F(T)): {names} not seen, {gap}, {delays}"
    eps = " ".join(f"{loss.probability:g}" for loss in factor.losses)
    share = "F(T)" if len(factor.losses) == 1 else "P(D1 + D2 <= T)"
    text = f"{eps} {share}: {names} lost, {gap}, {delays}"
    if factor.learns:
        text += (
            f" from the last {LEARNED_MOST:,} matches that lack nothing, {LEARNED_LEAST} at least"
        )
    return text


def asked_line(asked: float | Parameter) -> str:
    """Return what CONFIDENCE asks."""
    least = f"${asked.name}" if isinstance(asked, Parameter) else f"{asked:g}"
    return f"a match has a confidence of {least} at least; published documents count with theirs"


def unasked_lines(query: Query, plain: Query) -> Iterator[str]:
    """Yield what is asked of confidence, and the variants that cannot reach it."""
    asked = query.confidence
    if asked is None:
        return
    yield asked_line(asked)
    if isinstance(asked, Parameter):
        return
    reached = {variant.lost for variant in variants(plain)}
    for variant in variants(replace(plain, confidence=None)):
        if variant.lost not in reached:
            yield f"not asked: {variant_title(query, variant)}"
            reached.add(variant.lost)
