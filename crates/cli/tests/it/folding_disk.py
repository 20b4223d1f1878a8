"""A file system in memory that takes names for one that differ in upper and lower case, or in how Unicode writes
the same letters, as those of Windows and macOS do. It keeps the first of such names.

    python3 folding_disk.py MOUNT_POINT     (as root) prints "mounted", and ends when it is unmounted

It speaks the kernel's own protocol of FUSE, so that nothing has to be installed: of it what a restore needs.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
import time
import unicodedata

LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME = 1, 2, 3, 4, 9, 10, 11, 12
OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT = 14, 15, 16, 17, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, CREATE, BATCH_FORGET, RENAME2 = 27, 28, 29, 35, 42, 45
SET_MODE, SET_UID, SET_GID, SET_SIZE, SET_MTIME, SET_MTIME_NOW = 1, 2, 4, 8, 32, 256
NAME_BYTES, WRITE_BYTES = 255, 1 << 17


def fold(name):
    return unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape")).casefold()


class Node:
    def __init__(self, number, mode):
        self.number, self.mode, self.uid, self.gid = number, mode, 0, 0
        self.mtime = time.time_ns()
        self.content, self.names = bytearray(), {}

    def attributes(self):
        size = len(self.content)
        secs, nanos = divmod(self.mtime, 10**9)
        times = [secs % 2**64] * 3 + [nanos] * 3
        blocks = (size + 511) // 512
        return struct.pack(
            "<6Q10I", self.number, size, blocks, *times[:3], *times[3:], self.mode, 1, self.uid, self.gid, 0, 4096, 0
        )


class Disk:
    def __init__(self):
        self.nodes = {1: Node(1, stat.S_IFDIR | 0o755)}

    def new(self, directory, name, mode):
        if fold(name) in directory.names:
            raise OSError(errno.EEXIST, "")
        if len(name) > NAME_BYTES:
            raise OSError(errno.ENAMETOOLONG, "")
        node = Node(len(self.nodes) + 1, mode)
        self.nodes[node.number] = node
        self.put(directory, name, node)
        return node

    def put(self, directory, name, node):
        first, _ = directory.names.get(fold(name), (name, None))
        directory.names[fold(name)] = (first, node)
        directory.mtime = time.time_ns()

    def take(self, directory, name):
        if fold(name) not in directory.names:
            raise OSError(errno.ENOENT, "")
        directory.mtime = time.time_ns()
        return directory.names.pop(fold(name))[1]

    def entry(self, node):
        return struct.pack("<4Q2I", node.number, 0, 0, 0, 0, 0) + node.attributes()

    def answer(self, op, node, body):
        if op == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, WRITE_BYTES, 0, 16, 12, WRITE_BYTES, 1, 32, 0, *[0] * 8)
        if op == LOOKUP:
            found = node.names.get(fold(body[:-1]))
            if not found:
                raise OSError(errno.ENOENT, "")
            return self.entry(found[1])
        if op == GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + node.attributes()
        if op == SETATTR:
            return self.set(node, body)
        if op == MKDIR:
            return self.entry(self.new(node, body[8:-1], stat.S_IFDIR | struct.unpack_from("<I", body)[0]))
        if op == CREATE:
            made = self.new(node, body[16:-1], struct.unpack_from("<4I", body)[1])
            return self.entry(made) + struct.pack("<Q2I", 0, 0, 0)
        if op in (UNLINK, RMDIR):
            self.take(node, body[:-1])
            return b""
        if op in (RENAME, RENAME2):
            front = 8 if op == RENAME else 16
            old, new, _ = body[front:].split(b"\0")
            self.put(self.nodes[struct.unpack_from("<Q", body)[0]], new, self.take(node, old))
            return b""
        if op in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 0, 0, 0)
        if op == READ:
            _, offset, size = struct.unpack_from("<2QI", body)
            return bytes(node.content[offset : offset + size])
        if op == WRITE:
            _, offset, size = struct.unpack_from("<2QI", body)
            node.content.extend(bytes(max(0, offset + size - len(node.content))))
            node.content[offset : offset + size] = body[40:]
            node.mtime = time.time_ns()
            return struct.pack("<2I", size, 0)
        if op == READDIR:
            return self.list(node, *struct.unpack_from("<2QI", body)[1:])
        if op == STATFS:
            return struct.pack("<5Q10I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, NAME_BYTES, 4096, *[0] * 7)
        if op in (RELEASE, RELEASEDIR, FLUSH):
            return b""
        raise OSError(errno.ENOSYS, "")

    def set(self, node, body):
        valid, _, _, size = struct.unpack_from("<2I2Q", body)
        mtime, nanos = struct.unpack_from("<Q", body, 40)[0], struct.unpack_from("<I", body, 60)[0]
        mode, _, uid, gid = struct.unpack_from("<4I", body, 68)
        if valid & SET_MODE:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & SET_UID:
            node.uid = uid
        if valid & SET_GID:
            node.gid = gid
        if valid & SET_SIZE:
            node.content = node.content[:size].ljust(size, b"\0")
        if valid & SET_MTIME:
            node.mtime = time.time_ns() if valid & SET_MTIME_NOW else mtime * 10**9 + nanos
        return struct.pack("<Q2I", 0, 0, 0) + node.attributes()

    def list(self, node, offset, size):
        answer = b""
        for at, (name, child) in enumerate(list(node.names.values())[offset:], offset + 1):
            entry = struct.pack("<2Q2I", child.number, at, len(name), child.mode >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return answer


def main(point):
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"folding", point.encode(), b"fuse.folding", 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    disk = Disk()
    while True:
        try:
            request = os.read(fuse, WRITE_BYTES + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            continue
        _, op, unique, number = struct.unpack_from("<2I2Q", request)
        if op in (FORGET, BATCH_FORGET):
            continue
        try:
            answer, failed = disk.answer(op, disk.nodes[number] if number else None, request[40:]), 0
        except OSError as error:
            answer, failed = b"", -error.errno
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), failed, unique) + answer)


main(sys.argv[1])
