//! Maps sizes to lists without a loop. Pure.
//!
//! Up to 512 bytes there is a list for each multiple of 4; above, a row for each power of two, cut
//! evenly into 64 lists.

/// The largest small size.
pub const SMALL_MAX: usize = 512;
/// Lists of small sizes, 4 bytes apart.
pub const SMALL_LISTS: usize = 128;
/// Lists a row, as a power of two.
pub const SL_LOG2: u32 = 6;
/// Lists a row.
pub const LISTS: usize = 1 << SL_LOG2;
/// Rows go from sizes of 2^9 to sizes below 2^32.
pub const ROWS: usize = 23;
/// The first row's power of two.
const FIRST_ROW_LOG2: u32 = 9;
/// The largest size that a block's 32-bit field holds.
pub const SIZE_MAX: usize = (1 << 31) - 1;

/// The list that keeps blocks of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListId {
    /// By number, from 1 to 128: four times that many bytes.
    Small(usize),
    /// Row from 0 to 22, list from 0 to 63.
    Normal(usize, usize),
}

/// The list that a block of `size` bytes belongs to; `size` is not 0.
#[must_use]
pub const fn insert_map(size: usize) -> ListId {
    if size <= SMALL_MAX {
        return ListId::Small(size.div_ceil(4));
    }
    let i = size.ilog2();
    let j = (size >> (i - SL_LOG2)) - LISTS;
    ListId::Normal((i - FIRST_ROW_LOG2) as usize, j)
}

/// The first list in which every block has `size` bytes or more, and the least size there.
#[must_use]
pub const fn search_map(size: usize) -> (ListId, usize) {
    if size <= SMALL_MAX {
        let place = insert_map(size);
        return (place, size.div_ceil(4) * 4);
    }
    let q = (1 << (size.ilog2() - SL_LOG2)) - 1;
    let u = size + q;
    // In the next row only its first list can be reached, where `q` cuts off as much.
    (insert_map(u), u & !q)
}

/// Bytes from the first to the last size of a normal list.
#[must_use]
pub const fn bounds(row: usize, list: usize) -> (usize, usize) {
    let log2 = row as u32 + FIRST_ROW_LOG2 - SL_LOG2;
    ((LISTS + list) << log2, ((LISTS + list + 1) << log2) - 1)
}

/// A normal list's cell in the one-dimensional matrix.
///
/// Mended: the printed stride is 23, the number of rows, with which lists of different rows share
/// cells ([`published_cell`]); the number of lists a row is the stride that keeps them apart.
#[must_use]
pub const fn cell(row: usize, list: usize) -> usize {
    row * LISTS + list
}

/// The cell as printed.
#[must_use]
pub const fn published_cell(row: usize, list: usize) -> usize {
    const PRINTED: usize = 23;
    row * PRINTED + list
}
