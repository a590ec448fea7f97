#!/bin/sh
# Installs tool-proxy @VERSION@ for this user, into ~/.local: curl -fsSL @DOWNLOADS@/install.sh | sh
# TOOL_PROXY_PREFIX names another folder, TOOL_PROXY_DOWNLOADS another source. Nothing is installed unless the
# archive has the digest that this script contains.
set -eu

version=@VERSION@
downloads=${TOOL_PROXY_DOWNLOADS:-@DOWNLOADS@}
# A digest and a platform in each line.
digests='@DIGESTS@'

main() {
    prefix=${TOOL_PROXY_PREFIX:-${HOME:?is not set: name a folder by TOOL_PROXY_PREFIX}/.local}
    platform=$(find_platform)
    digest=$(printf '%s\n' "$digests" | sed -n "s/^\([0-9a-f]\{64\}\) $platform\$/\1/p")
    [ -n "$digest" ] || fail "there is no program for $platform" "build it: cargo install --locked --path crates/proxy"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    name=tool-proxy-$platform-v$version
    download "$downloads/$name.tar.gz" "$folder/archive" ||
        fail "cannot download $downloads/$name.tar.gz" "check the connection, and run this again"
    found=$(digest_of "$folder/archive")
    [ "$found" = "$digest" ] || fail \
        "the archive has the digest $found, and not $digest; nothing was installed" \
        "download install.sh again: it belongs to one version"
    tar -xzf "$folder/archive" -C "$folder"
    mkdir -p "$prefix/bin" "$prefix/share/doc/tool-proxy" "$prefix/share/man/man1"
    # Beside its place and then renamed: a running program's file cannot be written.
    cp "$folder/$name/tool-proxy" "$prefix/bin/.tool-proxy.new"
    mv -f "$prefix/bin/.tool-proxy.new" "$prefix/bin/tool-proxy"
    cp "$folder/$name"/LICENSE-* "$folder/$name/THIRD-PARTY-NOTICES.txt" "$prefix/share/doc/tool-proxy"
    cp "$folder/$name"/man/man1/* "$prefix/share/man/man1"
    echo "installed $prefix/bin/tool-proxy"
    link_short_name
    case :$PATH: in
    *:"$prefix/bin":*) echo "next: tool-proxy init" ;;
    *) echo "next: $prefix/bin/tool-proxy init; $prefix/bin is not on PATH" ;;
    esac
}

# `proxy` may be another program, such as libproxy's.
link_short_name() {
    other=$(command -v proxy || true)
    if [ -n "$other" ] && [ "$other" != "$prefix/bin/proxy" ]; then
        echo "\`proxy\` stays $other"
    elif [ -e "$prefix/bin/proxy" ] && [ ! -L "$prefix/bin/proxy" ]; then
        echo "\`proxy\` stays $prefix/bin/proxy"
    else
        ln -sf tool-proxy "$prefix/bin/proxy"
        echo "installed $prefix/bin/proxy, a shorter name for it"
    fi
}

find_platform() {
    system=$(uname -s)
    case $system in
    Linux | Darwin) ;;
    *) fail "there is no program for $system" "there is one for Linux and macOS; install.ps1 is for Windows" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 loader=/lib64/ld-linux-x86-64.so.2 ;;
    aarch64 | arm64) cpu=aarch64 loader=/lib/ld-linux-aarch64.so.1 ;;
    *) cpu=$(uname -m) loader=/ ;;
    esac
    libc=musl
    if [ -e "$loader" ]; then libc=gnu; fi
    if [ "$system" = Darwin ]; then
        echo "$cpu-apple-darwin"
    else
        echo "$cpu-unknown-linux-$libc"
    fi
}

download() {
    if command -v curl >/dev/null; then
        curl -fsSL -o "$2" "$1"
    else
        wget -q -O "$2" "$1"
    fi
}

digest_of() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1" | cut -d ' ' -f 1
    else
        shasum -a 256 "$1" | cut -d ' ' -f 1
    fi
}

fail() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

# In the last line, so that a download that was cut off runs nothing.
main
