//! A request: the arguments of one command, as places in a buffer that somebody else holds.

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
    bytes: &'a [u8],
    spans: &'a [Span],
    /// The hash of the key, if the command is for one key.
    pub(crate) hash: u64,
}

impl<'a> Request<'a> {
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span], hash: u64) -> Self {
        Self { bytes, spans, hash }
    }

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
        self.spans[index.min(self.spans.len())..].iter().map(move |span| span.of(bytes))
    }

    /// The name, and the key at `key`, and the last of the `step` arguments that belong to the key.
    pub(crate) fn part(&self, key: usize, step: usize) -> [Span; 3] {
        [self.spans[0], self.spans[key], self.spans[key + step - 1]]
    }

    pub(crate) fn with_hash(self, hash: u64) -> Self {
        Self { hash, ..self }
    }

    /// A request with other arguments of the same buffer.
    pub(crate) fn with_spans<'b>(&self, spans: &'b [Span]) -> Request<'b>
    where
        'a: 'b,
    {
        Request { bytes: self.bytes, spans, hash: self.hash }
    }

    /// Whether an argument is this word, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }
}
