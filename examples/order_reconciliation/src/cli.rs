//! The command line: its subcommands. Each has its arguments in its own folder.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::{audit, feed, replay, serve};

/// Places orders, checks each after thirty minutes, and reconciles it with its payments
#[derive(Clone, Debug, Parser)]
#[command(name = "order-reconciliation", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// Without a subcommand, `replay`.
    #[command(flatten)]
    replay: replay::Args,
}

/// What the program does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Replays the whole job in memory: places orders from several threads, and checks each. This is
    /// the default
    Replay(replay::Args),
    Serve(serve::Args),
    Feed(feed::Args),
    Audit(audit::Args),
}

impl Cli {
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
        let Self { command, replay } = Self::try_parse_from(args)?;
        let command = command.unwrap_or(Command::Replay(replay));
        match command.contradiction() {
            Some(text) => Err(Self::command().error(ErrorKind::ArgumentConflict, text)),
            None => Ok(command),
        }
    }
}

impl Command {
    /// The error in the arguments as a whole, if any.
    fn contradiction(&self) -> Option<String> {
        match self {
            Self::Replay(args) => args.contradiction(),
            Self::Serve(_) | Self::Feed(_) | Self::Audit(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Command, String> {
        let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
        Cli::read(args).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn replay_is_the_default_and_takes_the_same_arguments() {
        for args in [&["--count", "7"][..], &["replay", "--count", "7"]] {
            let Ok(Command::Replay(args)) = read(args) else { panic!("{args:?} is not a replay") };
            assert_eq!(args.count, 7);
        }
        assert!(read(&["--count", "7", "replay"]).is_err());
        assert!(read(&["replay", "--speed", "2"]).unwrap_err().contains("--clock real"));
    }
}
