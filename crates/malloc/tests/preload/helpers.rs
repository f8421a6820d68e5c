//! The heap's helper where processes and threads are created in unusual ways.

use crate::support::cases_pass;

cases_pass! { "helpers.c":
    a_fork_handler_in_the_child_may_start_a_thread = "child-handler";
    a_child_without_fork_handlers_does_not_wait = "cloned";
    a_thread_may_start_before_the_library = "before-constructors";
    ended_helpers_leak_nothing = "helpers-end";
}
