use super::*;

#[test]
fn a_list_keeps_its_values_until_it_is_dropped() {
    let (list, value) = (List::new(), std::sync::Arc::new(()));
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(|| list.push(std::sync::Arc::clone(&value)).is_some())));
    });
    assert_eq!((list.iter().count(), std::sync::Arc::strong_count(&value)), (3, 4));
    drop(list);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}

#[test]
fn what_is_asked_for_is_there() {
    assert_eq!(boxed(7_u64).as_deref(), Some(&7));
    assert_eq!(boxed(()).as_deref(), Some(&()));
    let mut next = 0..;
    assert_eq!(slice(3, || next.next()).as_deref(), Some(&[Some(0), Some(1), Some(2)][..]));
    assert_eq!(slice::<u64>(usize::MAX, || 0), None);
    assert!(has_memory(1 << 12) && !has_memory(usize::MAX));
}

#[test]
fn a_stack_gives_all_that_was_pushed() {
    let (stack, value) = (Stack::new(), std::sync::Arc::new(()));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (stack, value) = (&stack, &value);
            scope.spawn(move || {
                for i in 0..100 {
                    stack.push(Stacked::boxed((thread, i, std::sync::Arc::clone(value))));
                }
            });
        }
    });
    let mut taken = stack.take_all().reversed();
    assert!(stack.take_all().pop().is_none());
    let mut next = [0, 0];
    for _ in 0..150 {
        let (thread, i, _) = taken.pop().expect("200 were pushed").value;
        assert_eq!(i, std::mem::replace(&mut next[thread], i + 1));
    }
    assert_eq!(std::sync::Arc::strong_count(&value), 51);
    drop(taken);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}
