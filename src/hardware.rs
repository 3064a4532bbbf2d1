//! What the processor and the system offer beyond the language: a prefetch, and a barrier in all
//! threads. Both are optional: the caller does without where there is none.

#[cfg(all(target_arch = "x86_64", not(shardwheel_loom)))]
use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};

/// For a line that will be written: no other processor keeps a copy.
#[inline(always)]
pub(crate) fn prefetch_for_writing<M>(at: *const M) {
    #[cfg(all(target_arch = "x86_64", not(shardwheel_loom)))]
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address; SSE is part of x86-64, and a
    // processor that does not know PREFETCHW takes it for a no-op.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(shardwheel_loom))))]
    let _ = at;
}

/// Whether [`membarrier`] can be had. The first call asks the system.
///
/// The barrier makes the rare side of two pay for the order of their steps; the frequent side pays
/// nothing (see `Lane::begin_call`). On Linux it is `membarrier(2)` with the command
/// `PRIVATE_EXPEDITED`. Elsewhere, and where the system refuses it, there is none.
pub(crate) fn has_membarrier() -> bool {
    imp::has_membarrier()
}

/// Makes each thread of the process pass a memory barrier, and returns when all have; false if the
/// system refuses.
pub(crate) fn membarrier() -> bool {
    imp::membarrier()
}

#[cfg(all(target_os = "linux", not(any(miri, shardwheel_loom))))]
mod imp {
    use std::sync::OnceLock;

    static IS_THERE: OnceLock<bool> = OnceLock::new();

    pub(super) fn has_membarrier() -> bool {
        *IS_THERE.get_or_init(|| command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    }

    pub(super) fn membarrier() -> bool {
        command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn command(command: libc::c_int) -> bool {
        // SAFETY: the call takes numbers, and touches no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(any(miri, shardwheel_loom)))))]
mod imp {
    pub(super) fn has_membarrier() -> bool {
        false
    }

    pub(super) fn membarrier() -> bool {
        false
    }
}
