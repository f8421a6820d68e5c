//! The end of all components, and deadlocks. The one test needs a process of its own, because it
//! counts all components.

use hearth::error::{Deadlock, JoinError, ReceiverError};
use hearth::{Hearth, Receiver, Sender, block_on, channel};

#[test]
fn the_end_of_all_and_deadlocks_are_values() {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    assert_eq!(block_on(hearth.wait()), Ok(()), "nobody was there");
    // A cycle.
    let (a_out, a) = channel::<i32>();
    let (b_out, b) = channel::<String>();
    let left = hearth.component("Left").core(0).spawn(async move {
        a_out.send(1).await.unwrap();
        b.recv().await
    });
    let right = hearth.component("Right").core(1).spawn(async move {
        b_out.send(String::new()).await.unwrap();
        a.recv().await
    });
    let Err(Deadlock { report }) = block_on(hearth.wait()) else {
        panic!("they wait for each other");
    };
    assert!(
        report.contains("Left at crates/hearth/tests/rest.rs"),
        "{report}"
    );
    assert!(
        report.contains("Right at crates/hearth/tests/rest.rs"),
        "{report}"
    );
    assert!(report.contains("send on i32"), "{report}");
    left.stop();
    assert_eq!(block_on(left), Err(JoinError::Stopped));
    // The right one then learns that its peer is gone.
    assert_eq!(block_on(hearth.wait()), Ok(()));
    let panic = block_on(right).unwrap_err();
    assert!(matches!(panic, JoinError::Panicked { .. }), "{panic}");

    // A thread outside can still send.
    let (out, into) = channel::<i32>();
    let sender = Sender::new(&hearth, out);
    let reader = hearth.spawn(async move { into.recv().await });
    let thread = std::thread::spawn(move || {
        std::thread::yield_now();
        sender.send_blocking(3).unwrap();
    });
    assert_eq!(block_on(hearth.wait()), Ok(()));
    assert_eq!(block_on(reader), Ok(Ok(3)));
    thread.join().unwrap();

    // No thread can: the one outside waits itself.
    let (out, into) = channel::<i32>();
    let (_never, nothing) = channel::<i32>();
    let stuck = hearth.component("Stuck").spawn(async move {
        let got = nothing.recv().await;
        out.send(1).await.unwrap();
        got
    });
    let receiver = Receiver::new(&hearth, into);
    let thread = std::thread::spawn(move || receiver.recv_blocking());
    let Err(Deadlock { report }) = block_on(hearth.wait()) else {
        panic!("nobody sends");
    };
    assert!(report.contains("Stuck"), "{report}");
    stuck.stop();
    assert_eq!(thread.join().unwrap(), Err(ReceiverError::Disconnected));
    assert_eq!(block_on(hearth.wait()), Ok(()));
}
