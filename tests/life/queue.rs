//! Values that come back days later.

use std::time::Duration;

use shardwheel::{DelayQueue, QueueKey, Timer};

use crate::books::{Books, TICK};

/// Values in the queue, at most.
const VALUES: usize = 3_000;

pub(crate) struct Queue {
    queue: DelayQueue<u64>,
    /// What is in the queue by the books: the key, the value, and when it is due.
    held: Vec<(QueueKey, u64, Duration)>,
    inserted: u64,
    received: u64,
}

impl Queue {
    pub(crate) fn new(timer: &Timer) -> Self {
        Self { queue: DelayQueue::new(timer), held: Vec::new(), inserted: 0, received: 0 }
    }

    /// What happens in a minute: what is due is received, then others come, move and go.
    pub(crate) fn act(&mut self, books: &Books, random: &mut fastrand::Rng) {
        self.receive(books);
        for _ in 0..random.usize(..6) {
            self.insert(books, random);
        }
        if self.held.is_empty() {
            return;
        }
        let nth = random.usize(..self.held.len());
        let (key, value, due) = &mut self.held[nth];
        if random.bool() {
            let delay = delay(random);
            assert!(self.queue.reset(key, delay), "what has not been received can be moved");
            *due = books.clock.elapsed() + delay;
        } else {
            assert_eq!(self.queue.remove(key), Some(*value));
            self.held.swap_remove(nth);
        }
    }

    fn insert(&mut self, books: &Books, random: &mut fastrand::Rng) {
        if self.held.len() < VALUES {
            let delay = delay(random);
            let key = self.queue.insert(self.inserted, delay).expect("it is open");
            self.held.push((key, self.inserted, books.clock.elapsed() + delay));
            self.inserted += 1;
        }
    }

    fn receive(&mut self, books: &Books) {
        let now = books.clock.elapsed();
        while let Some(expired) = self.queue.try_recv() {
            let nth = self.held.iter().position(|(key, ..)| *key == expired.key).expect("it is held once");
            let (_, value, due) = self.held.swap_remove(nth);
            assert!(value == expired.value && due <= now, "due at {due:?}, received at {now:?}");
            self.received += 1;
        }
        assert!(self.held.iter().all(|(.., due)| now < *due + TICK), "something is overdue at {now:?}");
        assert_eq!(self.queue.len(), self.held.len());
    }

    /// The values that wait for their timers; those that have expired have none.
    pub(crate) fn pending(&self) -> u64 {
        self.held.len() as u64
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// After the timer's end all values are there.
    pub(crate) fn end(self) {
        let left = std::iter::from_fn(|| self.queue.try_recv()).count() + self.queue.unexpired().count();
        assert_eq!(left, self.held.len());
    }
}

fn delay(random: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(random.u64(1..3 * 24 * 3_600_000))
}
