//! The report: a table, and what must hold for it.

use std::fmt;
use std::time::Duration;

use super::crowd::Story;
use super::tally::Tally;

/// One run: the parameters, the server's counts, and the clients' observations.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) threads: usize,
    pub(crate) clients: usize,
    pub(crate) talk: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) tally: Tally,
    pub(crate) story: Story,
}

impl Report {
    pub(crate) fn all_hold(&self) -> bool {
        self.identities().iter().all(|&(_, holds)| holds)
    }

    /// The identities, and whether each holds.
    pub(crate) fn identities(&self) -> [(&'static str, bool); 6] {
        let Self { tally, story, .. } = self;
        [
            ("every client was let in, and its connection ended once", self.connections_hold()),
            ("every client that fell silent was closed by its timer", self.closes_hold()),
            ("every packet was heard", tally.packets == story.seen.packets),
            ("every reminder fired once, in the next thread, and came back", self.reminders_hold()),
            ("nothing fired early, by the server's times and by its clients'", self.early() == 0),
            ("no timer outlived its connection", tally.strays == 0),
        ]
    }

    fn early(&self) -> u64 {
        self.tally.firings.early + self.story.seen.early
    }

    fn connections_hold(&self) -> bool {
        let Self { tally, story, clients, .. } = self;
        let by_server = tally.idle_closes + tally.goodbyes;
        let by_clients = story.closed_silent + story.closed_late + story.left;
        [tally.connections, by_server, by_clients].iter().all(|&count| count == *clients as u64)
    }

    fn closes_hold(&self) -> bool {
        let Self { tally, story, .. } = self;
        story.closed_silent == story.silent && tally.idle_closes == story.closed_silent + story.closed_late
    }

    /// A reminder is missing only if its client was closed before it.
    fn reminders_hold(&self) -> bool {
        let (reminders, seen) = (self.tally.reminders, self.story.seen);
        reminders.asked == reminders.fired + reminders.unfired
            && reminders.fired == reminders.across
            && reminders.fired == reminders.delivered + reminders.undelivered
            && reminders.delivered == seen.reminded
            && reminders.undelivered + reminders.unfired <= seen.forgone
            && seen.asked == seen.reminded + seen.forgone
            && seen.strays == 0
    }

    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tally, story, .. } = self;
        row(f, "connections", tally.connections)?;
        row(f, "  closed by their idle timers", tally.idle_closes)?;
        row(f, "    though they meant to talk", story.closed_late)?;
        row(f, "  ended by their clients", tally.goodbyes)?;
        row(f, "packets", tally.packets)?;
        row(f, "reminders asked for", tally.reminders.asked)?;
        row(f, "  fired in the next thread", tally.reminders.across)?;
        row(f, "  delivered", tally.reminders.delivered)
    }

    fn write_firings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lateness = &self.tally.firings.lateness;
        row(f, "early firings", self.early())?;
        let values = [
            ("p50", lateness.value_at_quantile(0.5)),
            ("p99", lateness.value_at_quantile(0.99)),
            ("max", lateness.max()),
        ];
        for (name, micros) in values {
            writeln!(f, "{:<32}{:>10.3} ms", format!("lateness {name}"), micros as f64 / 1_000.0)?;
        }
        Ok(())
    }

    fn write_wakeups(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wakeups = self.tally.wakeups;
        row(f, "poll wake-ups", wakeups.all)?;
        row(f, "  by another thread", wakeups.by_others)?;
        row(f, "  with nothing to do", wakeups.for_nothing)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, clients, talk, idle_timeout, tally, .. } = self;
        let pinned = tally.pinned;
        writeln!(
            f,
            "{threads} threads ({pinned} pinned), {clients} clients, {talk:?} of talk, idle timeout {idle_timeout:?}\n"
        )?;
        self.write_counts(f)?;
        self.write_firings(f)?;
        self.write_wakeups(f)?;
        writeln!(f)?;
        for (name, holds) in self.identities() {
            writeln!(f, "{:<8}{name}", if holds { "holds" } else { "BROKEN" })?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64) -> fmt::Result {
    writeln!(f, "{name:<32}{count:>10}")
}

#[cfg(test)]
mod tests {
    use super::super::client::Seen;
    use super::super::tally::Reminders;
    use super::*;

    fn balanced() -> Report {
        let reminders = Reminders { asked: 5, fired: 5, across: 5, delivered: 5, ..Reminders::default() };
        let tally =
            Tally { connections: 3, packets: 9, idle_closes: 1, goodbyes: 2, reminders, ..Tally::default() };
        let seen = Seen { packets: 9, asked: 5, reminded: 5, ..Seen::default() };
        let story = Story { silent: 1, closed_silent: 1, left: 2, seen, ..Story::default() };
        let (talk, idle_timeout) = (Duration::from_secs(1), Duration::from_millis(100));
        Report { threads: 2, clients: 3, talk, idle_timeout, tally, story }
    }

    /// The number of identities that a change breaks.
    fn broken_by(change: impl FnOnce(&mut Report)) -> usize {
        let mut report = balanced();
        change(&mut report);
        report.identities().iter().filter(|&&(_, holds)| !holds).count()
    }

    #[test]
    fn what_balances_holds() {
        assert_eq!(broken_by(|_| ()), 0);
        assert!(balanced().all_hold());
    }

    #[test]
    fn each_count_that_is_off_breaks_an_identity() {
        assert_eq!(broken_by(|report| report.tally.connections += 1), 1);
        assert_eq!(broken_by(|report| report.tally.packets -= 1), 1);
        assert_eq!(broken_by(|report| report.tally.firings.early += 1), 1);
        assert_eq!(broken_by(|report| report.story.seen.early += 1), 1);
        assert_eq!(broken_by(|report| report.tally.strays += 1), 1);
        assert_eq!(broken_by(|report| report.tally.reminders.across -= 1), 1);
        assert_eq!(broken_by(|report| report.tally.reminders.fired += 1), 1);
        assert_eq!(broken_by(|report| report.story.seen.reminded += 1), 1);
        assert_eq!(broken_by(|report| report.story.seen.strays += 1), 1);
        assert!(broken_by(|report| report.story.closed_silent -= 1) > 0);
        assert!(broken_by(|report| report.story.left -= 1) > 0);
    }

    #[test]
    fn a_client_that_was_late_itself_breaks_none() {
        let closed = |report: &mut Report| {
            report.story.left -= 1;
            report.story.closed_late += 1;
            report.story.seen.reminded -= 1;
            report.story.seen.forgone += 1;
            report.tally.goodbyes -= 1;
            report.tally.idle_closes += 1;
            report.tally.reminders.delivered -= 1;
            report.tally.reminders.undelivered += 1;
        };
        assert_eq!(broken_by(closed), 0);
    }
}
