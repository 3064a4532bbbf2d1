//! Numbers read from bytes that a property test or a fuzzer chooses.

use shardwheel::Tick;

/// Reads numbers from bytes; zeroes at the end.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn wide(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        if limit <= 256 { usize::from(self.byte()) % limit } else { (self.wide() % limit as u64) as usize }
    }

    /// True once in `times` calls, on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A number of ticks: most are small, some are near the edges of wheels, and some are random.
    pub(crate) fn ticks(&mut self) -> Tick {
        match self.byte() {
            small @ 0..100 => Tick::from(small),
            exact @ 100..164 => 1 << (exact - 100),
            below @ 164..228 => (1 << (below - 164)) - 1,
            228..240 => Tick::from(self.byte()) << 8,
            240..250 => Tick::from(self.byte()) << (self.byte() % 64),
            _ => self.wide(),
        }
    }
}
