//! What goes over a connection: requests in, replies out.
//!
//! Nothing here knows what a command means.

pub(crate) mod inline;
pub(crate) mod number;
pub(crate) mod parser;
pub(crate) mod reply;
pub(crate) mod request;
