"""Witnesses in a file: the instances of some documents, to be absorbed again.

    magic and format version, length and checksum of the header       20 bytes
    header    JSON: `Header`, variables and their names, length and checksum of the payload
    payload   an Arrow IPC stream of `WITNESS_SCHEMA`: a row for each document

Variables have the numbers of the process that wrote the file; another process finds its own by the
names in the header.  The first row of each shape spells the shape out.

A file is written once.  Its documents can always be evaluated again: for a file that is torn,
damaged or of a later format the answer to `WitnessFileError` is to evaluate them.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xpath_eval.witnesses import EDGE, WITNESS_SCHEMA

__all__ = [
    "Header",
    "WitnessFileError",
    "compacted",
    "encode_witnesses",
    "read_as_written",
    "read_header",
    "read_witnesses",
]

FORMAT_VERSION = 1

_MAGIC = b"XSCLWIT\n"
_FIXED = struct.Struct("<8sIII")
_ALIGNMENT = 8

Column = npt.NDArray[np.int32]


class WitnessFileError(RuntimeError):
    """A file of witnesses is torn, damaged, or of a format that is not known here."""


@dataclass(frozen=True, slots=True)
class Header:
    """The facts about a file that can be read without its payload.

    The file holds the witnesses of all documents from `first_docid` to `last_docid`; `end_max_us`
    is the newest event time among them.  `facts` come from the writer.
    """

    first_docid: int
    last_docid: int
    end_max_us: int
    facts: dict[str, str]


def encode_witnesses(
    witnesses: pa.Table, names: Mapping[int, bytes], facts: Mapping[str, str]
) -> list[bytes | memoryview]:
    """Return the content of a file of the witnesses of documents with consecutive numbers.

    Raises `KeyError` for a shape that is not spelled out, or a variable that `names` does not name.
    """
    spelled, edges = _spell_once(witnesses)
    payload = _ipc(witnesses.set_column(_EDGES, WITNESS_SCHEMA.field(_EDGES), spelled))
    docids = witnesses.column("docid")
    newest = pc.max(witnesses.column("end_us")).as_py()
    variables = np.unique(np.concatenate([edges["var1"], edges["var2"]])).tolist()
    header = {
        **asdict(Header(docids[0].as_py(), docids[-1].as_py(), newest, dict(facts))),
        "variables": variables,
        "names": [names[variable].hex() for variable in variables],
        "payload_bytes": payload.size,
        "payload_checksum": zlib.crc32(memoryview(payload)),
    }
    text = json.dumps(header).encode()
    text += b" " * (-(_FIXED.size + len(text)) % _ALIGNMENT)
    return [_FIXED.pack(_MAGIC, FORMAT_VERSION, len(text), zlib.crc32(text)), text, payload]


_EDGES = WITNESS_SCHEMA.get_field_index("edges")


def compacted(witnesses: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
    """Return some rows of a table that spells out its shapes; the result does so once."""
    rows = np.flatnonzero(kept)
    edges = _flat(witnesses.column("edges"))
    spelled = np.flatnonzero(pc.is_valid(edges).to_numpy(zero_copy_only=False))
    shapes = witnesses.column("shape")
    at = dict(zip(shapes.take(pa.array(spelled)).to_pylist(), spelled.tolist(), strict=True))
    # Each shape is spelled out on the first of the rows that have it.
    places = [at.pop(shape, None) for shape in shapes.take(pa.array(rows)).to_pylist()]
    some = witnesses.take(pa.array(rows))
    column = edges.take(pa.array(places, pa.int64()))
    return some.set_column(_EDGES, WITNESS_SCHEMA.field(_EDGES), column)


def read_header(path: Path) -> Header:
    """Return the header of a file."""
    header, _ = _read_header(path)
    return Header(**{name: header[name] for name in Header.__slots__})


def read_witnesses(path: Path, numbers: Mapping[bytes, int]) -> pa.Table:
    """Return the witnesses in a file, memory-mapped, with variables by their `numbers` here.

    Edges of variables that have no number are left out: nobody asks for them.
    """
    witnesses, names = read_as_written(path)
    here = {number: numbers.get(name, -1) for number, name in names.items()}
    if all(number == own for number, own in here.items()):
        return witnesses
    return _renumber(witnesses, np.array(list(here)), np.array(list(here.values()), np.int32))


def read_as_written(path: Path) -> tuple[pa.Table, dict[int, bytes]]:
    """Return the witnesses in a file, memory-mapped, and the names of the variables in them."""
    header, payload_at = _read_header(path)
    mapped = pa.memory_map(str(path))
    mapped.seek(payload_at)
    payload = mapped.read_buffer(header["payload_bytes"])
    if payload.size != header["payload_bytes"]:
        raise WitnessFileError(f"{path} is cut short")
    if zlib.crc32(payload) != header["payload_checksum"]:
        raise WitnessFileError(f"{path} does not have the checksum in its header")
    with pa.ipc.open_stream(payload) as reader:
        witnesses = reader.read_all()
    return witnesses, dict(
        zip(header["variables"], map(bytes.fromhex, header["names"]), strict=True)
    )


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        start = file.read(_FIXED.size)
        if len(start) < _FIXED.size:
            raise WitnessFileError(f"{path} is cut short")
        magic, version, length, checksum = _FIXED.unpack(start)
        text = file.read(length)
    if magic != _MAGIC:
        raise WitnessFileError(f"{path} is not a file of witnesses")
    if version != FORMAT_VERSION:
        raise WitnessFileError(f"{path} has format {version}; this is version {FORMAT_VERSION}")
    if zlib.crc32(text) != checksum:
        raise WitnessFileError(f"{path} has a damaged header")
    return json.loads(text), _FIXED.size + length


def _ipc(witnesses: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, witnesses.schema) as writer:
        writer.write_table(witnesses.combine_chunks())
    return sink.getvalue()


def _spell_once(witnesses: pa.Table) -> tuple[pa.Array, dict[str, Column]]:
    """Return the column of edges, each shape's on its first row that has them; and the items."""
    edges = _flat(witnesses.column("edges"))
    spelled = np.flatnonzero(pc.is_valid(edges).to_numpy(zero_copy_only=False))
    names = witnesses.column("shape").take(pa.array(spelled)).to_pylist()
    first = {name: int(row) for name, row in zip(names[::-1], spelled[::-1], strict=True)}
    unknown = set(pc.unique(witnesses.column("shape")).drop_null().to_pylist()) - first.keys()
    if unknown:
        raise KeyError(f"no row spells out the shapes {unknown}")
    kept = np.zeros(len(edges), np.bool_)
    kept[list(first.values())] = True
    places = pa.array(np.arange(len(edges)), mask=~kept)
    column = edges.take(places)
    return column, _items(column)


def _renumber(witnesses: pa.Table, there: Column, here: Column) -> pa.Table:
    """Turn variables `there[i]` into `here[i]`; shapes get names by their new edges."""
    column = _flat(witnesses.column("edges"))
    items = _items(column)
    for name in ("var1", "var2"):
        items[name] = here[np.searchsorted(there, items[name])]
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    known = (items["var1"] >= 0) & (items["var2"] >= 0)
    owners = np.repeat(np.arange(len(counts)), counts)[known]
    items = {name: values[known] for name, values in items.items()}
    ends = np.cumsum(np.bincount(owners, minlength=len(counts)))
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    edges = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.StructArray.from_arrays([pa.array(items[f.name]) for f in EDGE], fields=list(EDGE)),
        type=column.type,
        mask=pc.is_null(column),
    )
    shapes = _renamed(witnesses.column("shape"), column, items, offsets)
    columns = {"edges": edges, "shape": shapes}
    return pa.table(
        [columns.get(field.name, witnesses.column(field.name)) for field in WITNESS_SCHEMA],
        WITNESS_SCHEMA,
    )


def _renamed(
    shapes: pa.ChunkedArray, edges: pa.Array, items: Mapping[str, Column], offsets: Column
) -> pa.Array:
    """Return the column of shapes under new names, which are digests of their edges."""
    encoded = _flat(shapes).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_pylist()
    for row in np.flatnonzero(pc.is_valid(edges).to_numpy(zero_copy_only=False)).tolist():
        digest = hashlib.blake2b(b"renumbered", digest_size=12)
        for field in EDGE:
            digest.update(items[field.name][offsets[row] : offsets[row + 1]].tobytes())
        names[codes[row]] = digest.hexdigest()
    return pa.array(names, pa.string()).take(encoded.indices)


def _items(edges: pa.Array) -> dict[str, Column]:
    """Return all edges of a column, one after the other, by columns."""
    items = edges.flatten()
    return {field.name: items.field(field.name).to_numpy() for field in EDGE}


def _flat(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.combine_chunks()
    if isinstance(chunks, pa.ChunkedArray):
        return chunks.chunk(0) if chunks.num_chunks else pa.array([], column.type)
    return chunks
