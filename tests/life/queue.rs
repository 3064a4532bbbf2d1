//! Values that come back days later.

use shardwheel::{DelayQueue, QueueKey, Tick, Timer};

use crate::support::ms;

/// Values in the queue, at most.
const VALUES: usize = 3_000;

pub(crate) struct Queue {
    queue: DelayQueue<u64>,
    /// What is in the queue: the key, the value, and the millisecond at which it is due.
    held: Vec<(QueueKey, u64, Tick)>,
    inserted: u64,
}

impl Queue {
    pub(crate) fn new(timer: &Timer) -> Self {
        Self { queue: DelayQueue::new(timer), held: Vec::new(), inserted: 0 }
    }

    /// What happens in a minute: what is due is received, then others come, move and go.
    pub(crate) fn act(&mut self, now: Tick, random: &mut fastrand::Rng) {
        self.receive(now);
        for _ in 0..random.usize(..6).min(VALUES - self.held.len()) {
            let delay = delay(random);
            let key = self.queue.insert(self.inserted, ms(delay)).expect("it is open");
            self.held.push((key, self.inserted, now + delay));
            self.inserted += 1;
        }
        if self.held.is_empty() {
            return;
        }
        let nth = random.usize(..self.held.len());
        let (key, value, due) = &mut self.held[nth];
        if random.bool() {
            let delay = delay(random);
            assert!(self.queue.reset(key, ms(delay)), "what has not been received can be moved");
            *due = now + delay;
        } else {
            assert_eq!(self.queue.remove(key), Some(*value));
            self.held.swap_remove(nth);
        }
    }

    /// Receives what is due.
    pub(crate) fn receive(&mut self, now: Tick) {
        while let Some(expired) = self.queue.try_recv() {
            let nth = self.held.iter().position(|(key, ..)| *key == expired.key).expect("it is held once");
            let (_, value, due) = self.held.swap_remove(nth);
            assert!(value == expired.value && due <= now, "due at {due}, received at {now}");
        }
        assert!(self.held.iter().all(|(.., due)| now < *due), "something is overdue at {now}");
        assert_eq!(self.queue.len(), self.held.len());
    }

    /// Values that are not received yet.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// After the timer's end all values are there.
    pub(crate) fn end(self) {
        let left = std::iter::from_fn(|| self.queue.try_recv()).count() + self.queue.unexpired().count();
        assert_eq!(left, self.held.len());
    }
}

/// Milliseconds, of three days at most.
fn delay(random: &mut fastrand::Rng) -> Tick {
    random.u64(1..3 * 24 * 3_600_000)
}
