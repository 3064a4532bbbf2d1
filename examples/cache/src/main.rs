//! The program: see the crate's documentation.

use std::io::{self, Write};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A stream that cannot be written cannot report that either.
    let ended = cache::run().inspect_err(|failure| _ = writeln!(io::stderr(), "error: {failure}"));
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
