//! Models of the letter box.

#![cfg(planted_loom)]

use loom::sync::Arc;
use loom::thread;
use planted::LetterBox;

#[test]
fn a_full_box_has_the_letter() {
    loom::model(|| {
        let letters = Arc::new(LetterBox::new());
        let inside = Arc::clone(&letters);
        let postman = thread::spawn(move || inside.post(7));
        let letter = letters.collect();
        assert!(letter.is_none_or(|letter| letter == 7), "an empty letter");
        postman.join().unwrap();
    });
}

#[test]
fn letters_are_counted() {
    loom::model(|| {
        let letters = LetterBox::new();
        letters.post(7);
        assert_eq!(letters.posted(), 1);
    });
}
