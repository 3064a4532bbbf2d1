//! Arguments that several commands share: times to live, and options that are words.

use super::*;
use crate::clock::Deadline;
use crate::protocol::{NOT_AN_INTEGER, parse_i64};

/// Milliseconds in a second.
const SECOND: i64 = 1_000;

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) milliseconds: i64,
    /// A time of the wall clock, not a time from now.
    pub(super) is_date: bool,
}

impl Unit {
    /// The unit of a command or an option, which its name says: PEXPIRE, PEXPIRETIME, EXAT.
    pub(super) fn of(name: &str) -> Self {
        let milliseconds = if name.starts_with('p') { 1 } else { SECOND };
        Self { milliseconds, is_date: name.ends_with("at") || name.ends_with("time") }
    }
}

/// The integer in an argument.
pub(super) fn integer(arg: &[u8]) -> Result<i64, Failure> {
    parse_i64(arg).ok_or(NOT_AN_INTEGER.into())
}

pub(super) fn invalid_expiry(command: &str) -> Failure {
    format!("invalid expire time in '{command}' command").into()
}

/// A set of options, as bits.
pub(super) type Words = u16;
pub(super) const NX: Words = 1;
pub(super) const XX: Words = 1 << 1;
pub(super) const GT: Words = 1 << 2;
pub(super) const LT: Words = 1 << 3;
pub(super) const GET: Words = 1 << 4;
pub(super) const KEEPTTL: Words = 1 << 5;
pub(super) const PERSIST: Words = 1 << 6;
const EX: Words = 1 << 7;
const PX: Words = 1 << 8;
const EXAT: Words = 1 << 9;
const PXAT: Words = 1 << 10;
/// The options that say what becomes of the deadline. They exclude each other.
const TIMES: Words = KEEPTTL | PERSIST | EX | PX | EXAT | PXAT;
/// The options of SET, GETEX, and EXPIRE and its kin.
pub(super) const OF_SET: Words = NX | XX | GET | (TIMES & !PERSIST);
pub(super) const OF_GETEX: Words = TIMES & !KEEPTTL;
pub(super) const OF_EXPIRE: Words = NX | XX | GT | LT;

/// An option: its word, its bit, the options that may not stand before it, and whether a time follows.
type Word = (&'static str, Words, Words, bool);

const WORDS: [Word; 11] = [
    ("nx", NX, XX, false),
    ("xx", XX, NX, false),
    ("gt", GT, LT, false),
    ("lt", LT, GT, false),
    ("get", GET, 0, false),
    ("keepttl", KEEPTTL, TIMES & !KEEPTTL, false),
    ("persist", PERSIST, TIMES & !PERSIST, false),
    ("ex", EX, TIMES & !EX, true),
    ("px", PX, TIMES & !PX, true),
    ("exat", EXAT, TIMES & !EXAT, true),
    ("pxat", PXAT, TIMES & !PXAT, true),
];

/// The option that an argument is, if it is one of these.
fn word(request: &Request<'_>, at: usize, known: Words) -> Option<&'static Word> {
    WORDS.iter().find(|(word, bit, ..)| known & bit != 0 && request.is(at, word))
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options<'a> {
    pub(super) words: Words,
    pub(super) expiry: Option<(&'a [u8], Unit)>,
}

impl<'a> Options<'a> {
    /// Reads the arguments from `at` on. Options that exclude each other are an error.
    pub(super) fn parse(request: &Request<'a>, mut at: usize, known: Words) -> Result<Self, Failure> {
        let mut options = Self::default();
        while at < request.len() {
            let fits = word(request, at, known).filter(|(_, _, excluded, _)| options.words & excluded == 0);
            let (word, bit, _, has_time) = *fits.ok_or(SYNTAX)?;
            options.words |= bit;
            if has_time {
                at += 1;
                options.expiry = Some((request.from(at).next().ok_or(SYNTAX)?, Unit::of(word)));
            }
            at += 1;
        }
        Ok(options)
    }

    /// The deadline: it may be in the past, but not before 1970.
    pub(super) fn deadline(&self, keys: &Keyspace, command: &str) -> Result<Option<Deadline>, Failure> {
        let Some((arg, unit)) = self.expiry else { return Ok(None) };
        let milliseconds = integer(arg)?.checked_mul(unit.milliseconds).filter(|&it| it > 0);
        let at = |it| if unit.is_date { Some(Deadline::at(it)) } else { keys.time.after(it) };
        milliseconds.and_then(at).map(Some).ok_or_else(|| invalid_expiry(command))
    }

    pub(super) fn has(&self, word: Words) -> bool {
        self.words & word != 0
    }
}

/// The conditions of EXPIRE and its kin.
pub(super) fn conditions(request: &Request<'_>) -> Result<Words, Failure> {
    let mut words = 0;
    for at in 3..request.len() {
        let found = word(request, at, OF_EXPIRE);
        words |= found.ok_or_else(|| format!("Unsupported option {}", lossy(request.arg(at))))?.1;
    }
    if words & NX != 0 && words != NX {
        return Err("NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if words & GT != 0 && words & LT != 0 {
        return Err("GT and LT options at the same time are not compatible".into());
    }
    Ok(words)
}
