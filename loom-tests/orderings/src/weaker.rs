//! The next weaker orderings of an ordering that its operation still allows.

use std::fmt;

/// A memory ordering stronger than `Relaxed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `Ordering::Acquire`
    Acquire,
    /// `Ordering::Release`
    Release,
    /// `Ordering::AcqRel`
    AcqRel,
    /// `Ordering::SeqCst`
    SeqCst,
}

/// The kind of operation that an ordering is an argument of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write that cannot fail.
    ReadModifyWrite,
    /// A compare-and-swap, where it succeeds.
    Success,
    /// A compare-and-swap, where it fails.
    Failure,
    /// A fence.
    Fence,
}

/// What an ordering is weakened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weaker {
    /// Another ordering, by name.
    To(&'static str),
    /// The fence is removed: a relaxed fence does not exist.
    Removed,
}

impl Order {
    /// Returns the ordering of that name, if it is stronger than `Relaxed`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Acquire, Self::Release, Self::AcqRel, Self::SeqCst]
            .into_iter()
            .find(|order| order.to_string() == name)
    }

    /// Returns the next weaker orderings.
    #[must_use]
    pub fn weaker(self, role: Role) -> &'static [Weaker] {
        use Weaker::{Removed, To};
        match (self, role) {
            (Self::SeqCst, Role::Load | Role::Failure) => &[To("Acquire")],
            (Self::SeqCst, Role::Store) => &[To("Release")],
            (Self::SeqCst, Role::ReadModifyWrite | Role::Success) => &[To("AcqRel")],
            (Self::SeqCst, Role::Fence) => &[To("AcqRel"), Removed],
            (Self::AcqRel, Role::Fence) => &[To("Acquire"), To("Release"), Removed],
            (Self::AcqRel, _) => &[To("Acquire"), To("Release")],
            (Self::Acquire | Self::Release, Role::Fence) => &[Removed],
            (Self::Acquire | Self::Release, _) => &[To("Relaxed")],
        }
    }
}

impl Role {
    /// Returns the ordering arguments of a method with arguments: each one's position and role.
    /// Empty if it is not a method of an atomic.
    #[must_use]
    pub fn of_method(name: &str) -> &'static [(usize, Self)] {
        match name {
            "load" => &[(0, Self::Load)],
            "store" => &[(1, Self::Store)],
            "compare_exchange" | "compare_exchange_weak" => &[(2, Self::Success), (3, Self::Failure)],
            "fetch_update" | "try_update" | "update" => &[(0, Self::Success), (1, Self::Failure)],
            "swap" => &[(1, Self::ReadModifyWrite)],
            _ if name.starts_with("fetch_") => &[(1, Self::ReadModifyWrite)],
            _ => &[],
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Weaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::To(name) => name,
            Self::Removed => "removed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weaker(role: Role, name: &str) -> Vec<String> {
        Order::named(name).expect("it orders something").weaker(role).iter().map(Weaker::to_string).collect()
    }

    #[test]
    fn each_step_down_is_one_that_the_operation_allows() {
        assert_eq!(weaker(Role::Load, "SeqCst"), ["Acquire"]);
        assert_eq!(weaker(Role::Store, "SeqCst"), ["Release"]);
        assert_eq!(weaker(Role::Failure, "SeqCst"), ["Acquire"]);
        assert_eq!(weaker(Role::ReadModifyWrite, "SeqCst"), ["AcqRel"]);
        assert_eq!(weaker(Role::Success, "AcqRel"), ["Acquire", "Release"]);
        assert_eq!(weaker(Role::Load, "Acquire"), ["Relaxed"]);
        assert_eq!(weaker(Role::Store, "Release"), ["Relaxed"]);
    }

    #[test]
    fn a_fence_is_never_relaxed_which_would_panic_but_removed() {
        assert_eq!(weaker(Role::Fence, "SeqCst"), ["AcqRel", "removed"]);
        assert_eq!(weaker(Role::Fence, "AcqRel"), ["Acquire", "Release", "removed"]);
        assert_eq!(weaker(Role::Fence, "Acquire"), ["removed"]);
    }

    #[test]
    fn what_orders_nothing_has_nothing_to_lose() {
        assert_eq!(Order::named("Relaxed"), None);
        assert_eq!(Order::named("Less"), None);
    }
}
