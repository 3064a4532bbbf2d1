//! Measures what `shardwheel` costs beside its peers; `--help` lists the subcommands.

fn main() -> std::process::ExitCode {
    shardwheel_benches::run()
}
