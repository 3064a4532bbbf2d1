//! Measures what `shardwheel` costs beside its peers; `--help` lists the subcommands.

use std::process::ExitCode;

fn main() -> ExitCode {
    shardwheel_benches::run()
}
