//! Cores: which there are, and how a thread is pinned to one. Without the feature `affinity` there
//! are none.

/// A core that a thread can be pinned to.
#[derive(Clone, Copy)]
pub(super) struct Core {
    #[cfg(feature = "affinity")]
    core: core_affinity::CoreId,
    #[cfg(not(feature = "affinity"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "affinity")]
impl Core {
    /// The cores that the calling thread may run on; none if the system does not list them.
    pub(super) fn all() -> Vec<Self> {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        cores.into_iter().map(|core| Self { core }).collect()
    }

    /// The only core that the calling thread may run on, if there is only one.
    pub(super) fn only() -> Option<Self> {
        match core_affinity::get_core_ids().as_deref() {
            Some(&[core]) => Some(Self { core }),
            _ => None,
        }
    }

    pub(super) fn id(self) -> usize {
        self.core.id
    }

    /// Pins the calling thread; false if the system refuses. macOS takes a hint at most, so the
    /// thread is not pinned there, whatever the system answers.
    pub(super) fn pin(self) -> bool {
        core_affinity::set_for_current(self.core) && !cfg!(target_os = "macos")
    }
}

#[cfg(not(feature = "affinity"))]
impl Core {
    pub(super) fn all() -> Vec<Self> {
        Vec::new()
    }

    pub(super) fn only() -> Option<Self> {
        None
    }

    pub(super) fn id(self) -> usize {
        match self.never {}
    }

    pub(super) fn pin(self) -> bool {
        match self.never {}
    }
}
