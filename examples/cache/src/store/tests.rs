use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::*;

/// Every operation beside a map; many keys, then few, so that chunks and tables come and go.
#[test]
fn a_store_agrees_with_a_map() {
    let hasher = RandomState::new();
    let (mut store, mut model) = (Store::default(), HashMap::<Vec<u8>, Vec<u8>>::new());
    let mut seed = 1_u64;
    for step in 0..60_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let growing = step / 15_000 % 2 == 0;
        let key = format!("key{}", (seed >> 33) % 9_000).into_bytes();
        let hash = hasher.hash_one(&key);
        let place = store.find(hash, &key);
        assert_eq!(
            place.and_then(|place| store.slab.get(place)).map(Entry::value),
            model.get(&key).map(|v| &v[..])
        );
        let value = vec![b'v'; (seed >> 20) as usize % 40];
        match place {
            Some(place) if !growing || step % 3 == 0 => {
                assert!(store.remove(hash, place).is_some());
                model.remove(&key);
            }
            Some(place) => store.set_value(place, &value),
            None if growing => {
                store.insert(hash, &key, &value);
            }
            None => continue,
        }
        if store.find(hash, &key).is_some() {
            model.insert(key, value);
        }
        assert_eq!(store.slab.len(), model.len());
    }
    let bytes: usize = model.iter().map(|(key, value)| SLOT_BYTES + Entry::new(key, value).bytes()).sum();
    assert_eq!(store.bytes, bytes);
    assert_eq!(walk(&store).len(), model.len());
    for key in model.keys() {
        let hash = hasher.hash_one(key);
        store.find(hash, key).and_then(|place| store.remove(hash, place)).expect("it is there");
    }
    assert_eq!((store.slab.len(), store.bytes), (0, 0));
    assert!(store.slab.chunks() <= 1, "empty chunks are given back");
}

fn walk(store: &Store) -> Vec<u32> {
    let (mut places, mut at) = (Vec::new(), Some(0));
    while let Some(place) = at {
        let (found, next) = store.slab.next(place);
        places.extend(found.map(|_| place));
        at = next;
    }
    places
}

#[test]
fn a_walk_ends_in_an_empty_store() {
    assert_eq!(walk(&Store::default()), []);
}
