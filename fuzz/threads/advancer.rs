//! The advancer's part: it moves the clock, takes all or some of the due timers, and ends the
//! shard.

use shardwheel::{Advancer, Tick};

use super::bytes::Bytes;
use super::ledger::{End, Payload};

/// How a shard ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// After the producers have finished, the clock goes to the end of time.
    Fire,
    /// After the producers have finished, the pending timers are handed back.
    HandBack,
    /// The pending timers are handed back while the producers may still run.
    HandBackAtOnce,
    /// The advancer is dropped while the producers may still run.
    Drop,
}

impl Ending {
    pub(crate) fn new(byte: u8) -> Self {
        match byte % 8 {
            0..=3 => Self::Fire,
            4 | 5 => Self::HandBack,
            6 => Self::HandBackAtOnce,
            _ => Self::Drop,
        }
    }

    /// Whether the shard ends after the producers have finished, so that no payload is dropped with
    /// it.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Fire | Self::HandBack)
    }
}

/// Runs the script, then ends the shard; `wait` waits for the producers.
pub(crate) fn run(script: &[u8], mut advancer: Advancer<Payload>, ending: Ending, wait: impl FnOnce()) {
    let mut bytes = Bytes(script);
    let mut now = advancer.scheduler().now();
    while !bytes.is_empty() {
        now = operation(&mut advancer, &mut bytes, now);
    }
    if ending.waits() {
        wait();
        advancer.check_invariants();
        end(advancer, ending);
    } else {
        end(advancer, ending);
        wait();
    }
}

/// Advances the clock. Returns the highest tick so far, which the clock has reached.
fn operation(advancer: &mut Advancer<Payload>, bytes: &mut Bytes<'_>, now: Tick) -> Tick {
    let target = match bytes.byte() {
        0..64 => advancer.next_expiration().unwrap_or(now),
        near @ 64..192 => now.saturating_add(Tick::from(near % 16)),
        192..224 => now.saturating_add(bytes.ticks()),
        224..232 => now.saturating_sub(bytes.ticks()),
        _ => now,
    };
    let budget = bytes.byte();
    let budget = if budget < 128 { usize::MAX } else { usize::from(budget - 128) };
    let now = now.max(target);
    advance(advancer, now, budget);
    now
}

fn advance(advancer: &mut Advancer<Payload>, now: Tick, budget: usize) {
    let mut last = 0;
    for fired in advancer.advance(now).take(budget) {
        assert!(fired.deadline >= last, "{} after {last}", fired.deadline);
        last = fired.deadline;
        assert!(fired.deadline <= now, "{} at {now}", fired.deadline);
        fired.payload.fire_at(fired.deadline);
    }
}

fn end(mut advancer: Advancer<Payload>, ending: Ending) {
    match ending {
        Ending::Fire => {
            advance(&mut advancer, Tick::MAX, usize::MAX);
            advancer.check_invariants();
            assert!(advancer.scheduler().is_empty(), "something pends after the end of time");
        }
        Ending::HandBack | Ending::HandBackAtOnce => {
            advancer.into_pending().for_each(|(_, payload)| payload.end(End::HandedBack));
        }
        Ending::Drop => drop(advancer),
    }
}
