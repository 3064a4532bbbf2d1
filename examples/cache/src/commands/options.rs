//! Arguments that several commands share: times to live, and options that are words.

use bitflags::Flags;

use super::*;
use crate::clock::Deadline;
use crate::protocol::{NOT_AN_INTEGER, parse_i64};

pub(super) fn integer(arg: &[u8]) -> Result<i64, Failure> {
    parse_i64(arg).ok_or(NOT_AN_INTEGER.into())
}

pub(super) fn invalid_expiry(command: &str) -> Failure {
    format!("invalid expire time in '{command}' command").into()
}

bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Words: u16 {
        const EX = 1;
        const PX = 1 << 1;
        const EXAT = 1 << 2;
        const PXAT = 1 << 3;
        const KEEPTTL = 1 << 4;
        const PERSIST = 1 << 5;
        const NX = 1 << 6;
        const XX = 1 << 7;
        const GT = 1 << 8;
        const LT = 1 << 9;
        const GET = 1 << 10;
    }
}

const EITHER: Words = Words::NX.union(Words::XX);
const TIMED: Words = Words::EX.union(Words::PX).union(Words::EXAT).union(Words::PXAT);
/// What becomes of the deadline: one of these.
const FATES: Words = TIMED.union(Words::KEEPTTL).union(Words::PERSIST);
pub(super) const OF_SET: Words = EITHER.union(Words::GET).union(TIMED).union(Words::KEEPTTL);
pub(super) const OF_GETEX: Words = TIMED.union(Words::PERSIST);
const OF_EXPIRE: Words = EITHER.union(Words::GT).union(Words::LT);

/// The option that an argument is, if it is one of these.
fn word(request: &Request<'_>, at: usize, known: Words) -> Option<Words> {
    let is_it = |flag: &&bitflags::Flag<Words>| known.contains(*flag.value()) && request.is(at, flag.name());
    Words::FLAGS.iter().find(is_it).map(|flag| *flag.value())
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options<'a> {
    pub(super) words: Words,
    pub(super) time: &'a [u8],
}

impl<'a> Options<'a> {
    /// Reads the arguments from `at` on. Options that exclude each other are an error.
    pub(super) fn parse(request: &Request<'a>, mut at: usize, known: Words) -> Result<Self, Failure> {
        let mut options = Self::default();
        while at < request.len() {
            let word = word(request, at, known).ok_or(SYNTAX)?;
            let rivals = [EITHER, FATES].into_iter().find(|group| group.contains(word)).unwrap_or(word);
            if options.has(rivals - word) {
                return Err(SYNTAX.into());
            }
            options.words |= word;
            if TIMED.contains(word) {
                at += 1;
                options.time = request.from(at).next().ok_or(SYNTAX)?;
            }
            at += 1;
        }
        Ok(options)
    }

    /// The deadline: it may be in the past, but not before 1970.
    pub(super) fn deadline(&self, keys: &Keyspace, command: &str) -> Result<Option<Deadline>, Failure> {
        if !self.has(TIMED) {
            return Ok(None);
        }
        let unit = if self.has(Words::PX | Words::PXAT) { 1 } else { 1_000 };
        let milliseconds = integer(self.time)?.checked_mul(unit).filter(|&it| it > 0);
        let is_date = self.has(Words::EXAT | Words::PXAT);
        let at = |it| if is_date { Some(Deadline::at(it)) } else { keys.time.after(it) };
        milliseconds.and_then(at).map(Some).ok_or_else(|| invalid_expiry(command))
    }

    pub(super) fn has(&self, words: Words) -> bool {
        self.words.intersects(words)
    }
}

pub(super) fn conditions(request: &Request<'_>) -> Result<Words, Failure> {
    let mut words = Words::empty();
    for at in 3..request.len() {
        let unknown = || format!("Unsupported option {}", quoted(request.arg(at)));
        words |= word(request, at, OF_EXPIRE).ok_or_else(unknown)?;
    }
    if words.contains(Words::NX) && words != Words::NX {
        return Err("NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if words.contains(Words::GT | Words::LT) {
        return Err("GT and LT options at the same time are not compatible".into());
    }
    Ok(words)
}
