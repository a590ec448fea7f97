//! The program `proxy`.

fn main() -> std::process::ExitCode {
    proxy::main()
}
