//! Every side of the comparison of transactional memories, for its answer.

use hearth_benches::stm::{ROWS, check};

#[test]
fn all_sides_keep_their_data_right() {
    for row in ROWS {
        assert_eq!(check(row), Ok(()));
    }
}
