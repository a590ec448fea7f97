#!/usr/bin/env python3
"""Packs the program into a wheel, so that `uvx tool-proxy serve` works. The standard library is enough: a wheel is
a zip with the program, its metadata, and the digest of each file."""

import argparse
import base64
import hashlib
import pathlib
import zipfile

# A wheel has no links, and a second copy would double its size.
SHORT_NAME = """#!/bin/sh
exec "$(dirname -- "$(readlink -f -- "$0")")/tool-proxy" "$@"
"""
SHORT_NAME_ON_WINDOWS = '@"%~dp0tool-proxy.exe" %*\r\n'

METADATA = """Metadata-Version: 2.4
Name: tool-proxy
Version: {version}
Summary: {description}
Keywords: mcp,mcp-server,proxy,gateway
Requires-Python: >=3.8
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
License-File: THIRD-PARTY-NOTICES.txt
Description-Content-Type: text/markdown

{readme}

<!-- mcp-name: {namespace}/tool-proxy -->
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ["files", "version", "description", "namespace", "tag", "out"]:
        parser.add_argument(f"--{option}", required=True)
    wanted = parser.parse_args()
    files = pathlib.Path(wanted.files)
    name = f"tool_proxy-{wanted.version}"
    info = f"{name}.dist-info"
    text = {
        "METADATA": METADATA.format(readme=(files / "README.md").read_text(), **vars(wanted)),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: tool-proxy\nRoot-Is-Purelib: false\nTag: py3-none-{wanted.tag}\n",
    }
    program, short, short_text = "tool-proxy", "proxy", SHORT_NAME
    if wanted.tag.startswith("win"):
        program, short, short_text = "tool-proxy.exe", "proxy.cmd", SHORT_NAME_ON_WINDOWS
    members = [
        (f"{name}.data/scripts/{program}", 0o755, (files / program).read_bytes()),
        (f"{name}.data/scripts/{short}", 0o755, short_text.encode()),
    ]
    members += [(f"{info}/{file}", 0o644, content.encode()) for file, content in text.items()]
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"]:
        members.append((f"{info}/licenses/{licence}", 0o644, (files / licence).read_bytes()))
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, _, content in members)
    members.append((f"{info}/RECORD", 0o644, f"{record}{info}/RECORD,,\n".encode()))
    out = pathlib.Path(wanted.out) / f"{name}-py3-none-{wanted.tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path, mode, content in members:
            entry = zipfile.ZipInfo(path)  # of 1980, so that equal files make equal wheels
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


main()
