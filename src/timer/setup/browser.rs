//! Turns a `Timer` without threads in the event loop of a browser's page or worker.
//!
//! One `setTimeout` waits for the driver's next deadline; a `Timer` with nothing pending has none. A
//! timer that comes later and is due earlier wakes the driver's waker, as does the shutdown. The
//! waker queues a microtask, which the browser runs when the present task is over, however long it
//! delays timeouts: it sets the timeout anew, or clears it at the end of the `Timer`. Callbacks run in
//! timeouts alone, so callbacks that schedule at once leave the browser time to draw.
//!
//! Timeouts may come early by a part of a millisecond, late by a minute in a tab that is hidden, or
//! at the longest delay that a browser knows. In each case the turn looks at the clock, runs what is
//! due, and sets the next one.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};

use wasm_bindgen::prelude::{Closure, JsValue, wasm_bindgen};

use super::builder::TimerBuilder;
use super::event_loop::Driver;
use crate::error::BuildError;
use crate::time::Duration;
use crate::timer::handle::Timer;

/// In milliseconds. A browser takes a longer delay for none.
const LONGEST_TIMEOUT: f64 = i32::MAX as f64;

/// No timeout is longer with a clock of the user's, which may run faster than the browser's.
const LONGEST_BY_USERS_CLOCK: Duration = Duration::from_secs(1);

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = queueMicrotask)]
    fn queue_microtask(look: &JsValue);
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(look: &JsValue, millis: f64, is_timeout: bool) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timeout: &JsValue);
}

/// A driver, and the timeout that will turn it.
struct TurnedByTimeouts {
    driver: Driver,
    /// Calls [`look`](Self::look). It owns this, until the `Timer` ends.
    look: JsValue,
    timeout: Option<JsValue>,
}

/// Builds a `Timer` that the event loop turns until it ends.
pub(super) fn build(builder: TimerBuilder) -> Result<Timer, BuildError> {
    let (timer, mut driver) = builder.build_driven()?;
    let turned = Rc::new(RefCell::new(None::<TurnedByTimeouts>));
    let own = Rc::clone(&turned);
    let look = move |is_timeout: Option<bool>| {
        // Borrowed if a callback waits for the browser, and the browser continues meanwhile.
        let Ok(mut turned) = own.try_borrow_mut() else { return };
        turned.take_if(|turned| turned.look(is_timeout.is_some()));
    };
    let look = Closure::<dyn FnMut(Option<bool>)>::new(look).into_js_value();
    driver.register_waker(&Waker::from(Arc::new(QueuesLook(look.clone()))));
    let mut first = TurnedByTimeouts { driver, look, timeout: None };
    first.look(false);
    *turned.borrow_mut() = Some(first);
    Ok(timer)
}

impl TurnedByTimeouts {
    /// Runs what is due if a timeout calls this, and sets the next timeout. Returns whether the
    /// `Timer` has ended.
    fn look(&mut self, is_timeout: bool) -> bool {
        if is_timeout {
            self.timeout = None;
            self.driver.turn();
        }
        let left = self.driver.time_left();
        self.timeout.take().iter().for_each(clear_timeout);
        self.timeout = left.map(|left| {
            // Rounded up: a browser cuts the fraction off, and would call several times.
            let millis = (left.as_secs_f64() * 1_000.0).ceil();
            set_timeout(&self.look, millis.min(LONGEST_TIMEOUT), true)
        });
        self.driver.has_ended()
    }
}

impl Driver {
    /// How long the browser may wait before the next turn.
    fn time_left(&mut self) -> Option<Duration> {
        let deadline = self.next_deadline()?;
        let left = deadline.saturating_duration_since(self.handle.present_instant());
        Some(if self.handle.time.is_users() { (left / 2).min(LONGEST_BY_USERS_CLOCK) } else { left })
    }
}

/// The driver's waker.
struct QueuesLook(JsValue);

impl Wake for QueuesLook {
    fn wake(self: Arc<Self>) {
        queue_microtask(&self.0);
    }
}
