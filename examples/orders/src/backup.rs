//! `check` and `copy`: what the store of `serve --data` needs beside the server.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use crate::store::{self, Copied, Report, StoreError};
use crate::{EXIT_BROKEN, EXIT_OK, EXIT_USAGE, Streams};

/// Reads all of a store that no server has open, and says whether it is whole. Changes nothing. Exits with 1
/// if something is wrong
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The store: the directory of `serve --data`, its file `orders.redb`, or a copy
    file: PathBuf,
}

/// Copies a store that no server has open. A server that runs makes a copy by `POST /copy`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The store: the directory of `serve --data`, its file `orders.redb`, or a copy
    file: PathBuf,

    /// The file to make
    to: PathBuf,
}

/// Checks a store; returns the exit code.
pub(crate) fn check(args: &CheckArgs, streams: &mut Streams<'_>) -> u8 {
    let report = store::check(&args.file);
    let Report { pending, ended, payments, items, faults, shown, .. } = match report {
        Ok(report) => report,
        Err(failure) => return fail(&args.file.display(), failure, streams),
    };
    let has =
        format!("{pending} pending orders, {ended} that have ended, {payments} payments, {items} items sold");
    let said = shown.iter().try_for_each(|fault| writeln!(streams.out, "{fault}"));
    let said = said.and_then(|()| match faults {
        0 => writeln!(streams.out, "the store is whole: {has}"),
        _ => writeln!(streams.out, "the store is damaged, {faults} faults: {has}"),
    });
    end(said, if faults == 0 { EXIT_OK } else { EXIT_BROKEN }, streams)
}

/// Copies a store; returns the exit code.
pub(crate) fn copy(args: &CopyArgs, streams: &mut Streams<'_>) -> u8 {
    let Copied { records, damaged, bytes, .. } = match store::copy(&args.file, &args.to) {
        Ok(copied) => copied,
        Err(failure) => return fail(&args.file.display(), failure, streams),
    };
    let said =
        writeln!(streams.out, "{records} records, {damaged} of them damaged, in a copy of {bytes} bytes");
    end(said, if damaged == 0 { EXIT_OK } else { EXIT_BROKEN }, streams)
}

fn end(said: io::Result<()>, code: u8, streams: &mut Streams<'_>) -> u8 {
    match said {
        Ok(()) => code,
        Err(error) => fail(&"standard output", StoreError::Io(error), streams),
    }
}

fn fail(what: &dyn Display, failure: StoreError, streams: &mut Streams<'_>) -> u8 {
    // If standard error is closed too, nothing can be reported.
    let _ = writeln!(streams.err, "error: {what}: {failure}");
    if matches!(failure, StoreError::Broken { .. }) { EXIT_BROKEN } else { EXIT_USAGE }
}
