//! Commands about the connection and the server.

use constant_time_eq::constant_time_eq;

use super::table::COMMANDS;
use super::*;
use crate::clock::wall_clock;
use crate::session::Ending;

/// The version of Redis whose semantics these are.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
const USER: &[u8] = b"default";
const NO_PASSWORD: &str = "AUTH <password> called without any password configured for the default user. \
                           Are you sure your configuration is correct?";
const HELLO_FIRST: &str = "HELLO must be called with the client already authenticated, otherwise the HELLO \
                           AUTH <user> <pass> option can be used to authenticate the client and select the \
                           RESP protocol version at the same time";

pub(super) fn ping(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    if request.len() > 2 {
        return Err(wrong_arity("ping"));
    }
    Ok(match request.from(1).next() {
        text if !reply.is_resp3 && desk.sessions[request.client].subscriptions() > 0 => {
            reply.bulks(&[b"pong", text.unwrap_or_default()]);
        }
        Some(text) => reply.bulk(text),
        None => reply.simple("PONG"),
    })
}

pub(super) fn quit(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    desk.sessions[request.client].ending = Ending::WhenAnswered;
    Ok(reply.ok())
}

pub(super) fn multi(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let session = &mut desk.sessions[request.client];
    if session.queued.is_some() {
        return Err("MULTI calls can not be nested".into());
    }
    session.queued = Some(Box::default());
    session.is_refused = false;
    Ok(reply.ok())
}

pub(super) fn discard(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    Ok(desk.sessions[request.client].end_transaction().map(|_| reply.ok()).ok_or("DISCARD without MULTI")?)
}

/// There is one database. A client that would have gone on in another one goes.
pub(super) fn select(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    if request.arg(1) == b"0" {
        return Ok(reply.ok());
    }
    desk.sessions[request.client].ending = Ending::WhenAnswered;
    let too_large = "value is out of range, value must between -2147483648 and 2147483647";
    let _database = i32::try_from(integer(request.arg(1))?).map_err(|_| too_large)?;
    Err("DB index is out of range".into())
}

pub(super) fn auth(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    match request.len() {
        2 if desk.settings.password.is_empty() => return Err(NO_PASSWORD.into()),
        2 => authenticate(desk, request, USER, request.arg(1))?,
        3 => authenticate(desk, request, request.arg(1), request.arg(2))?,
        _ => return Err(SYNTAX.into()),
    }
    Ok(reply.ok())
}

fn authenticate(desk: &mut Desk, request: &Request<'_>, user: &[u8], password: &[u8]) -> Outcome {
    let right = &desk.settings.password;
    if user != USER || !right.is_empty() && !constant_time_eq(right, password) {
        return Err(Failure("WRONGPASS", "invalid username-password pair or user is disabled.".into()));
    }
    desk.sessions[request.client].is_authenticated = true;
    Ok(())
}

pub(super) fn hello(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_resp3 = match request.from(1).next().map(integer) {
        None => reply.is_resp3,
        Some(Ok(version @ 2..=3)) => version == 3,
        Some(Ok(_)) => return Err(Failure("NOPROTO", "unsupported protocol version".into())),
        Some(Err(_)) => return Err("Protocol version is not an integer or out of range".into()),
    };
    let mut at = 2;
    while at < request.len() {
        let following = request.len() - at - 1;
        if request.is(at, "auth") && following >= 2 {
            authenticate(desk, request, request.arg(at + 1), request.arg(at + 2))?;
            at += 3;
        } else if request.is(at, "setname") && following >= 1 {
            rename(desk, request, request.arg(at + 1))?;
            at += 2;
        } else {
            return Err(format!("Syntax error in HELLO option '{}'", quoted(request.arg(at))).into());
        }
    }
    let session = &mut desk.sessions[request.client];
    if !session.is_authenticated {
        return Err(Failure("NOAUTH", HELLO_FIRST.into()));
    }
    session.is_resp3 = is_resp3;
    reply.is_resp3 = is_resp3;
    reply.map(7);
    ["server", "redis", "version", REDIS_VERSION, "proto"].iter().for_each(|text| reply.bulk(text));
    reply.integer(2 + i64::from(is_resp3));
    reply.bulk("id");
    reply.integer(session.id.number as i64);
    ["mode", "standalone", "role", "master", "modules"].iter().for_each(|text| reply.bulk(text));
    Ok(reply.array(0))
}

fn rename(desk: &mut Desk, request: &Request<'_>, name: &[u8]) -> Outcome {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err("Client names cannot contain spaces, newlines or special characters.".into());
    }
    desk.sessions[request.client].name = name.to_vec();
    Ok(())
}

pub(super) fn set_name(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    rename(desk, request, request.arg(2)).map(|()| reply.ok())
}

pub(super) fn get_name(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let name = &desk.sessions[request.client].name;
    Ok(reply.bulk_or_null(Some(name).filter(|name| !name.is_empty())))
}

/// The name and the version of the client's library. They are accepted and not kept.
pub(super) fn set_info(_: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    if !request.is(2, "lib-name") && !request.is(2, "lib-ver") {
        return Err(format!("Unrecognized option '{}'", quoted(request.arg(2))).into());
    }
    Ok(reply.ok())
}

/// CLIENT NO-EVICT: nothing is evicted.
pub(super) fn on_or_off(_: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    if request.is(2, "on") || request.is(2, "off") { Ok(reply.ok()) } else { Err(SYNTAX.into()) }
}

/// CLIENT REPLY. Only ON is replied.
pub(super) fn mute(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let session = &mut desk.sessions[request.client];
    match &request.arg(2).to_ascii_lowercase()[..] {
        b"on" => session.is_silent = false,
        b"off" => session.is_silent = true,
        b"skip" => session.skips_next = !session.is_silent,
        _ => return Err(SYNTAX.into()),
    }
    session.replies.is_muted = !request.is(2, "on");
    Ok(reply.ok())
}

/// The subcommands of a command.
pub(super) fn help(_: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let container = quoted(request.arg(0)).to_ascii_lowercase();
    let names = COMMANDS.iter().filter_map(|it| it.name.strip_prefix(&container)?.strip_prefix('|'));
    let head = format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let lines: Vec<_> = [&head[..]].into_iter().chain(names).chain(["help"]).collect();
    reply.array(lines.len());
    Ok(lines.iter().for_each(|line| reply.simple(line)))
}

pub(super) fn time(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let now = wall_clock();
    reply.array(2);
    reply.bulk_integer(now.as_secs() as i64);
    Ok(reply.bulk_integer(i64::from(now.subsec_micros())))
}

pub(super) fn command(_: &mut Desk, _: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let all: Vec<_> = COMMANDS.iter().filter(|command| !command.name.contains('|')).collect();
    reply.array(all.len());
    Ok(all.iter().for_each(|command| describe(command, reply)))
}

/// The ten elements of COMMAND's reply for each command. The last four, categories, hints, key
/// specifications and subcommands, are empty.
fn describe(command: &Command, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name);
    reply.integer(i64::from(command.arity));
    let own = Flags::SUBSCRIBED | Flags::AT_ONCE | Flags::PAIRS | Flags::ONLY_0_IN_MULTI;
    let flags: Vec<_> = (command.flags - own).iter_names().collect();
    reply.list(b'~', flags.len());
    flags.iter().for_each(|(name, _)| reply.simple(&name.to_ascii_lowercase()));
    // The first key, the last one, counted from the end if negative, and the distance of keys.
    let keys = match command.run {
        Run::Key(_) => [1, 1, 1],
        Run::EachKey(_, step, _) => [1, -1, step as i64],
        _ => [0, 0, 0],
    };
    keys.into_iter().for_each(|key| reply.integer(key));
    (0..3).for_each(|_| reply.list(b'~', 0));
    reply.array(0);
}
