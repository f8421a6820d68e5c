//! Items made, found, moved and freed, compared with a map.

use std::collections::HashMap;

use super::{Chains, Fresh, KEY_MAX, Making, Marks, Out, Pool, Segment, WalkPosition};

fn make(pool: &mut Pool, key: &[u8], hash: u64, value: &[u8]) -> Fresh {
    let making = Making {
        key,
        hash,
        value_bytes: value.len() as u32,
        now: 7,
    };
    let mut fresh = pool.make(&making).expect("there is memory");
    fresh.push(value);
    fresh.push(b"\r\n");
    fresh
}

fn release(pool: &mut Pool, out: Option<Out>) {
    if let Some(out) = out {
        pool.release(out);
    }
}

#[test]
fn an_item_keeps_what_was_written_into_it() {
    let mut pool = Pool::new().expect("there is memory");
    let mut chains = Chains::new(1);
    let key = [b'k'; KEY_MAX];
    let mut fresh = make(&mut pool, &key, 5, b"value");
    fresh.set_cas(3);
    fresh.set_client_flags(9);
    fresh.set_expires(11);
    fresh.set_marks(Marks::STALE);
    assert!(chains.put(fresh).is_none());
    let entry = chains.find(5, &key).expect("it is there");
    assert_eq!(
        (entry.key(), entry.value_and_end()),
        (&key[..], &b"value\r\n"[..])
    );
    assert_eq!(
        (
            entry.cas(),
            entry.client_flags(),
            entry.expires(),
            entry.used()
        ),
        (3, 9, 11, 7)
    );
    assert!(entry.marks().has(Marks::STALE) && !entry.is_fetched());
    entry.bump(8);
    assert!(entry.is_fetched() && entry.used() == 8);
    assert!(chains.find(6, &key).is_none() && chains.find(5, b"k").is_none());
    let mut found = chains.find_mut(5, &key).expect("it is there");
    found.value_mut().copy_from_slice(b"other");
    assert_eq!(found.entry().value(), b"other");
    release(&mut pool, chains.take(5, &key));
    assert!(chains.is_empty() && pool.bytes() == 0);
}

#[test]
#[should_panic(expected = "the value is not written")]
fn an_item_without_its_value_is_not_stored() {
    let mut pool = Pool::new().expect("there is memory");
    let making = Making {
        key: b"k",
        hash: 1,
        value_bytes: 3,
        now: 0,
    };
    let fresh = pool.make(&making).expect("there is memory");
    let _ = Chains::new(1).put(fresh);
}

#[test]
#[should_panic(expected = "an item of another pool")]
fn an_item_goes_back_where_it_came_from() {
    let mut pool = Pool::new().expect("there is memory");
    let out = make(&mut pool, b"k", 1, b"v").give_up();
    Pool::new().expect("there is memory").release(out);
}

#[test]
fn random_life_is_as_a_map_says() {
    let mut pool = Pool::new().expect("there is memory");
    let mut chains = Chains::new(1);
    let mut known = HashMap::<Vec<u8>, Vec<u8>>::new();
    let mut state = 1_u64;
    let mut random = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let steps = if cfg!(miri) { 300 } else { 30_000 };
    for _ in 0..steps {
        let number = random(400);
        let key = format!("key-{number}").into_bytes();
        // Many items share a hash, so that chains are long.
        let hash = number / 3 * 1_000_003;
        match random(5) {
            0..2 => {
                let value = vec![number as u8; random(300) as usize];
                let fresh = make(&mut pool, &key, hash, &value);
                let out = chains.put(fresh);
                release(&mut pool, out);
                known.insert(key, value);
            }
            2 => {
                let out = chains.take(hash, &key);
                assert_eq!(out.is_some(), known.remove(&key).is_some());
                release(&mut pool, out);
            }
            3 => {
                let from = [Segment::Hot, Segment::Warm, Segment::Cold][random(3) as usize];
                let to = [Segment::Hot, Segment::Warm, Segment::Cold][random(3) as usize];
                let had = pool.items_in(from) > 0;
                assert_eq!(pool.shift(from, to), had);
                let _ = pool.tail(to);
            }
            _ => {
                let found = chains.find(hash, &key).map(|entry| entry.value().to_vec());
                assert_eq!(found.as_ref(), known.get(&key));
            }
        }
        assert_eq!(chains.len(), known.len());
    }
    let mut seen = 0;
    let (looked, place) = chains.look_at_some(WalkPosition::default(), usize::MAX >> 8, |entry| {
        assert_eq!(
            known.get(entry.key()).map(Vec::as_slice),
            Some(entry.value())
        );
        seen += 1;
    });
    assert_eq!((seen, looked, place), (known.len(), known.len(), None));
    let mut out = Vec::new();
    chains.take_some(WalkPosition::default(), usize::MAX >> 8, |_| true, &mut out);
    for out in out {
        pool.release(out);
    }
    assert_eq!((pool.bytes(), chains.len()), (0, 0));
}

#[test]
fn who_looks_little_by_little_sees_each_once_while_the_table_grows() {
    let mut pool = Pool::new().expect("there is memory");
    let mut chains = Chains::new(8);
    let add = |pool: &mut Pool, chains: &mut Chains, number: u64| {
        let key = format!("{number}").into_bytes();
        let fresh = make(pool, &key, number.wrapping_mul(0x9e37_79b9_7f4a_7c15), b"v");
        assert!(chains.put(fresh).is_none());
    };
    let first = 500;
    (0..first).for_each(|number| add(&mut pool, &mut chains, number));
    let mut seen = HashMap::<Vec<u8>, usize>::new();
    let (mut place, mut next) = (Some(WalkPosition::default()), first);
    while let Some(from) = place {
        let most = 7;
        let (looked, then) = chains.look_at_some(from, most, |entry| {
            *seen.entry(entry.key().to_vec()).or_default() += 1;
        });
        // Each step passes one chain of the first table, however many chains there are now.
        assert!(looked < most + 40, "{looked} at once");
        place = then;
        // The table doubles several times meanwhile.
        for _ in 0..20 {
            add(&mut pool, &mut chains, next);
            next += 1;
        }
    }
    for number in 0..first {
        assert_eq!(seen.get(&format!("{number}").into_bytes()), Some(&1));
    }
    assert!(seen.values().all(|&times| times == 1));
    // `take_some` leaves the items that are not wanted.
    let (mut place, mut out) = (Some(WalkPosition::default()), Vec::new());
    while let Some(from) = place {
        (_, place) = chains.take_some(from, 5, |entry| entry.key().ends_with(b"3"), &mut out);
    }
    assert_eq!(out.len() as u64, (next + 6) / 10);
    out.drain(..).for_each(|out| pool.release(out));
    chains.take_some(WalkPosition::default(), usize::MAX >> 8, |_| true, &mut out);
    out.drain(..).for_each(|out| pool.release(out));
    assert_eq!((pool.bytes(), chains.len()), (0, 0));
}
