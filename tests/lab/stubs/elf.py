"""The smallest shared object that ldconfig lists and dlopen takes: a name and no code.

Written by hand because the libraries are data of a stub package, and the machine that builds them may have no compiler.
"""

from __future__ import annotations

import struct

ELF_HEADER = "<16sHHIQQQIHHHHHH"
PROGRAM_HEADER = "<IIQQQQQQ"
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_SONAME = 0, 4, 5, 6, 10, 11, 14
PAGE = 0x1000


def shared_object(soname: str) -> bytes:
    """x86-64 ET_DYN with DT_SONAME; see elf(5)."""
    headers_end = struct.calcsize(ELF_HEADER) + 3 * struct.calcsize(PROGRAM_HEADER)
    strings = b"\0" + soname.encode() + b"\0"
    strings += b"\0" * (-len(strings) % 8)
    symbols = bytes(24)  # the mandatory empty symbol
    buckets = struct.pack("<4I", 1, 1, 0, 0)  # one bucket, one chain entry, both empty
    symbols_at = headers_end
    hash_at = symbols_at + len(symbols)
    strings_at = hash_at + len(buckets)
    dynamic_at = strings_at + len(strings)
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in (
            (DT_SONAME, 1),
            (DT_HASH, hash_at),
            (DT_STRTAB, strings_at),
            (DT_SYMTAB, symbols_at),
            (DT_STRSZ, len(strings)),
            (DT_SYMENT, 24),
            (DT_NULL, 0),
        )
    )
    size = dynamic_at + len(dynamic)
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)  # 64 bit, little endian, version 1
    header = struct.pack(
        ELF_HEADER,
        identity,
        3,
        62,
        1,
        0,
        struct.calcsize(ELF_HEADER),
        0,
        0,
        struct.calcsize(ELF_HEADER),
        struct.calcsize(PROGRAM_HEADER),
        3,
        0,
        0,
        0,
    )
    programs = (
        struct.pack(PROGRAM_HEADER, PT_LOAD, 6, 0, 0, 0, size, size, PAGE),  # rw: the loader relocates DT_ values
        struct.pack(PROGRAM_HEADER, PT_DYNAMIC, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8),
        struct.pack(PROGRAM_HEADER, PT_GNU_STACK, 6, 0, 0, 0, 0, 0, 16),  # without it glibc wants an executable stack
    )
    return header + b"".join(programs) + symbols + buckets + strings + dynamic
