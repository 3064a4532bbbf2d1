//! A request: the arguments of one command, as places in a buffer that its reader holds.

/// The place of an argument in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The span from `start` to `end`. Buffers end long before 4 GiB (`parser::MAX_REQUEST`).
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// The bytes of the span.
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// One command with its arguments; the first argument is its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) spans: &'a [Span],
    /// The hash of the key, if the command is for one key.
    pub(crate) hash: u64,
}

impl<'a> Request<'a> {
    /// The number of arguments, the name included.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// An argument. Commands read only as many as their arity promises, or look at `len`.
    pub(crate) fn arg(&self, index: usize) -> &'a [u8] {
        self.spans[index].of(self.bytes)
    }

    /// The arguments from `index` on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.get(index..).unwrap_or_default().iter().map(move |span| span.of(bytes))
    }

    /// Whether an argument is this word, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }
}
