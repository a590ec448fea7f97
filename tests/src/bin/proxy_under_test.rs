//! The program under test: the real one, under a name of the tests' own.

fn main() -> std::process::ExitCode {
    proxy::main()
}
