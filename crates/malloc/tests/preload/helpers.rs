//! The heap's helper where processes and threads are made in unusual ways.

use crate::support::cases_pass;

cases_pass! { "helpers.c":
    a_thread_may_begin_before_the_library = "before-constructors";
}
