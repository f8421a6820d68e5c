//! Shows the cost of a round trip between two components. It is an example, not a benchmark.
//!
//! `cargo run --release -p hearth --example round_trip`
#![allow(clippy::print_stdout, reason = "an example says what it found")]

use std::time::{Duration, Instant};

use hearth::{Hearth, block_on, channel};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: u32 = 1_000_000;

fn measure<T: Send + Sync + Clone + 'static>(
    hearth: &Hearth,
    cores: [u32; 2],
    value: T,
) -> Result<Duration, Failure> {
    let (ping, pinged) = channel::<T>();
    let (pong, ponged) = channel::<T>();
    let echo = hearth.component("Echo").core(cores[1]);
    let echo = echo.spawn(async move {
        while let Ok(value) = pinged.recv().await {
            pong.send(value).await?;
        }
        Ok::<_, Failure>(())
    });
    let player = hearth.component("Player").core(cores[0]);
    let player = player.spawn(async move {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            ping.send(value.clone()).await?;
            ponged.recv().await?;
        }
        Ok::<_, Failure>(start.elapsed() / ROUNDS)
    });
    let time = block_on(player)??;
    block_on(echo)??;
    Ok(time)
}

fn main() -> Result<(), Failure> {
    let hearth = Hearth::builder().workers(2).start()?;
    for (place, cores) in [("one worker", [0, 0]), ("two workers", [0, 1])] {
        println!("{place}:");
        println!(
            "  i32, by its bits:      {:?}",
            measure(&hearth, cores, 1_i32)?
        );
        println!(
            "  u64, moved:            {:?}",
            measure(&hearth, cores, 1_u64)?
        );
        println!(
            "  1 KiB, moved:          {:?}",
            measure(&hearth, cores, [1_u8; 1024])?
        );
    }
    Ok(())
}
