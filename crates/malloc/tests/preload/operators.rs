//! The operators of C++.

use crate::support::{Profile, command, passes};

macro_rules! cases {
    ($($name:ident = $case:literal;)*) => { $(
        #[test]
        fn $name() {
            for with in [None, Some(Profile::Release), Some(Profile::Development)] {
                passes(&mut command("operators.cc", $case, with));
            }
        }
    )* };
}

cases! {
    all_forms_are_one_heap = "blocks";
    alignments_hold = "aligned";
    what_is_refused_throws = "refusals";
    handlers_are_called = "handlers";
    the_library_works = "library";
}
