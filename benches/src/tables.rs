//! One command for every table and chart of the README pages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

/// The name of a file of figures, the command line without its rounds and the file, and whether it
/// has the rounds that were asked for: of long passes one is enough.
type Run = (&'static str, &'static [&'static str], bool);

const RUNS: [Run; 5] = [
    (
        "peers",
        &["peers", "--only", "random,tick,ticks,loop,burst,small,cross-cancel", "--sizes", "10k,100k,1M"],
        true,
    ),
    // Another peer waits for minutes here.
    (
        "threads",
        &["peers", "--only", "producers,tails", "--engines", "shardwheel,heap,tree,flat wheel"],
        true,
    ),
    (
        "peers-10m",
        &[
            "peers",
            "--only",
            "random,ticks,burst",
            "--sizes",
            "10M",
            "--timers",
            "10M",
            "--engines",
            "shardwheel,heap,tree",
        ],
        false,
    ),
    ("live", &["live", "--only", "fire,sleep,schedule,idle", "--timers", "1M"], true),
    ("memory", &["report", "--only", "memory", "--sizes", "10M"], false),
];

/// The same with few timers.
const QUICK: [Run; 2] = [
    (
        "peers",
        &[
            "peers",
            "--only",
            "random,producers,tick,ticks,loop,burst,small,tails",
            "--sizes",
            "10k,100k",
            "--timers",
            "10k",
            "--engines",
            "shardwheel,heap,tree,flat wheel",
        ],
        true,
    ),
    ("live", &["live", "--only", "fire,idle", "--timers", "20k", "--span", "2"], true),
];

/// Runs a command line; returns whether all its runs ended well.
type Measure<'a> = &'a dyn Fn(&[&str]) -> io::Result<ExitCode>;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files that have tables of all runs.
fn pages() -> Vec<PathBuf> {
    ["README.md", "../README.md"].map(here).into()
}

fn files(dir: &Path, runs: &[Run]) -> Vec<PathBuf> {
    runs.iter().map(|run| dir.join(run.0).with_extension("tsv")).collect()
}

/// Draws the charts of `files` and renews the tables of `pages`; without files, those of the last run.
pub(crate) fn chart(figures: &[PathBuf], tables: &[PathBuf]) -> io::Result<ExitCode> {
    match figures {
        [] if tables.is_empty() => renew(&files(&here("figures"), &RUNS), &pages())?,
        [] => renew(&files(&here("figures"), &RUNS), tables)?,
        _ => renew(figures, tables)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn renew(files: &[PathBuf], pages: &[PathBuf]) -> io::Result<()> {
    crate::charts::renew(files, pages).map_err(|error| io::Error::other(error.to_string()))
}

/// Measures, draws the charts and renews the tables. With `quick` the pages are copies, and printed.
pub(crate) fn run(rounds: usize, quick: bool, measure: Measure<'_>) -> io::Result<ExitCode> {
    let (mut dir, mut pages, mut runs) = (here("figures"), pages(), &RUNS[..]);
    if quick {
        dir = env::temp_dir().join(format!("shardwheel-tables-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let copy = |(nth, page): (usize, &PathBuf)| {
            let copy = dir.join(format!("{nth}.md"));
            fs::copy(page, &copy).map(|_| copy)
        };
        pages = pages.iter().enumerate().map(copy).collect::<io::Result<_>>()?;
        runs = &QUICK;
    }
    let files = files(&dir, runs);
    for ((_, line, repeated), file) in runs.iter().zip(&files) {
        let (rounds, file) = (if *repeated { rounds } else { 1 }.to_string(), file.display().to_string());
        let line = [*line, &["--rounds", &rounds, "--figures", &file]].concat();
        if measure(&line)? != ExitCode::SUCCESS {
            return Err(io::Error::other("a run has failed: the tables stay as they were"));
        }
    }
    renew(&files, &pages)?;
    if quick {
        pages.iter().try_for_each(|page| fs::read_to_string(page).map(|text| println!("{text}")))?;
        fs::remove_dir_all(&dir)?;
    }
    Ok(ExitCode::SUCCESS)
}
