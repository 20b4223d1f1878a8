"""A file system that never answers, as one whose server went away.

    python3 silent_disk.py MOUNT_POINT     (as root) prints "mounted"; once it is killed, the mount is dead

It speaks the kernel's own protocol of FUSE. What it is asked it leaves where it is, so that who waits can be killed.
"""

import ctypes
import os
import signal
import struct
import sys

fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"silent", sys.argv[1].encode(), b"fuse.silent", 0, options.encode()) != 0:
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
unique = struct.unpack_from("<2I2Q", os.read(fuse, 1 << 18))[2]
answer = struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, 0, 16, 12, 1 << 17, 1, 32, 0, *[0] * 8)
os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
print("mounted", flush=True)
signal.pause()
