use super::*;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// None where the kernel has no io_uring, which other tests report.
fn ring() -> Option<Uring> {
    Uring::new(8, 8, 64).ok()
}

/// A successful send ends no wait.
fn look_now(ring: &mut Uring, mut each: impl FnMut(Done<'_>)) {
    ring.wait(Some(Duration::ZERO), |_, done| each(done))
        .unwrap();
}

fn look(ring: &mut Uring, mut each: impl FnMut(&mut Requests, Done<'_>)) {
    let mut count = 0;
    while count == 0 {
        ring.wait(None, |requests, done| {
            count += 1;
            each(requests, done);
        })
        .unwrap();
    }
}

#[test]
fn one_receive_tells_all_that_comes() {
    let Some(mut ring) = ring() else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    ring.requests().receive(near.as_fd(), 5);
    // More than all buffers together, so that they must be returned.
    for round in 0..40u8 {
        far.write_all(&[round; 50]).unwrap();
        look(&mut ring, |_, done| match done {
            Done::Received {
                key: 5,
                bytes,
                goes_on: true,
            } => assert_eq!(bytes, [round; 50]),
            other => panic!("{other:?}"),
        });
    }
    drop(far);
    look(&mut ring, |_, done| {
        assert!(
            matches!(done, Done::Received { bytes: &[], .. }),
            "{done:?}"
        );
    });
}

#[test]
fn what_is_sent_goes_with_the_wait_and_comes_back() {
    let Some(mut ring) = ring() else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    for round in 0..20 {
        ring.requests()
            .send(near.as_fd(), round, b"xhello".to_vec(), 1);
        look_now(&mut ring, |done| match done {
            Done::Sent { key, bytes, result } => {
                assert_eq!(
                    (key, bytes.as_slice(), result.unwrap()),
                    (round, &b"xhello"[..], 5)
                );
            }
            other => panic!("{other:?}"),
        });
        let mut found = [0; 5];
        far.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"hello");
    }
}

#[test]
fn without_buffers_a_receive_ends_and_may_be_asked_for_again() {
    let Some(mut ring) = ring() else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    ring.requests().receive(near.as_fd(), 1);
    far.write_all(&[7; 64 * 20]).unwrap();
    let mut count = 0;
    while count < 64 * 20 {
        look(&mut ring, |requests, done| match done {
            Done::Received { bytes, goes_on, .. } => {
                count += bytes.len();
                if !goes_on {
                    requests.receive(near.as_fd(), 1);
                }
            }
            Done::Ended { key: 1, error } => {
                assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS));
                requests.receive(near.as_fd(), 1);
            }
            other => panic!("{other:?}"),
        });
    }
}

#[test]
fn a_cancelled_receive_is_told_and_a_dropped_ring_ends_what_is_open() {
    let Some(mut ring) = ring() else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    ring.requests().receive(near.as_fd(), 1);
    ring.requests().poll(near.as_fd(), 2);
    ring.wait(Some(Duration::ZERO), |_, _| {}).unwrap();
    ring.requests().cancel_receive(1);
    look(&mut ring, |_, done| match done {
        Done::Ended { key: 1, error } => {
            assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
        }
        other => panic!("{other:?}"),
    });
    far.write_all(b"a").unwrap();
    look(&mut ring, |_, done| {
        assert!(matches!(
            done,
            Done::Readable {
                key: 2,
                goes_on: true
            }
        ));
    });
    let begun = std::time::Instant::now();
    drop(ring);
    assert!(begun.elapsed() < DROP_WAIT);
}

#[test]
fn rings_are_made_here_and_used_there_and_grow() {
    let Ok(prepared) = Prepared::new(8, 64, 64) else {
        return;
    };
    std::thread::spawn(|| {
        let mut ring = prepared.begin().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        ring.requests().receive(near.as_fd(), 1);
        let mut fewer = 0;
        for _ in 0..3 {
            far.write_all(&[7; 64 * 60]).unwrap();
            let mut count = 0;
            while count < 64 * 60 {
                look(&mut ring, |requests, done| match done {
                    Done::Received { bytes, goes_on, .. } => {
                        count += bytes.len();
                        if !goes_on {
                            requests.receive(near.as_fd(), 1);
                        }
                    }
                    Done::Ended { .. } => {
                        fewer += 1;
                        requests.receive(near.as_fd(), 1);
                    }
                    other => panic!("{other:?}"),
                });
            }
        }
        // With 32 of the 64 buffers it is not sent at once, with all of them it is.
        assert!(fewer <= 1, "{fewer}");
    })
    .join()
    .unwrap();
}

#[test]
fn a_cancelled_ring_gives_back_what_it_could_not_send() {
    let Some(mut ring) = ring() else { return };
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut sends = 0;
    let mut is_stuck = false;
    while !is_stuck {
        ring.requests()
            .send_later(near.as_fd(), 3, vec![1; 10_000], 0);
        sends += 1;
        is_stuck = true;
        ring.wait(Some(Duration::from_millis(20)), |_, done| {
            assert!(matches!(done, Done::Sent { key: 3, .. }), "{done:?}");
            is_stuck = false;
        })
        .unwrap();
    }
    let mut last = None;
    assert!(ring.cancel_all(DROP_WAIT, |_, done| {
        if let Done::Sent { bytes, result, .. } = done {
            last = Some((bytes.len(), result.map_err(|error| error.raw_os_error())));
        }
    }));
    assert_eq!(last, Some((10_000, Err(Some(libc::ECANCELED)))));
    assert!(sends > 1);
    drop(far);
}

#[test]
fn a_send_that_goes_at_once_ends_no_wait_and_one_that_cannot_says_so() {
    let Some(mut ring) = ring() else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    ring.requests().receive(near.as_fd(), 1);
    ring.requests().send(near.as_fd(), 2, vec![1; 10], 0);
    let writer = std::thread::spawn(move || {
        far.read_exact(&mut [0; 10]).unwrap();
        far.write_all(b"a").unwrap();
        far
    });
    let mut told = Vec::new();
    ring.wait(None, |_, done| match done {
        Done::Sent { result, .. } => told.push(result.unwrap()),
        Done::Received { bytes, .. } => told.push(bytes.len()),
        other => panic!("{other:?}"),
    })
    .unwrap();
    assert_eq!(told, [10, 1]);
    let _far = writer.join().unwrap();
    let mut is_stuck = false;
    while !is_stuck {
        ring.requests().send(near.as_fd(), 3, vec![1; 10_000], 0);
        ring.wait(Some(Duration::ZERO), |_, done| match done {
            Done::Sent { bytes, result, .. } => {
                assert_eq!(bytes.len(), 10_000);
                is_stuck = result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
    }
}

/// A ring dropped on another thread does not interrupt the thread that prepared it.
#[test]
fn the_end_of_a_ring_interrupts_nobody() {
    if is_there().is_err() {
        return;
    }
    for _ in 0..5 {
        let prepared = Prepared::new(8, 8, 64).expect("rings");
        let (mut near, _far) = UnixStream::pair().expect("a pair");
        near.set_read_timeout(Some(Duration::from_millis(100)))
            .expect("it may be set");
        let other = std::thread::spawn(move || {
            let ring = prepared.begin().expect("it is prepared");
            std::thread::sleep(Duration::from_millis(20));
            drop(ring);
        });
        let error = near.read(&mut [0; 1]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        other.join().expect("it does not panic");
    }
}

#[test]
fn more_memory_than_there_are_addresses_is_refused() {
    if ring().is_some() {
        // More than an integer holds, than an object may have, and than any machine grants.
        for bytes in [usize::MAX / 2, 1 << 48, 1 << 47] {
            assert!(Prepared::new(8, 1 << 15, bytes).is_err(), "{bytes}");
        }
    }
}
