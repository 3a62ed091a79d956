"""What all shards know of very many things: in chunks, of which a change writes one anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

__all__ = ["Chunks"]

T = TypeVar("T", bound=Hashable)


class Chunks(Generic[T]):
    """Things that come and go, up to `size` of them in a chunk."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._chunks: dict[int, dict[T, None]] = {}
        self._chunk_of: dict[T, int] = {}
        self._with_room: dict[int, None] = {}
        self._changed: dict[int, None] = {}
        self._names: dict[int, str] = {}
        self._last = 0

    @property
    def names(self) -> Sequence[str]:
        """The names of what has been written."""
        return tuple(self._names.values())

    def add(self, thing: T) -> None:
        """Add a thing that is not there."""
        if not self._with_room:
            self._last += 1
            self._chunks[self._last] = {}
            self._with_room[self._last] = None
        # The newest, as those that have just come are in it.
        number = next(reversed(self._with_room))
        chunk = self._chunks[number]
        chunk[thing] = None
        self._chunk_of[thing] = number
        self._changed[number] = None
        if len(chunk) >= self._size:
            del self._with_room[number]

    def remove(self, thing: T) -> None:
        """Undo one `add`."""
        number = self._chunk_of.pop(thing)
        chunk = self._chunks[number]
        del chunk[thing]
        self._with_room[number] = self._changed[number] = None
        if not chunk:
            del self._chunks[number], self._with_room[number]

    def write(self, keep: Callable[[Sequence[T]], str]) -> Sequence[str]:
        """Have the chunks that have changed kept, by what names them; return old names."""
        outdated = []
        for number in self._changed:
            if number in self._names:
                outdated.append(self._names.pop(number))
            if number in self._chunks:
                self._names[number] = keep([*self._chunks[number]])
        self._changed.clear()
        return outdated
