//! Arguments that several commands share: times to live, and options that are words.

use crate::clock::{Deadline, Time};
use crate::commands::lossy;
use crate::protocol::{Failure, NOT_AN_INTEGER, Request, SYNTAX, parse_i64};

/// Milliseconds in a second.
const SECOND: i64 = 1_000;

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) milliseconds: i64,
    /// A time of the wall clock, not a time from now.
    pub(crate) is_date: bool,
}

impl Unit {
    /// The unit of a command, which its name says: PEXPIRE, EXPIREAT, PEXPIRETIME.
    pub(crate) fn of_command(name: &[u8]) -> Self {
        let ends_with = |end: &[u8]| {
            name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
        };
        let milliseconds = if name[0].eq_ignore_ascii_case(&b'p') { 1 } else { SECOND };
        Self { milliseconds, is_date: ends_with(b"at") || ends_with(b"time") }
    }
}

/// The integer in an argument.
pub(crate) fn integer(arg: &[u8]) -> Result<i64, Failure> {
    parse_i64(arg).ok_or(NOT_AN_INTEGER.into())
}

pub(crate) fn invalid_expiry(request: &Request<'_>) -> Failure {
    format!("invalid expire time in '{}' command", lossy(request.arg(0)).to_lowercase()).into()
}

/// A deadline as SET and its kin take it: it may be in the past, but not before 1970.
pub(crate) fn deadline(
    time: &Time,
    request: &Request<'_>,
    (arg, unit): (&[u8], Unit),
) -> Result<Deadline, Failure> {
    let milliseconds = integer(arg)?.checked_mul(unit.milliseconds).filter(|&it| it > 0);
    let at = |it| if unit.is_date { Some(Deadline::at(it)) } else { time.after(it) };
    milliseconds.and_then(at).ok_or_else(|| invalid_expiry(request))
}

/// A set of options, as bits.
pub(crate) type Words = u16;
pub(crate) const NX: Words = 1;
pub(crate) const XX: Words = 1 << 1;
pub(crate) const GT: Words = 1 << 2;
pub(crate) const LT: Words = 1 << 3;
pub(crate) const GET: Words = 1 << 4;
pub(crate) const KEEPTTL: Words = 1 << 5;
pub(crate) const PERSIST: Words = 1 << 6;
const EX: Words = 1 << 7;
const PX: Words = 1 << 8;
const EXAT: Words = 1 << 9;
const PXAT: Words = 1 << 10;
/// The options that say what becomes of the deadline. They exclude each other.
const TIMES: Words = KEEPTTL | PERSIST | EX | PX | EXAT | PXAT;
/// The options of SET, GETEX, and EXPIRE and its kin.
pub(crate) const OF_SET: Words = NX | XX | GET | (TIMES & !PERSIST);
pub(crate) const OF_GETEX: Words = TIMES & !KEEPTTL;
pub(crate) const OF_EXPIRE: Words = NX | XX | GT | LT;

/// An option: its word, its bit, the options that may not stand before it, and the unit of the time
/// that follows it.
type Word = (&'static str, Words, Words, Option<Unit>);

const WORDS: [Word; 11] = [
    ("nx", NX, XX, None),
    ("xx", XX, NX, None),
    ("gt", GT, LT, None),
    ("lt", LT, GT, None),
    ("get", GET, 0, None),
    ("keepttl", KEEPTTL, TIMES & !KEEPTTL, None),
    ("persist", PERSIST, TIMES & !PERSIST, None),
    ("ex", EX, TIMES & !EX, Some(Unit { milliseconds: SECOND, is_date: false })),
    ("px", PX, TIMES & !PX, Some(Unit { milliseconds: 1, is_date: false })),
    ("exat", EXAT, TIMES & !EXAT, Some(Unit { milliseconds: SECOND, is_date: true })),
    ("pxat", PXAT, TIMES & !PXAT, Some(Unit { milliseconds: 1, is_date: true })),
];

/// The option that an argument is, if it is one of these.
fn word(request: &Request<'_>, at: usize, known: Words) -> Option<&'static Word> {
    WORDS.iter().find(|(word, bit, ..)| known & bit != 0 && request.is(at, word))
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) words: Words,
    pub(crate) expiry: Option<(&'a [u8], Unit)>,
}

impl<'a> Options<'a> {
    /// Reads the arguments from `at` on. Options that exclude each other are an error.
    pub(crate) fn parse(request: &Request<'a>, mut at: usize, known: Words) -> Result<Self, Failure> {
        let mut options = Self::default();
        while at < request.len() {
            let fits = word(request, at, known).filter(|(_, _, excluded, _)| options.words & excluded == 0);
            let (_, bit, _, unit) = *fits.ok_or(SYNTAX)?;
            options.words |= bit;
            if let Some(unit) = unit {
                at += 1;
                options.expiry = Some((request.from(at).next().ok_or(SYNTAX)?, unit));
            }
            at += 1;
        }
        Ok(options)
    }

    pub(crate) fn has(&self, word: Words) -> bool {
        self.words & word != 0
    }
}

/// The conditions of EXPIRE and its kin.
pub(crate) fn conditions(request: &Request<'_>) -> Result<Words, Failure> {
    let words = (3..request.len()).try_fold(0, |words, at| {
        let found = word(request, at, OF_EXPIRE);
        Ok(words | found.ok_or_else(|| format!("Unsupported option {}", lossy(request.arg(at))))?.1)
    });
    match words {
        Ok(words) if words & NX != 0 && words != NX => {
            Err("NX and XX, GT or LT options at the same time are not compatible".into())
        }
        Ok(words) if words & (GT | LT) == GT | LT => {
            Err("GT and LT options at the same time are not compatible".into())
        }
        words => words,
    }
}
