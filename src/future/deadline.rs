//! Deadlines that a call hands to the calls that it makes.

use std::error::Error;
use std::fmt;
use std::future::IntoFuture;

use super::global::now;
use crate::time::{Duration, Instant};
use crate::timer::{Inherited, Scoped, nanos};

/// When a request has to be answered: an instant that all calls made for the request inherit.
///
/// Within [`scope`](Self::scope), no [`timeout`](crate::timeout()) ends later than the deadline,
/// however long it is itself. That holds for the functions of the crate and for the methods of
/// every [`Timer`](crate::Timer). In a scope within a scope, the earlier deadline counts. To
/// another process, the deadline travels as the time that is left, in a [`header`](Self::header) of
/// gRPC. `TimeoutLayer` of [`shardwheel-compat`](https://docs.rs/shardwheel-compat) reads and
/// writes it, and Envoy's header for any HTTP.
///
/// # The clock
///
/// A deadline is an [`Instant`]. [`after`](Self::after), [`remaining`](Self::remaining) and the
/// headers go by [`now`](crate::now()), the time of the global `Timer` where they are called. A
/// `Timer` with another clock compares the deadline with the time of its own clock. For such a
/// `Timer`, make the deadline of its [`Timer::now`](crate::Timer::now):
/// `Deadline { at: timer.now() + limit }`.
///
/// # Examples
///
/// ```
/// use std::future::pending;
/// use std::time::Duration;
/// use shardwheel::{Deadline, timeout};
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// async fn ask_database() -> bool {
///     timeout(Duration::from_secs(30), pending::<()>()).await.is_ok()
/// }
///
/// // The request has 10 ms, so the database has no 30 s.
/// let deadline = Deadline::after(Duration::from_millis(10));
/// assert!(!block_on(deadline.scope(ask_database())));
/// assert!(deadline.remaining().is_zero());
/// ```
///
/// # Range
///
/// A deadline is never more than 100 years from now: [`after`](Self::after) and
/// [`remaining`](Self::remaining) treat a longer time as 100 years.
///
/// # Performance
///
/// No call allocates, except for those that make or refuse a header. A time limit reads one
/// thread-local for it, when it is made; one that ends at the deadline reads the clock at each poll.
/// A scope writes that thread-local twice at each poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline {
    /// The instant, by the clock of the `Timer`s for which the deadline is meant.
    pub at: Instant,
}

/// A hundred years, which every system's clock can represent.
const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The units of gRPC's header, with their nanoseconds.
fn units() -> impl Iterator<Item = (char, u64)> {
    "numSMH".chars().zip([1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000])
}

impl Deadline {
    /// The name of gRPC's header for [`header`](Self::header) and [`parse`](Self::parse).
    pub const GRPC_HEADER: &str = "grpc-timeout";

    /// Returns the deadline that is `duration` from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self { at: now() + duration.min(FAR) }
    }

    /// Returns the deadline of the innermost [`scope`](Self::scope) in which the call is made, or
    /// an earlier one of the scopes around it. `None` outside of all scopes.
    #[must_use]
    pub fn current() -> Option<Self> {
        Inherited::current().deadline.map(|at| Self { at })
    }

    /// Returns the time that is left; zero if the deadline has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(now()).min(FAR)
    }

    /// Runs `future` in a scope: no time limit that is made in it ends after the deadline.
    ///
    /// The future itself has no time limit by that. For one, give it a
    /// [`timeout`](crate::timeout()) within the scope. A time limit that was made before is not
    /// changed. Tasks that the future spawns are outside of the scope: pass them
    /// [`current`](Self::current).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Deadline;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let request = Deadline::after(Duration::from_secs(5));
    /// let inner = request.scope(async {
    ///     let longer = Deadline::after(Duration::from_secs(60));
    ///     longer.scope(async { Deadline::current() }).await
    /// });
    /// assert_eq!(block_on(inner), Some(request));
    /// assert_eq!(Deadline::current(), None);
    /// ```
    pub fn scope<F: IntoFuture>(self, future: F) -> Scoped<F::IntoFuture> {
        Scoped { future: future.into_future(), inherited: Inherited::of(self.at) }
    }

    /// Calls `code` in a scope, as [`scope`](Self::scope) polls a future. For code that makes
    /// futures before they are polled. All that runs in the call inherits the deadline: also
    /// callbacks that a clock or a driver runs there, and the tasks that a runtime polls in its
    /// `block_on`.
    pub fn sync_scope<R>(self, code: impl FnOnce() -> R) -> R {
        Inherited::of(self.at).run(code)
    }

    /// Calls `code` in the scope of a deadline that is a time of `timer`'s clock.
    ///
    /// As [`sync_scope`](Self::sync_scope), where that clock is the one of the global `Timer`. If
    /// it is another one, the time limits of `Timer`s that go by that clock end at the deadline,
    /// and for all else, such as [`current`](Self::current), it is as far from now as it is by that
    /// clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{Deadline, ManualClock, Timer};
    ///
    /// let (limit, clock) = (Duration::from_secs(5), ManualClock::new());
    /// clock.advance(Duration::from_secs(3600));
    /// let timer = Timer::builder().clock(clock).build()?;
    /// let deadline = Deadline { at: timer.now() + limit };
    /// deadline.sync_scope_by(&timer, || {
    ///     let current = Deadline::current().expect("there is one");
    ///     assert!(current.remaining() <= limit);
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sync_scope_by<R>(self, timer: &crate::Timer, code: impl FnOnce() -> R) -> R {
        Inherited::by(timer.handle(), self.at).run(code)
    }

    /// Returns the time that is left as the value of gRPC's header
    /// [`grpc-timeout`](Self::GRPC_HEADER): at most eight digits, and the finest unit that they
    /// allow.
    ///
    /// It is rounded down, so it never grants more time than is left. If the deadline has passed, the
    /// value is the least that is valid, `1n`: gRPC's values are positive, and servers such as
    /// grpc-go's refuse a request with `0n`.
    ///
    /// # Examples
    ///
    /// ```
    /// use shardwheel::Deadline;
    ///
    /// let header = Deadline::parse("5S")?.header(); // such as 4999998u
    /// assert!(header.ends_with('u') && header.as_str() <= "5000000u");
    /// # Ok::<(), shardwheel::DeadlineError>(())
    /// ```
    #[must_use]
    pub fn header(self) -> String {
        let left = nanos(self.remaining());
        let has_eight_digits = |&(_, nanos): &(char, u64)| left / nanos < 100_000_000;
        let (unit, nanos) = units().find(has_eight_digits).expect("a hundred years are fewer hours");
        format!("{}{unit}", (left / nanos).max(1))
    }

    /// Returns the deadline that a value of gRPC's header gives, counted from now.
    ///
    /// A value of zero is not valid, but some clients send it for a deadline that has passed: it is
    /// read as that.
    ///
    /// # Errors
    ///
    /// [`DeadlineError`] unless the value has one to eight digits and then a unit: `n`, `u`, `m`,
    /// `S`, `M` or `H`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Deadline;
    ///
    /// assert!(Deadline::parse("250m")?.remaining() <= Duration::from_millis(250));
    /// let error = Deadline::parse("250ms").unwrap_err();
    /// let text = r#"the timeout is "250ms"; it must be 1 to 8 digits and a unit: n, u, m, S, M or H"#;
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), shardwheel::DeadlineError>(())
    /// ```
    pub fn parse(value: &str) -> Result<Self, DeadlineError> {
        let left = units().find_map(|(unit, nanos)| {
            let digits = value.strip_suffix(unit)?;
            let is_number = digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some(Duration::from_nanos(nanos) * is_number.then(|| digits.parse().ok())??)
        });
        // Another process has sent the value, so it may be long.
        let error = || DeadlineError { value: value.chars().take(40).collect() };
        left.map(Self::after).ok_or_else(error)
    }
}

/// The value of a header is not a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlineError {
    /// The value, or its first 40 characters.
    pub value: String,
}

impl fmt::Display for DeadlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the timeout is {:?}; it must be 1 to 8 digits and a unit: n, u, m, S, M or H", self.value)
    }
}

impl Error for DeadlineError {}
