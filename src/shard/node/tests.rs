//! The life of a node, in one thread.

use std::rc::Rc;

use super::*;

const BASE: Tick = 1_000;

type Name = &'static str;

/// Returns a node with a timer due at `BASE`, and the timer's generation (the era is 0).
fn armed() -> (Node<Name>, u64) {
    let node = Node::new();
    let version = arm(&node, BASE, "first");
    (node, version)
}

fn arm<T>(node: &Node<T>, deadline: Tick, payload: T) -> u64 {
    // SAFETY: the node is free, and in no segment.
    let vacant = unsafe { node.prepare(deadline) }.expect("it is not worn out");
    vacant.arm_free(payload).0.into()
}

/// Fires the pending timer.
fn fire<T>(node: &Node<T>) -> Option<T> {
    node.fire(pending(node).1).map(|(_, payload)| payload)
}

/// The deadline and the word of the pending timer.
fn pending<T>(node: &Node<T>) -> (Tick, Word) {
    node.pending().expect("it is pending")
}

/// Cancels the timer; returns the word of the dead node.
fn cancel(node: &Node<Name>, generation: u64) -> Word {
    node.cancel_into((0, generation), &mut None, |slot| Some(slot.read())).expect("pending")
}

/// A displaced node is linked for its extended deadline.
#[test]
fn a_displaced_node_is_reused_for_its_later_deadline() {
    for is_displaced in [false, true] {
        let (node, generation) = armed();
        assert_eq!(node.extend(0, generation, BASE + 50), Extended::Done);
        if is_displaced {
            let (_, word) = pending(&node);
            assert!(node.displace(word));
            assert!(pending(&node).1.is_displaced() && node.displace(pending(&node).1));
        }
        let linked_for = if is_displaced { BASE + 50 } else { BASE };
        assert_eq!(node.linked_for(pending(&node).1), linked_for);
        let dead = cancel(&node, generation);
        assert!(node.reuse(dead, linked_for - 1).is_none() && node.reuse(dead, linked_for).is_some());
    }
}

#[test]
fn a_dead_node_holds_the_next_timer() {
    let (node, generation) = armed();
    let mut place = None;
    let dead = node.cancel_into((0, generation), &mut place, |slot| Some(slot.read())).expect("pending");
    assert_eq!((node.word(), dead.status(), place), (dead, Status::Cancelled, Some("first")));
    assert!(node.reuse(dead, BASE - 1).is_none() && node.reuse(dead, BASE + MAX_EXTENSION + 1).is_none());
    let taken = node.reuse(dead, BASE + MAX_EXTENSION).expect("it is dead");
    assert!(node.reuse(dead, BASE).is_none() && node.free_cancelled(dead).is_none(), "it is taken");
    assert_eq!(taken.cancelled(), dead, "it is given up");
    let next: u64 = node.reuse(dead, BASE).expect("it is dead").arm_in_place(BASE + 3, "second").into();
    assert!(
        next != generation
            && pending(&node).0 == BASE + 3
            && node.status_of(0, next) == Some(Status::Pending)
    );
    assert!(node.cancel(0, generation).is_none() && node.cancel(1, next).is_none());
    let dead = cancel(&node, next);
    assert!(node.free_cancelled(dead).is_some() && node.reuse(dead, BASE + 3).is_none());
    assert!(node.word().is(Status::Free));
}

#[test]
fn a_timer_is_put_off_where_it_stands() {
    let (node, generation) = armed();
    let (_, before) = pending(&node);
    let far = BASE + MAX_EXTENSION;
    for (deadline, found, now) in [
        (BASE - 1, Extended::NeedsMove, BASE),
        (BASE, Extended::Done, BASE),
        (BASE + 5, Extended::Done, BASE + 5),
        (BASE + 4, Extended::NeedsMove, BASE + 5),
        (far + 1, Extended::NeedsMove, BASE + 5),
        (far, Extended::Done, far),
    ] {
        assert_eq!((node.extend(0, generation, deadline), pending(&node).0), (found, now), "{deadline}");
    }
    assert_eq!(node.extend(1, generation, far), Extended::Gone);
    assert_eq!(node.extend(0, generation + 1, far), Extended::Gone);
    assert!(node.fire(before).is_none(), "it has been put off since");
    assert_eq!(fire(&node), Some("first"));
    assert!(node.word().is(Status::Free) && node.status_of(0, generation) != Some(Status::Pending));
    assert_eq!(node.extend(0, generation, far), Extended::Gone);
}

#[test]
fn what_is_taken_in_vain_is_put_back() {
    let (node, generation) = armed();
    assert_eq!(node.extend(0, generation, BASE + 5), Extended::Done);
    let (vacant, payload) = node.take(0, generation).expect("pending");
    assert_eq!((payload, node.word().status()), ("first", Status::Cancelling));
    assert!(node.take(0, generation).is_none());
    vacant.restore(payload);
    assert_eq!((pending(&node).0, node.status_of(0, generation) == Some(Status::Pending)), (BASE + 5, true));
}

#[test]
fn a_timer_that_was_not_put_off_is_not_displaced() {
    let (node, _) = armed();
    let (_, word) = pending(&node);
    assert!(node.displace(word));
    assert_eq!(pending(&node), (BASE, word));
}

#[test]
fn deadlines_end_with_time() {
    let node = Node::new();
    let generation = arm(&node, Tick::MAX - 1, "first");
    assert_eq!(node.extend(0, generation, Tick::MAX), Extended::Done);
    assert_eq!(pending(&node).0, Tick::MAX);
    assert_eq!(node.extend(0, generation, Tick::MAX - 1), Extended::NeedsMove);
}

#[test]
fn what_is_pending_at_the_end_is_dropped() {
    let payload = Rc::new(());
    let node = Node::new();
    arm(&node, BASE, Rc::clone(&payload));
    assert_eq!(Rc::strong_count(&payload), 2);
    drop(node.take_pending());
    assert_eq!((Rc::strong_count(&payload), node.word().status()), (1, Status::Free));
    drop(node.take_pending());
    assert_eq!(Rc::strong_count(&payload), 1);
}

#[test]
fn versions_come_in_turn() {
    let (node, first) = armed();
    assert_eq!(fire(&node), Some("first"));
    assert_eq!(arm(&node, 5, "second"), first + 1);
    assert_eq!((pending(&node).0, generation_of(3, 4)), (5, (3 << 32) + 4));
}

/// A node of the last version is worn out: it is not used again, neither as a free node nor in
/// place.
#[test]
fn a_worn_out_node_is_not_used_again() {
    let (node, _) = armed();
    assert!(!node.is_worn_out());
    assert_eq!(fire(&node), Some("first"));
    let _ = node.wear_out(Status::Free);
    // SAFETY: the node is free, and in no segment.
    assert!(node.is_worn_out() && unsafe { node.prepare(BASE) }.is_none());
    assert!(node.reuse(node.wear_out(Status::Cancelled), BASE).is_none());
}
