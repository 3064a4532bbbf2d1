//! The program: see the crate's documentation.

use std::io::{self, Write};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The allocator's option `purge_delay`, as its header numbers it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    give_pages_back_at_once();
    // A stream that cannot be written cannot report that either.
    let ended = cache::run().inspect_err(|failure| _ = writeln!(io::stderr(), "error: {failure}"));
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// By default the allocator gives empty pages back 10 ms later, if it is called again by then. After
/// a million keys have expired it is not, and a third of their memory stays.
#[allow(unsafe_code)] // There is no safe call for an option.
fn give_pages_back_at_once() {
    // SAFETY: the function stores a number, and no other thread has been started.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}
