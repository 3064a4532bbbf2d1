//! The delay queue, from outside. Most tests run on a [`ManualClock`](shardwheel::ManualClock),
//! where times are exact; tests in real time have that in their names. The promises that the tests
//! name are those of the README.

mod ending;
mod everything;
mod keys;
mod stream;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod threads;
mod values;
mod waiting;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures::stream::Stream;
use shardwheel::DelayQueue;
use shardwheel::delay_queue::Expired;

/// Polls the stream once, as one of the tasks that may wait for it.
fn poll_stream<T: Send>(mut queue: &DelayQueue<T>, waker: &Waker) -> Poll<Option<Expired<T>>> {
    Pin::new(&mut queue).poll_next(&mut Context::from_waker(waker))
}
