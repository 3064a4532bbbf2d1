//! Builds a `Timer`: with threads, on a manual clock, or in an event loop, of the user's or a
//! browser's.

mod assemble;
#[cfg_attr(
    not(all(
        feature = "web",
        target_family = "wasm",
        target_os = "unknown",
        not(target_feature = "atomics")
    )),
    path = "no_browser.rs"
)]
mod browser;
mod builder;
mod event_loop;

pub use builder::TimerBuilder;
pub use event_loop::Driver;
