//! Turns orders and payments, read or generated, into a ledger and a timeline for each producer.
//!
//! Records come one by one, and only their compact form is kept. A record that cannot be used is
//! reported with its line and its reason, counted, and skipped.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::args::{Args, ClockKind, STDIN};
use crate::input::{self, BadLine, InputError, Line, Reason, Record, Records};
use crate::ledger::{Item, Micros, Order, OrderRef, Page};
use crate::progress::Progress;
use crate::{Failure, Streams, slices};

/// The input of the job.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) pages: Vec<Page>,
    pub(crate) timelines: Vec<Timeline>,
    pub(crate) lines: Lines,
}

impl Loaded {
    pub(crate) fn order_count(&self) -> u64 {
        self.timelines.iter().map(|timeline| timeline.orders.len() as u64).sum()
    }
}

/// The numbers of lines, or of generated records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    pub(crate) orders: LineCount,
    pub(crate) payments: LineCount,
}

/// Lines of one kind, without headers and blank lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCount {
    pub(crate) read: u64,
    pub(crate) bad: u64,
}

/// The events of one producer, and their times.
#[derive(Clone, Default)]
pub(crate) struct Timeline {
    /// In the order in which they are placed.
    pub(crate) orders: Vec<PlannedOrder>,
    /// In the order in which they are taken.
    pub(crate) payments: Vec<PlannedPayment>,
}

/// An order of this producer's page, and when to place it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedOrder {
    pub(crate) at: Micros,
    pub(crate) slot: u32,
}

/// A payment for an order of this producer's page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedPayment {
    /// When the producer takes it: by the virtual clock, ahead of its date.
    pub(crate) at: Micros,
    /// Its date.
    pub(crate) paid_at: Micros,
    pub(crate) slot: u32,
    /// In cents.
    pub(crate) amount: u64,
}

/// Loads what the arguments ask for.
pub(crate) fn load(args: &Args, streams: &mut Streams<'_>) -> Result<Loaded, Failure> {
    let mut loader = Loader::new(args);
    let Some(orders) = &args.orders else {
        loader.generated(args);
        return Ok(loader.finish(args));
    };
    let progress = Progress::reading();
    let mut source = Source { name: orders.as_path(), err: streams.err, progress: &progress };
    loader.lines.orders = source.read(streams.input, |order| loader.order(order))?;
    if let Some(payments) = &args.payments {
        source.name = payments;
        loader.lines.payments = source.read(streams.input, |payment| loader.payment(payment))?;
    }
    progress.finish();
    Ok(loader.finish(args))
}

/// A file or standard input, and the stream for reports of bad lines.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a Path,
    pub(crate) err: &'a mut dyn Write,
    pub(crate) progress: &'a Progress,
}

impl Source<'_> {
    /// Passes each record to `enter`, which may refuse it as bad.
    pub(crate) fn read<T: Record>(
        &mut self,
        stdin: &mut dyn Read,
        mut enter: impl FnMut(T) -> Result<(), Reason>,
    ) -> Result<LineCount, Failure> {
        let mut count = LineCount::default();
        for line in Records::<_, T>::new(self.open(stdin)?) {
            let entered = line.and_then(|Line { number, record }| {
                enter(record).map_err(|reason| InputError::Bad(BadLine { number, reason }))
            });
            count.read += 1;
            self.progress.add(1);
            if let Err(error) = entered {
                self.report(error)?;
                count.bad += 1;
            }
        }
        Ok(count)
    }

    fn open<'i>(&self, stdin: &'i mut dyn Read) -> Result<Box<dyn Read + 'i>, Failure> {
        if self.name == Path::new(STDIN) {
            return Ok(Box::new(stdin));
        }
        let file = File::open(self.name).map_err(|error| Failure::File { name: self.name(), error })?;
        Ok(Box::new(file))
    }

    /// Prints a bad line; any other error ends the job.
    fn report(&mut self, error: InputError) -> Result<(), Failure> {
        let name = self.name();
        match error {
            InputError::Bad(bad) => self.print(format_args!("{name}: {bad}")),
            InputError::Header(error) => return Err(Failure::Header { name, error }),
            InputError::Io(error) => return Err(Failure::File { name, error }),
        }
        Ok(())
    }

    fn print(&mut self, text: fmt::Arguments<'_>) {
        // The totals count the line even if standard error is closed.
        self.progress.suspend(|| drop(writeln!(self.err, "{text}")));
    }

    fn name(&self) -> String {
        if self.name == Path::new(STDIN) {
            "standard input".to_owned()
        } else {
            self.name.display().to_string()
        }
    }
}

/// Enters records into pages and timelines. Times are in milliseconds until `finish` converts them.
struct Loader {
    pages: Vec<Page>,
    timelines: Vec<Timeline>,
    lines: Lines,
    stock: u64,
    items: HashMap<Box<str>, OrderRef>,
    orders: HashMap<Box<str>, Entered>,
}

/// An order that has been entered; its payments look it up.
#[derive(Clone, Copy)]
struct Entered {
    order: OrderRef,
    placed_at: u64,
}

impl Loader {
    fn new(args: &Args) -> Self {
        let producers = args.producer_count();
        let check_after = args.check_after.as_micros() as Micros;
        Self {
            pages: (0..producers).map(|_| Page::new(check_after)).collect(),
            timelines: (0..producers).map(|_| Timeline::default()).collect(),
            lines: Lines::default(),
            stock: args.stock,
            items: HashMap::new(),
            orders: HashMap::new(),
        }
    }

    fn generated(&mut self, args: &Args) {
        let progress = Progress::generating(args.count);
        let data_set = args.data_set();
        self.lines.orders = progress.count(data_set.orders(), |order| self.order(order));
        self.lines.payments = progress.count(data_set.payments(), |payment| self.payment(payment));
        progress.finish();
    }

    fn order(&mut self, order: input::Order) -> Result<(), Reason> {
        let input::Order { id, item, quantity, amount, placed_at } = order;
        if self.orders.contains_key(id.as_str()) {
            return Err(Reason::DuplicateOrder { id });
        }
        let item = self.item(item);
        let page = &mut self.pages[item.page as usize];
        let slot = u32::try_from(page.orders.len()).map_err(|_| Reason::LedgerFull { limit: u32::MAX })?;
        page.orders.push(Order::planned(item.slot, quantity, amount));
        self.timelines[item.page as usize].orders.push(PlannedOrder { at: placed_at, slot });
        let order = OrderRef { page: item.page, slot };
        self.orders.insert(id.into(), Entered { order, placed_at });
        Ok(())
    }

    /// The page and the slot of an item. New items go to the pages in turn.
    fn item(&mut self, name: String) -> OrderRef {
        if let Some(&known) = self.items.get(name.as_str()) {
            return known;
        }
        let page = self.items.len() % self.pages.len();
        let items = &mut self.pages[page].items;
        // A page has no more items than orders.
        let place = OrderRef { page: page as u32, slot: items.len() as u32 };
        items.push(Item { stock: self.stock, ..Item::default() });
        self.items.insert(name.into(), place);
        place
    }

    /// A payment dated before its order comes in together with the order.
    fn payment(&mut self, payment: input::Payment) -> Result<(), Reason> {
        let input::Payment { order_id, amount, paid_at } = payment;
        let Some(&Entered { order, placed_at }) = self.orders.get(order_id.as_str()) else {
            return Err(Reason::UnknownOrder { id: order_id });
        };
        let payment = PlannedPayment { at: placed_at, paid_at, slot: order.slot, amount };
        self.timelines[order.page as usize].payments.push(payment);
        Ok(())
    }

    fn finish(self, args: &Args) -> Loaded {
        let Self { pages, mut timelines, lines, .. } = self;
        let lead = match args.clock {
            ClockKind::Virtual => slices::lead(args.check_after.as_micros() as Micros),
            ClockKind::Real => 0,
        };
        schedule(&mut timelines, lead, args.effective_speed());
        Loaded { pages, timelines, lines }
    }
}

/// Sorts timelines and makes them start at the first order. Their times are in ms, and the
/// payments' `at` are the dates of their orders. Payments are taken `lead` ahead of their dates,
/// but not before their orders. Records with the same time keep their order.
pub(crate) fn schedule(timelines: &mut [Timeline], lead: Micros, speed: f64) {
    let first = timelines.iter().flat_map(|timeline| &timeline.orders).map(|order| order.at).min();
    let since_first = |millis: u64| scaled((millis - first.unwrap_or(0)) * 1_000, speed);
    for Timeline { orders, payments } in timelines {
        orders.sort_by_key(|order| order.at);
        payments.sort_by_key(|payment| payment.paid_at.max(payment.at));
        orders.iter_mut().for_each(|order| order.at = since_first(order.at));
        for payment in payments.iter_mut() {
            let placed_at = payment.at;
            payment.paid_at = since_first(payment.paid_at.max(placed_at));
            payment.at = payment.paid_at.saturating_sub(lead).max(since_first(placed_at));
        }
        payments.sort_by_key(|payment| payment.at);
    }
}

/// Exact at speed 1, the speed of the virtual clock.
fn scaled(micros: Micros, speed: f64) -> Micros {
    if speed == 1.0 { micros } else { (micros as f64 / speed) as Micros }
}
