use redb::backends::InMemoryBackend;

use crate::store::Disk;

use super::*;

const SHOP: Shop = Shop { stock: 10, check_after: 100, max_pending: 10 };

fn order(order_id: u64) -> Result<NewOrder, Fault> {
    Ok(NewOrder { order_id, item: "nut".to_owned(), quantity: 1, amount_cents: 5 })
}

fn payment(payment_id: &str, order_id: u64) -> Result<NewPayment, Fault> {
    Ok(NewPayment { payment_id: payment_id.to_owned(), order_id, amount_cents: 5 })
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
