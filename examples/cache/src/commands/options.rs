//! Arguments that several commands share: times to live, and the options of SET and GETEX.

use crate::clock::{Deadline, Time};
use crate::commands::{Failure, lossy};
use crate::protocol::number::parse_i64;
use crate::protocol::reply::{NOT_AN_INTEGER, SYNTAX};
use crate::protocol::request::Request;

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
    pub(crate) const EX: Self = Self { milliseconds: SECOND, is_date: false };
    pub(crate) const PX: Self = Self { milliseconds: 1, is_date: false };
    pub(crate) const EXAT: Self = Self { milliseconds: SECOND, is_date: true };
    pub(crate) const PXAT: Self = Self { milliseconds: 1, is_date: true };

    /// The unit of a command, which its name says: PEXPIRE, EXPIREAT, PEXPIRETIME.
    pub(crate) fn of_command(name: &[u8]) -> Self {
        let ends_with = |end: &str| {
            name.len() > end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
        };
        let milliseconds = if name[0].eq_ignore_ascii_case(&b'p') { 1 } else { SECOND };
        Self { milliseconds, is_date: ends_with("at") || ends_with("time") }
    }

    fn named(word: &[u8]) -> Option<Self> {
        let units: [(&[u8], Self); 4] =
            [(b"ex", Self::EX), (b"px", Self::PX), (b"exat", Self::EXAT), (b"pxat", Self::PXAT)];
        units.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, unit)| unit)
    }
}

/// The integer in an argument.
pub(crate) fn integer(arg: &[u8]) -> Result<i64, Failure> {
    parse_i64(arg).ok_or_else(|| NOT_AN_INTEGER.to_owned())
}

pub(crate) fn invalid_expiry(request: &Request<'_>) -> Failure {
    format!("invalid expire time in '{}' command", lossy(request.arg(0)).to_lowercase())
}

/// A deadline as SET and its kin take it: it may be in the past, but not before 1970.
pub(crate) fn deadline(
    time: &Time,
    request: &Request<'_>,
    (arg, unit): (&[u8], Unit),
) -> Result<Deadline, Failure> {
    let milliseconds = integer(arg)?.checked_mul(unit.milliseconds).filter(|&it| it > 0);
    let deadline =
        milliseconds.and_then(|it| if unit.is_date { Some(Deadline::at(it)) } else { time.after(it) });
    deadline.ok_or_else(|| invalid_expiry(request))
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) if_missing: bool,
    pub(crate) if_present: bool,
    pub(crate) returns_old: bool,
    pub(crate) keeps_deadline: bool,
    pub(crate) persists: bool,
    pub(crate) expiry: Option<(&'a [u8], Unit)>,
}

impl<'a> Options<'a> {
    /// Reads the arguments from `first` on. Options that exclude each other are an error.
    pub(crate) fn parse(request: &Request<'a>, first: usize, is_set: bool) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut at = first;
        while at < request.len() {
            let takes_value = Unit::named(request.arg(at)).is_some();
            let value = (takes_value && at + 1 < request.len()).then(|| request.arg(at + 1));
            if !options.take(request.arg(at), value, is_set) {
                return Err(SYNTAX.to_owned());
            }
            at += 1 + usize::from(takes_value);
        }
        Ok(options)
    }

    /// Takes one option. False if it does not fit.
    fn take(&mut self, word: &[u8], value: Option<&'a [u8]>, is_set: bool) -> bool {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let is_free = !self.persists && !self.keeps_deadline;
        if let Some(unit) = Unit::named(word) {
            let fits = is_free && self.expiry.is_none_or(|(_, before)| before == unit);
            self.expiry = value.map(|value| (value, unit));
            return fits && value.is_some();
        }
        let (flag, fits) = if is("nx") {
            (&mut self.if_missing, is_set && !self.if_present)
        } else if is("xx") {
            (&mut self.if_present, is_set && !self.if_missing)
        } else if is("get") {
            (&mut self.returns_old, is_set)
        } else if is("keepttl") {
            (&mut self.keeps_deadline, is_set && self.expiry.is_none())
        } else if is("persist") {
            (&mut self.persists, !is_set && self.expiry.is_none())
        } else {
            return false;
        };
        *flag = true;
        fits
    }
}
