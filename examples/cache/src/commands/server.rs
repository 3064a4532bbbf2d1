//! Commands about the server: the time, its commands, and its counts.

use super::table::COMMANDS;
use super::*;
use crate::clock::wall_clock;

pub(super) fn time(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let now = wall_clock();
    reply.array(2);
    reply.bulk_integer(now.as_secs() as i64);
    Ok(reply.bulk_integer(i64::from(now.subsec_micros())))
}

pub(super) fn reset_counts(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.stats.reset();
    Ok(reply.ok())
}

/// The commands without the subcommands.
fn top_level() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| !command.name.contains('|'))
}

pub(super) fn command(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    reply.array(top_level().count());
    top_level().for_each(|command| describe(command, reply));
    Ok(())
}

pub(super) fn command_count(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.integer(top_level().count() as i64))
}

/// There is no documentation. Tools then ask for none.
pub(super) fn command_docs(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.map(0))
}

/// The reply of commands that have nothing to do.
pub(super) fn ok(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(reply.ok())
}

/// The ten elements of COMMAND's reply for each command; the last four are empty.
fn describe(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name);
    reply.integer(i64::from(command.arity));
    let flags: Vec<_> = (command.flags - Flags::SUBSCRIBED).iter_names().collect();
    reply.list(b'~', flags.len());
    flags.iter().for_each(|(name, _)| reply.simple(&name.to_ascii_lowercase()));
    // The first key, the last one, counted from the end if negative, and the distance of keys.
    let keys = match command.run {
        Run::Key(_) => [1, 1, 1],
        Run::EachKey(_, step, _) => [1, -1, step as i64],
        _ => [0, 0, 0],
    };
    keys.into_iter().for_each(|key| reply.integer(key));
    // Categories, hints, key specifications, subcommands.
    (0..3).for_each(|_| reply.list(b'~', 0));
    reply.array(0);
}
