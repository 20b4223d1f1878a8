"""Makes a repository of restic (version 1) of a description, with what no restic writes of its own accord.

Arguments: the folder, and the password. Input: JSON, a list of snapshots: the fields of restic's snapshot file, and `nodes`, those
of its tree. A node has restic's fields, and in place of them `text` for a file's content and `nodes` for a folder's.
"""

import base64, hashlib, json, os, struct, sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.poly1305 import Poly1305

TIME = "2024-01-01T00:00:00Z"
ROUNDS = 1024


def encoded(data):
    return base64.b64encode(data).decode()


def hashed(data):
    return hashlib.sha256(data).hexdigest()


def clamped(half):
    """The half of a key of Poly1305 that has bits which are always zero."""
    half = bytearray(half)
    for at in (3, 7, 11, 15):
        half[at] &= 15
    for at in (4, 8, 12):
        half[at] &= 252
    return bytes(half)


class Key:
    def __init__(self, data):
        self.cipher, self.k, self.r = data[:32], data[32:48], clamped(data[48:64])

    def seal(self, data):
        nonce = os.urandom(16)
        sealed = Cipher(algorithms.AES(self.cipher), modes.CTR(nonce)).encryptor().update(data)
        pad = Cipher(algorithms.AES(self.k), modes.ECB()).encryptor().update(nonce)
        return nonce + sealed + Poly1305.generate_tag(self.r + pad, sealed)

    def described(self):
        mac = {"k": encoded(self.k), "r": encoded(self.r)}
        return json.dumps({"mac": mac, "encrypt": encoded(self.cipher)}).encode()


class Repository:
    def __init__(self, folder, password):
        self.folder, self.key = folder, Key(os.urandom(64))
        self.blobs = {"data": {}, "tree": {}}
        for name in ("data", "keys", "snapshots", "index", "locks"):
            os.makedirs(os.path.join(folder, name))
        salt = os.urandom(64)
        of_user = Key(hashlib.scrypt(password, salt=salt, n=ROUNDS, r=8, p=1, dklen=64))
        key = {"created": TIME, "kdf": "scrypt", "N": ROUNDS, "r": 8, "p": 1, "salt": encoded(salt),
               "username": "ada", "hostname": "attic", "data": encoded(of_user.seal(self.key.described()))}
        self.put("keys", json.dumps(key).encode())
        config = {"version": 1, "id": hashed(salt), "chunker_polynomial": "25b468838dcb75"}
        with open(os.path.join(folder, "config"), "wb") as file:
            file.write(self.key.seal(json.dumps(config).encode()))

    def put(self, kind, data):
        name = hashed(data)
        folder = os.path.join(self.folder, kind, name[:2]) if kind == "data" else os.path.join(self.folder, kind)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
        return name

    def put_sealed(self, kind, value):
        return self.put(kind, self.key.seal(json.dumps(value).encode()))

    def blob(self, kind, data):
        self.blobs[kind][hashed(data)] = data
        return hashed(data)

    def node(self, described):
        node = {"type": "file", "mode": 0o644, "mtime": TIME, "ctime": TIME, "uid": 0, "gid": 0}
        described = dict(described)
        if (text := described.pop("text", None)) is not None:
            data = text.encode()
            node |= {"size": len(data), "content": [self.blob("data", data)]}
        if (nodes := described.pop("nodes", None)) is not None:
            node |= {"type": "dir", "mode": 0o755 | 1 << 31, "subtree": self.tree(nodes)}
        return node | described

    def tree(self, nodes):
        nodes = [self.node(node) for node in nodes]
        return self.blob("tree", (json.dumps({"nodes": nodes}) + "\n").encode())

    def snapshot(self, described):
        described = dict(described)
        tree = self.tree(described.pop("nodes"))
        self.put_sealed("snapshots", {"time": TIME, "tree": tree, "paths": ["/"], "hostname": "attic"} | described)

    def pack(self, kind):
        body, header, listed = b"", b"", []
        for name, data in self.blobs[kind].items():
            sealed = self.key.seal(data)
            listed.append({"id": name, "type": kind, "offset": len(body), "length": len(sealed)})
            header += struct.pack("<BI", kind == "tree", len(sealed)) + bytes.fromhex(name)
            body += sealed
        header = self.key.seal(header)
        if listed:
            pack = self.put("data", body + header + struct.pack("<I", len(header)))
            self.put_sealed("index", {"supersedes": [], "packs": [{"id": pack, "blobs": listed}]})


repository = Repository(sys.argv[1], sys.argv[2].encode())
for snapshot in json.load(sys.stdin):
    repository.snapshot(snapshot)
for kind in ("data", "tree"):
    repository.pack(kind)
