//! Measures what `shardwheel` costs beside a binary heap behind a mutex, and beside its peers; `--help`
//! lists the subcommands.
//!
//! There is a subcommand for each suite: `peers` and `live`. A suite is a table of sections
//! (`suite::Section`). `driver` runs the sections in turns, `results` has the figures, and `summary`
//! makes the tables of the README pages.

mod args;
mod charts;
mod checksum;
mod cli;
mod driver;
mod engines;
mod live;
mod machine;
mod measure {
    //! What is measured on structures with a virtual clock.
    pub(crate) mod clock;
    pub(crate) mod memory;
    pub(crate) mod one_thread;
    pub(crate) mod tails;
    pub(crate) mod two_threads;
}
mod names;
mod other_build;
mod passes;
mod peers;
mod results;
mod rhythm;
mod samples;
mod suite;
mod summary;
mod tables;
mod workload;

fn main() -> std::process::ExitCode {
    cli::run()
}
