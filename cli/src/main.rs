//! The `opjournal` binary. Everything is in the library beside it.

fn main() -> std::process::ExitCode {
    opjournal_cli::main_with(opjournal_cli::Hooks::default())
}
