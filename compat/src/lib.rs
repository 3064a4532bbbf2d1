#![cfg_attr(feature = "hyper", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "hyper"), doc = "shardwheel as the timer of other libraries.")]
//!
//! # What is in which file
//!
//! Each library has a file and a feature of its own, with the library's name. All those that sleep
//! share `Sleep`, and choose their `Timer` in the same way: `default()` is on the
//! [global `Timer`](shardwheel::Timer::global), `new(timer)` on the caller's. The map of entries
//! that end on time is a folder, `expiring_map`.

#[cfg(feature = "backon")]
mod backon;
#[cfg(feature = "compio")]
mod compio;
#[cfg(feature = "cron")]
mod cron;
#[cfg(feature = "expiring-map")]
mod expiring_map;
#[cfg(all(feature = "glommio", target_os = "linux"))]
mod glommio;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(any(feature = "compio", all(target_os = "linux", any(feature = "glommio", feature = "monoio"))))]
mod local;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(feature = "monoio", target_os = "linux"))]
mod monoio;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(any(feature = "backon", feature = "hyper", feature = "quinn", feature = "smithy", feature = "tower"))]
mod sleep;
#[cfg(feature = "smithy")]
mod smithy;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "tracing")]
mod tracing;
#[cfg(feature = "tokio-testing")]
mod virtual_time;

#[cfg(feature = "backon")]
pub use self::backon::BackonSleeper;
#[cfg(feature = "compio")]
pub use self::compio::{compio_timer, compio_timer_with};
#[cfg(feature = "cron")]
pub use self::cron::{Cron, CronError, TimeZone};
#[cfg(feature = "expiring-map")]
pub use self::expiring_map::{ExpiringMap, Expiry, InsertError, InsertErrorKind};
#[cfg(all(feature = "glommio", target_os = "linux"))]
pub use self::glommio::{glommio_timer, glommio_timer_with};
#[cfg(feature = "hyper")]
pub use self::hyper::HyperTimer;
#[cfg(any(feature = "compio", all(target_os = "linux", any(feature = "glommio", feature = "monoio"))))]
pub use self::local::{Local, LocalTimer};
#[cfg(feature = "metrics")]
pub use self::metrics::TimerMetrics;
#[cfg(all(feature = "monoio", target_os = "linux"))]
pub use self::monoio::{monoio_timer, monoio_timer_with};
#[cfg(feature = "quinn")]
pub use self::quinn::QuinnRuntime;
#[cfg(any(
    feature = "backon",
    feature = "hyper",
    feature = "quinn",
    feature = "smithy",
    feature = "tower"
))]
pub use self::sleep::Sleep;
#[cfg(feature = "smithy")]
pub use self::smithy::SmithySleep;
#[cfg(feature = "tokio")]
pub use self::tokio::{tokio_timer, tokio_timer_with};
#[cfg(feature = "tower")]
pub use self::tower::{Timeout, TimeoutLayer};
#[cfg(feature = "tracing")]
pub use self::tracing::{TimerTracing, WarnRefused};
#[cfg(feature = "tokio-testing")]
pub use self::virtual_time::{real_work, virtual_time};
