//! Commands on values.

use super::options::{OF_GETEX, OF_SET, Options, Words};
use super::*;
use crate::protocol::parser::MAX_BULK;

pub(super) fn get(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    write_value(keys, request, reply);
    Ok(())
}

/// Replies the value. Returns the place of the key.
fn write_value(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Option<Place> {
    let found = keys.look_up(request.hash, request.arg(1));
    reply.bulk_or_null(found.map(|place| keys.get(place).value()));
    found
}

/// STRLEN, GETRANGE.
pub(super) fn part(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_whole = name(request) == "strlen";
    let (first, last) = if is_whole { (0, -1) } else { (integer(request.arg(2))?, integer(request.arg(3))?) };
    let value = keys.look_up(request.hash, request.arg(1)).map_or(&b""[..], |place| keys.get(place).value());
    if is_whole {
        return Ok(reply.integer(value.len() as i64));
    }
    let at = |place: i64| if place < 0 { (place + value.len() as i64).max(0) } else { place };
    let end = at(last).saturating_add(1).min(value.len() as i64);
    let is_reversed = first < 0 && last < first;
    let found = value.get(at(first) as usize..end as usize).filter(|_| !is_reversed);
    Ok(reply.bulk(found.unwrap_or_default()))
}

/// APPEND, SETRANGE.
pub(super) fn write_part(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (name, key, piece) = (name(request), request.arg(1), request.arg(request.len() - 1));
    let at = if name == "append" { None } else { Some(integer(request.arg(2))?) };
    if at.is_some_and(|at| at < 0) {
        return Err("offset is out of range".into());
    }
    let found = keys.find(request.hash, key);
    let len = found.map_or(0, |place| keys.get(place).value().len());
    if at.is_some() && piece.is_empty() {
        return Ok(reply.integer(len as i64));
    }
    let at = at.map_or(len, |at| at as usize);
    let end = at.saturating_add(piece.len());
    if end > MAX_BULK {
        return Err("string exceeds maximum allowed size (proto-max-bulk-len)".into());
    }
    // A new key has no more room than its value.
    let value = if at == 0 { piece } else { b"" };
    let place = found.unwrap_or_else(|| keys.set_value(request.hash, key, value, None));
    keys.write(place, at, piece);
    keys.events.add(Class::STRING, name, key);
    Ok(reply.integer(end.max(len) as i64))
}

/// SET, SETEX, PSETEX, SETNX, GETSET, and one key of MSET.
pub(super) fn set(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (name, key) = (name(request), request.arg(1));
    let (value, options) = match name {
        "set" => (request.arg(2), Options::parse(request, 3, OF_SET)?),
        "mset" => (request.arg(2), Options::default()),
        "setnx" => (request.arg(2), Options { words: Words::NX, time: b"" }),
        "getset" => (request.arg(2), Options { words: Words::GET, time: b"" }),
        "setex" => (request.arg(3), Options { words: Words::EX, time: request.arg(2) }),
        _ => (request.arg(3), Options { words: Words::PX, time: request.arg(2) }),
    };
    let expiry = options.deadline(keys, name)?;
    let replies_old = options.has(Words::GET);
    let found = if replies_old { write_value(keys, request, reply) } else { keys.find(request.hash, key) };
    let is_set = !(options.has(Words::NX) && found.is_some() || options.has(Words::XX) && found.is_none());
    match name {
        "setnx" => reply.integer(i64::from(is_set)),
        _ if replies_old => {}
        _ if is_set => reply.ok(),
        _ => reply.null(),
    }
    if !is_set {
        return Ok(());
    }
    let place = keys.set_value(request.hash, key, value, found);
    keys.events.add(Class::STRING, "set", key);
    if let Some(deadline) = expiry {
        keys.set_deadline(place, deadline);
        keys.events.add(Class::GENERIC, "expire", key);
    } else if !options.has(Words::KEEPTTL) {
        keys.persist(place);
    }
    Ok(())
}

pub(super) fn getex(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let options = Options::parse(request, 2, OF_GETEX)?;
    let Some(place) = write_value(keys, request, reply) else { return Ok(()) };
    match options.deadline(keys, name(request))? {
        Some(at) if at.is_date() && keys.time.wall_of(at) <= keys.time.wall() => delete(keys, request, place),
        Some(at) => {
            keys.set_deadline(place, at);
            keys.events.add(Class::GENERIC, "expire", request.arg(1));
        }
        None if options.has(Words::PERSIST) && keys.persist(place) => {
            keys.events.add(Class::GENERIC, "persist", request.arg(1));
        }
        None => {}
    }
    Ok(())
}

pub(super) fn getdel(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let found = write_value(keys, request, reply);
    Ok(found.into_iter().for_each(|place| delete(keys, request, place)))
}

/// INCR and INCRBY; with a negative sign, DECR and DECRBY.
pub(super) fn incr<const IS_NEGATIVE: bool>(
    keys: &mut Keyspace,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let mut by = request.from(2).next().map_or(Ok(1), integer)?;
    if IS_NEGATIVE {
        by = by.checked_neg().ok_or("decrement would overflow")?;
    }
    let found = keys.find(request.hash, request.arg(1));
    let old = found.map_or(Ok(0), |place| integer(keys.get(place).value()))?;
    let new = old.checked_add(by).ok_or("increment or decrement would overflow")?;
    keys.set_value(request.hash, request.arg(1), itoa::Buffer::new().format(new).as_bytes(), found);
    keys.events.add(Class::STRING, "incrby", request.arg(1));
    Ok(reply.integer(new))
}

const DECIMALS: usize = 17;

/// Longer texts are no numbers, as in Redis.
const MAX_DECIMAL: usize = 5 * 1024;

/// A number, in units of 10^-17: so sums are exact.
fn decimal(arg: &[u8]) -> Result<i128, Failure> {
    let text = Some(arg).filter(|it| it.len() < MAX_DECIMAL).and_then(|it| std::str::from_utf8(it).ok());
    let (text, hex) = (text.unwrap_or_default(), text.and_then(hexadecimal));
    let value = hex.or_else(|| text.parse::<f64>().ok()).filter(|it| !it.is_nan());
    let value = value.ok_or("value is not a valid float")?;
    let has_exponent = text.contains(['e', 'E']) && value.is_finite();
    let text = match hex {
        Some(value) => format!("{value:.DECIMALS$}"),
        None if has_exponent => value.to_string(),
        None => text.to_owned(),
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{part:0<DECIMALS$.DECIMALS$}");
    digits.parse().map_err(|_| "increment would produce NaN or Infinity".into())
}

/// Reads `0x1.8p3` as C does.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = (if text.starts_with('-') { -1.0 } else { 1.0 }, text.strip_prefix(['-', '+']));
    let digits = digits.unwrap_or(text);
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (digits, exponent) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = Some(format!("{whole}{part}")).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))?;
    let number = u64::from_str_radix(&digits, 16).ok()? as f64;
    let exponent = exponent.parse::<i32>().ok()?.saturating_sub(4 * part.len() as i32);
    Some(sign * number * 2_f64.powi(exponent)).filter(|it| it.is_finite())
}

pub(super) fn incr_by_float(keys: &mut Keyspace, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let (key, found) = (request.arg(1), keys.find(request.hash, request.arg(1)));
    let old = found.map_or(Ok(0), |place| decimal(keys.get(place).value()))?;
    let sum = old.checked_add(decimal(request.arg(2))?).ok_or("increment would produce NaN or Infinity")?;
    let (sign, digits) = (if sum < 0 { "-" } else { "" }, format!("{:018}", sum.unsigned_abs()));
    let (whole, part) = digits.split_at(digits.len() - DECIMALS);
    let text = format!("{sign}{whole}.{part}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    keys.set_value(request.hash, key, text.as_bytes(), found);
    keys.events.add(Class::STRING, "incrbyfloat", key);
    Ok(reply.bulk(text))
}
