//! The program: reads the command line, tries the mutants, prints the report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use clap::Parser;
use regex::Regex;
use shardwheel_orderings::error::Error;
use shardwheel_orderings::mutant::{self, Mutant};
use shardwheel_orderings::reasons::{Complaint, Reasons};
use shardwheel_orderings::results::Results;
use shardwheel_orderings::session::Session;
use shardwheel_orderings::suite::SUITES;
use shardwheel_orderings::{REASONS, report, repository};

/// This package is not part of the copy that is tried.
const LEFT_OUT: [&str; 1] = ["loom-tests/orderings"];

/// Weakens each memory ordering in turn, and reports which model or test notices
#[derive(Debug, Parser)]
#[command(name = "shardwheel-orderings")]
struct Args {
    /// Only mutants whose name (file, function, operation, what is weakened) matches
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,

    /// Print the names of the mutants, and try none
    #[arg(long)]
    list: bool,

    /// Number of mutants tried at once, each with its own copy of the repository and its own builds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,

    /// Time for the tests of one mutant; after that its result is unknown
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    budget: u64,

    /// Keep results in this file, and continue with the results in it
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// Work in this directory, and leave the builds there for the next run; without it, work in a
    /// directory that is removed at the end
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<Vec<Complaint>, Error> {
    let root = repository()?;
    let all = mutant::all(&root, Path::new("src/lib.rs"))?;
    let reasons = Reasons::read(REASONS);
    let mut complaints = reasons.complaints(&all);
    let wanted = |mutant: &Mutant| args.only.as_ref().is_none_or(|only| only.is_match(&mutant.name()));
    let mutants = all.into_iter().filter(wanted).collect::<Vec<_>>();
    if args.list {
        mutants.iter().for_each(|mutant| println!("{}", mutant.name()));
        return Ok(complaints);
    }
    let temporary = env::temp_dir().join(format!("shardwheel-orderings-{}", std::process::id()));
    let session = Session {
        root: &root,
        left_out: &LEFT_OUT,
        suites: &SUITES,
        directory: args.dir.clone().unwrap_or_else(|| temporary.clone()),
        jobs: args.jobs.into(),
        budget: Duration::from_secs(args.budget),
    };
    let mut results = match &args.resume {
        Some(file) => Results::resume(file, &session.fingerprint()?)?,
        None => Results::default(),
    };
    let run = session.run(&mutants, &mut results, |line| eprintln!("{line}"));
    if temporary.exists() {
        fs::remove_dir_all(&temporary).map_err(|source| Error::File { path: temporary, source })?;
    }
    run?;
    print!("{}", report::write(&mutants, &results, &reasons));
    complaints.extend(reasons.complaints_about(&mutants, &results));
    Ok(complaints)
}
