//! What a thread counts. Only the thread itself writes its counts; others ask it for them.

pub(crate) mod info;
pub(crate) mod metrics;
pub(crate) mod snapshot;

use std::time::Instant;

use crate::commands::table::COMMANDS;

/// Of so many commands, one is timed: reading a clock twice takes as long as a small command.
const SAMPLE: u64 = 16;

/// What a thread counts besides commands; the names are in `FIGURES`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Connections,
    Refused,
    IdleClosed,
    SlowClosed,
    ProtocolErrors,
    Errors,
    BytesIn,
    BytesOut,
    Forwarded,
    Rounds,
}

/// What is counted of each command: calls, nanoseconds (an estimate: see `SAMPLE`), calls that were
/// refused, and calls that replied an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Calls,
    Nanos,
    Rejected,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) counts: [u64; Count::Rounds as usize + 1],
    pub(crate) commands: Vec<[u64; 4]>,
    commands_run: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Self { counts: Default::default(), commands: vec![[0; 4]; COMMANDS.len()], commands_run: 0 }
    }
}

impl Stats {
    pub(crate) fn add(&mut self, count: Count, number: u64) {
        self.counts[count as usize] += number;
    }

    pub(crate) fn add_of(&mut self, command: u16, what: Of, number: u64) {
        self.commands[usize::from(command)][what as usize] += number;
    }

    pub(crate) fn note_failure(&mut self, command: u16) {
        self.add_of(command, Of::Failed, 1);
        self.add(Count::Errors, 1);
    }

    /// The start of a command, if it is one that is timed.
    pub(crate) fn start(&mut self) -> Option<Instant> {
        self.commands_run += 1;
        self.commands_run.is_multiple_of(SAMPLE).then(Instant::now)
    }

    pub(crate) fn stop(&mut self, start: Option<Instant>, command: u16) {
        if let Some(start) = start {
            self.add_of(command, Of::Nanos, start.elapsed().as_nanos() as u64 * SAMPLE);
        }
    }
}
