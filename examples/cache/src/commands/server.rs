//! Commands about the server: the time, its commands, and its counts.

use crate::clock::wall_clock;
use crate::commands::Command;
use crate::commands::table::COMMANDS;
use crate::desk::Desk;
use crate::protocol::{Outcome, Reply, Request};
use crate::stats::Snapshot;

pub(crate) fn time(_: &mut Desk, _: usize, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let now = wall_clock();
    reply.array(2);
    reply.bulk_integer(now.as_secs() as i64);
    Ok(reply.bulk_integer(i64::from(now.subsec_micros())))
}

/// What this thread has counted, for INFO and for metrics.
pub(crate) fn count(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Snapshot::of(desk).write(reply.out);
    Ok(())
}

pub(crate) fn reset_counts(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.stats = Default::default();
    desk.keyspace.counts = Default::default();
    Ok(reply.ok())
}

/// The commands without the subcommands.
fn top_level() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| !command.name.contains('|'))
}

pub(crate) fn command(_: &mut Desk, _: usize, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    reply.array(top_level().count());
    top_level().for_each(|command| describe(command, reply));
    Ok(())
}

pub(crate) fn command_count(_: &mut Desk, _: usize, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(top_level().count() as i64))
}

/// There is no documentation. Tools then ask for none.
pub(crate) fn command_docs(_: &mut Desk, _: usize, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.map(0))
}

/// The reply of commands that have nothing to do.
pub(crate) fn ok(_: &mut Desk, _: usize, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.ok())
}

/// The ten elements of COMMAND's reply for each command; the last four are empty.
fn describe(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name);
    reply.integer(i64::from(command.arity));
    reply.list(b'~', command.flags.names().count());
    command.flags.names().for_each(|flag| reply.simple(flag));
    let (first, last, step) = command.keys();
    [first, last, step].into_iter().for_each(|key| reply.integer(key));
    // Categories, hints, key specifications, subcommands.
    (0..3).for_each(|_| reply.list(b'~', 0));
    reply.array(0);
}
