//! The `Timer` that the process shares, and the one of a manual clock's scope.

mod process;
mod scope;

pub(crate) use scope::Inherited;
pub use scope::{Scoped, Waiting};
