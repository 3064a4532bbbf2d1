//! What all handles of a `Timer` share, and how a shutdown ends it.

mod inner;
mod unfired;

pub(in crate::timer) use inner::Inner;
pub use unfired::{Unfired, UnfiredTask};
