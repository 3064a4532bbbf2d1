//! Ten thousand timers that are set again each time they fire, for a page that draws them.

#![cfg(target_family = "wasm")]

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use js_sys::Math::random;
use shardwheel::{Instant, Timer};
use wasm_bindgen::prelude::*;

/// A tick is long enough to be seen: a turn of the finest wheel takes 1.6 s, one of the next 1.7 min.
const TICK: Duration = Duration::from_millis(25);
/// The buckets of a wheel.
const BUCKETS: u32 = 64;
const TIMERS: usize = 10_000;

/// What the page draws.
struct Drawn {
    /// The tick at which each timer is due.
    due: Vec<u32>,
    /// The timers that have fired since the page looked.
    fired: Vec<u32>,
}

#[wasm_bindgen]
pub struct Timers {
    timer: Timer,
    start: Instant,
    drawn: Arc<Mutex<Drawn>>,
}

/// Timers of a second, of a minute and of an hour.
fn delay(number: usize) -> Duration {
    let between = |least: f64, most: f64| least * (most / least).powf(random());
    Duration::from_secs_f64(match number % 100 {
        0..12 => between(0.4, 8.0),
        12..50 => between(3.0, 110.0),
        _ => 6_600.0 * random(),
    })
}

fn set(timer: &Timer, start: Instant, number: usize, delay: Duration, drawn: &Arc<Mutex<Drawn>>) {
    let at = timer.now() + delay;
    let due = at.duration_since(start).as_nanos().div_ceil(TICK.as_nanos());
    drawn.lock().unwrap().due[number] = due as u32;
    let (weak, own) = (timer.downgrade(), Arc::clone(drawn));
    let fire = move || {
        own.lock().unwrap().fired.push(number as u32);
        if let Some(timer) = weak.upgrade() {
            set(&timer, start, number, self::delay(number), &own);
        }
    };
    timer.schedule_at(at, fire).expect("memory for a timer");
}

#[wasm_bindgen]
impl Timers {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Result<Timers, JsError> {
        let timer = Timer::builder().tick(TICK).wheel_size(BUCKETS as usize).build()?;
        let drawn = Arc::new(Mutex::new(Drawn { due: vec![0; TIMERS], fired: Vec::new() }));
        let start = timer.now();
        // As if they had been set again and again for long: a part of each delay has passed.
        (0..TIMERS).for_each(|number| set(&timer, start, number, delay(number).mul_f64(random()), &drawn));
        Ok(Self { timer, start, drawn })
    }

    /// The present, in ticks.
    pub fn now(&self) -> f64 {
        self.timer.now().duration_since(self.start).as_secs_f64() / TICK.as_secs_f64()
    }

    pub fn due(&self) -> Vec<u32> {
        self.drawn.lock().unwrap().due.clone()
    }

    pub fn take_fired(&self) -> Vec<u32> {
        mem::take(&mut self.drawn.lock().unwrap().fired)
    }

    pub fn pending(&self) -> usize {
        self.timer.stats().pending
    }

    /// The bytes of the module's memory.
    pub fn memory(&self) -> f64 {
        let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
        f64::from(memory.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length())
    }
}
