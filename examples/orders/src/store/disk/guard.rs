//! What the engine does about a page that is damaged: it panics where it finds what it cannot have
//! written. Here that becomes an error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::Once;

use super::StoreError;

thread_local! {
    /// A panic of this thread becomes an error, which says what is to be said.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// The reason of a panic that is on its way to the guard.
    static MET: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls the engine. A panic there is [`StoreError::Broken`].
pub(super) fn guard<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(
            move |panic| if GUARDED.get() { meet(panic.payload()) } else { others(panic) },
        ));
    });
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
    result.unwrap_or_else(|_| Err(StoreError::Broken { reason: MET.take().unwrap_or_default() }))
}

/// Notes the reason of a panic. One that comes while another one unwinds would abort the process without a
/// word.
fn meet(payload: &dyn Any) {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a page cannot be read");
    let reason = text.lines().next().unwrap_or_default().to_owned();
    if let Some(reason) = MET.replace(Some(reason)) {
        say!("error: {}", StoreError::Broken { reason });
        process::exit(i32::from(crate::EXIT_USAGE));
    }
}
