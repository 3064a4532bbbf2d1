//! Cores, by number, and how a thread is pinned to one. Without the feature `affinity` there are
//! none.

/// The cores that the calling thread may run on; none if the system does not list them.
pub(in crate::timer) fn cores() -> Vec<usize> {
    #[cfg(feature = "affinity")]
    let cores = core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect();
    #[cfg(not(feature = "affinity"))]
    let cores = Vec::new();
    cores
}

/// Pins the calling thread to a core; false if the system refuses. macOS takes a hint at most, so
/// the thread is not pinned there, whatever the system answers.
pub(in crate::timer) fn pin(id: usize) -> bool {
    #[cfg(feature = "affinity")]
    let is_pinned = core_affinity::set_for_current(core_affinity::CoreId { id });
    #[cfg(not(feature = "affinity"))]
    let is_pinned = {
        let _ = id;
        false
    };
    is_pinned && !cfg!(target_os = "macos")
}
