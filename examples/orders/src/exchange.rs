//! What `feed` and `audit` share: the files, the server, and the reasons why they stop.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use order_reconciliation::durations;
use order_reconciliation::files::Files;

use crate::{EXIT_USAGE, Streams, client, token};

/// The arguments of both.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Orders: CSV with the header order_id,item,quantity,amount_cents,placed_at_ms.
    /// `order-reconciliation --write-sample DIR` writes such files
    #[arg(long, value_name = "FILE")]
    pub(crate) orders: PathBuf,

    /// Payments: CSV with the header order_id,amount_cents,paid_at_ms
    #[arg(long, value_name = "FILE")]
    payments: Option<PathBuf>,

    #[command(flatten)]
    token: token::Args,

    /// How long to try again when the server is not there, is full or cuts the connection
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = durations::parse)]
    pub(crate) give_up_after: Duration,
}

impl Args {
    pub(crate) fn files(&self, streams: &mut Streams<'_>) -> Result<Files, Failure> {
        Files::read(&self.orders, self.payments.as_deref(), streams)
            .map_err(|failure| Failure::Other(failure.to_string()))
    }

    /// The server's token, if it has one.
    pub(crate) fn token(&self) -> Result<Option<String>, Failure> {
        self.token.read().map_err(Failure::Other)
    }
}

/// A number from 1 to `most`.
pub(crate) fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Why a feed or an audit stopped before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    Server(client::Failure),
    /// Files, the token or the output, in a sentence.
    Other(String),
}

impl Failure {
    pub(crate) fn output(error: io::Error) -> Self {
        Self::Other(format!("standard output: {error}"))
    }

    /// Says why; returns the exit code.
    pub(crate) fn report(&self, streams: &mut Streams<'_>) -> u8 {
        let (Self::Server(client::Failure(text)) | Self::Other(text)) = self;
        // If standard error is closed too, nothing can be reported.
        let _ = writeln!(streams.err, "error: {text}");
        EXIT_USAGE
    }
}

impl From<client::Failure> for Failure {
    fn from(failure: client::Failure) -> Self {
        Self::Server(failure)
    }
}
