//! The checker: drives the timers' clock, and checks the orders that are due.

use shardwheel::Stats;

use crate::clock;
use crate::engine::{Costs, Driver};
use crate::ledger::{Micros, OrderRef};
use crate::producer::Setting;

/// Largest number of checks taken from the engine in one call. The heap's lock is held for one
/// batch at a time.
const BATCH: usize = 256;

/// The single thread that has the engine's driver.
pub(crate) struct Checker<'a, D> {
    setting: Setting<'a>,
    driver: D,
    due: Vec<OrderRef>,
    costs: Costs,
}

/// What was measured during the job.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) costs: Costs,
    /// How late each check was; empty for the virtual clock, where lateness means nothing.
    pub(crate) lateness: Vec<Micros>,
    /// The statistics of a `Timer`, if the engine is one.
    pub(crate) stats: Option<Stats>,
}

impl<'a, D: Driver> Checker<'a, D> {
    pub(crate) fn new(setting: Setting<'a>, driver: D) -> Self {
        Self { setting, driver, due: Vec::with_capacity(BATCH), costs: Costs::default() }
    }

    /// Advances to `now`, and checks what is due by then.
    pub(crate) fn advance(&mut self, now: Micros) {
        let mut more = true;
        while more {
            let Self { driver, due, costs, .. } = self;
            more = costs.fire.time(|| driver.advance(clock::tick_at(now), BATCH, due));
            costs.fire.count(due.len());
            self.check(now);
        }
    }

    fn check(&mut self, now: Micros) {
        let Setting { ledger, progress, .. } = self.setting;
        progress.add(self.due.len() as u64);
        for order in self.due.drain(..) {
            ledger.page(order.page).check(order.slot, now);
        }
    }

    /// When the next check is due, or a little earlier.
    pub(crate) fn next_expiration(&mut self) -> Option<Micros> {
        let driver = &mut self.driver;
        self.costs.fire.time(|| driver.next_expiration()).map(clock::start_of)
    }

    /// The measurements of this thread and of the producers.
    pub(crate) fn finish(self, producers: impl IntoIterator<Item = Costs>) -> Measured {
        let mut costs = self.costs;
        producers.into_iter().for_each(|theirs| costs += theirs);
        Measured { costs, lateness: Vec::new(), stats: None }
    }
}
