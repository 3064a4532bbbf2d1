//! When a recurring timer is due next. The thread that runs the timer's callback asks its schedule.

use crate::time::{Duration, Instant};

/// Decides when a recurring timer is due, one occurrence after the other; for
/// [`Timer::schedule_with`](crate::Timer::schedule_with).
///
/// A closure `FnMut(Instant) -> Option<Instant>` is a schedule as well.
///
/// Missed occurrences run in the order of their times, before later timers of the same shard. If a
/// schedule's occurrences come faster than they run, the other timers of its shard become later and
/// later. A schedule that reads the real time stays behind a [`ManualClock`](crate::ManualClock)
/// that was moved further: the clock's `advance` returns only when the schedule has caught up.
/// [`Every`] with [`Missed::Skip`] avoids both.
///
/// # Examples
///
/// Three occurrences, with longer and longer gaps:
///
/// ```
/// use std::time::{Duration, Instant};
/// use shardwheel::{ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let mut gaps = [1, 10, 100].map(Duration::from_secs).into_iter();
/// let backoff = move |previous: Instant| gaps.next().map(|gap| previous + gap);
/// timer.schedule_with(backoff, || println!("try again"))?;
///
/// clock.advance(Duration::from_secs(1_000));
/// assert_eq!(timer.stats().fired, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Schedule: Send + 'static {
    /// Returns when the timer is due next, or `None` to end it.
    ///
    /// `previous` is when the timer was due before. At first it is the time of the call that
    /// schedules the timer. A moment that has passed is due at once.
    fn next(&mut self, previous: Instant) -> Option<Instant>;

    /// As [`next`](Self::next), for a schedule that also depends on `now`, the time after the
    /// callback returned. By default calls `next`.
    fn next_after(&mut self, previous: Instant, now: Instant) -> Option<Instant> {
        let _ = now;
        self.next(previous)
    }

    /// Returns whether to call the callback, at a time that the schedule has returned. By default
    /// true.
    ///
    /// If it returns false, the callback is not called, and [`next_after`](Self::next_after)
    /// follows as if it had returned. So a schedule can look at something between two occurrences,
    /// as [`WallSchedule`](crate::WallSchedule) does. It is called on the thread that would run the
    /// callback, just before. The `Timer`'s statistics count the occurrence all the same.
    fn is_due(&mut self) -> bool {
        true
    }
}

impl<F> Schedule for F
where
    F: FnMut(Instant) -> Option<Instant> + Send + 'static,
{
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        self(previous)
    }
}

/// What happens to missed occurrences.
///
/// Occurrences are missed if the callback runs for longer than the period, the thread is stalled,
/// or the machine is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// Makes up for them, one after the other without a pause: there are as many occurrences as
    /// periods.
    #[default]
    Burst,
    /// Leaves them out. The next occurrence is the first from now on that lies a whole number of
    /// periods after the last due time.
    Skip,
    /// Leaves them out. The next occurrence is one period from now, and later ones follow from
    /// there.
    Delay,
}

/// Repeats at a fixed rate: one occurrence every period.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{Every, Missed, Timer};
///
/// let timer = Timer::builder().build()?;
/// let refresh = Every::new(Duration::from_secs(30)).missed(Missed::Skip);
/// timer.schedule_with(refresh, || println!("refresh"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    period: Duration,
    pub(crate) missed: Missed,
}

impl Every {
    /// Makes a schedule with one occurrence every `period`, the first after one period. Missed
    /// occurrences are made up for. A period of zero yields no occurrence.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        Self { period, missed: Missed::Burst }
    }

    /// Sets what happens to missed occurrences.
    #[must_use]
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Returns the time between two occurrences.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

impl Schedule for Every {
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        if self.period.is_zero() { None } else { previous.checked_add(self.period) }
    }

    fn next_after(&mut self, previous: Instant, now: Instant) -> Option<Instant> {
        let next = self.next(previous)?;
        match self.missed {
            _ if next >= now => Some(next),
            Missed::Burst => Some(next),
            Missed::Skip => {
                let period = self.period.as_nanos();
                let passed = now.saturating_duration_since(previous).as_nanos();
                let ahead = passed.next_multiple_of(period) - passed;
                // What is further away than 584 years never comes.
                now.checked_add(Duration::from_nanos(u64::try_from(ahead).ok()?))
            }
            Missed::Delay => now.checked_add(self.period),
        }
    }
}
