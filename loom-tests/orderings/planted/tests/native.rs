//! What is there without a model.

#![cfg(not(planted_loom))]

use planted::LetterBox;

#[test]
fn letters_are_counted() {
    let letters = LetterBox::new();
    letters.post(7);
    assert_eq!((letters.collect(), letters.posted_so_far()), (Some(7), 1));
}
