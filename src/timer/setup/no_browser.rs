//! Says that there is no browser whose event loop could turn a `Timer`.

use std::io::{Error, ErrorKind};

use super::builder::TimerBuilder;
use crate::error::BuildError;
use crate::timer::handle::Timer;

pub(super) fn build(_: TimerBuilder) -> Result<Timer, BuildError> {
    let message = "this platform has no threads; a timer on a manual clock or by `build_driven`, or a shard, \
                   needs none";
    Err(BuildError::Spawn { shard: 0, error: Error::new(ErrorKind::Unsupported, message) })
}
