//! Benchmarks of `shardwheel` beside a binary heap behind a mutex, and beside its peers.
//!
//! The program has a subcommand for each suite: `peers` and `live`. A suite is a table of sections
//! (`suite::Section`). `driver` runs the sections in turns, `results` has the figures, and `summary`
//! makes the tables of the README pages. What is public is for the program and for criterion.

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
mod programs;
mod results;
mod rhythm;
mod samples;
mod suite;
mod summary;
mod table;
mod tables;
mod workload;

pub use cli::run;
pub use programs::{Program, programs};
