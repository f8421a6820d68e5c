//! Situations in which an allocator may hang: frees under locks of the C library, and system calls
//! that are refused later. A case that takes too long is killed, and fails.

use std::time::Duration;

use crate::support::{Profile, command, passes_within};

/// Far longer than these take on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

macro_rules! end_in_time {
    ($source:literal: $($name:ident = $case:literal;)*) => { $(
        #[test]
        fn $name() {
            for with in [None, Some(Profile::Release), Some(Profile::Development)] {
                passes_within(&mut command($source, $case, with), BOUND);
            }
        }
    )* };
}

end_in_time! {
    "joins.c":
    a_join_may_free_a_user_supplied_stack = "own-stack";
    joins_may_free_user_supplied_stacks = "own-stacks";
    joins_may_trim_the_stack_cache = "many-stacks";
}

end_in_time! {
    "sandbox.c":
    membarrier_may_be_refused_later = "refused-later";
    membarrier_may_be_refused_before_the_first_thread = "refused-before-threads";
}
