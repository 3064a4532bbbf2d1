//! The life of a node, in one thread.

use super::*;

const BASE: Tick = 1_000;

/// Returns a node with a timer due at `BASE`, and the timer's generation (the era is 0).
fn armed() -> (Node<&'static str>, u64) {
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
fn deadlines_end_with_time() {
    let node = Node::new();
    let generation = arm(&node, Tick::MAX - 1, "first");
    assert_eq!(node.extend(0, generation, Tick::MAX), Extended::Done);
    assert_eq!(pending(&node).0, Tick::MAX);
    assert_eq!(node.extend(0, generation, Tick::MAX - 1), Extended::NeedsMove);
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

#[test]
fn what_is_taken_in_vain_is_put_back() {
    let (node, generation) = armed();
    assert_eq!(node.extend(0, generation, BASE + 5), Extended::Done);
    let (vacant, payload) = node.take(0, generation).expect("pending");
    assert_eq!((payload, node.word().status()), ("first", Status::Busy));
    assert!(node.take(0, generation).is_none());
    vacant.restore(payload);
    assert_eq!((pending(&node).0, node.status_of(0, generation) == Some(Status::Pending)), (BASE + 5, true));
}
