//! The program under test: the real one, under a different name.

fn main() -> std::process::ExitCode {
    proxy::main()
}
