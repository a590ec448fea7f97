# Every command a developer or CI runs. `just` alone lists them.

[private]
default:
    @{{ just_executable() }} --list --unsorted

# What CI runs: format, crate arrows, clippy, docs, tests
check:
    .ci/run

# One test, or all whose name holds NAME
test NAME:
    cargo test --workspace -- {{ quote(NAME) }}

# Whole programs against fake and real servers
journeys *ARGS:
    cargo test -p journeys --test journeys -- {{ ARGS }}

# Speed beside calling a server directly; PART is hop, spawn, daemon, flight, search, memory or size
bench *PART:
    cargo bench -p journeys -- {{ PART }}

# The program, as in `just run search create issue`
run *ARGS:
    cargo run -p proxy -- {{ ARGS }}

# A session to follow, without any configuration
demo:
    cargo run --release -p proxy -- demo

# Format everything
fmt:
    cargo fmt --all

# Make docs/configuration.md again from the table of keys
docs:
    cargo run -p proxy -- config docs > target/configuration.md
    mv target/configuration.md docs/configuration.md

# Which crate may depend on which
deps:
    .ci/run arrows
