//! Runs user code, and survives it.

mod panics;
mod shield;

pub use panics::CallbackPanic;
pub(crate) use panics::PanicGuard;
pub(in crate::timer) use panics::PanicHook;
pub(in crate::timer) use shield::Shield;
