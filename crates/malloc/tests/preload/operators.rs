//! The operators of C++.

use crate::support::cases_pass;

cases_pass! {
    "operators.cc":
    all_forms_share_one_heap = "blocks";
    alignments_are_respected = "aligned";
    refusals_throw = "refusals";
    new_handlers_are_called = "handlers";
    the_cpp_library_works = "library";
}
