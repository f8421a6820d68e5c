//! The heap's helper where processes and threads are made in unusual ways.

use crate::support::cases_pass;

cases_pass! { "helpers.c":
    a_childs_handler_may_start_a_thread = "child-handler";
    a_child_without_handlers_waits_for_nobody = "cloned";
    a_thread_may_begin_before_the_library = "before-constructors";
    helpers_that_end_leave_nothing = "helpers-end";
}
