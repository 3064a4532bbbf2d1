//! Builds a `Timer`: with threads, on a manual clock, or in an event loop.

mod assemble;
mod builder;
mod event_loop;

pub use builder::TimerBuilder;
pub use event_loop::Driver;
