//! Programs that the bounds of the public types refuse: none of these compiles. Without the bound
//! it would use one thread's data from two threads, or keep a dangling reference.
//!
//! Data that does not go to other threads:
//! ```compile_fail,E0277
//! hearth_sync::Owned::new(std::rc::Rc::new(0));
//! ```
//! A closure that does not:
//! ```compile_fail,E0277
//! let (owned, mine) = (hearth_sync::Owned::new(0), std::rc::Rc::new(1));
//! owned.call(|data| *data += *mine);
//! ```
//! A result that does not:
//! ```compile_fail,E0277
//! let owned = hearth_sync::Owned::new(0);
//! owned.call(|data| std::rc::Rc::new(*data));
//! ```
//! A job that does not:
//! ```compile_fail,E0277
//! let (workers, mine) = (hearth_sync::Workers::start(0).unwrap(), std::rc::Rc::new(1));
//! workers.run(move || drop(mine));
//! ```
//! An answer that does not:
//! ```compile_fail,E0277
//! let (reply, answer) = hearth_sync::Reply::new(hearth_sync::Wait::park());
//! std::thread::spawn(move || reply.send(std::rc::Rc::new(1)));
//! let _ = answer.wait();
//! ```
//! Nor is it waited for elsewhere:
//! ```compile_fail,E0277
//! let (reply, answer) = hearth_sync::Reply::new(hearth_sync::Wait::park());
//! std::thread::spawn(move || drop(answer.wait()));
//! reply.send(std::rc::Rc::new(1));
//! ```
//! Data that borrows:
//! ```compile_fail,E0597
//! let owned = {
//!     let text = String::from("gone");
//!     hearth_sync::Owned::new(text.as_str())
//! };
//! ```
//! A posted closure that borrows, as no thread waits for it:
//! ```compile_fail,E0373
//! let (owned, mine) = (hearth_sync::Owned::new(0), 1);
//! owned.post(|data| *data += mine);
//! ```
//! A request for later that borrows:
//! ```compile_fail,E0373
//! use hearth_sync::{Administrator, Owned};
//! let asked = Administrator::build(Owned::builder(), 0, 0).unwrap();
//! let mine = 1;
//! let answer = asked.request_later(|data, reply| reply.send(*data + mine));
//! ```
//! The data, carried out by what the closure has captured:
//! ```compile_fail,E0521
//! let (owned, mut kept) = (hearth_sync::Owned::new(0), None);
//! owned.call(|data| kept = Some(data));
//! ```
//! The data, carried out as the result:
//! ```compile_fail
//! let owned = hearth_sync::Owned::new(vec![0u8]);
//! let data: &mut Vec<u8> = owned.call(|data: &mut Vec<u8>| data);
//! ```
//! A handle taken apart while it is in use:
//! ```compile_fail,E0505
//! let owned = hearth_sync::Owned::new(0);
//! owned.call(|_| drop(owned));
//! ```
