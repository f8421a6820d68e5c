//! Traps for an allocator: frees under locks of the C library, and system calls that are refused
//! later on. A case that takes too long is killed, and fails.

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
    a_join_may_free_a_stack_of_the_programs = "own-stack";
    joins_may_free_stacks_of_the_programs = "own-stacks";
    joins_may_free_the_cache_of_stacks = "many-stacks";
}

end_in_time! {
    "sandbox.c":
    nothing_rests_on_barriers_that_are_refused = "refused-later";
    barriers_may_be_refused_before_there_are_threads = "refused-before-threads";
}
