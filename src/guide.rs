#![doc = include_str!("guide/index.md")]

#[doc = include_str!("guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("guide/time.md")]
pub mod time {}

#[doc = include_str!("guide/memory.md")]
pub mod memory {}

#[doc = include_str!("guide/shutdown.md")]
pub mod shutdown {}

#[doc = include_str!("guide/panics.md")]
pub mod panics {}

#[doc = include_str!("guide/testing.md")]
pub mod testing {}

#[doc = include_str!("guide/observing.md")]
pub mod observing {}

#[doc = include_str!("guide/coming_from.md")]
pub mod coming_from {}

/// The words; the wheels and the way of a timer, in one page.
///
#[doc = include_str!("guide/wheels.svg")]
#[doc = include_str!("guide/how_it_works.md")]
pub mod how_it_works {}

#[doc = include_str!("guide/design.md")]
pub mod design {}

#[doc = include_str!("guide/promises.md")]
pub mod promises {}
