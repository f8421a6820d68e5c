//! Servers that migrate to their callers, under every interleaving that the model checker can
//! reach.
//!
//! The model does not cover ports: it does not show that the half-channels of a server's ports are
//! never linked nor made one worker's.

use std::sync::Arc;

use super::loom_tests::{Half, check};
use super::loom_workers::{Act, Expected, Player, receive, run, run_monitored, send};
use super::{Direction, connect, disconnect};
use crate::exchange::carrier;
use crate::ground::planted_faults::faults;

/// An in of the first worker, and for each of the given workers an out connected to it.
fn server_and_clients<const N: usize>(clients: [usize; N]) -> (Arc<Half>, [Arc<Half>; N]) {
    let into = Half::at(Direction::In, carrier::worker(0));
    let outs = clients.map(|worker| {
        let out = Half::at(Direction::Out, carrier::worker(worker));
        connect(out.get(), into.get());
        out
    });
    (into, outs)
}

/// A server that receives `count` values from anyone.
fn server(into: &Arc<Half>, expected: Expected, count: usize) -> Arc<Player> {
    let receives = (0..count).map(|_| receive(into, expected));
    Player::new(0, [Act::Come(true)].into_iter().chain(receives).collect())
}

/// The server is parked or about to park when a client of another worker sends, twice.
fn it_comes() {
    let (into, [out]) = server_and_clients([1]);
    let _players = [
        server(&into, &[1, 2], 2),
        Player::new(1, vec![send(&out, 1), send(&out, 2)]),
    ];
    run(2, || ());
}

#[test]
fn loom_a_server_comes() {
    check(2, it_comes);
}

#[test]
fn loom_a_server_goes_to_and_fro() {
    check(1, || {
        let (into, [here, there]) = server_and_clients([0, 1]);
        let _players = [
            server(&into, &[1, 2, 3], 3),
            Player::new(0, vec![send(&here, 1)]),
            Player::new(1, vec![send(&there, 2), send(&there, 3)]),
        ];
        run(2, || ());
    });
}

#[test]
fn loom_a_server_answers() {
    check(1, || {
        let (into, [out]) = server_and_clients([1]);
        let answer = (
            Half::at(Direction::Out, carrier::worker(0)),
            Half::at(Direction::In, carrier::worker(1)),
        );
        connect(answer.0.get(), answer.1.get());
        let _players = [
            Player::new(
                0,
                vec![
                    Act::Come(true),
                    receive(&into, &[1]),
                    send(&answer.0, 2),
                    receive(&into, &[3]),
                ],
            ),
            Player::new(
                1,
                vec![send(&out, 1), receive(&answer.1, &[2]), send(&out, 3)],
            ),
        ];
        run(2, || ());
    });
}

#[test]
fn loom_a_server_is_stopped_as_it_comes() {
    check(2, || {
        let (into, [out]) = server_and_clients([1]);
        let server = server(&into, &[1], 2);
        let client = Player::new(1, vec![send(&out, 1)]);
        run(2, || {
            server.stop();
            client.stop();
        });
    });
}

#[test]
fn loom_a_server_is_disconnected_as_it_comes() {
    check(1, || {
        let (into, [out]) = server_and_clients([1]);
        let server = server(&into, &[1], 1);
        let client = Player::new(1, vec![send(&out, 1)]);
        run(2, || {
            disconnect(into.get());
            connect(into.get(), out.get());
        });
        drop((server, client));
    });
}

/// The server uses light waits again at its new worker, while its former home asks it to stop.
#[test]
fn loom_a_server_stays_where_it_is() {
    check(1, || {
        let (into, [out]) = server_and_clients([1]);
        let light = (
            Half::at(Direction::Out, carrier::worker(1)),
            Half::at(Direction::In, carrier::worker(1)),
        );
        connect(light.0.get(), light.1.get());
        let server = Player::new(
            0,
            vec![
                Act::Come(true),
                receive(&into, &[1]),
                Act::Come(false),
                receive(&light.1, &[2]),
            ],
        );
        let client = Player::new(1, vec![send(&out, 1)]);
        run(2, || {
            server.stop();
            client.stop();
        });
    });
}

#[test]
fn loom_a_server_is_detached() {
    check(1, || {
        let (into, [out]) = server_and_clients([1]);
        let _players = [
            Player::new(
                0,
                vec![
                    Act::Come(true),
                    Act::Do(Box::new(|| ())),
                    receive(&into, &[1]),
                    receive(&into, &[2]),
                ],
            ),
            Player::new(1, vec![send(&out, 1), send(&out, 2)]),
        ];
        run_monitored(2);
    });
}

#[test]
#[should_panic(expected = "run twice at once")]
fn loom_canary_coming_too_soon_is_found() {
    faults::plant_coming_too_soon();
    check(2, || {
        faults::plant_coming_too_soon();
        it_comes();
    });
}
