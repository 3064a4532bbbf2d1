//! Memory that the machine has ready.
//!
//! A virtual machine may have no memory of its own for what its programs do not use: its host takes free pages away
//! and gives one back when it is touched, which takes ten times as long as all that a program can do with it. Whether a
//! page is there is chance: it is where another program has just ended. So before a pass over fresh memory as much is
//! touched and given back to the system, and what the pass meets is the system's own page faults.

use memmap2::{Advice, MmapMut};

/// The smallest page.
const PAGE: usize = 4096;

/// Has the machine provide that much memory, and gives it to the system. Does nothing where the system refuses.
pub fn back_memory(bytes: usize) {
    if bytes == 0 {
        return;
    }
    let Ok(mut pages) = MmapMut::map_anon(bytes) else { return };
    // Huge pages are what the host takes away and gives back. Without them it takes longer.
    let _ = pages.advise(Advice::HugePage);
    for page in pages.chunks_mut(PAGE) {
        page[0] = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_amount_is_given_back() {
        for bytes in [0, 1, PAGE, 10 * PAGE + 7] {
            back_memory(bytes);
        }
    }
}
