# Every command a developer or CI runs. `just` alone lists them.

[private]
default:
    @{{ just_executable() }} --list --unsorted

# What CI runs: format, arrows, licences, clippy, docs, tests
check:
    .ci/run

# One test, or all whose name holds NAME
test NAME:
    cargo test --locked --workspace -- {{ quote(NAME) }}

# Whole programs against fake and real servers
journeys *ARGS:
    cargo test --locked -p journeys --test journeys -- {{ ARGS }}

# Every recipe that needs no key, started by npx or uvx: minutes, and some gigabytes below target/
recipes:
    PROXY_TESTS_RECIPES=all cargo test --locked -p journeys --test journeys -- real::recipes --nocapture

# Speed beside calling a server directly; PART is table, many, hop, script, trust, spawn, daemon, flight, search, memory or size.
# `--json FILE` keeps the figures, `--against FILE` prints each beside those that were kept
bench *PART:
    cargo bench --locked -p journeys -- {{ PART }}

# Where a PART of the bench spends its time, by perf: hop is a call, search a search, spawn a start
profile PART:
    CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --locked --release --bin proxy --target-dir target/profile
    perf record -F 1999 -g -o target/perf.data -- cargo bench --locked -p journeys -- {{ quote(PART) }} --proxy "$PWD/target/profile/release/proxy"
    perf report -i target/perf.data --comm proxy,tokio-rt-worker --no-children --stdio -g none --percent-limit 0.5

# Exit code 1: a call was unanswered, answered twice or with another's answer, or something was
# left over. `--hours N`, `--seed N`, `--no-faults`; `just soak --help`. Works without network;
# the full disk is a tmpfs, for which it must be root.
# Ten minutes of calls through one daemon with faults at random: what became of every call
soak *ARGS:
    cargo build --release --package journeys --bins
    cargo run --release --package journeys --bin soak -- {{ ARGS }}

# The program, as in `just run search create issue`
run *ARGS:
    cargo run --locked -p proxy -- {{ ARGS }}

# A session to follow, without any configuration
demo:
    cargo run --locked --release -p proxy -- demo

# What people install without a compiler, into target/dist: archive, wheel, npm, .deb, container
dist *ARGS:
    .ci/dist {{ ARGS }}

# Secrets in the system's keyring, beside a real one: needs dbus-run-session and gnome-keyring-daemon
keyring:
    .ci/keyring

# Format everything
fmt:
    cargo fmt --all

# Make docs/configuration.md again from the table of keys
docs:
    cargo run --locked -p proxy -- config docs > target/configuration.md
    mv target/configuration.md docs/configuration.md

# Who names whom, against .ci/arrows.toml
deps:
    .ci/run arrows

# Teach the encoder: MODEL is all-MiniLM-L6-v2 in full precision, OUT gets the weights (crates/encoder/training/README.md)
train MODEL OUT *ARGS:
    python3 crates/encoder/training/train.py {{ quote(MODEL) }} {{ quote(OUT) }} {{ ARGS }}

# Licences, bans and sources of every package, against deny.toml
deny:
    .ci/run deny

# The same by cargo-deny, which must be installed, and the advisories that it fetches
advisories:
    cargo deny --locked check

# Files, lines, functions, documentation and circles, a line a crate
measures:
    cargo run --locked --quiet -p tree -- measures
