//! Memory that may be refused: the program goes on where the system has none, which the standard library's own boxes do
//! not.

/// A slice of so many values; none if there is no memory.
pub(super) fn slice<T>(len: usize, value: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize_with(len, value);
    Some(values.into_boxed_slice())
}

/// A box with that value; none if there is no memory.
pub(super) fn boxed<T>(value: T) -> Option<Box<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(1).ok()?;
    values.push(value);
    let one: Box<[T]> = values.into_boxed_slice();
    // SAFETY: a slice of one value lies in memory as that value does, so the box's memory is that of a box of one.
    Some(unsafe { Box::from_raw(Box::into_raw(one).cast::<T>()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_there() {
        assert_eq!(boxed(7_u64).as_deref(), Some(&7));
        assert_eq!(boxed(()).as_deref(), Some(&()));
        let mut next = 0..;
        assert_eq!(slice(3, || next.next()).as_deref(), Some(&[Some(0), Some(1), Some(2)][..]));
        assert_eq!(slice::<u64>(usize::MAX, || 0), None);
    }
}
