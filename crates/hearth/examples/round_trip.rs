//! What a message there and one back cost between two components: a look, no benchmark.
//!
//! `cargo run --release -p hearth --example round_trip`
#![allow(clippy::print_stdout, reason = "an example says what it found")]

use std::time::{Duration, Instant};

use hearth::{Error, Hearth, block_on, channel};

const ROUNDS: u32 = 1_000_000;

fn measure<T: Send + Clone + 'static>(
    hearth: Hearth,
    cores: [u32; 2],
    value: T,
) -> Result<Duration, Error> {
    let (ping, pinged) = channel::<T>();
    let (pong, ponged) = channel::<T>();
    let echo = hearth.component("Echo").core(cores[1]);
    let echo = echo.spawn(async move {
        while let Ok(value) = pinged.recv().await {
            pong.send(value).await?;
        }
        Ok::<_, Error>(())
    });
    let player = hearth.component("Player").core(cores[0]);
    let player = player.spawn(async move {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            ping.send(value.clone()).await?;
            ponged.recv().await?;
        }
        Ok::<_, Error>(start.elapsed() / ROUNDS)
    });
    let time = block_on(player)??;
    block_on(echo)??;
    Ok(time)
}

fn main() -> Result<(), Error> {
    let hearth = Hearth::builder().workers(2).start()?;
    for (place, cores) in [("one worker", [0, 0]), ("two workers", [0, 1])] {
        println!("{place}:");
        println!(
            "  i32, by its bits:      {:?}",
            measure(hearth, cores, 1_i32)?
        );
        println!(
            "  u64, moved:            {:?}",
            measure(hearth, cores, 1_u64)?
        );
        println!(
            "  1 KiB, moved:          {:?}",
            measure(hearth, cores, [1_u8; 1024])?
        );
    }
    Ok(())
}
