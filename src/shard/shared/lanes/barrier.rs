//! A barrier that one thread has every thread of the process pass, where the system offers that.
//!
//! What is rare then pays for the order of two steps on both sides, and what is frequent pays nothing: see
//! [`Lane::begin_call`](crate::shard::shared::lanes). On Linux it is `membarrier(2)`, with the command `PRIVATE_EXPEDITED`; elsewhere, and
//! where the system refuses it, there is none.

/// Whether there is one. The first call asks the system.
pub(in crate::shard) fn is_there() -> bool {
    imp::is_there()
}

/// Has each thread of the process pass a barrier, and returns when all have; false if that could not be had.
pub(in crate::shard) fn pass() -> bool {
    imp::pass()
}

#[cfg(all(target_os = "linux", not(any(miri, shardwheel_loom))))]
mod imp {
    use std::sync::OnceLock;

    static IS_THERE: OnceLock<bool> = OnceLock::new();

    pub(in crate::shard) fn is_there() -> bool {
        *IS_THERE.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    }

    pub(in crate::shard) fn pass() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes numbers, and touches no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(any(miri, shardwheel_loom)))))]
mod imp {
    pub(in crate::shard) fn is_there() -> bool {
        false
    }

    pub(in crate::shard) fn pass() -> bool {
        false
    }
}
