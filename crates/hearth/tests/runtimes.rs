//! Runtimes are values: several at once, ended in any order, and nothing is left of them.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hearth::error::JoinError;
use hearth::{Builder, Carrier, Component, Hearth, Placement, block_on, channel};

/// Held by each test: some count the process's threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ways in which components are carried.
fn ways() -> [Builder; 4] {
    let builder = Hearth::builder;
    [
        builder().workers(1),
        builder().workers(2).placement(Placement::Spread),
        builder().workers(2).placement(Placement::Talk),
        builder().carrier(Carrier::Threads),
    ]
}

/// Two that send a number to and fro; what it is in the end.
fn ping_pong(hearth: &Hearth, rounds: u64) -> Component<u64> {
    let (ping, pinged) = channel::<u64>();
    let (pong, ponged) = channel::<u64>();
    hearth.component("Pong").spawn(async move {
        while let Ok(number) = pinged.recv().await {
            pong.send(number + 1).await.unwrap();
        }
    });
    hearth.component("Ping").spawn(async move {
        let mut number = 0;
        for _ in 0..rounds {
            ping.send(number).await.unwrap();
            number = ponged.recv().await.unwrap();
        }
        number
    })
}

#[test]
fn two_at_once_share_nothing_but_time() {
    let _alone = alone();
    for one in ways() {
        for two in ways() {
            let (one, two) = (one.clone().start().unwrap(), two.start().unwrap());
            let players = [&one, &two, &one, &two].map(|hearth| ping_pong(hearth, 1_000));
            for player in players {
                assert_eq!(block_on(player), Ok(1_000));
            }
            // The first of its kind in each.
            let names = |hearth: &Hearth| {
                let (out, into) = channel::<u8>();
                let patient = hearth
                    .component("Patient")
                    .spawn(async move { into.recv().await });
                let told = block_on(hearth.wait()).map_err(|error| error.to_string());
                drop(out);
                drop(block_on(patient));
                told
            };
            assert_eq!(block_on(one.wait()), Ok(()));
            for hearth in [&one, &two] {
                // Nothing can wake it, but for who holds the other end; the report names it.
                let report = names(hearth).unwrap_err();
                assert!(report.contains("  Patient at "), "{report}");
            }
        }
    }
}

#[test]
fn who_waits_in_one_is_stopped_with_it_and_goes_on_in_the_other() {
    let _alone = alone();
    for builder in ways() {
        let (first, second) = (builder.clone().start().unwrap(), builder.start().unwrap());
        let patient = first.spawn(std::future::pending::<()>());
        let (out, into) = channel::<i32>();
        let other = second.spawn(async move { into.recv().await });
        drop(first);
        assert_eq!(block_on(patient), Err(JoinError::Stopped));
        assert_eq!(
            block_on(second.spawn(async move { out.send(5).await.is_ok() })),
            Ok(true)
        );
        assert_eq!(block_on(other), Ok(Ok(5)));
    }
}

#[test]
#[should_panic(expected = "the half-channels belong to two runtimes")]
fn half_channels_of_two_do_not_meet() {
    let _alone = alone();
    let [first, second] = [1, 2].map(|count| Hearth::builder().workers(count).start().unwrap());
    let ((out, kept), (kept_out, into)) = (channel::<i32>(), channel::<i32>());
    // Each comes to a runtime where it is first used.
    let used = |hearth: &Hearth, body: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        drop(block_on(hearth.spawn(body)));
    };
    let (says, said) = mpsc::channel();
    let back = says.clone();
    used(
        &first,
        Box::pin(async move {
            let _ = poll_once(out.send(1)).await;
            back.send(Ok(out)).unwrap();
        }),
    );
    used(
        &second,
        Box::pin(async move {
            let _ = poll_once(into.recv()).await;
            says.send(Err(into)).unwrap();
        }),
    );
    let (Ok(out), Err(into)) = (said.recv().unwrap(), said.recv().unwrap()) else {
        panic!("first the one, then the other");
    };
    let _kept = (kept, kept_out);
    let _ = out.connect(&into);
}

/// Polls a future once.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[test]
fn the_last_handle_may_be_dropped_within() {
    let _alone = alone();
    for builder in ways() {
        let hearth = builder.start().unwrap();
        let (says, said) = mpsc::channel();
        let own = hearth.clone();
        let (out, into) = channel::<()>();
        hearth.spawn(async move {
            let _ = into.recv().await;
            drop(own);
            says.send(()).unwrap();
        });
        hearth.spawn(async move { out.send(()).await });
        drop(hearth);
        said.recv().unwrap();
    }
}

/// A line of `/proc/self/status`, as a number.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.unwrap().trim_start_matches(':').split_whitespace();
    number.into_iter().next().unwrap().parse().unwrap()
}

#[test]
fn thousands_leave_nothing_behind() {
    let _alone = alone();
    let count = match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 10_000,
        None => 1_000,
    };
    let live = |index: usize| {
        let ways = ways();
        let hearth = ways[index % ways.len()].clone().start().unwrap();
        let player = ping_pong(&hearth, 10);
        if index.is_multiple_of(3) {
            // Another is stopped where it waits.
            hearth.spawn(std::future::pending::<()>());
        }
        assert_eq!(block_on(player), Ok(10));
    };
    (0..count / 10).for_each(live);
    let threads = status("Threads");
    let memory = status("VmRSS");
    (0..count).for_each(live);
    // A thread is there for a moment after it has said its last.
    let end = Instant::now() + Duration::from_secs(10);
    while status("Threads") > threads && Instant::now() < end {
        thread::yield_now();
    }
    assert!(status("Threads") <= threads, "threads are left");
    let more = status("VmRSS").saturating_sub(memory);
    assert!(more < 8 << 10, "{more} KiB more after {count} runtimes");
}
