//! Commands about the server: the time, its commands, and its counts.

use crate::clock::wall_clock;
use crate::commands::Command;
use crate::commands::table::{COMMANDS, Lookup};
use crate::desk::Desk;
use crate::protocol::reply::Reply;
use crate::protocol::request::Request;
use crate::stats::snapshot::Snapshot;

pub(crate) fn time(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    let now = wall_clock();
    reply.array(2);
    reply.bulk_integer(now.as_secs() as i64);
    reply.bulk_integer(i64::from(now.subsec_micros()));
}

/// What this thread has counted, for INFO and for metrics.
pub(crate) fn count(desk: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) {
    Snapshot::of(desk).write(reply.out);
}

/// The commands without the subcommands.
fn top_level() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| !command.name.contains('|'))
}

pub(crate) fn command(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.array(top_level().count());
    top_level().for_each(|command| describe(command, reply));
}

pub(crate) fn command_count(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.integer(top_level().count() as i64);
}

pub(crate) fn command_list(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.set(top_level().count());
    top_level().for_each(|command| reply.bulk(command.name.as_bytes()));
}

pub(crate) fn command_info(_: &mut Desk, _: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    if request.len() == 2 {
        reply.array(top_level().count());
        return top_level().for_each(|command| describe(command, reply));
    }
    let lookup = Lookup::new();
    reply.array(request.len() - 2);
    for name in request.from(2) {
        match lookup.named(name) {
            Some(number) => describe(&COMMANDS[usize::from(number)], reply),
            None if reply.is_resp3 => reply.null(),
            None => reply.out.extend_from_slice(b"*-1\r\n"),
        }
    }
}

/// No documentation, which tools take for none.
pub(crate) fn command_docs(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.map(0);
}

pub(crate) fn function_flush(_: &mut Desk, _: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.ok();
}

/// The ten elements that COMMAND says of each command; the last three are empty.
fn describe(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    reply.set(command.flags.names().count());
    command.flags.names().for_each(|flag| reply.simple(flag));
    for key in [command.keys.0, command.keys.1, command.keys.2] {
        reply.integer(i64::from(key));
    }
    // Categories, hints, key specifications, subcommands.
    (0..3).for_each(|_| reply.set(0));
    reply.array(0);
}
