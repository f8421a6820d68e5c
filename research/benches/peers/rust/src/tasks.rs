//! Tasks of tokio at both ends of async channels.

use std::future::Future;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::sync::mpsc;
use tokio::task::yield_now;

/// Channels of a library. An operation can only fail because the other end is gone, which is a bug.
pub trait Library: 'static {
    type Sender<T: Send + 'static>: Send + Sync + 'static;
    type Receiver<T: Send + 'static>: Send + 'static;

    fn channel<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);

    fn send<T: Send + 'static>(to: &Self::Sender<T>, value: T) -> impl Future<Output = ()> + Send;

    fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> impl Future<Output = T> + Send;

    /// Adds up what comes on four channels; None if the library cannot wait for several.
    fn fan_in(
        from: [Self::Receiver<i32>; 4],
        count: i32,
    ) -> impl Future<Output = Option<i32>> + Send;
}

pub struct Kanal;

impl Library for Kanal {
    type Sender<T: Send + 'static> = kanal::AsyncSender<T>;
    type Receiver<T: Send + 'static> = kanal::AsyncReceiver<T>;

    fn channel<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        kanal::bounded_async(0)
    }

    async fn send<T: Send + 'static>(to: &Self::Sender<T>, value: T) {
        to.send(value).await.expect("a receiver");
    }

    async fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> T {
        from.recv().await.expect("a sender")
    }

    /// A receive that is dropped may lose a value, so there is no select.
    async fn fan_in(_: [Self::Receiver<i32>; 4], _: i32) -> Option<i32> {
        None
    }
}

pub struct Flume;

impl Library for Flume {
    type Sender<T: Send + 'static> = flume::Sender<T>;
    type Receiver<T: Send + 'static> = flume::Receiver<T>;

    fn channel<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        flume::bounded(0)
    }

    async fn send<T: Send + 'static>(to: &Self::Sender<T>, value: T) {
        assert!(to.send_async(value).await.is_ok(), "a receiver");
    }

    async fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> T {
        from.recv_async().await.expect("a sender")
    }

    async fn fan_in([a, b, c, d]: [Self::Receiver<i32>; 4], count: i32) -> Option<i32> {
        let mut sum = 0i32;
        let (mut left, mut open) = (count, [true; 4]);
        while left > 0 {
            // A sender that has sent all is gone.
            let (which, value) = tokio::select! {
                value = a.recv_async(), if open[0] => (0, value),
                value = b.recv_async(), if open[1] => (1, value),
                value = c.recv_async(), if open[2] => (2, value),
                value = d.recv_async(), if open[3] => (3, value),
                else => return None,
            };
            match value {
                Ok(value) => {
                    sum = sum.wrapping_add(value);
                    left -= 1;
                }
                Err(_) => open[which] = false,
            }
        }
        Some(sum)
    }
}

pub struct Tokio;

impl Library for Tokio {
    type Sender<T: Send + 'static> = mpsc::Sender<T>;
    type Receiver<T: Send + 'static> = mpsc::Receiver<T>;

    fn channel<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::channel(1)
    }

    async fn send<T: Send + 'static>(to: &Self::Sender<T>, value: T) {
        assert!(to.send(value).await.is_ok(), "a receiver");
    }

    async fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> T {
        from.recv().await.expect("a sender")
    }

    async fn fan_in(from: [Self::Receiver<i32>; 4], count: i32) -> Option<i32> {
        let [mut a, mut b, mut c, mut d] = from;
        let mut sum = 0i32;
        for _ in 0..count {
            let value = tokio::select! {
                Some(value) = a.recv() => value,
                Some(value) = b.recv() => value,
                Some(value) = c.recv() => value,
                Some(value) = d.recv() => value,
                else => return None,
            };
            sum = sum.wrapping_add(value);
        }
        Some(sum)
    }
}

/// The checksum; None if there is no such row.
pub fn run<L: Library>(row: &str, rounds: i32, threads: usize) -> Option<i32> {
    let runtime = if threads == 1 {
        tokio::runtime::Builder::new_current_thread().build()
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .build()
    };
    let runtime = runtime.expect("threads");
    // A task like the others: a future that is blocked on is driven in another way.
    let row = row.to_owned();
    let all = async move {
        match row.as_str() {
            "ping-pong" => Some(ping_pong::<L>(rounds).await),
            "stream" => Some(stream::<L>(rounds).await),
            "ring" => Some(ring::<L>(rounds).await),
            "fan-in" => fan_in::<L>(rounds).await,
            "create" => Some(create(rounds).await),
            "blocked" => Some(blocked::<L>(rounds).await),
            "copy-1k" => Some(copies::<L>(rounds, 256).await),
            "copy-1m" => Some(copies::<L>(rounds, 262_144).await),
            "move-1k" => Some(moves::<L>(rounds, 256).await),
            "move-1m" => Some(moves::<L>(rounds, 262_144).await),
            _ => None,
        }
    };
    runtime.block_on(async { tokio::spawn(all).await.expect("no panic") })
}

async fn ping_pong<L: Library>(rounds: i32) -> i32 {
    let (to_pong, mut ball) = L::channel();
    let (to_ping, mut back) = L::channel();
    tokio::spawn(async move {
        for _ in 0..rounds {
            let value: i32 = L::receive(&mut ball).await;
            L::send(&to_ping, value + 1).await;
        }
    });
    let mut value = 0;
    for _ in 0..rounds {
        L::send(&to_pong, value).await;
        value = L::receive(&mut back).await;
    }
    value
}

async fn source<L: Library>(rounds: i32, next: L::Sender<i32>) {
    for i in 1..=rounds {
        L::send(&next, i).await;
    }
}

async fn stream<L: Library>(rounds: i32) -> i32 {
    let (to, mut next) = L::channel();
    tokio::spawn(source::<L>(rounds, to));
    let mut sum = 0i32;
    for _ in 0..rounds {
        sum = sum.wrapping_add(L::receive(&mut next).await);
    }
    sum
}

async fn ring<L: Library>(laps: i32) -> i32 {
    let (first, mut last) = L::channel();
    for _ in 2..=503 {
        let (onward, next) = L::channel();
        let mut before = std::mem::replace(&mut last, next);
        tokio::spawn(async move {
            for _ in 0..laps {
                let token: i32 = L::receive(&mut before).await;
                L::send(&onward, token + 1).await;
            }
        });
    }
    let mut value = 0;
    for _ in 0..laps {
        L::send(&first, value + 1).await;
        value = L::receive(&mut last).await;
    }
    value
}

async fn fan_in<L: Library>(rounds: i32) -> Option<i32> {
    let inlets = [(); 4].map(|()| {
        let (to, next) = L::channel();
        tokio::spawn(source::<L>(rounds, to));
        next
    });
    L::fan_in(inlets, 4 * rounds).await
}

async fn create(thousands: i32) -> i32 {
    static ENDED: AtomicI32 = AtomicI32::new(0);
    let mut made = 0;
    for _ in 0..thousands {
        for _ in 0..1000 {
            tokio::spawn(async {
                // A count needs no ordering.
                ENDED.fetch_add(1, Ordering::Relaxed);
            });
        }
        made += 1000;
        while ENDED.load(Ordering::Relaxed) != made {
            yield_now().await;
        }
    }
    made
}

async fn blocked<L: Library>(count: i32) -> i32 {
    let (start, mut last) = L::channel();
    for _ in 0..count {
        let (onward, next) = L::channel();
        let mut before = std::mem::replace(&mut last, next);
        tokio::spawn(async move {
            let value: i32 = L::receive(&mut before).await;
            L::send(&onward, value + 1).await;
        });
    }
    // Each has its turn to come to its receive.
    yield_now().await;
    L::send(&start, 0).await;
    L::receive(&mut last).await
}

async fn copies<L: Library>(rounds: i32, length: usize) -> i32 {
    let (to, mut next) = L::channel();
    tokio::spawn(async move {
        let mut block = vec![1; length];
        for i in 1..=rounds {
            block[i as usize % length] = i;
            L::send(&to, block.clone()).await;
        }
    });
    let mut sum = 0i32;
    for i in 1..=rounds {
        let block: Vec<i32> = L::receive(&mut next).await;
        sum = sum.wrapping_add(block[i as usize % length].wrapping_add(block[length - 1]));
    }
    sum
}

async fn moves<L: Library>(rounds: i32, length: usize) -> i32 {
    let (to_other, mut there) = L::channel();
    let (to_here, mut back) = L::channel();
    tokio::spawn(async move {
        for _ in 0..rounds {
            let mut block: Vec<i32> = L::receive(&mut there).await;
            block[0] += 1;
            L::send(&to_here, block).await;
        }
    });
    let mut block = vec![0; length];
    for _ in 0..rounds {
        L::send(&to_other, block).await;
        block = L::receive(&mut back).await;
        block[0] += 1;
    }
    block[0]
}
