use std::collections::BTreeMap;

use order_reconciliation::outcomes::{MadePayment, PlacedOrder};
use redb::backends::InMemoryBackend;

use crate::store::Disk;

use super::*;

const SHOP: Shop = Shop { stock: 10, check_after: 100, in_memory: usize::MAX };

fn order(order_id: u64) -> Result<NewOrder, Answer> {
    Ok(NewOrder { order_id, item: "nut".to_owned(), quantity: 1, amount_cents: 5 })
}

fn payment(payment_id: &str, order_id: u64) -> Result<NewPayment, Answer> {
    Ok(NewPayment { payment_id: payment_id.to_owned(), order_id, item: None, amount_cents: 5 })
}

/// The answer to the only line, and the time of the check.
fn place(books: &mut Books, store: &Disk, order_id: u64, now: u64) -> (Status, Option<u64>) {
    let placed = books.place(store, vec![order(order_id)], now).expect("the store is read");
    (placed[0].status, placed[0].check_at)
}

fn pay(books: &mut Books, store: &Disk, payment_id: &str, order_id: u64) -> Status {
    books.pay_line(store, payment(payment_id, order_id), 9).expect("the store is read").status
}

/// A group that is decided may be on its way to the store while the next one is decided.
#[test]
fn what_is_on_its_way_to_the_store_is_known() {
    let store = Disk::on(InMemoryBackend::new()).expect("a new store");
    let mut books = Books::recover(SHOP, &store, 0).expect("the store is read");
    assert_eq!(place(&mut books, &store, 1, 7), (Status::Placed, Some(107)));
    assert_eq!(pay(&mut books, &store, "p-1", 1), Status::Counted);
    let changes = books.take_changes(9);
    assert_eq!((changes.ended.len(), changes.payments.len()), (1, 1));
    let repeated = |books: &mut Books| {
        let order = place(books, &store, 1, 8);
        (order, pay(books, &store, "p-1", 1), pay(books, &store, "p-2", 1))
    };
    let known = ((Status::Duplicate, Some(107)), Status::Duplicate, Status::Late);
    assert_eq!(repeated(&mut books), known, "before its commit");
    store.commit(&changes).expect("a commit");
    assert!(books.take_changes(10).is_empty());
    assert_eq!(repeated(&mut books), known, "after it");
    assert_eq!(books.stock("nut"), Stock { stock: 10, reserved: 0, sold: 1 });
}

/// A wait that ends beyond any time there is never ends, also after a restart; no wait ends early.
#[test]
fn no_wait_is_too_long() {
    const MILLION_YEARS: u64 = 1_000_000 * 365 * 24 * 3_600_000;
    for check_after in [1, MILLION_YEARS, u64::MAX - 8, u64::MAX - 7, u64::MAX] {
        let (store, shop) =
            (Disk::on(InMemoryBackend::new()).expect("a new store"), Shop { check_after, ..SHOP });
        let mut books = Books::recover(shop, &store, 3).expect("the store is read");
        let check_at = 7_u64.saturating_add(check_after);
        assert_eq!(place(&mut books, &store, 1, 7), (Status::Placed, Some(check_at)));
        store.commit(&books.take_changes(7)).expect("a commit");
        let restarted = Books::recover(shop, &store, 8.min(check_at)).expect("the store is read");
        for mut books in [books, restarted] {
            for now in [8, check_at - 1, check_at].map(|now| now.min(check_at)) {
                let more = books.check(&store, now, 9, |_| panic!("{check_after} is over at {now}"));
                assert!(!more.expect("the store is read"));
            }
            let mut checks = 0;
            books.check(&store, check_at.saturating_add(1), 9, |_| checks += 1).expect("the store is read");
            assert_eq!(checks, u64::from(check_at < u64::MAX), "{check_after}");
        }
    }
}

/// What is overdue at the start does not come before what falls due, and is read part by part.
#[test]
fn what_is_overdue_is_not_before_what_falls_due() {
    let store = Disk::on(InMemoryBackend::new()).expect("a new store");
    let order = |(order_id, check_at)| {
        let item = "nut".to_owned();
        Open { order_id, item, quantity: 1, amount: 5, paid: 0, placed_at: 0, check_at }
    };
    let open = [(1, 7), (2, 99), (3, 100), (4, 150)].map(order).to_vec();
    store.commit(&Changes { open, ..Changes::default() }).expect("a commit");
    let mut books = Books::recover(SHOP, &store, 100).expect("the store is read");
    let mut checks = |now, late: bool| {
        let mut made = Vec::new();
        let done = |checked| made.push(checked);
        if late {
            books.catch_up(&store, now, 1, done).expect("the store is read");
        } else {
            books.check(&store, now, 9, done).expect("the store is read");
        }
        (made, books.is_behind(), books.pending())
    };
    let [missed, met] = [true, false].map(|missed| move |late| vec![Checked { late, missed }]);
    assert_eq!(checks(100, false), (vec![], true, 4), "a payment at this instant counts");
    assert_eq!(checks(101, false), (met(0), true, 3));
    assert_eq!(checks(102, true), (missed(94), true, 2));
    assert_eq!(checks(102, true), (missed(2), true, 1));
    assert_eq!(checks(102, true), (vec![], false, 1));
    assert_eq!(checks(151, false), (met(0), false, 0));
}

/// A shop whose commits are a step behind its decisions, as those of the writer are.
struct Shopkeeper {
    shop: Shop,
    store: Disk,
    books: Books,
    /// The commit that is on its way.
    changes: Changes,
    ends: BTreeMap<u64, (&'static str, u64)>,
}

impl Shopkeeper {
    fn new(shop: Shop) -> Self {
        let store = Disk::on(InMemoryBackend::new()).expect("a new store");
        let books = Books::recover(shop, &store, 0).expect("the store is read");
        Self { shop, store, books, changes: Changes::default(), ends: BTreeMap::new() }
    }

    fn commit(&mut self) {
        let changes = mem::take(&mut self.changes);
        let ends = changes.ended.iter();
        self.ends.extend(ends.map(|end| (end.order.order_id, (end.state.name(), end.decided_at))));
        if !changes.is_empty() {
            self.store.commit(&changes).expect("a commit");
        }
    }

    fn hand_over(&mut self, now: u64) {
        self.commit();
        self.changes = self.books.take_changes(now);
    }

    fn restart(&mut self, check_after: u64, now: u64) {
        (self.shop.check_after, self.changes) = (check_after, Changes::default());
        self.books = Books::recover(self.shop, &self.store, now).expect("the store is read");
    }

    /// Does something, and says what anybody can see of it.
    fn act(&mut self, rng: &mut fastrand::Rng, now: u64) -> String {
        let Self { store, books, .. } = self;
        books.check(store, now, usize::MAX, |_| ()).expect("the store is read");
        let item = |rng: &mut fastrand::Rng| format!("item-{}", rng.u8(0..3));
        let order_id = rng.u64(1..80);
        match rng.u8(0..12) {
            0..4 => {
                let (quantity, amount_cents) = (rng.u32(1..3), rng.u64(0..3));
                let order = |order_id| Ok(NewOrder { order_id, item: item(rng), quantity, amount_cents });
                let orders = (order_id..order_id + 4).map(order).collect::<Vec<_>>();
                format!("{:?}", books.place(store, orders, now).expect("the store is read"))
            }
            4..7 => {
                let (payment_id, amount_cents) = (rng.u8(..).to_string(), rng.u64(0..3));
                let payment = NewPayment { payment_id, order_id, item: None, amount_cents };
                format!("{:?}", books.pay_line(store, Ok(payment), now).expect("the store is read"))
            }
            7 => {
                books.catch_up(store, now, rng.usize(1..4), |_| ()).expect("the store is read");
                String::new()
            }
            8 => {
                if books.has_room() {
                    books.read_on(store).expect("the store is read");
                }
                String::new()
            }
            9 => {
                if rng.bool() {
                    self.commit();
                }
                self.restart(rng.u64(1..40), now);
                String::new()
            }
            _ => {
                self.hand_over(now);
                String::new()
            }
        }
    }

    fn stored(&self, order_id: u64) -> Option<Open> {
        let is_ended = self.books.fresh.end_of(order_id).is_some();
        if is_ended { None } else { self.store.open(order_id).expect("the store is read") }
    }

    /// All that can be asked.
    fn seen(&self) -> String {
        let Self { books, .. } = self;
        let stock = (0..3).map(|number| books.stock(&format!("item-{number}"))).collect::<Vec<_>>();
        // As the handlers ask, but that they are answered after the commit.
        let order = |order_id| books.order(order_id).or_else(|| self.stored(order_id));
        let orders = (1..84).filter_map(order).collect::<Vec<_>>();
        assert_eq!(orders.len(), books.pending());
        format!("{stock:?} {orders:?} {:?}", self.ends)
    }
}

/// However few orders are in memory, nobody can tell: not from the answers, nor from the ends and their
/// times, over restarts with longer and shorter waits.
#[test]
fn few_orders_in_memory_decide_as_all_do() {
    for seed in 0..100 {
        let all = Shop { stock: 30, check_after: 20, in_memory: usize::MAX };
        let shops = [usize::MAX, 0, 1, 4, 13].map(|in_memory| Shop { in_memory, ..all });
        let mut shops = shops.map(Shopkeeper::new);
        let (mut now, mut pace) = (1, fastrand::Rng::with_seed(seed));
        for step in 0..200 {
            now += pace.u64(0..3) * pace.u64(0..3);
            let acted = shops.each_mut().map(|shop| {
                let answers = shop.act(&mut fastrand::Rng::with_seed(1_000 * seed + step), now);
                answers + &shop.seen()
            });
            for (shop, seen) in shops.iter().zip(&acted).skip(1) {
                assert_eq!(*seen, acted[0], "seed {seed}, step {step}, {} in memory", shop.shop.in_memory);
            }
        }
    }
}

/// Ten thousand orders pass, and the memory has as many as it shall, a part, and those of two commits.
#[test]
fn the_memory_has_no_more_orders_than_it_shall() {
    const EACH: u64 = 10;
    let shop = Shop { stock: 10_000, check_after: 500, in_memory: 50 };
    let most = shop.in_memory + 25 + 2 * EACH as usize;
    let (mut keeper, mut checks) = (Shopkeeper::new(shop), 0);
    for now in 1..1_600 {
        let Shopkeeper { store, books, .. } = &mut keeper;
        books.check(store, now, usize::MAX, |_| checks += 1).expect("the store is read");
        if books.has_room() {
            books.read_on(store).expect("the store is read");
        }
        if now <= 1_000 {
            let orders = (EACH * now..EACH * (now + 1)).map(order).collect::<Vec<_>>();
            books.place(store, orders, now).expect("the store is read");
        }
        assert!(books.open.len() <= most, "{} are in memory at {now}", books.open.len());
        keeper.hand_over(now);
        if now % 400 == 0 {
            keeper.commit();
            keeper.restart(500, now);
        }
    }
    assert_eq!((checks, keeper.books.pending(), keeper.books.open.len()), (10_000, 0, 0));
}

/// How each order ends, if all comes in by date.
pub(crate) fn played(
    shop: Shop,
    orders: &[PlacedOrder],
    payments: &[MadePayment],
) -> BTreeMap<u64, &'static str> {
    let store = Disk::on(InMemoryBackend::new()).expect("a new store");
    let mut books = Books::recover(shop, &store, 0).expect("the store is read");
    let mut ends = orders.iter().map(|order| (order.order_id, "sold_out")).collect::<BTreeMap<_, _>>();
    for now in 1..30 {
        books.check(&store, now, usize::MAX, |_| ()).expect("the store is read");
        for order in orders.iter().filter(|order| order.placed_at == now) {
            let &PlacedOrder { order_id, ref item, quantity, amount: amount_cents, .. } = order;
            let order = NewOrder { order_id, item: item.clone(), quantity, amount_cents };
            books.place(&store, vec![Ok(order)], now).expect("the store is read");
        }
        for (number, payment) in payments.iter().enumerate().filter(|(_, payment)| payment.paid_at == now) {
            let (payment_id, amount_cents) = (number.to_string(), payment.amount);
            let payment = NewPayment { payment_id, order_id: payment.order_id, item: None, amount_cents };
            books.pay_line(&store, Ok(payment), now).expect("the store is read");
        }
        let changes = books.take_changes(now);
        ends.extend(changes.ended.iter().map(|ended| (ended.order.order_id, ended.state.name())));
        if !changes.is_empty() {
            store.commit(&changes).expect("a commit");
        }
    }
    ends
}
