"""Trees: the entries of a snapshot, and the contents that they name.

Chapters 16, 17 and 18 of docs/format.md. A tree may come from a hostile client that shares the
repository, so levels, order, totals and lengths are compared, not believed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from blocks import CHUNKS, NODES
from fields import Damage, Fields, require
from keys import Keys
from sealing import open_block
from storage import Copy, Place, Storage

LEAF, INTERIOR, LIST = 1, 2, 3
LEVELS = {LEAF: range(1), INTERIOR: range(1, 41), LIST: range(9)}
NODE_MAX_BYTES = 256 * 1024
NODE_PATHS_MAX_BYTES = 1024 * 1024
KEY_MAX_BYTES = 65_536
COMPONENT_MAX_BYTES = 4096
CHUNK_MAX_BYTES = 2 * 1024 * 1024
CONTENT_MAX_CHUNKS = 48
NAME_MAX_BYTES = 255
ATTRIBUTE_MAX_BYTES = 1024 * 1024
MAX_ATTRIBUTES = 65_536
SECOND_NANOSECONDS = 10**9

FILE, DIRECTORY, SYMLINK, FIFO, SOCKET, CHARACTER_DEVICE, BLOCK_DEVICE = range(7)
SAME_OWNER, SAME_MODE, HARD_LINKED, CTIME_IS_MTIME = 1 << 3, 1 << 4, 1 << 6, 1 << 7
HAS_EXTENTS = 1 << 6
NOTHING, INLINE, IN_CHUNKS, IN_LIST = range(4)
INLINE_CONTENT_BYTES, INLINE_ATTRIBUTES_BYTES, INLINE_EXTENTS_BYTES = 4096, 2048, 1024

OPEN_BLOCKS = 16
RECENT_CHUNKS = 8


@dataclass(frozen=True)
class Content:
    """Bytes that lie inline, in chunks of known lengths, or below a list node."""

    length: int = 0
    inline: bytes = b""
    chunks: tuple[tuple[bytes, int], ...] = ()
    list_node: bytes = b""


@dataclass(frozen=True)
class Entry:
    """What a snapshot holds at one path; times are nanoseconds since 1970 UTC."""

    key: bytes = b""
    kind: int = FILE
    device: tuple[int, int] = (0, 0)
    mode: int = 0
    uid: int = 0
    gid: int = 0
    user: bytes = b""
    group: bytes = b""
    mtime: int = 0
    ctime: int = 0
    size: int = 0
    inode: int = 0
    hard_link_group: bytes = b""
    attributes: Content = Content()
    content: Content = Content()
    extents: Content | None = None


@dataclass(frozen=True)
class Totals:
    """What an interior node says of a child."""

    entries: int
    content_bytes: int


@dataclass(frozen=True)
class Node:
    """A node's fields behind its kind and level; ids are taken from the positions, in turn."""

    kind: int
    level: int
    fields: Fields
    positions: Fields
    references: list[bytes]

    def next_id(self) -> bytes:
        """The id that is due."""
        require(bool(self.references), f"{self.fields.what}: an id without references")
        return self.references[self.positions.varint(len(self.references) - 1)]

    def end(self) -> None:
        """Refuses items and positions that are left over."""
        self.fields.end()
        self.positions.end()


class Objects:
    """Objects by their ids, opened and compared."""

    def __init__(self, keys: Keys, storage: Storage) -> None:
        self._keys = keys
        self._storage = storage
        self._opened = lru_cache(OPEN_BLOCKS)(self._open)
        self.chunk = lru_cache(RECENT_CHUNKS)(self._chunk)

    def _open(self, place: Place) -> dict[int, bytes]:
        return open_block(self._keys, place.read(), place.header.kind, str(place.file))

    def _chunk(self, object_id: bytes) -> bytes:
        """A piece of content."""
        _, plain = self._first_whole(CHUNKS, object_id)
        require(1 <= len(plain) <= CHUNK_MAX_BYTES, f"chunk {object_id.hex()}: bad length")
        return plain

    def node(self, object_id: bytes) -> Node:
        """A node of a tree or of a list."""
        what = f"node {object_id.hex()}"
        copy, body = self._first_whole(NODES, object_id)
        require(len(body) <= NODE_MAX_BYTES, f"{what}: {len(body)} bytes")
        fields = Fields(body, what)
        fields.constant(b"\1", "version")
        kind = fields.code([LEAF, INTERIOR, LIST], "kind")
        level = fields.code(LEVELS[kind], "level")
        positions = Fields(fields.string(NODE_MAX_BYTES), f"{what}: positions")
        return Node(kind, level, fields, positions, copy.listed.references)

    def _first_whole(self, kind: int, object_id: bytes) -> tuple[Copy, bytes]:
        """The authoritative copy, or another where that is not what its id says."""
        damage: Damage | None = None
        for copy in self._storage.copies(kind, object_id):
            try:
                plain = self._opened(copy.place)[copy.position]
                if kind == NODES:
                    found = self._keys.node_id(copy.listed.references, plain)
                else:
                    found = self._keys.chunk_id(plain)
                where = f"{copy.place.file}: object {object_id.hex()}"
                require(found == object_id, f"{where} is another")
                return copy, plain
            except Damage as error:
                damage = damage or error
        raise damage or Damage(f"object {object_id.hex()} is missing")


class Tree:
    """One snapshot's entries and contents."""

    def __init__(self, objects: Objects, root: bytes) -> None:
        self._objects = objects
        self._root = root

    def entries(self) -> Iterator[Entry]:
        """All entries, sorted by path."""
        root = self._objects.node(self._root)
        require(root.kind != LIST, "the root is the node of a list")
        yield from self._below(root, b"", None)

    def read(self, content: Content) -> Iterator[bytes]:
        """The bytes of a content, piece by piece."""
        if content.inline:
            yield content.inline
        for object_id, length in content.chunks:
            yield self._piece(object_id, length)
        if content.list_node:
            yield from self._listed(content.list_node, content.length, None)

    def read_whole(self, content: Content) -> bytes:
        """The same in one piece."""
        return b"".join(self.read(content))

    def attributes(self, entry: Entry) -> list[tuple[bytes, bytes]]:
        """Names and values of the extended attributes."""
        data = self.read_whole(entry.attributes)
        if not data:
            return []
        fields = Fields(data, f"attributes of {shown(entry.key)}")
        attributes: list[tuple[bytes, bytes]] = []
        for _ in range(fields.varint(MAX_ATTRIBUTES)):
            name, value = fields.string(NAME_MAX_BYTES), fields.string(ATTRIBUTE_MAX_BYTES)
            ascending = name > (attributes[-1][0] if attributes else b"")
            require(ascending, f"{fields.what}: names do not ascend")
            require(b"\0" not in name, f"{fields.what}: a zero byte in a name")
            attributes.append((name, value))
        fields.end()
        require(bool(attributes), f"{fields.what}: a list of none")
        return attributes

    def extents(self, entry: Entry) -> list[tuple[int, int]]:
        """Offsets and lengths of a file's data; a file without holes is one extent."""
        if entry.extents is None:
            return [(0, entry.size)] if entry.size else []
        fields = Fields(self.read_whole(entry.extents), f"extents of {shown(entry.key)}")
        extents: list[tuple[int, int]] = []
        end = 0
        while fields.left():
            offset = end + fields.varint()
            length = fields.varint()
            end = offset + length
            require(length > 0 and end <= entry.size, f"{fields.what}: behind the file's end")
            extents.append((offset, length))
        data_bytes = sum(length for _, length in extents)
        require(data_bytes == entry.content.length, f"{fields.what}: data of another length")
        return extents

    def _below(self, node: Node, first: bytes, after: bytes | None) -> Iterator[Entry]:
        """The entries below a node, whose paths lie in [`first`, `after`)."""
        if node.kind == LEAF:
            for entry in _leaf(node):
                require(
                    first <= entry.key and (after is None or entry.key < after),
                    f"{node.fields.what}: a path outside of what its parent says",
                )
                yield entry
            return
        children = _interior(node)
        for (key, totals, child_id), following in zip(children, [*children[1:], None]):
            what = f"node {child_id.hex()}"
            child = self._objects.node(child_id)
            require(child.kind != LIST, f"{what}: a list in a tree")
            require(child.level == node.level - 1, f"{what}: not one level below its parent")
            inside = first <= key and (after is None or key < after)
            require(inside, f"{what}: outside of what its parent's parent says")
            found = Totals(0, 0)
            for entry in self._below(child, key, following[0] if following else after):
                require(found.entries > 0 or entry.key == key, f"{what}: another first path")
                size = entry.size if entry.kind == FILE else 0
                found = Totals(found.entries + 1, found.content_bytes + size)
                yield entry
            require(found == totals, f"{what}: has {found}, its parent says {totals}")

    def _listed(self, node_id: bytes, length: int, level: int | None) -> Iterator[bytes]:
        """The pieces below a list node, `length` bytes in all."""
        node = self._objects.node(node_id)
        what = node.fields.what
        require(node.kind == LIST, f"{what}: not a list")
        require(level is None or node.level == level, f"{what}: not one level below its parent")
        listed = 0
        while node.fields.left():
            piece_bytes = node.fields.varint()
            require(piece_bytes > 0, f"{what}: an empty piece")
            listed += piece_bytes
            require(listed <= length, f"{what}: more bytes than its parent says")
            if node.level == 0:
                yield self._piece(node.next_id(), piece_bytes)
            else:
                yield from self._listed(node.next_id(), piece_bytes, node.level - 1)
        node.end()
        require(listed == length, f"{what}: fewer bytes than its parent says")

    def _piece(self, object_id: bytes, length: int) -> bytes:
        plain = self._objects.chunk(object_id)
        require(len(plain) == length, f"chunk {object_id.hex()}: another length")
        return plain


def _interior(node: Node) -> list[tuple[bytes, Totals, bytes]]:
    """First path, totals and id of each child."""
    children: list[tuple[bytes, Totals, bytes]] = []
    paths = _Paths(node.fields)
    while node.fields.left():
        key = paths.next()
        totals = Totals(node.fields.varint(), node.fields.varint())
        children.append((key, totals, node.next_id()))
    node.end()
    require(bool(children), f"{node.fields.what}: no children")
    return children


def _leaf(node: Node) -> list[Entry]:
    entries: list[Entry] = []
    paths = _Paths(node.fields)
    before = Entry()
    while node.fields.left():
        before = _entry(node, paths.next(), before)
        entries.append(before)
    node.end()
    return entries


class _Paths:
    """The ascending paths of a node, each written as what it does not share with the one before."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._before: bytes | None = None
        self._total_bytes = 0

    def next(self) -> bytes:
        """The next path, as a key."""
        fields, before = self._fields, self._before or b""
        shared = fields.varint(len(before))
        suffix = fields.string(KEY_MAX_BYTES)
        key = before[:shared] + suffix
        longest = shared == len(before) or before[shared : shared + 1] != suffix[:1]
        require(longest, f"{fields.what}: a path shares more than it says")
        require(self._before is None or key > before, f"{fields.what}: paths do not ascend")
        self._total_bytes += len(key)
        require(self._total_bytes <= NODE_PATHS_MAX_BYTES, f"{fields.what}: too many long paths")
        check_key(key, fields.what)
        self._before = key
        return key


def check_key(key: bytes, what: str) -> None:
    """Refuses what is no path of a tree."""
    require(len(key) <= KEY_MAX_BYTES, f"{what}: a path of {len(key)} bytes")
    for component in key.split(b"\0") if key else []:
        plain = 1 <= len(component) <= COMPONENT_MAX_BYTES and b"/" not in component
        require(plain and component not in (b".", b".."), f"{what}: {component!r} in a path")


def _entry(node: Node, key: bytes, before: Entry) -> Entry:
    fields = node.fields
    flags, contents = fields.unsigned(1), fields.unsigned(1)
    kind = flags & 7
    require(kind <= BLOCK_DEVICE, f"{fields.what}: an entry of kind {kind}")
    require(contents < 1 << 7, f"{fields.what}: a reserved bit of an entry")
    has_extents = contents & HAS_EXTENTS != 0
    require(has_extents or contents >> 4 & 3 == 0, f"{fields.what}: extents of no sparse file")
    require(kind == FILE or not has_extents, f"{fields.what}: extents of no file")
    entry = replace(before, key=key, kind=kind)
    is_device = kind in (CHARACTER_DEVICE, BLOCK_DEVICE)
    device = (fields.varint(2**32 - 1), fields.varint(2**32 - 1)) if is_device else (0, 0)
    entry = replace(entry, device=device)
    if not flags & SAME_MODE:
        entry = replace(entry, mode=fields.varint(0o7777))
    if not flags & SAME_OWNER:
        entry = replace(
            entry,
            uid=fields.varint(2**32 - 1),
            gid=fields.varint(2**32 - 1),
            user=fields.string(NAME_MAX_BYTES),
            group=fields.string(NAME_MAX_BYTES),
        )
    mtime = _time(fields, before.mtime)
    ctime = mtime if flags & CTIME_IS_MTIME else _time(fields, mtime)
    size = fields.varint()
    inode = (before.inode + fields.difference()) % 2**64
    group = fields.take(16) if flags & HARD_LINKED else b""
    attributes = _content(node, contents & 3, INLINE_ATTRIBUTES_BYTES)
    content = _content(node, contents >> 2 & 3, INLINE_CONTENT_BYTES)
    extents = _content(node, contents >> 4 & 3, INLINE_EXTENTS_BYTES) if has_extents else None
    entry = replace(
        entry,
        mtime=mtime,
        ctime=ctime,
        size=size,
        inode=inode,
        hard_link_group=group,
        attributes=attributes,
        content=content,
        extents=extents,
    )
    _check_lengths(entry)
    return entry


def _check_lengths(entry: Entry) -> None:
    what = shown(entry.key)
    if entry.kind == FILE:
        whole = entry.extents is not None or entry.content.length == entry.size
        require(whole, f"{what}: content of another length")
        return
    require(entry.size == 0, f"{what}: a size of what is no file")
    if entry.kind == SYMLINK:
        require(entry.content.inline != b"", f"{what}: a link without a target in its entry")
    else:
        require(entry.content == Content(), f"{what}: content of what has none")


def _time(fields: Fields, before: int) -> int:
    """Nanoseconds since 1970; the seconds are written as their difference to those before."""
    seconds = before // SECOND_NANOSECONDS + fields.difference()
    seconds = (seconds + 2**63) % 2**64 - 2**63
    nanoseconds = fields.unsigned(4)
    require(nanoseconds < SECOND_NANOSECONDS, f"{fields.what}: {nanoseconds} nanoseconds")
    return seconds * SECOND_NANOSECONDS + nanoseconds


def _content(node: Node, code: int, inline_limit: int) -> Content:
    fields = node.fields
    if code == NOTHING:
        return Content()
    if code == INLINE:
        inline = fields.string(inline_limit)
        require(inline != b"", f"{fields.what}: an empty content that is written out")
        return Content(len(inline), inline=inline)
    if code == IN_LIST:
        length = fields.varint()
        require(length > 0, f"{fields.what}: an empty list")
        return Content(length, list_node=node.next_id())
    count = fields.varint(CONTENT_MAX_CHUNKS)
    lengths = [fields.varint(CHUNK_MAX_BYTES) for _ in range(count)]
    require(count > 0 and 0 not in lengths, f"{fields.what}: an empty chunk, or none")
    return Content(sum(lengths), chunks=tuple((node.next_id(), length) for length in lengths))


def shown(key: bytes) -> str:
    """A path as people read it."""
    return ("/" + key.replace(b"\0", b"/").decode(errors="backslashreplace")).replace("\n", "\\n")
