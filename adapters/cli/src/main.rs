//! The `freehold` program. Everything is in the library, so that tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    freehold_cli::run()
}
