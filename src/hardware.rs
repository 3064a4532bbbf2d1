//! What the processor and the system offer beyond the language: a prefetch, a counter of time, a
//! memory barrier in all threads, and a clock that goes on during a suspend. All are optional:
//! every caller works without them, or says that it does not.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// Prefetches a cache line that will be written, so that no other processor keeps a copy. Does
/// nothing on processors other than x86-64.
#[inline(always)]
pub(crate) fn prefetch_for_writing<M>(at: *const M) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address. SSE is part of
    // x86-64, and a processor without PREFETCHW executes it as a no-op.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Reads the processor's counter of time; 0 on processors other than x86-64 and aarch64. Whether it
/// can be trusted is for the caller to say.
#[cfg(feature = "timer")]
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction. It reads a register.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let count;
        // SAFETY: the register can be read at all times, and has no effect.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// The time since the machine's boot or another fixed moment, with the time for which the machine
/// was suspended.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn since_boot() -> io::Result<Duration> {
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    // It goes on during a suspend, as `CLOCK_UPTIME_RAW` does not, by which the standard library
    // goes.
    #[cfg(target_vendor = "apple")]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;

    // SAFETY: its fields are numbers.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to `time`, and accesses no other memory of the process.
    if unsafe { libc::clock_gettime(CLOCK, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Neither is negative, and there are less than 2^30 nanoseconds.
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// As above. On Windows, `Instant` is the performance counter, which goes on during a suspend.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn since_boot() -> io::Result<Duration> {
    static FIRST: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    let unknown = "no clock is known here that goes on during a suspend";
    if cfg!(windows) { Ok(FIRST.elapsed()) } else { Err(io::Error::new(io::ErrorKind::Unsupported, unknown)) }
}

/// Returns whether [`membarrier`] is available. The first call registers the process, which takes
/// some 10 ms if it has several threads (a grace period of the kernel). So a call is made where a
/// shard is made: the advancer, which needs the barrier later, would be late by that. Threads may
/// call it at the same time: they all register, and none waits for another.
///
/// The barrier moves the cost of ordering two steps from their frequent side to their rare side:
/// the frequent side then needs no fence (see `Lane::enter`). On Linux the barrier is
/// `membarrier(2)` with the command `PRIVATE_EXPEDITED`. It is missing on other systems, in models,
/// under Miri, and where Linux refuses it.
pub(crate) fn has_membarrier() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    if let Some(&is_there) = IS_THERE.get() {
        return is_there;
    }
    let is_there = !cfg!(any(miri, shardwheel_loom, shardwheel_shuttle)) && ask_for_barrier(true);
    *IS_THERE.get_or_init(|| is_there)
}

/// Makes each thread of the process pass a memory barrier, and returns after all have. False if the
/// system refuses.
pub(crate) fn membarrier() -> bool {
    ask_for_barrier(false)
}

/// Makes the system call, or its registration.
fn ask_for_barrier(registers: bool) -> bool {
    #[cfg(target_os = "linux")]
    {
        use libc::{MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED};
        let command = if registers {
            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        } else {
            MEMBARRIER_CMD_PRIVATE_EXPEDITED
        };
        // SAFETY: the call takes numbers, and accesses no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = registers;
        false
    }
}
