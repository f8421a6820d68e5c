//! Programs as SCOOP has them, and the rules of calls: order, waits, panics, circles.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hearth::{Hearth, Sender, block_on, channel};
use hearth_regions::{CallError, Local, LocalError, Object, Regions, Separate, Tracer};

fn start() -> (Hearth, Regions) {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    let regions = Regions::start(&hearth);
    (hearth, regions)
}

struct Account {
    balance: i64,
}
impl Object for Account {}

#[test]
fn a_bank_keeps_its_money() {
    const ACCOUNTS: usize = 8;
    let (_hearth, regions) = start();
    let accounts: Vec<Separate<Account>> = (0..ACCOUNTS)
        .map(|_| regions.create(|_| Account { balance: 100 }).unwrap())
        .collect();
    // A transfer is a call of the giver, which logs a call of the taker.
    let clients: Vec<_> = (0..4_u64)
        .map(|seed| {
            let accounts = accounts.clone();
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..500 {
                    let from = random.usize(0..ACCOUNTS);
                    let to = accounts[random.usize(0..ACCOUNTS)].clone();
                    let amount = random.i64(1..50);
                    let transfer = move |giver: &mut Account, _: &mut _| {
                        if giver.balance >= amount {
                            giver.balance -= amount;
                            to.command(move |taker, _| taker.balance += amount).unwrap();
                        }
                    };
                    accounts[from].command(transfer).unwrap();
                }
            })
        })
        .collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    block_on(regions.rest());
    let balances: Vec<_> = accounts
        .iter()
        .map(|account| account.query(|account, _| account.balance))
        .collect();
    let balances: Vec<i64> = balances.into_iter().map(|it| it.wait().unwrap()).collect();
    assert!(balances.iter().all(|balance| *balance >= 0), "{balances:?}");
    assert_eq!(balances.iter().sum::<i64>(), 100 * ACCOUNTS as i64);
    assert_eq!(regions.take_failures(), Vec::<String>::new());
}

#[derive(Default)]
struct Fork {
    meals: usize,
}
impl Object for Fork {}

/// A call keeps its processor: a call of a fork that waits for a call of the next one has both.
async fn eat(
    first: &Separate<Fork>,
    second: Separate<Fork>,
) -> Result<Result<(), CallError>, CallError> {
    first
        .query_async(move |fork, _| {
            Box::pin(async move {
                fork.meals += 1;
                second.query(|fork, _| fork.meals += 1).await
            })
        })
        .await
}

fn dine(is_ordered: bool) -> (usize, usize) {
    const SEATS: usize = 5;
    const MEALS: usize = 200;
    let (hearth, regions) = start();
    let forks: Vec<Separate<Fork>> = (0..SEATS)
        .map(|_| regions.create(|_| Fork::default()).unwrap())
        .collect();
    let philosophers: Vec<_> = (0..SEATS)
        .map(|seat| {
            let (mut left, mut right) = (forks[seat].clone(), forks[(seat + 1) % SEATS].clone());
            if is_ordered && seat + 1 == SEATS {
                std::mem::swap(&mut left, &mut right);
            }
            hearth.spawn(async move {
                let mut hungry = 0;
                for _ in 0..MEALS {
                    match eat(&left, right.clone()).await.unwrap() {
                        Ok(()) => {}
                        Err(CallError::Deadlock { circle }) => {
                            assert_eq!(circle, SEATS);
                            hungry += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                hungry
            })
        })
        .collect();
    let hungry = philosophers
        .into_iter()
        .map(|it| block_on(it).unwrap())
        .sum();
    let meals = forks
        .iter()
        .map(|fork| fork.query(|fork, _| fork.meals).wait().unwrap());
    (meals.sum(), hungry)
}

#[test]
fn philosophers_in_order_all_eat() {
    assert_eq!(dine(true), (2 * 5 * 200, 0));
}

#[test]
fn philosophers_without_order_are_told_of_circles() {
    // Only the wait fails: the query is logged, and is applied when the fork is free.
    let (meals, _hungry) = dine(false);
    assert_eq!(meals, 2 * 5 * 200);
}

#[derive(Default)]
struct Buffer {
    values: VecDeque<u64>,
}
impl Object for Buffer {}

#[test]
fn a_consumer_gets_all_that_a_producer_makes() {
    let (hearth, regions) = start();
    let buffer = regions.create(|_| Buffer::default()).unwrap();
    let from = buffer.clone();
    let consumer = hearth.spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 1000 {
            seen.extend(
                from.query(|buffer, _| buffer.values.pop_front())
                    .await
                    .unwrap(),
            );
        }
        seen
    });
    for value in 0..1000 {
        buffer
            .command(move |buffer, _| buffer.values.push_back(value))
            .unwrap();
    }
    assert_eq!(block_on(consumer).unwrap(), (0..1000).collect::<Vec<u64>>());
}

struct Tree {
    value: u64,
    children: Vec<Separate<Tree>>,
}
impl Object for Tree {
    fn trace(&self, tracer: &mut Tracer) {
        self.children.trace(tracer);
    }
}

impl Tree {
    fn of_depth(depth: u32, regions: &Regions) -> Separate<Tree> {
        let children = match depth {
            0 => Vec::new(),
            _ => vec![
                Tree::of_depth(depth - 1, regions),
                Tree::of_depth(depth - 1, regions),
            ],
        };
        regions.create(|_| Tree { value: 1, children }).unwrap()
    }

    fn sum(of: &Separate<Tree>) -> hearth_regions::Answer<u64> {
        of.query_async(|tree, _| {
            Box::pin(async move {
                // Both work at the same time; the wait is by necessity.
                let answers: Vec<_> = tree.children.iter().map(Tree::sum).collect();
                let mut sum = tree.value;
                for answer in answers {
                    sum += answer.await.unwrap();
                }
                sum
            })
        })
    }
}

#[test]
fn a_tree_over_processors_is_summed_and_collected() {
    let (_hearth, regions) = start();
    let root = Tree::of_depth(7, &regions);
    assert_eq!(Tree::sum(&root).wait(), Ok(255));
    assert_eq!(regions.processors(), 255);
    block_on(regions.rest());
    assert_eq!(regions.collect().processors, 0);
    assert_eq!(Tree::sum(&root).wait(), Ok(255));
    drop(root);
    block_on(regions.rest());
    let collected = regions.collect();
    assert_eq!((collected.processors, collected.objects), (255, 255));
    assert_eq!(regions.processors(), 0);
}

struct Log(Vec<(usize, usize)>);
impl Object for Log {}

#[test]
fn calls_of_a_client_are_applied_in_order() {
    let (_hearth, regions) = start();
    let log = regions.create(|_| Log(Vec::new())).unwrap();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let log = log.clone();
            std::thread::spawn(move || {
                for number in 0..500 {
                    log.command(move |log, _| log.0.push((client, number)))
                        .unwrap();
                    if number % 100 == 99 {
                        // A query comes after the commands before it.
                        let seen = log.query(move |log, _| {
                            log.0.iter().filter(|(of, _)| *of == client).count()
                        });
                        assert_eq!(seen.wait(), Ok(number + 1));
                    }
                }
            })
        })
        .collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    let all = log
        .query(|log, _| std::mem::take(&mut log.0))
        .wait()
        .unwrap();
    for client in 0..4 {
        let of: Vec<usize> = all
            .iter()
            .filter(|it| it.0 == client)
            .map(|it| it.1)
            .collect();
        assert_eq!(of, (0..500).collect::<Vec<_>>());
    }
}

/// Keeps a processor busy until something is sent.
fn hold<T: Object>(object: &Separate<T>, hearth: &Hearth) -> Sender<()> {
    let (out, into) = channel::<()>();
    object
        .command_async(move |_, _| {
            Box::pin(async move {
                let _ = into.recv().await;
            })
        })
        .unwrap();
    Sender::new(hearth, out)
}

#[test]
fn a_query_waits_when_its_answer_is_needed() {
    let (hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 1 }).unwrap();
    let gate = hold(&account, &hearth);
    let first = account.query(|account, _| account.balance);
    account.command(|account, _| account.balance = 2).unwrap();
    let second = account.query(|account, _| account.balance);
    // All that went on while nothing was applied.
    gate.send_blocking(()).unwrap();
    assert_eq!((second.wait(), first.wait()), (Ok(2), Ok(1)));
}

struct Client {
    supplier: Separate<Account>,
    applied: Arc<AtomicUsize>,
}
impl Object for Client {
    fn trace(&self, tracer: &mut Tracer) {
        self.supplier.trace(tracer);
    }
}

#[test]
fn calls_of_a_dead_client_are_applied() {
    let (hearth, regions) = start();
    let applied = Arc::new(AtomicUsize::new(0));
    let supplier = regions.create(|_| Account { balance: 0 }).unwrap();
    let gate = hold(&supplier, &hearth);
    let seen = Arc::clone(&applied);
    let client = regions
        .create(|_| Client {
            supplier,
            applied: seen,
        })
        .unwrap();
    let logged = client.query(|client, _| {
        for _ in 0..100 {
            let applied = Arc::clone(&client.applied);
            let count = move |_: &mut Account, _: &mut _| {
                applied.fetch_add(1, Ordering::SeqCst);
            };
            client.supplier.command(count).unwrap();
        }
    });
    logged.wait().unwrap();
    drop(client);
    // The client sleeps when its loop has put its region back, just after the answer.
    while regions.collect().processors == 0 {
        std::thread::yield_now();
    }
    // Nobody refers to the supplier now, and its log is not empty.
    assert_eq!(regions.processors(), 1);
    assert_eq!(applied.load(Ordering::SeqCst), 0);
    gate.send_blocking(()).unwrap();
    block_on(regions.rest());
    assert_eq!(applied.load(Ordering::SeqCst), 100);
    assert_eq!(regions.collect().processors, 1);
}

#[test]
fn a_panic_reaches_its_query_and_nobody_else() {
    let (_hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 7 }).unwrap();
    let failed = account.query(|account, _| {
        account.balance += 1;
        assert!(account.balance < 0, "no more money");
    });
    let message = "no more money".to_owned();
    assert_eq!(failed.wait(), Err(CallError::Panicked { message }));
    account.command(|_, _| panic!("unheard")).unwrap();
    let steps = account.query_async(|_, _| Box::pin(async { panic!("in steps") }));
    let message = "in steps".to_owned();
    assert_eq!(steps.wait(), Err::<(), _>(CallError::Panicked { message }));
    assert_eq!(account.query(|account, _| account.balance).wait(), Ok(8));
    assert_eq!(regions.take_failures(), ["unheard"]);

    let unmade = regions
        .create(|_| -> Account { panic!("not made") })
        .unwrap();
    assert_eq!(unmade.query(|_, _| ()).wait(), Err(CallError::NoObject));
    assert_eq!(regions.take_failures(), ["not made"]);
}

#[test]
fn circles_of_queries_are_reported() {
    let (_hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 7 }).unwrap();
    let own = account.clone();
    let of_itself = account.query_async(move |_, _| {
        Box::pin(async move { own.query(|account, _| account.balance).await })
    });
    assert_eq!(of_itself.wait(), Ok(Err(CallError::Deadlock { circle: 1 })));

    let (left, right) = (account, regions.create(|_| Account { balance: 8 }).unwrap());
    let (back, over) = (left.clone(), right.clone());
    let round = left.query_async(move |left, _| {
        Box::pin(async move {
            let inner = over.query_async(move |_, _| {
                Box::pin(async move { back.query(|account, _| account.balance).await })
            });
            (inner.await, left.balance)
        })
    });
    let inner = Ok(Err(CallError::Deadlock { circle: 2 }));
    assert_eq!(round.wait(), Ok((inner, 7)));
    // A wait that is over is no part of a circle.
    assert_eq!(right.query(|account, _| account.balance).wait(), Ok(8));
}

#[test]
fn threads_wait_and_calls_await() {
    let (_hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 7 }).unwrap();
    let other = regions.create(|_| Account { balance: 8 }).unwrap();
    let waited = account.query(move |_, _| other.query(|_, _| ()).wait());
    assert_eq!(waited.wait(), Ok(Err(CallError::InCall)));
}

struct Pair {
    first: Local<Account>,
    second: Local<Account>,
}
impl Object for Pair {
    fn trace(&self, tracer: &mut Tracer) {
        self.first.trace(tracer);
        self.second.trace(tracer);
    }
}

#[test]
fn local_objects_are_used_within_calls_of_their_processor() {
    let (_hearth, regions) = start();
    let pair = regions
        .create(|here| Pair {
            first: here.create(Account { balance: 1 }).unwrap(),
            second: here.create(Account { balance: 2 }).unwrap(),
        })
        .unwrap();
    let first = pair.query(|pair, here| {
        let moved = here.with(&pair.second, |second, here| {
            let both = here.with(&pair.first, |first, _| {
                first.balance += std::mem::take(&mut second.balance);
            });
            assert_eq!(both, Ok(()));
            here.with(&pair.second, |_, _| ())
        });
        assert_eq!(moved, Ok(Err(LocalError::InUse)));
        pair.first.separate()
    });
    let first = first.wait().unwrap();
    assert_eq!(first.query(|account, _| account.balance).wait(), Ok(3));
    assert_eq!(first.processor(), pair.processor());

    // The mark does not see into a box, and the use is refused.
    let stranger = regions.create(|_| Account { balance: 0 }).unwrap();
    let carried = pair
        .query(|pair, _| Box::new(pair.first.clone()))
        .wait()
        .unwrap();
    let used = stranger.query(move |_, here| here.with(&carried, |_, _| ()));
    assert_eq!(used.wait(), Ok(Err(LocalError::Elsewhere)));
}

#[test]
fn calls_make_processors_and_objects() {
    let (_hearth, regions) = start();
    let parent = regions
        .create(|_| Tree {
            value: 1,
            children: Vec::new(),
        })
        .unwrap();
    let grown = parent.query(|tree, here| {
        let beside = here.processor().unwrap();
        let leaf = |value| Tree {
            value,
            children: Vec::new(),
        };
        tree.children.push(beside.create(move |_| leaf(2)).unwrap());
        tree.children
            .push(here.create_separate(move |_| leaf(3)).unwrap());
    });
    grown.wait().unwrap();
    // The parent's own processor has the first child, whose query would wait for the parent's.
    let children = parent
        .query(|tree, _| tree.children.clone())
        .wait()
        .unwrap();
    let values = children
        .iter()
        .map(|child| child.query(|tree, _| tree.value).wait());
    assert_eq!(values.collect::<Vec<_>>(), [Ok(2), Ok(3)]);
    assert_eq!(regions.processors(), 2);
    assert!(children[0].processor() == parent.processor());
}

#[test]
fn when_the_regions_have_gone_what_is_logged_is_applied() {
    let (hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 0 }).unwrap();
    let gate = hold(&account, &hearth);
    account.command(|account, _| account.balance = 5).unwrap();
    let balance = account.query(|account, _| account.balance);
    drop(regions);
    assert_eq!(account.command(|_, _| ()), Err(CallError::Ended));
    gate.send_blocking(()).unwrap();
    assert_eq!(balance.wait(), Ok(5));
    assert_eq!(account.query(|_, _| ()).wait(), Err(CallError::Ended));
}

#[test]
fn a_runtime_that_ends_answers_what_waits() {
    let (hearth, regions) = start();
    let account = regions.create(|_| Account { balance: 0 }).unwrap();
    let gate = hold(&account, &hearth);
    let balance = account.query(|account, _| account.balance);
    let waiting = std::thread::spawn(move || balance.wait());
    drop((gate, regions));
    drop(hearth);
    let end = waiting.join().unwrap();
    // The gate's end may let the query through before.
    assert!(matches!(end, Ok(0) | Err(CallError::Ended)), "{end:?}");
}
