//! What callbacks do: mostly nothing; sometimes they are slow, make, cancel and move timers, and
//! panic.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::account::{Account, Cause};
use crate::placing::{self, When, delay};

/// The payload of deliberate panics.
pub(crate) struct Made;

/// The number of calls to which the ranges below refer.
const CALLS: u32 = 20_000;

pub(crate) fn act(account: &Account) {
    let mut rng = Rng::with_seed(account.seed ^ u64::from(account.fired()));
    match rng.u32(..CALLS) {
        0..3 => be_slow(&mut rng),
        3..203 => schedule_another(account, &mut rng),
        203..303 => cancel_another(account, &mut rng),
        303..503 => cancel_itself(account),
        503..603 => move_itself(account, &mut rng),
        603..653 => panic(account),
        _ => {}
    }
}

fn be_slow(rng: &mut Rng) {
    thread::sleep(Duration::from_millis(rng.u64(1..=50)));
}

fn schedule_another(account: &Account, rng: &mut Rng) {
    let when = When::After(Duration::from_nanos(delay(rng)));
    if let Some(held) = placing::once(&account.scene, rng.usize(..2), when, rng.u64(..)) {
        // If the market does not take it, no thread has its key.
        drop(account.scene.give(held));
    }
}

fn cancel_another(account: &Account, rng: &mut Rng) {
    if let Some(held) = account.scene.take(rng) {
        held.cancel();
    }
}

/// Possible if the timer recurs.
fn cancel_itself(account: &Account) {
    let Some(key) = account.key() else { return };
    if Cause::Cancel.of(|| account.scene.timer(account.which).cancel(key)) {
        account.books().expect(account.recurs(), format_args!("cancelled while it fired"));
        account.note_cancelled();
    }
}

/// Never possible.
fn move_itself(account: &Account, rng: &mut Rng) {
    let Some(key) = account.key() else { return };
    let timer = account.scene.timer(account.which);
    let moved = timer.reschedule_after(key, Duration::from_nanos(delay(rng)));
    account.books().expect(moved.is_none(), format_args!("moved while it fired"));
}

/// Panics without a message on standard error.
fn panic(account: &Account) {
    account.books().panics.one();
    resume_unwind(Box::new(Made));
}
