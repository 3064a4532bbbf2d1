//! What all handles of a timer share, and how a shutdown ends it.

mod inner;
mod unfired;

pub(in crate::timer) use inner::Inner;
pub use unfired::{Unfired, UnfiredTask};
