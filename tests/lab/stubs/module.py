"""The smallest kernel module that depmod lists and dracut-install copies: a name, and symbols that it needs."""

from __future__ import annotations

import struct

ELF_HEADER = "<16sHHIQQQIHHHHHH"
SECTION_HEADER = "<IIQQQQIIQQ"
SYMBOL = "<IBBHQQ"
PROGBITS, SYMTAB, STRTAB = 1, 2, 3
RELOCATABLE, X86_64 = 1, 62


def kernel_module(name: str, undefined: tuple[str, ...] = ()) -> bytes:
    """x86-64 ET_REL with .modinfo and .symtab; see elf(5)."""
    strings, symbols = b"\0", bytes(24)  # the mandatory empty ones
    for symbol in undefined:
        symbols += struct.pack(SYMBOL, len(strings), 0x10, 0, 0, 0, 0)  # global, in no section
        strings += symbol.encode() + b"\0"
    info = f"name={name}\0license=GPL\0depends=\0vermagic=6.0.0-lab SMP mod_unload \0".encode()
    names = b"\0.modinfo\0.symtab\0.strtab\0.shstrtab\0"
    parts = [
        (names.index(b".modinfo"), PROGBITS, info, 0, 0, 1),
        (names.index(b".symtab"), SYMTAB, symbols, 3, 1, 24),  # its strings are section 3; one local symbol
        (names.index(b".strtab"), STRTAB, strings, 0, 0, 0),
        (names.index(b".shstrtab"), STRTAB, names, 0, 0, 0),
    ]
    body, headers = b"", bytes(64)  # section 0 is empty
    for at, kind, content, link, first, size in parts:
        where = struct.calcsize(ELF_HEADER) + len(body)
        headers += struct.pack(SECTION_HEADER, at, kind, 0, 0, where, len(content), link, first, 8, size)
        body += content + b"\0" * (-len(content) % 8)
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)  # 64 bit, little endian, version 1
    end = struct.calcsize(ELF_HEADER) + len(body)
    count = len(parts) + 1
    head = struct.pack(ELF_HEADER, identity, RELOCATABLE, X86_64, 1, 0, 0, end, 0, 64, 0, 0, 64, count, count - 1)
    return head + body + headers
