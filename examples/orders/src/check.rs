//! `check`: says whether the store of `serve --data` is whole.

use std::path::PathBuf;

use crate::store::{self, Report, StoreError};
use crate::{EXIT_BROKEN, EXIT_OK, EXIT_USAGE, Streams};

/// Reads all of a store that no server has open, and says whether it is whole. Changes nothing, and needs room for
/// a copy beside the store. Exits with 1 if something is wrong
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The store: the directory of `serve --data`, its file `orders.redb`, or a copy
    file: PathBuf,
}

/// Checks a store; returns the exit code.
pub(crate) fn check(args: &Args, streams: &mut Streams<'_>) -> u8 {
    let report = store::check(&args.file);
    let Report { pending, ended, payments, items, faults, shown, .. } = match report {
        Ok(report) => report,
        Err(failure) => {
            // If standard error is closed too, nothing can be reported.
            let _ = writeln!(streams.err, "error: {}: {failure}", args.file.display());
            return if matches!(failure, StoreError::Broken { .. }) { EXIT_BROKEN } else { EXIT_USAGE };
        }
    };
    let is_whole = if faults == 0 { "whole".to_owned() } else { format!("damaged, {faults} faults") };
    let said = shown.iter().try_for_each(|fault| writeln!(streams.out, "{fault}"));
    let said = said.and_then(|()| {
        writeln!(
            streams.out,
            "the store is {is_whole}: {pending} pending orders, {ended} that have ended, {payments} payments, \
             {items} items sold"
        )
    });
    match said {
        Ok(()) if faults == 0 => EXIT_OK,
        Ok(()) => EXIT_BROKEN,
        Err(_) => EXIT_USAGE,
    }
}
