//! What the engine does about a page that is damaged: it panics where it finds what it cannot have
//! written. Here that becomes an error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use super::StoreError;

thread_local! {
    /// A panic of this thread becomes an error, which says what is to be said.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls the engine. A panic there is [`StoreError::Broken`].
pub(super) fn guard<T>(call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic)
            }
        }));
    });
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
    result.unwrap_or_else(|panic| Err(StoreError::Broken { reason: reason(&*panic) }))
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a page cannot be read");
    text.lines().next().unwrap_or_default().to_owned()
}
