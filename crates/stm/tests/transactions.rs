//! Transactions from outside, under both algorithms: ends of all kinds, waiting, nesting, and many
//! threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use hearth_stm::{Algorithm, Halt, Lsa, Norec, Stm, Stop, Tx, Var, Wide, abort, thread_counts};

/// Fewer rounds in an interpreter.
const fn rounds(natively: i64) -> i64 {
    if cfg!(miri) {
        natively / 500 + 1
    } else {
        natively
    }
}

macro_rules! under_both {
    ($($name:ident;)*) => { $(
        mod $name {
            #[test]
            fn lsa() {
                super::bodies::$name::<super::Lsa>();
            }

            #[test]
            fn norec() {
                super::bodies::$name::<super::Norec>();
            }
        }
    )* };
}
under_both! {
    a_transaction_sees_its_own_writes;
    an_abort_undoes_all_writes;
    a_panic_undoes_all_writes_and_goes_on;
    the_second_alternative_sees_nothing_of_the_first;
    two_alternatives_that_retry_wait_for_either;
    a_wait_is_also_for_what_lies_beside_own_writes;
    a_wait_is_also_for_what_an_alternative_wrote;
    a_sleeper_wakes_for_its_own_words;
    a_hidden_conflict_does_not_commit;
    a_transaction_within_another_panics;
    wide_values_are_whole;
    transfers_keep_the_sum;
    starving_transactions_run_alone;
    a_slice_is_read_with_own_writes;
}

fn sum<A: Algorithm>(stm: &Stm<A>, vars: &[Var<i64>]) -> i64 {
    stm.atomically(|tx| tx.fold(vars, 0, |sum, one| sum + one))
}

mod bodies {
    use super::*;

    pub(super) fn a_transaction_sees_its_own_writes<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let vars: Vec<Var<u64>> = (0..100).map(Var::new).collect();
        stm.atomically(|tx| {
            for (at, var) in vars.iter().enumerate() {
                tx.update(var, |value| value + 1)?;
                tx.write(&vars[at / 2], 7 + at as u64)?;
                assert_eq!(tx.read(&vars[at / 2])?, 7 + at as u64);
            }
            Ok(())
        });
        assert_eq!(stm.atomically(|tx| tx.read(&vars[49])), 7 + 99);
        assert_eq!(stm.atomically(|tx| tx.read(&vars[99])), 100);
    }

    pub(super) fn an_abort_undoes_all_writes<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let vars = [Var::new(1), Var::new(2)];
        for _ in 0..20 {
            let result = stm.try_atomically(|tx| {
                tx.write(&vars[0], 5)?;
                tx.write(&vars[1], 6)?;
                tx.write(&vars[0], 7)?;
                abort::<(), _>(tx.read(&vars[0])?)
            });
            assert_eq!(result, Err(7));
            assert_eq!(sum(&stm, &vars), 3);
        }
    }

    pub(super) fn a_panic_undoes_all_writes_and_goes_on<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let var = Var::new(1);
        let body = |tx: &mut Tx<'_, A>| {
            let _ = tx;
            panic!("on purpose")
        };
        let run = || {
            stm.atomically(|tx| {
                tx.write(&var, 2)?;
                body(tx)
            })
        };
        let result: Result<(), _> = catch_unwind(AssertUnwindSafe(run));
        let message = result.expect_err("the body panics");
        assert_eq!(message.downcast_ref(), Some(&"on purpose"));
        assert_eq!(stm.atomically(|tx| tx.update(&var, |value| value + 1)), 2);
    }

    pub(super) fn the_second_alternative_sees_nothing_of_the_first<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let vars: Vec<Var<i64>> = (0..30).map(|_| Var::new(0)).collect();
        let seen = stm.atomically(|tx| {
            tx.write(&vars[0], 1)?;
            tx.or_else(
                |tx| {
                    for var in &vars {
                        tx.write(var, 2)?;
                    }
                    tx.or_else(|tx| tx.write(&vars[1], 3), |tx| tx.retry())?;
                    tx.retry()
                },
                |tx| {
                    tx.write(&vars[2], 4)?;
                    tx.fold(&vars, 0, |sum, one| sum + one)
                },
            )
        });
        assert_eq!(seen, 5);
        assert_eq!(sum(&stm, &vars), 5);
        let aborted = stm.try_atomically(|tx| {
            tx.or_else(
                |tx| {
                    tx.write(&vars[0], 100)?;
                    abort::<(), _>(())
                },
                |_| Err(Stop::Abort(())),
            )
        });
        assert_eq!(aborted, Err(()));
        assert_eq!(sum(&stm, &vars), 5);
    }

    pub(super) fn two_alternatives_that_retry_wait_for_either<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        for round in 0..200 {
            let vars = [Var::new(0), Var::new(0)];
            let take = |tx: &mut Tx<'_, A>, value: i64| {
                if value == 0 { tx.retry() } else { Ok(value) }
            };
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    stm.atomically(|tx| {
                        tx.or_else(
                            |tx| {
                                let value = tx.read(&vars[0])?;
                                take(tx, value)
                            },
                            |tx| {
                                let value = tx.read(&vars[1])?;
                                take(tx, value)
                            },
                        )
                    })
                });
                if round % 3 == 0 {
                    thread::yield_now();
                }
                stm.atomically(|tx| tx.write(&vars[round % 2], 9));
                assert_eq!(waiter.join().unwrap(), 9);
            });
        }
    }

    /// Waits in a thread until a variable is not zero, by a body that reads it, and changes it once
    /// the body has found it zero.
    fn wait_and_change<'v, A: Algorithm>(
        stm: &'v Stm<A>,
        var: &'v Var<i64>,
        body: impl Fn(&mut Tx<'v, A>) -> Result<i64, Halt> + Sync,
    ) {
        let runs = AtomicU32::new(0);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                stm.atomically(|tx| {
                    let value = body(tx)?;
                    runs.fetch_add(1, Ordering::Relaxed);
                    if value == 0 { tx.retry() } else { Ok(value) }
                })
            });
            // A waiter that panics never runs its body again.
            while runs.load(Ordering::Relaxed) == 0 && !waiter.is_finished() {
                thread::yield_now();
            }
            stm.atomically(|tx| tx.write(var, 9));
            assert_eq!(waiter.join().unwrap(), 9);
        });
    }

    pub(super) fn a_wait_is_also_for_what_lies_beside_own_writes<A: Algorithm>() {
        /// Two variables on one line of the cache, for which LSA has one lock.
        #[repr(align(64))]
        struct Pair(Var<i64>, Var<i64>);
        let stm = Stm::<A>::with_algorithm();
        let pair = Pair(Var::new(0), Var::new(0));
        wait_and_change(&stm, &pair.1, |tx| {
            tx.write(&pair.0, 1)?;
            tx.read(&pair.1)
        });
        assert_eq!(pair.0.into_inner(), 1);
    }

    pub(super) fn a_wait_is_also_for_what_an_alternative_wrote<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let var = Var::new(0);
        wait_and_change(&stm, &var, |tx| {
            tx.or_else(
                |tx| {
                    tx.write(&var, 5)?;
                    tx.retry()
                },
                |tx| tx.read(&var),
            )
        });
    }

    /// Rounds of a ring of threads, each of which waits for its own word: a wake-up that is lost
    /// hangs, and one for another's word lets the body run no more often.
    pub(super) fn a_sleeper_wakes_for_its_own_words<A: Algorithm>() {
        const THREADS: usize = 4;
        const ROUNDS: i64 = rounds(500);
        let stm = Stm::<A>::with_algorithm();
        let vars: Vec<Var<i64>> = (0..THREADS).map(|_| Var::new(0)).collect();
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (stm, vars) = (&stm, &vars);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        stm.atomically(|tx| {
                            let before = tx.read(&vars[(number + THREADS - 1) % THREADS])?;
                            let wanted = if number == 0 { round } else { round + 1 };
                            if before < wanted {
                                return tx.retry();
                            }
                            tx.write(&vars[number], round + 1)
                        });
                    }
                });
            }
        });
        assert_eq!(sum(&stm, &vars), THREADS as i64 * ROUNDS);
    }

    pub(super) fn a_hidden_conflict_does_not_commit<A: Algorithm>() {
        const ROUNDS: i64 = rounds(3_000);
        let stm = Stm::<A>::with_algorithm();
        let vars = [Var::new(0), Var::new(0)];
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        stm.atomically(|tx| {
                            // The body takes any answer.
                            let first = tx.read(&vars[0]).unwrap_or(-7);
                            thread::yield_now();
                            let second = tx.read(&vars[1]).unwrap_or(-7);
                            let _: Result<(), Halt> = tx.write(&vars[0], first + 1);
                            let _: Result<(), Halt> = tx.write(&vars[1], second + 1);
                            Ok(())
                        });
                    }
                });
            }
        });
        assert_eq!(vars.map(Var::into_inner), [3 * ROUNDS; 2]);
    }

    pub(super) fn a_transaction_within_another_panics<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let var = Var::new(1);
        let nested = || {
            stm.atomically(|tx| {
                tx.write(&var, 2)?;
                Ok(stm.atomically(|tx| tx.read(&var)))
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(nested)).is_err());
        assert_eq!(stm.atomically(|tx| tx.read(&var)), 1);
    }

    pub(super) fn wide_values_are_whole<A: Algorithm>() {
        const LAST: i64 = rounds(2_000);
        let stm = Stm::<A>::with_algorithm();
        let wide: Wide<[i64; 5], 5> = Wide::new([0; 5]);
        thread::scope(|scope| {
            scope.spawn(|| {
                for value in 1..=LAST {
                    stm.atomically(|tx| tx.write_wide(&wide, [value; 5]));
                }
            });
            let mut last = 0;
            while last < LAST {
                let values = stm.atomically(|tx| tx.read_wide(&wide));
                assert_eq!(values, [values[0]; 5]);
                assert!(values[0] >= last);
                last = values[0];
                thread::yield_now();
            }
        });
        assert_eq!(wide.into_inner(), [LAST; 5]);
    }

    pub(super) fn transfers_keep_the_sum<A: Algorithm>() {
        const ACCOUNTS: usize = 300;
        let rounds = match std::env::var_os("HEARTH_TEST_DEEP") {
            Some(_) => 3_000_000,
            None => rounds(10_000),
        };
        let stm = Stm::<A>::with_algorithm();
        let vars: Vec<Var<i64>> = (0..ACCOUNTS).map(|_| Var::new(10)).collect();
        thread::scope(|scope| {
            for number in 1..=4u64 {
                let (stm, vars) = (&stm, &vars);
                scope.spawn(move || {
                    // The seed.
                    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    for _ in 0..rounds {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let (from, to) = (random as usize >> 8, random as usize >> 32);
                        let (from, to) = (from % ACCOUNTS, to % ACCOUNTS);
                        match random % 8 {
                            0 => assert_eq!(sum(stm, vars), 10 * ACCOUNTS as i64),
                            _ => stm.atomically(|tx| {
                                tx.update(&vars[from], |sum| sum - 1)?;
                                tx.update(&vars[to], |sum| sum + 1).map(drop)
                            }),
                        }
                    }
                });
            }
        });
        assert_eq!(sum(&stm, &vars), 10 * ACCOUNTS as i64);
    }

    /// A long transaction among short ones that always get in its way.
    pub(super) fn starving_transactions_run_alone<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm().alone_after(3);
        let vars: Vec<Var<i64>> = (0..64).map(|_| Var::new(0)).collect();
        let (done, attempts) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while done.load(Ordering::Relaxed) == 0 {
                        for var in &vars {
                            stm.atomically(|tx| tx.update(var, |value| value + 1));
                        }
                    }
                });
            }
            for _ in 0..20 {
                attempts.store(0, Ordering::Relaxed);
                stm.atomically(|tx| {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    for var in &vars {
                        thread::yield_now();
                        tx.update(var, |value| value + 1)?;
                    }
                    Ok(())
                });
                // Three failures, a commit of each other thread, and locks that those hold.
                assert!(attempts.load(Ordering::Relaxed) < 50);
            }
            done.store(1, Ordering::Relaxed);
        });
        assert!(thread_counts::<A>().commits >= 20);
    }

    pub(super) fn a_slice_is_read_with_own_writes<A: Algorithm>() {
        let stm = Stm::<A>::with_algorithm();
        let vars: Vec<Var<i64>> = (0..1000).map(Var::new).collect();
        let sums = stm.atomically(|tx| {
            let before = tx.fold(&vars, 0, |sum, one| sum + one)?;
            tx.write(&vars[500], 0)?;
            tx.write(&vars[7], 107)?;
            Ok((before, tx.fold(&vars, 0, |sum, one| sum + one)?))
        });
        assert_eq!(sums, (499_500, 499_100));
        assert_eq!(
            stm.atomically(|tx| tx.fold(&vars[..0], 3, |sum, one| sum + one)),
            3
        );
    }
}

#[test]
fn a_wait_for_nothing_panics() {
    let stm = Stm::new();
    let wait = || stm.atomically(|tx| tx.retry::<()>());
    assert!(catch_unwind(AssertUnwindSafe(wait)).is_err());
}
