//! Conformance with C, POSIX and the GNU library.

use crate::support::cases_pass;

cases_pass! {
    "conformance.c":
    blocks_are_aligned_to_16 = "alignment";
    empty_blocks_are_distinct = "nothing";
    calloc_zeroes = "zeroes";
    overflowing_sizes_are_refused = "overflow";
    oversized_requests_are_refused = "too-large";
    large_blocks_use_only_touched_memory = "sparse";
    realloc_preserves_contents = "resize";
    buffers_grow = "grow";
    shrinking_returns_memory = "shrink";
    alignments_are_respected = "aligned";
    invalid_alignments_behave_as_in_the_c_library = "bad-alignments";
    valloc_and_pvalloc_return_pages = "pages";
    errno_is_preserved = "error-number";
    errno_is_zero_at_main_and_preserved = "kept-error-number";
    mappings_have_no_extra_limit = "many-mappings";
    huge_alignments_are_respected = "huge-alignments";
    errno_is_preserved_with_locked_memory = "locked-error-number";
    trim_returns_memory = "trim";
    c23_sized_frees_work = "c23";
    internal_names_use_the_same_heap = "old-names";
    statistics_are_plausible = "statistics";
    random_blocks_keep_their_contents = "random-life";
}
