use std::collections::HashMap;

use super::*;

fn new() -> Store {
    Store::new(Placement::new(1), Arc::default())
}

fn len(store: &Store) -> (usize, usize) {
    let entries = store.tables.iter().map(Table::len).sum();
    assert_eq!(entries, store.stats.get(Figure::Keys));
    (entries, store.stats.get(Figure::KeyBytes))
}

/// Every operation beside a map; many keys, then few, so that tables grow and shrink.
#[test]
fn a_store_agrees_with_a_map() {
    let (mut store, mut model) = (new(), HashMap::<Vec<u8>, Vec<u8>>::new());
    let mut seed = 1_u64;
    for step in 0..60_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let growing = step / 15_000 % 2 == 0;
        let key = format!("key{}", (seed >> 33) % 9_000).into_bytes();
        let hash = store.placement.hash(&key);
        let place = store.find(hash, &key);
        assert_eq!(place.map(|place| store.get(place).value()), model.get(&key).map(|v| &v[..]));
        let value = vec![b'v'; (seed >> 20) as usize % 40];
        match place {
            Some(place) if !growing || step % 3 == 0 => {
                assert_eq!(store.remove(place).key(), key);
                model.remove(&key);
            }
            Some(place) => store.set_value(place, &value),
            None if growing => {
                let place = store.insert(hash, &key, &value);
                assert_eq!(store.get(place).value(), value);
            }
            None => continue,
        }
        if store.find(hash, &key).is_some() {
            model.insert(key, value);
        }
        assert_eq!(len(&store).0, model.len());
    }
    let bytes: usize = model.iter().map(|(key, value)| SLOT_BYTES + Entry::new(key, value).bytes()).sum();
    assert_eq!(len(&store), (model.len(), bytes));
    for key in model.keys() {
        let place = store.find(store.placement.hash(key), key).expect("it is there");
        store.remove(place);
    }
    assert_eq!(len(&store), (0, 0));
    assert!(store.tables.iter().all(|table| table.capacity() == 0), "empty tables are given back");
}

#[test]
fn all_entries_are_taken_out_at_once() {
    let mut store = new();
    for key in 0..100_u8 {
        store.insert(store.placement.hash(&[key]), &[key], b"value");
    }
    let tables = store.clear();
    assert_eq!((tables.iter().map(Table::len).sum::<usize>(), len(&store)), (100, (0, 0)));
}
