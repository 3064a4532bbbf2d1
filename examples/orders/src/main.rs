//! The program; `lib.rs` says what it does.

use std::io;
use std::process::ExitCode;

use orders::{Streams, run};

fn main() -> ExitCode {
    let mut streams = Streams { out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(std::env::args_os(), &mut streams))
}
