//! Conformance with C, POSIX and the GNU library.

use crate::support::cases_pass;

cases_pass! {
    "conformance.c":
    blocks_are_aligned_to_16 = "alignment";
    blocks_of_nothing_are_blocks = "nothing";
    calloc_gives_zeroes = "zeroes";
    products_that_overflow_are_refused = "overflow";
    what_is_too_large_is_refused = "too-large";
    large_blocks_take_what_is_touched = "sparse";
    realloc_keeps_what_fits = "resize";
    buffers_grow = "grow";
    what_shrinks_gives_memory_back = "shrink";
    alignments_hold = "aligned";
    other_alignments_are_as_in_the_c_library = "bad-alignments";
    valloc_and_pvalloc_give_pages = "pages";
    errno_stays = "error-number";
    errno_is_zero_at_main_and_stays = "kept-error-number";
    mappings_have_no_limit_of_their_own = "many-mappings";
    huge_alignments_hold = "huge-alignments";
    errno_stays_where_memory_is_locked = "locked-error-number";
    trim_gives_memory_back = "trim";
    c23_frees_with_sizes = "c23";
    inner_names_are_the_same_heap = "old-names";
    statistics_can_be = "statistics";
    random_blocks_keep_their_contents = "random-life";
}
