//! A `Timer`'s time: nanoseconds and ticks, and when a recurring timer is due next.

mod roundest;
mod schedule;
mod ticks;
mod wall;

pub use schedule::{Every, Missed, Schedule};
pub(crate) use ticks::{NEVER, Nanos, Time, nanos};
pub use wall::WallSchedule;
