//! The timer of the HTTP connections: the global timer of shardwheel. This is the one place that
//! says so; `shardwheel-compat` has the same for any server.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// hyper's timer on shardwheel's global timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WheelTimer;

impl Timer for WheelTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(WheelSleep(Mutex::new(shardwheel::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(WheelSleep(Mutex::new(shardwheel::sleep_until(deadline))))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<WheelSleep>() {
            Some(sleep) => sleep.inner().reset(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// hyper asks for `Sync`. Nobody else has the lock, as polling takes `&mut`.
struct WheelSleep(Mutex<shardwheel::global::Sleep>);

impl WheelSleep {
    fn inner(self: Pin<&mut Self>) -> &mut shardwheel::global::Sleep {
        self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sleep for WheelSleep {}

impl Future for WheelSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(self.inner()).poll(context)
    }
}
