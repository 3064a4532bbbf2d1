//! All clients, in one thread. That thread is one more event loop with a shard; its timers decide
//! which client sends next.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use mio::{Registry, Token};

use super::client::{Client, Outcome, Role, Seen};
use super::clock::{Clock, Moment};
use super::event_loop::{EventLoop, Handle};

/// How long to wait for clients that should have ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// The seed of the clients' random choices.
const SEED: u64 = 1;

/// The plan for the clients.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) idle_timeout: Duration,
    /// How long the talkers keep talking.
    pub(crate) talk: Duration,
}

/// What happened to the clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Story {
    /// Clients whose role is to fall silent.
    pub(crate) silent: u64,
    pub(crate) closed_silent: u64,
    pub(crate) closed_late: u64,
    pub(crate) left: u64,
    pub(crate) cut: u64,
    pub(crate) seen: Seen,
}

/// The next event for one client, or for all.
#[derive(Clone, Copy, Debug)]
enum Act {
    Arrive(usize),
    Speak(usize),
    Leave,
    GiveUp,
}

struct Stage {
    plan: Plan,
    clock: Clock,
    handle: Handle<Act>,
    registry: Registry,
    rng: Rng,
    clients: HashMap<usize, Client>,
    /// Clients that have not ended, including those that have not arrived yet.
    left_over: usize,
    given_up: bool,
    story: Story,
}

/// Plays the clients to their ends.
pub(crate) fn play(plan: Plan, clock: &Clock) -> io::Result<Story> {
    let (mut event_loop, handle) = EventLoop::new(clock)?;
    let mut stage = Stage::new(plan, clock.clone(), handle, event_loop.registry().try_clone()?);
    stage.prepare();
    while stage.left_over > 0 && !stage.given_up {
        event_loop.sleep()?;
        let mut result = Ok(());
        event_loop.fire(|fired| {
            if result.is_ok() {
                result = stage.act(fired.payload);
            }
        });
        result?;
        event_loop.ready().for_each(|token| stage.listen(token));
    }
    Ok(stage.story)
}

impl Stage {
    fn new(plan: Plan, clock: Clock, handle: Handle<Act>, registry: Registry) -> Self {
        let (rng, clients, left_over) = (Rng::with_seed(SEED), HashMap::new(), plan.clients);
        let story = Story::default();
        Self { plan, clock, handle, registry, rng, clients, left_over, given_up: false, story }
    }

    /// Clients arrive within the first half of the time.
    fn prepare(&mut self) {
        let now = self.clock.now();
        for index in 0..self.plan.clients {
            let arrival = self.part_of(self.plan.talk / 2);
            self.schedule(now + arrival, Act::Arrive(index));
        }
        self.schedule(now + self.plan.talk, Act::Leave);
        self.schedule(now + self.plan.talk + self.plan.idle_timeout + PATIENCE, Act::GiveUp);
    }

    fn schedule(&self, due: Moment, act: Act) {
        self.handle.schedule(due, act).expect("the shard is this thread's own, and takes any number");
    }

    fn part_of(&mut self, whole: Duration) -> Duration {
        whole.mul_f64(self.rng.f64())
    }

    fn act(&mut self, act: Act) -> io::Result<()> {
        match act {
            Act::Arrive(index) => self.arrive(index)?,
            Act::Speak(index) => self.speak(index),
            Act::Leave => self.clients.values_mut().for_each(Client::leave),
            Act::GiveUp => self.given_up = true,
        }
        Ok(())
    }

    fn arrive(&mut self, index: usize) -> io::Result<()> {
        let role = Role::nth(index, &mut self.rng);
        self.story.silent += u64::from(matches!(role, Role::Silent { .. }));
        let Plan { ref addresses, idle_timeout, .. } = self.plan;
        let address = addresses[self.rng.usize(..addresses.len())];
        let place = (&self.registry, Token(index));
        let client = Client::connect(role, address, place, idle_timeout, self.clock.now())?;
        self.clients.insert(index, client);
        self.speak(index);
        Ok(())
    }

    /// Pauses are shorter than half an idle timeout, so the server closes only a talking client
    /// that is itself late.
    fn speak(&mut self, index: usize) {
        let now = self.clock.now();
        let Some(client) = self.clients.get_mut(&index) else { return };
        if client.speak(now, &mut self.rng, &mut self.story.seen) {
            let pause = self.part_of(self.plan.idle_timeout / 2);
            self.schedule(now + pause, Act::Speak(index));
        }
    }

    fn listen(&mut self, token: Token) {
        let Token(index) = token;
        let Some(mut client) = self.clients.remove(&index) else { return };
        match client.listen(|| self.clock.now(), &mut self.story.seen) {
            Some(outcome) => {
                client.retire(&self.registry);
                self.left_over -= 1;
                self.story.count(outcome);
            }
            None => drop(self.clients.insert(index, client)),
        }
    }
}

impl Story {
    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::ClosedSilent => &mut self.closed_silent,
            Outcome::ClosedLate => &mut self.closed_late,
            Outcome::Left => &mut self.left,
            Outcome::Cut => &mut self.cut,
        } += 1;
    }
}
