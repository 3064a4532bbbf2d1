//! The nodes of a segment in a model, in the place of `shard/memory/pages.rs`: loom's atomics are
//! made one by one.

use crate::shard::memory::segment::Segment;
use crate::shard::node::Node;

pub(crate) use ModelNodes as Nodes;

pub(crate) use crate::fallible::{zeroed as table, zeroed_array as table_of};

pub(crate) const IS_LAZY: bool = true;

pub(crate) type Table<A> = Box<A>;

pub(crate) struct ModelNodes<T>(Box<[Node<T>]>);

impl<T> ModelNodes<T> {
    pub(crate) fn new(_: bool) -> Option<Self> {
        Some(Self((0..Segment::<T>::NODES).map(|_| Node::new()).collect()))
    }

    pub(crate) fn start(&self) -> *mut Node<T> {
        self.0.as_ptr().cast_mut()
    }

    pub(crate) fn give_part(self) -> Option<Self> {
        None
    }

    pub(crate) fn at(&self, offset: usize) -> &Node<T> {
        &self.0[offset]
    }
}
