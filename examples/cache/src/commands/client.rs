//! Commands about the connection.

use crate::commands::options::integer;
use crate::commands::{Failure, lossy, wrong_arity};
use crate::desk::Desk;
use crate::protocol::reply::{Reply, SYNTAX};
use crate::protocol::request::Request;
use crate::session::Ending;

/// The version of Redis whose semantics these are.
pub(crate) const REDIS_VERSION: &str = "7.0.15";
/// The only user.
const USER: &[u8] = b"default";
const WRONG_PASSWORD: &str = "invalid username-password pair or user is disabled.";
const BAD_NAME: &str = "Client names cannot contain spaces, newlines or special characters.";

pub(crate) fn ping(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    if request.len() > 2 {
        return reply.error(wrong_arity("ping"));
    }
    let is_array = !reply.is_resp3 && desk.sessions.get_mut(slot).is_some_and(|it| it.has_subscribed());
    if is_array {
        reply.array(2);
        reply.bulk(b"pong");
    }
    match request.from(1).next() {
        Some(text) => reply.bulk(text),
        None if is_array => reply.bulk(b""),
        None => reply.simple("PONG"),
    }
}

pub(crate) fn echo(_: &mut Desk, _: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    reply.bulk(request.arg(1));
}

pub(crate) fn quit(desk: &mut Desk, slot: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.ok();
    if let Some(session) = desk.sessions.get_mut(slot) {
        session.ending = Ending::WhenAnswered;
    }
}

pub(crate) fn select(_: &mut Desk, _: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    match integer(request.arg(1)).map(i32::try_from) {
        Ok(Ok(0)) => reply.ok(),
        Ok(Ok(_)) => reply.error("DB index is out of range"),
        Ok(Err(_)) => reply.error("value is out of range, value must between -2147483648 and 2147483647"),
        Err(text) => reply.error(text),
    }
}

pub(crate) fn auth(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    let (user, password) = match request.len() {
        2 if desk.settings.password.is_none() => {
            return reply.error(
                "AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            );
        }
        2 => (USER, request.arg(1)),
        3 => (request.arg(1), request.arg(2)),
        _ => return reply.error(SYNTAX),
    };
    if authenticate(desk, slot, user, password) {
        reply.ok();
    } else {
        reply.coded_error("WRONGPASS", WRONG_PASSWORD);
    }
}

fn authenticate(desk: &mut Desk, slot: u32, user: &[u8], password: &[u8]) -> bool {
    let is_right = desk.settings.password.as_ref().is_none_or(|right| are_same(right, password));
    let is_allowed = user == USER && is_right;
    if let Some(session) = desk.sessions.get_mut(slot) {
        session.is_authenticated |= is_allowed;
    }
    is_allowed
}

/// Compares in a time that does not tell how much is right.
fn are_same(right: &[u8], given: &[u8]) -> bool {
    let differences = right.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
    right.len() == given.len() && std::hint::black_box(differences) == 0
}

pub(crate) fn hello(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    let is_resp3 = match request.from(1).next().map(integer) {
        None => reply.is_resp3,
        Some(Ok(2)) => false,
        Some(Ok(3)) => true,
        Some(Ok(_)) => return reply.coded_error("NOPROTO", "unsupported protocol version"),
        Some(Err(_)) => return reply.error("Protocol version is not an integer or out of range"),
    };
    if let Err((code, text)) = take_options(desk, slot, request) {
        return reply.coded_error(code, text);
    }
    let Some(session) = desk.sessions.get_mut(slot) else { return };
    if !session.is_authenticated {
        return reply.coded_error(
            "NOAUTH",
            "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP \
             protocol version at the same time",
        );
    }
    (session.is_resp3, reply.is_resp3) = (is_resp3, is_resp3);
    introduce(session.id, reply);
}

/// The options of HELLO.
fn take_options(desk: &mut Desk, slot: u32, request: &Request<'_>) -> Result<(), (&'static str, Failure)> {
    let mut at = 2;
    while at < request.len() {
        let following = request.len() - at - 1;
        if request.is(at, "auth") && following >= 2 {
            if !authenticate(desk, slot, request.arg(at + 1), request.arg(at + 2)) {
                return Err(("WRONGPASS", WRONG_PASSWORD.to_owned()));
            }
            at += 3;
        } else if request.is(at, "setname") && following >= 1 {
            rename(desk, slot, request.arg(at + 1)).map_err(|text| ("ERR", text))?;
            at += 2;
        } else {
            return Err(("ERR", format!("Syntax error in HELLO option '{}'", lossy(request.arg(at)))));
        }
    }
    Ok(())
}

fn introduce(id: u64, reply: &mut Reply<'_>) {
    reply.map(7);
    reply.bulks(&["server", "redis", "version", REDIS_VERSION]);
    for (name, value) in [("proto", 2 + i64::from(reply.is_resp3)), ("id", id as i64)] {
        reply.bulks(&[name]);
        reply.integer(value);
    }
    reply.bulks(&["mode", "standalone", "role", "master", "modules"]);
    reply.array(0);
}

fn rename(desk: &mut Desk, slot: u32, name: &[u8]) -> Result<(), Failure> {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(BAD_NAME.to_owned());
    }
    if let Some(session) = desk.sessions.get_mut(slot) {
        session.name = name.to_vec();
    }
    Ok(())
}

pub(crate) fn id(desk: &mut Desk, slot: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    reply.integer(desk.sessions.get_mut(slot).map_or(0, |session| session.id as i64));
}

pub(crate) fn set_name(desk: &mut Desk, slot: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    match rename(desk, slot, request.arg(2)) {
        Ok(()) => reply.ok(),
        Err(text) => reply.error(text),
    }
}

pub(crate) fn get_name(desk: &mut Desk, slot: u32, _: &Request<'_>, reply: &mut Reply<'_>) {
    match desk.sessions.get_mut(slot).filter(|session| !session.name.is_empty()) {
        Some(session) => reply.bulk(&session.name),
        None => reply.null(),
    }
}

/// The name and the version of the client's library. They are accepted and not kept.
pub(crate) fn set_info(_: &mut Desk, _: u32, request: &Request<'_>, reply: &mut Reply<'_>) {
    if request.is(2, "lib-name") || request.is(2, "lib-ver") {
        reply.ok();
    } else {
        reply.error(format!("Unrecognized option '{}'", lossy(request.arg(2))));
    }
}
