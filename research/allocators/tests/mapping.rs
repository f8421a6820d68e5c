//! nMART's mapping, exhaustively, and the behaviour of the printed matrix index.

use std::collections::HashSet;

use hearth_allocators::nmart::block::payload_for;
use hearth_allocators::nmart::mapping::{
    LISTS, ListId, ROWS, SMALL_LISTS, bounds, cell, insert_map, published_cell, search_map,
};

#[test]
fn every_size_up_to_a_mebibyte_is_mapped_right() {
    let mut last = ListId::Small(1);
    for size in 1..=1usize << 20 {
        let place = insert_map(size);
        assert!(place >= last, "{size}: lists go by size");
        last = place;
        let (found, least) = search_map(size);
        // A block of the least size that is searched for belongs to the list that is searched.
        assert_eq!(insert_map(least), found, "{size}");
        assert!(least >= size, "{size}: {least}");
        match (place, found) {
            (ListId::Small(number), ListId::Small(same)) => {
                assert!(size <= 512 && number == same && number <= SMALL_LISTS);
                assert_eq!(least, size.next_multiple_of(4));
            }
            (ListId::Normal(row, list), ListId::Normal(from, first)) => {
                assert!(row < ROWS && list < LISTS);
                let (low, high) = bounds(row, list);
                assert!((low..=high).contains(&size), "{size}: {low} to {high}");
                // No block of the list searched is too small, and the one before has such.
                let (low, _) = bounds(from, first);
                assert!(low >= size && low == least, "{size}: {low}");
                assert!(low == size || place < found);
                let rounded = (least - size) as f64 / size as f64;
                assert!(rounded <= 1.0 / 64.0, "{size}: {rounded}");
            }
            _ => panic!("{size}: {place:?} and {found:?}"),
        }
    }
}

#[test]
fn the_worked_example() {
    // Row 0 begins with 2^9; the example's row 13 is the fifth.
    assert_eq!(insert_map(8204), ListId::Normal(13 - 9, 0));
    assert_eq!(search_map(8204), (ListId::Normal(13 - 9, 1), 8320));
    // The text says 8177 to 8304, which its own formula does not give.
    assert_eq!(bounds(13 - 9, 0), (8192, 8319));
    assert_eq!(insert_map(512), ListId::Small(128));
    assert_eq!(insert_map(513), ListId::Normal(0, 0));
}

#[test]
fn each_list_has_a_cell_of_its_own_but_not_as_printed() {
    let cells = |cell: fn(usize, usize) -> usize| -> HashSet<usize> {
        let all = (0..ROWS).flat_map(|row| (0..LISTS).map(move |list| (row, list)));
        all.map(|(row, list)| cell(row, list)).collect()
    };
    assert_eq!(cells(cell).len(), 1472);
    assert_eq!(cells(published_cell).len(), 570);
    // The example in the text is of the first level's bit and the second's: 1 · 23 + 3.
    assert_eq!(published_cell(1, 3), 26);
}

#[test]
fn payloads_fit_the_abi_and_the_request() {
    for bytes in 0..10_000 {
        let payload = payload_for(bytes);
        assert!(
            payload >= bytes.max(24) && payload % 16 == 8,
            "{bytes}: {payload}"
        );
        assert!(bytes <= 24 || payload < bytes + 16, "{bytes}: {payload}");
    }
}
