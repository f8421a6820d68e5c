//! The operators of C++.

use crate::support::cases_pass;

cases_pass! {
    "operators.cc":
    all_forms_are_one_heap = "blocks";
    alignments_hold = "aligned";
    what_is_refused_throws = "refusals";
    handlers_are_called = "handlers";
    the_library_works = "library";
}
