//! Single parts of a shard. Models of them are small enough to be explored exhaustively.

use crate::shard;
use crate::tick::Tick;

/// A single node, for models of its word: it is in no list and belongs to no segment.
pub struct LoneNode<T>(shard::Node<T>);

impl<T> LoneNode<T> {
    /// Makes a free node.
    pub fn new() -> Self {
        Self(shard::Node::new())
    }

    /// Puts a timer into the node, which is free and belongs to the caller. Returns the timer's
    /// generation, or `None` if the node is worn out.
    pub fn arm(&self, deadline: Tick, payload: T) -> Option<u64> {
        // SAFETY: the caller of `arm` states that the node is free and its own.
        let vacant = unsafe { self.0.prepare(deadline)? };
        self.0.set_tag(shard::Tag::default().map(|_: u64| deadline));
        Some(vacant.arm_free(payload).0.into())
    }

    /// The deadline and the tag of the pending timer. [`arm`](Self::arm) makes both equal.
    #[cfg(feature = "introspect")]
    pub fn look(&self) -> Option<(Tick, Tick)> {
        self.0.look(0).map(|(deadline, [tag])| (deadline, tag))
    }

    /// Cancels the timer of that generation.
    pub fn cancel(&self, generation: u64) -> Option<T> {
        self.0.cancel(0, generation)
    }

    /// Begins a move and gives it up: takes the payload out and puts it back. Returns false if the
    /// timer is gone.
    pub fn take_in_vain(&self, generation: u64) -> bool {
        self.0.take(0, generation).map(|(vacant, payload)| vacant.restore(payload)).is_some()
    }

    /// Does what the advancer does with a cancelled node that it meets. If that succeeds, the node
    /// is free and belongs to the caller.
    pub fn free_cancelled(&self) -> bool {
        self.0.free_cancelled(self.0.word()).is_some()
    }

    /// Does what the advancer does with a due timer that it meets. If that succeeds, the node is
    /// free and belongs to the caller.
    pub fn fire(&self) -> Option<T> {
        self.0.fire(self.0.word()).map(|(_, payload)| payload)
    }
}

/// The free nodes of a segment: a single word of bits.
pub struct FreeNodes(shard::FreeBits);

impl FreeNodes {
    /// All nodes are free.
    pub fn new() -> Self {
        Self(shard::FreeBits::new(shard::WORD_NODES, 0).expect("there is memory"))
    }

    /// Takes the free nodes, as bits.
    pub fn take(&self) -> Option<u64> {
        self.0.take_word().map(|(_, nodes)| nodes)
    }

    /// Makes nodes free; for the advancer.
    pub fn give(&self, nodes: u64) {
        self.0.give(0, nodes);
    }
}

/// A slab of two segments: all nodes of the first are taken, all of the second are free.
pub struct LoneSlab {
    slab: shard::Slab<()>,
    epochs: shard::Epochs,
}

/// Takes empty segments out of a slab, as the advancer does.
pub struct SegmentTaker {
    reclaimer: shard::Reclaimer,
    retired: shard::Retired<shard::Segment<()>>,
}

/// Takes free nodes of a slab and gives them back, as a producer does.
pub struct SlabUser {
    free: shard::FreeWord,
    who: shard::Participant,
}

impl LoneSlab {
    /// Makes the slab, and what its advancer has.
    pub fn new() -> (Self, SegmentTaker) {
        let (epochs, reclaimer) = shard::Epochs::with_reclaimer();
        let slab = shard::Slab::new().expect("there is memory");
        let retired = slab.retired();
        let (lone, taker) = (Self { slab, epochs }, SegmentTaker { reclaimer, retired });
        let mut user = lone.user();
        while lone.segments() < 2 {
            user.take(&lone);
        }
        user.give_back(&lone);
        (lone, taker)
    }

    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.slab.size()
    }

    /// A producer without nodes.
    pub fn user(&self) -> SlabUser {
        SlabUser { free: shard::FreeWord::default(), who: self.epochs.join() }
    }
}

impl SegmentTaker {
    /// Takes an empty segment out of the table; true if it did.
    pub fn take_one(&mut self, lone: &LoneSlab) -> bool {
        lone.slab.retire_one(&mut self.retired, &mut self.reclaimer).is_some()
    }
}

impl SlabUser {
    /// Takes the free nodes of a word, unless the user has some.
    ///
    /// # Panics
    ///
    /// If the segment of the nodes is gone.
    pub fn take(&mut self, lone: &LoneSlab) {
        let owned = lone.slab.take(&mut self.free, &self.who, 0).expect("there is memory");
        if lone.segments() > 1 {
            shard::Slab::put_back(&mut self.free, owned);
        }
    }

    /// Gives one of its nodes to another producer.
    pub fn split(&mut self, lone: &LoneSlab) -> Self {
        Self { free: self.free.split(), who: lone.epochs.join() }
    }

    /// Gives all its nodes back.
    pub fn give_back(&mut self, lone: &LoneSlab) {
        lone.slab.hand_back(&mut self.free, &self.who);
    }
}

/// A shard's epochs.
pub struct LoneEpochs(shard::Epochs);

/// A participant of the epochs, which can be pinned.
pub struct Pinnable(shard::Participant);

impl LoneEpochs {
    /// Makes epochs without participants.
    pub fn new() -> Self {
        Self(shard::Epochs::new())
    }

    /// Adds a participant.
    pub fn join(&self) -> Pinnable {
        Pinnable(self.0.join())
    }
}

impl Pinnable {
    /// Runs `act` while pinned.
    pub fn pinned<R>(&self, act: impl FnOnce() -> R) -> R {
        let _pinned = self.0.pin();
        act()
    }

    /// Calls `run` once no participant is pinned that was pinned before this call.
    pub fn defer(&self, run: impl FnOnce() + Send + 'static) {
        self.0.defer_static(run);
    }

    /// Helps the epochs advance.
    pub fn help(&self) {
        self.0.help();
    }
}
