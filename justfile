# The commands of developers and CI. `just` alone lists them.

[private]
default:
    @{{ just_executable() }} --list --unsorted

# Run everything that CI runs: format, arrows, licences, clippy, docs, tests
check:
    .ci/run

# PART is clippy, build, units, journeys or arm. On Debian, and as root, because it installs packages.
# Check, lint and test the program for ARM64 Linux, macOS and Windows
ports *PART:
    .ci/ports {{ PART }}

# Run the tests whose names contain NAME
test NAME:
    cargo test --locked --workspace -- {{ quote(NAME) }}

# Run whole programs against fake and real servers
journeys *ARGS:
    cargo test --locked -p journeys --test journeys -- {{ ARGS }}

# As README's second command. ARGS are those of `cargo test`, as in `-p journeys -- real::callers`.
# Run the tests beside two busy loops, as on a slow machine
under-load *ARGS:
    .ci/under-load {{ ARGS }}

# Start every recipe that needs no key, by npx or uvx: takes minutes, and some gigabytes below target/
recipes:
    PROXY_TESTS_RECIPES=all cargo test --locked -p journeys --test journeys -- real::recipes --nocapture

# PART is table, many, hop, script, trust, spawn, daemon, flight, search, memory or size. `--json FILE` saves the figures,
# `--against FILE` prints the saved ones beside the new ones.
# Measure the speed and compare it with calling a server directly
bench *PART:
    cargo bench --locked -p journeys -- {{ PART }}

# Profile a PART of the bench with perf: hop is a call, search a search, spawn a start
profile PART:
    CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --locked --release --bin proxy --target-dir target/profile
    perf record -F 1999 -g -o target/perf.data -- cargo bench --locked -p journeys -- {{ quote(PART) }} --proxy "$PWD/target/profile/release/proxy"
    perf report -i target/perf.data --comm proxy,tokio-rt-worker --no-children --stdio -g none --percent-limit 0.5

# The exit code is 1 if a call was unanswered, answered twice or with another's answer, or if a process was left over.
# `--hours N`, `--seed N`, `--no-faults`; `just soak --help`. It needs no network. Its full disk is a tmpfs, which needs
# root.
# Call fake servers through one daemon for ten minutes with random faults, and print the outcome of every call
soak *ARGS:
    cargo build --release --package journeys --bins
    cargo run --release --package journeys --bin soak -- {{ ARGS }}

# Run the program, as in `just run search create issue`
run *ARGS:
    cargo run --locked -p proxy -- {{ ARGS }}

# Play the demo session, without any configuration
demo:
    cargo run --locked -p proxy -- demo

# `--all` builds those of Linux, macOS and Windows, on Debian as root.
# Build the packages for users without a compiler, into target/dist, install each and play the demo with it
dist *ARGS:
    .ci/dist {{ ARGS }}

# Test secrets in a real keyring: needs dbus-run-session and gnome-keyring-daemon
keyring:
    .ci/keyring

# On Debian, and as root, because it unpacks packages: NATS, HAProxy, the schemas of Compose and Kubernetes.
# Check the files of config/cluster/ without Docker and without Kubernetes
cluster-files:
    cargo build --locked -p proxy
    .ci/cluster-files

# Format everything
fmt:
    cargo fmt --all

# Generate docs/configuration.md and config/schema.json from the table of keys
docs:
    PROXY_WRITE_DOCS=1 cargo test --locked -p config --lib made_from_the_keys

# Check the dependencies between crates against .ci/arrows.toml
deps:
    .ci/run arrows

# Train the encoder: MODEL is all-MiniLM-L6-v2 in full precision, OUT gets the weights (crates/encoder/training/README.md)
train MODEL OUT *ARGS:
    python3 crates/encoder/training/train.py {{ quote(MODEL) }} {{ quote(OUT) }} {{ ARGS }}

# Check licences, bans and sources of every package against deny.toml
deny:
    .ci/run deny

# Check the same and the advisories with cargo-deny; ADVISORY_DB names a copy of the database
advisories:
    .ci/advisories

# Print the licences and notices of everything in the program
notices:
    cargo run --locked --quiet -p tree -- notices

# Print files, lines, functions, documentation and import cycles, one line for each crate
measures:
    cargo run --locked --quiet -p tree -- measures
