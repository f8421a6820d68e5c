//! The store under its memory limit, and used by many threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hearth_sys::clock::Clock as Ticks;

use super::{Condition, Mode, Refused, Settings, Store, Stored, Worker};

fn store(settings: Settings) -> Store {
    Store::new(settings, Ticks::monotonic()).expect("there is memory")
}

fn set(store: &Store, worker: &mut Worker, key: &[u8], value: &[u8]) -> Result<Stored, Refused> {
    let mut fresh = store.make(worker, (key, store.hash_of(key)), value.len())?;
    fresh.push(value);
    fresh.push(b"\r\n");
    Ok(store.store(worker, fresh, Mode::Set, Condition::default()))
}

fn get(store: &Store, worker: &mut Worker, key: &[u8]) -> Option<Vec<u8>> {
    store.get(worker, (key, store.hash_of(key)), |entry| {
        entry.value().to_vec()
    })
}

/// A value that shows its number.
fn value_of(number: u64, length: usize) -> Vec<u8> {
    number
        .to_le_bytes()
        .into_iter()
        .cycle()
        .take(length)
        .collect()
}

#[test]
fn ten_times_as_much_as_there_is_room_for_stays_within_the_limit() {
    let memory = 8 << 20;
    let store = store(Settings {
        memory,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    let length = |number: u64| 100 + (number * 7919 % 3000) as usize;
    let mut stored = 0;
    let mut number = 0;
    while stored < 10 * memory {
        let bytes = length(number);
        set(
            &store,
            &mut worker,
            format!("{number}").as_bytes(),
            &value_of(number, bytes),
        )
        .expect("others go");
        stored += bytes;
        number += 1;
    }
    let held = store.holdings();
    assert!(
        held.bytes <= memory && held.owned <= memory + memory / 8,
        "{held:?}"
    );
    assert!(store.moves().evictions.get() > 0);
    let mut found = 0;
    for i in 0..number {
        if let Some(value) = get(&store, &mut worker, format!("{i}").as_bytes()) {
            assert_eq!(value, value_of(i, length(i)));
            found += value.len();
        }
    }
    assert!(found > memory / 2, "only {found} bytes are still there");
}

#[test]
fn items_of_one_size_use_the_memory_that_there_is() {
    let memory = 64 << 20;
    let store = store(Settings {
        memory,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    // Repeated, so that the heap has grown to its largest size.
    for number in 0..120_000u64 {
        let key = format!("{number:064}");
        set(&store, &mut worker, key.as_bytes(), &[7; 1024]).expect("others go");
    }
    let held = store.holdings();
    assert!(
        held.charged > memory / 100 * 95 && held.charged <= memory,
        "{held:?}"
    );
    assert!(held.owned <= memory + memory / 8, "{held:?}");
}

#[test]
fn without_eviction_what_is_too_much_is_refused() {
    let store = store(Settings {
        memory: 1 << 20,
        evicts: false,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    let mut kept = 0;
    while set(
        &store,
        &mut worker,
        format!("{kept}").as_bytes(),
        &[1; 1000],
    )
    .is_ok()
    {
        kept += 1;
    }
    assert!((800..1049).contains(&kept), "{kept} items");
    assert_eq!(store.moves().evictions.get(), 0);
    assert!(get(&store, &mut worker, b"0").is_some());
}

/// Stores items with this expiry until many in a row find no memory, and returns their number.
fn fill(store: &Store, worker: &mut Worker, name: &str, expires: i32) -> u64 {
    let (mut stored, mut refused) = (0, 0);
    while refused < 100 {
        let key = format!("{name} {stored}").into_bytes();
        let Ok(mut fresh) = store.make(worker, (&key, store.hash_of(&key)), 1000) else {
            refused += 1;
            continue;
        };
        fresh.push(&[1; 1000]);
        fresh.push(b"\r\n");
        fresh.set_expires(store.clock().expiry(expires));
        store.store(worker, fresh, Mode::Set, Condition::default());
        (stored, refused) = (stored + 1, 0);
    }
    stored
}

#[test]
fn without_eviction_what_is_as_good_as_gone_makes_room_nevertheless() {
    let store = store(Settings {
        memory: 1 << 20,
        evicts: false,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    // A few items that stay, and are the oldest.
    for number in 0..100 {
        let key = format!("stays {number}");
        set(&store, &mut worker, key.as_bytes(), &[2; 1000]).expect("room");
    }
    let first = fill(&store, &mut worker, "expires", 10);
    assert!(first > 700, "{first} items");
    store.clock().advance(10);
    let second = fill(&store, &mut worker, "forgotten", 0);
    assert_eq!(second, first, "all that expired made room");
    assert_eq!(store.moves().reclaimed.get(), first);
    for number in 0..100 {
        let key = format!("stays {number}");
        assert!(get(&store, &mut worker, key.as_bytes()).is_some(), "{key}");
    }
    store.forget(0);
    let third = fill(&store, &mut worker, "new", 0);
    assert_eq!(third, first + 100);
    assert_eq!(store.moves().evictions.get(), 0);
    store.reset_counted();
    assert_eq!(store.moves().reclaimed.get(), 0);
}

#[test]
fn what_was_told_to_be_forgotten_is_not_evicted_but_reclaimed() {
    let store = store(Settings {
        memory: 8 << 20,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    for number in 0..6000 {
        let key = format!("old {number}");
        set(&store, &mut worker, key.as_bytes(), &[2; 1000]).expect("room");
    }
    store.forget(0);
    for number in 0..6000 {
        let key = format!("new {number}");
        set(&store, &mut worker, key.as_bytes(), &[2; 1000]).expect("room");
    }
    let moves = store.moves();
    assert!(moves.reclaimed.get() > 3000, "{moves:?}");
    assert_eq!(moves.evictions.get(), 0, "{moves:?}");
    assert_eq!(moves.expired_unfetched.get(), moves.reclaimed.get());
}

#[test]
fn where_the_system_gives_no_more_memory_items_go_for_new_ones() {
    for evicts in [true, false] {
        let store = store(Settings {
            evicts,
            ..Settings::default()
        });
        let mut worker = Worker::default();
        for number in 0..1000 {
            let key = format!("{number}");
            set(&store, &mut worker, key.as_bytes(), &[2; 1000]).expect("room");
        }
        store.starve();
        let results: Vec<bool> = (0..500)
            .map(|number| {
                let key = format!("more {number}");
                set(&store, &mut worker, key.as_bytes(), &[2; 1000]).is_ok()
            })
            .collect();
        assert!(results.iter().all(|&is_stored| is_stored == evicts));
        let moves = store.moves();
        let (evictions, refusals) = if evicts { (500, 0) } else { (0, 500) };
        assert!(moves.evictions.get().abs_diff(evictions) <= 1, "{moves:?}");
        assert_eq!(moves.refusals.get(), refusals);
    }
}

#[test]
fn a_lower_limit_is_reached_little_by_little() {
    let store = store(Settings {
        memory: 64 << 20,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    for number in 0..40_000 {
        let key = format!("{number}");
        set(&store, &mut worker, key.as_bytes(), &[2; 1000]).expect("room");
    }
    let items = || store.holdings().items.iter().sum::<usize>();
    let before = items();
    store.set_memory(8 << 20);
    // An allocation frees the items that it needs and a few more.
    set(&store, &mut worker, b"one", &[2; 1000]).expect("room");
    assert!(items() < before && items() + 8 > before, "{}", items());
    set(&store, &mut worker, b"large", &[2; 100_000]).expect("room");
    assert!(items() + 200 > before, "{}", items());
    let (mut chores, mut pieces, mut last) = (store.chores(), 0, items());
    while store.work(&mut worker, &mut chores) {
        assert!(last - items() <= 64, "{} at once", last - items());
        (pieces, last) = (pieces + 1, items());
    }
    assert!(pieces > (before - last) / 64);
    assert!(store.holdings().charged <= 8 << 20);
    assert!(get(&store, &mut worker, b"large").is_some());
}

#[test]
fn the_crawler_looks_at_everything_in_pieces_and_at_a_tenth_in_a_second() {
    // Few parts, so that each has many items.
    let store = store(Settings {
        lock_power: 4,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    let count = 40_000;
    for number in 0..count {
        let key = format!("{number}");
        set(&store, &mut worker, key.as_bytes(), b"x").expect("room");
    }
    let mut last = 0;
    let mut second = |store: &Store, worker: &mut Worker| {
        let mut chores = store.chores();
        while store.work(worker, &mut chores) {
            let looked = store.crawled().1;
            assert!(looked - last < 300, "{} at once", looked - last);
            last = looked;
        }
        last
    };
    let first = second(&store, &mut worker);
    assert!(first < count / 4, "{first} in the first second");
    for _ in 0..9 {
        second(&store, &mut worker);
    }
    assert!(second(&store, &mut worker) >= count);
    store.ask_for_crawl();
    assert!(second(&store, &mut worker) >= 2 * count);
    store.set_crawler(false);
    let before = store.crawled().1;
    assert_eq!(second(&store, &mut worker), before);
}

#[test]
fn what_is_asked_for_again_and_again_outlives_what_is_not() {
    let store = store(Settings {
        memory: 2 << 20,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    for i in 0..200 {
        set(
            &store,
            &mut worker,
            format!("often {i}").as_bytes(),
            &[1; 1000],
        )
        .expect("room");
    }
    // A scan over many times as many items as fit.
    for i in 0..20_000_u64 {
        set(
            &store,
            &mut worker,
            format!("once {i}").as_bytes(),
            &[2; 1000],
        )
        .expect("room");
        let _ = get(&store, &mut worker, format!("often {}", i % 200).as_bytes());
    }
    let still = (0..200)
        .filter(|i| get(&store, &mut worker, format!("often {i}").as_bytes()).is_some())
        .count();
    assert!(still > 190, "{still} of 200");
}

#[test]
fn what_has_ended_is_found_by_the_crawler() {
    let store = store(Settings::default());
    let mut worker = Worker::default();
    for i in 0..1000 {
        let key = format!("{i}");
        let hash = store.hash_of(key.as_bytes());
        let mut fresh = store
            .make(&mut worker, (key.as_bytes(), hash), 1)
            .expect("room");
        fresh.push(b"x\r\n");
        fresh.set_expires(store.clock().expiry(if i % 2 == 0 { 10 } else { 0 }));
        store.store(&mut worker, fresh, Mode::Set, Condition::default());
    }
    store.clock().advance(10);
    store.crawl_all(&mut worker);
    assert_eq!(store.holdings().items.iter().sum::<usize>(), 500);
    assert_eq!(store.crawled().0, 500);
}

#[test]
fn many_hands_lose_nothing_and_tear_nothing() {
    let settings = Settings {
        memory: 4 << 20,
        lock_power: 3,
        ..Settings::default()
    };
    let store = store(settings);
    let (keys, rounds) = (3000, if cfg!(miri) { 50 } else { 40_000 });
    let hits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for hand in 0..4_u64 {
            let (store, hits) = (&store, &hits);
            scope.spawn(move || {
                let mut worker = Worker::default();
                let mut state = hand + 1;
                for _ in 0..rounds {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(hand * 2 + 1);
                    let number = (state >> 33) % keys;
                    let key = format!("key {number}");
                    match (state >> 20) % 8 {
                        0..3 => {
                            let length = 8 + (state >> 40) as usize % 4000;
                            set(
                                store,
                                &mut worker,
                                key.as_bytes(),
                                &value_of(number, length),
                            )
                            .expect("others go");
                        }
                        3 => {
                            let slot = (key.as_bytes(), store.hash_of(key.as_bytes()));
                            let out = store.slot(&mut worker, slot).take();
                            worker.keep(out);
                            store.settle(&mut worker);
                        }
                        _ => {
                            if let Some(value) = get(store, &mut worker, key.as_bytes()) {
                                assert_eq!(value, value_of(number, value.len()));
                                hits.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
                store.free_kept(&mut worker);
            });
        }
    });
    assert!(hits.load(Ordering::Relaxed) > 0);
    let mut items = 0;
    store.for_each(|_| items += 1);
    assert_eq!(store.holdings().items.iter().sum::<usize>(), items);
}

#[test]
fn a_limit_that_is_nearly_every_number_is_one_too() {
    let store = store(Settings {
        memory: usize::MAX - 1,
        ..Settings::default()
    });
    let mut worker = Worker::default();
    set(&store, &mut worker, b"key", b"value").expect("room");
    assert_eq!(get(&store, &mut worker, b"key"), Some(b"value".to_vec()));
    assert_eq!(store.moves().evictions.get(), 0);
}

/// A refused item must not be counted even for a moment.
#[test]
fn a_share_that_is_refused_takes_no_room_from_another() {
    let store = store(Settings {
        memory: 3 << 20,
        ..Settings::default()
    });
    let make = |key: &[u8], bytes| {
        let key = (key, store.hash_of(key));
        store
            .make(&mut Worker::default(), key, bytes)
            .expect("room")
    };
    // The limit is 1.5 MiB: beside the first there is room for the small one, never for the large.
    let (first, small) = (make(b"first", 600_000), make(b"small", 300_000));
    let _first = store.share_for(&first).expect("it is the first");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let large = make(b"large", 1_000_000);
            while !is_over.load(Ordering::Relaxed) {
                assert!(store.share_for(&large).is_none(), "beside the first");
            }
        });
        let refused = (0..300_000).filter(|_| store.share_for(&small).is_none());
        let refused = refused.count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0);
    });
}
