use std::collections::BTreeMap;

use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};
use redb::backends::InMemoryBackend;

use crate::store::Disk;

use super::*;
use crate::scarce::case;

const SHOP: Shop = Shop { stock: 10, check_after: 100, max_pending: 10 };

fn order(order_id: u64) -> Result<NewOrder, Fault> {
    Ok(NewOrder { order_id, item: "nut".to_owned(), quantity: 1, amount_cents: 5 })
}

fn payment(payment_id: &str, order_id: u64) -> Result<NewPayment, Fault> {
    Ok(NewPayment { payment_id: payment_id.to_owned(), order_id, item: None, amount_cents: 5 })
}

/// The answer to the only line.
fn place(books: &mut Books, store: &Disk, order_id: u64, now: u64) -> OrderAnswer {
    let placed = books.place(store, &[order(order_id)], now).expect("the store is read");
    match placed.expect("there is room").pop() {
        Some(Answer::Order { answer, .. }) => answer,
        answer => panic!("{answer:?}"),
    }
}

fn pay(books: &mut Books, store: &Disk, payment_id: &str, order_id: u64) -> PaymentAnswer {
    match books.pay_line(store, payment(payment_id, order_id), 9).expect("the store is read") {
        Answer::Payment { answer, .. } => answer,
        answer => panic!("{answer:?}"),
    }
}

/// A group that is decided may be on its way to the store while the next one is decided.
#[test]
fn what_is_on_its_way_to_the_store_is_known() {
    let store = Disk::on(InMemoryBackend::new()).expect("a new store");
    let mut books = Books::recover(SHOP, &store, 0).expect("the store is read");
    assert_eq!(place(&mut books, &store, 1, 7), OrderAnswer::Placed { check_at: 107 });
    assert_eq!(pay(&mut books, &store, "p-1", 1), PaymentAnswer::Counted);
    let changes = books.take_changes(9);
    assert_eq!((changes.ended.len(), changes.payments.len()), (1, 1));
    let repeated = |books: &mut Books| {
        let order = place(books, &store, 1, 8);
        (order, pay(books, &store, "p-1", 1), pay(books, &store, "p-2", 1))
    };
    let known = (OrderAnswer::Duplicate { check_at: 107 }, PaymentAnswer::Duplicate, PaymentAnswer::Late);
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
        assert_eq!(place(&mut books, &store, 1, 7), OrderAnswer::Placed { check_at });
        store.commit(&books.take_changes(7)).expect("a commit");
        let restarted = Books::recover(shop, &store, 8.min(check_at)).expect("the store is read");
        for mut books in [books, restarted] {
            for now in [8, check_at - 1, check_at].map(|now| now.min(check_at)) {
                assert!(!books.check(now, 9, |_| panic!("{check_after} is over at {now}")));
            }
            let mut checks = 0;
            books.check(check_at.saturating_add(1), 9, |_| checks += 1);
            assert_eq!(checks, u64::from(check_at < u64::MAX), "{check_after}");
        }
    }
}

/// Scarce stock, and events that meet at the same instants: the books decide as the replay does.
#[test]
fn the_books_decide_as_the_replay_does() {
    for seed in 0..100 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (shop, orders, payments) = case(&mut rng, 100);
        let expected = outcomes(&orders, &payments, shop.stock, shop.check_after);
        assert_eq!(played(shop, &orders, &payments), expected, "seed {seed}");
    }
}

/// How each order ends, if all comes in by date.
fn played(shop: Shop, orders: &[PlacedOrder], payments: &[MadePayment]) -> BTreeMap<u64, &'static str> {
    let store = Disk::on(InMemoryBackend::new()).expect("a new store");
    let mut books = Books::recover(shop, &store, 0).expect("the store is read");
    let mut ends = orders.iter().map(|order| (order.order_id, "sold_out")).collect::<BTreeMap<_, _>>();
    for now in 1..30 {
        books.check(now, usize::MAX, |_| ());
        for order in orders.iter().filter(|order| order.placed_at == now) {
            let &PlacedOrder { order_id, ref item, quantity, amount: amount_cents, .. } = order;
            let order = NewOrder { order_id, item: item.clone(), quantity, amount_cents };
            let placed = books.place(&store, &[Ok(order)], now).expect("the store is read");
            assert!(placed.is_ok(), "there is room");
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
