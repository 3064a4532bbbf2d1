//! Asking for a cache line before it is needed: hints without any other effect, and without any effect at all
//! where the processor has no such instruction.

#[cfg(all(target_arch = "x86_64", not(shardwheel_loom)))]
use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};

/// For a line that will be written: no other processor keeps a copy.
#[inline(always)]
pub(in crate::shard) fn for_writing<M>(at: *const M) {
    #[cfg(all(target_arch = "x86_64", not(shardwheel_loom)))]
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address; SSE is part of x86-64, and a
    // processor that does not know PREFETCHW takes it for a no-op.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(shardwheel_loom))))]
    let _ = at;
}
