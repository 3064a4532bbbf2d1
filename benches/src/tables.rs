//! One command for every table and chart of the README pages.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name of a file of figures, the command line without its rounds and the file, and whether it
/// has the rounds that were asked for: of long passes one is enough.
const RUNS: [(&str, &str, bool); 5] = [
    ("peers", "peers --only random,tick,ticks,loop,burst,small,cross-cancel", true),
    ("threads", "peers --only producers,tails", true),
    (
        "peers-10m",
        "peers --only random,ticks,burst --sizes 10M --timers 10M --engines shardwheel,heap,tree",
        false,
    ),
    ("live", "live", true),
    ("memory", "peers --only memory --sizes 10M", false),
];

/// Runs a command line; returns whether all its runs ended well.
type Measure<'a> = &'a dyn Fn(&[&str]) -> io::Result<ExitCode>;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn file(name: &str) -> PathBuf {
    here("figures").join(name).with_extension("tsv")
}

/// Draws the charts and renews the tables, from the figures of the last run.
pub(crate) fn renew() -> io::Result<ExitCode> {
    let files = RUNS.map(|run| file(run.0));
    let pages = ["README.md", "../README.md"].map(here);
    crate::charts::renew(&files, &pages)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures, draws the charts and renews the tables.
pub(crate) fn run(rounds: usize, measure: Measure<'_>) -> io::Result<ExitCode> {
    for (name, line, repeated) in RUNS {
        let rounds = if repeated { rounds } else { 1 }.to_string();
        let file = file(name).display().to_string();
        let line = line.split(' ').chain(["--rounds", &rounds, "--figures", &file]).collect::<Vec<_>>();
        if measure(&line)? != ExitCode::SUCCESS {
            return Err(io::Error::other("a run has failed: the tables stay as they were"));
        }
    }
    renew()
}
