//! `soak [--minutes N | --hours N | ...]`: see `just soak --help`.

fn main() -> std::process::ExitCode {
    journeys::soak::main()
}
