//! The program: see the crate's documentation.

use std::io::{self, Write};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A stream that cannot be written cannot report that either.
    let ended =
        cache::run(give_pages_back).inspect_err(|failure| _ = writeln!(io::stderr(), "error: {failure}"));
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The allocator gives empty pages back some 10 ms later, if it comes by them again by then. To give them back at once
/// would cost 16 page faults for each buffer of 64 KiB. So threads ask for it, once much is free.
#[allow(unsafe_code)] // There is no safe call for it.
fn give_pages_back() {
    // SAFETY: the function has no precondition. It frees what nothing uses.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
