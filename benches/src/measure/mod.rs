//! What is measured on structures with a virtual clock. A suite's table gives these functions their
//! engines.

pub(crate) mod memory;
pub(crate) mod one_thread;
pub(crate) mod two_threads;
