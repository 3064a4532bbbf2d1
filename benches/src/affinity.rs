//! Pins threads to cores, where the system allows it.
//!
//! A pinned thread sees only its own core, and so do the threads that it starts: the list of cores is
//! therefore read once, before the first thread is pinned.

use std::sync::OnceLock;

use core_affinity::CoreId;

static CORES: OnceLock<Vec<CoreId>> = OnceLock::new();

fn list() -> &'static [CoreId] {
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default())
}

/// How many cores this process may run on; 0 where the system does not say.
#[must_use]
pub fn cores() -> usize {
    list().len()
}

/// Pins the calling thread to the `nth` core, and says whether that worked. With fewer cores than that
/// nothing is pinned.
pub fn pin(nth: usize) -> bool {
    list().get(nth).is_some_and(|&core| core_affinity::set_for_current(core))
}
