//! The nodes of a segment in a model, in the place of `shard/memory/pages.rs`: loom's atomics are
//! made one by one.

use crate::shard::memory::layout::Layout;
use crate::shard::node::{Node, NodeId};

pub(crate) use ModelNodes as Nodes;

pub(crate) struct ModelNodes<T>(Box<[Node<T>]>);

impl<T> ModelNodes<T> {
    pub(crate) fn new(_: bool) -> Option<Self> {
        Some(Self((0..Layout::<T>::NODES).map(|_| Node::new()).collect()))
    }

    pub(crate) fn start(&self) -> *mut Node<T> {
        self.0.as_ptr().cast_mut()
    }

    pub(crate) fn give_part(self) -> Option<Self> {
        None
    }

    pub(crate) fn at(&self, id: NodeId) -> &Node<T> {
        &self.0[id as usize & (Layout::<T>::NODES - 1)]
    }
}
