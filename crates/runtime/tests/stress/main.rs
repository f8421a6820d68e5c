//! Real threads, many messages, each checked: none lost, none doubled, none out of order.

mod machine;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use machine::{Event, Half, Handle, INTEGER, INTEGERS, Me, Next, PORTS, REPLY};

/// Far longer than any test takes; a machine that hangs fails it.
const PATIENCE: Duration = Duration::from_secs(300);

/// A message carries its sender and its number there.
fn message(sender: usize, sequence: u32) -> i32 {
    ((sender as u32) << 20 | sequence) as i32
}

fn origin(message: i32) -> (usize, u32) {
    ((message as u32 >> 20) as usize, message as u32 & 0xF_FFFF)
}

/// The received messages, by sender.
struct Ledger {
    received: Vec<Vec<AtomicU32>>,
}

impl Ledger {
    fn new(senders: usize, messages: u32) -> Arc<Ledger> {
        let column = || (0..messages).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Ledger {
            received: (0..senders).map(|_| column()).collect(),
        })
    }

    fn note(&self, number: i32) {
        let (sender, sequence) = origin(number);
        self.received[sender][sequence as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn check_complete(&self) {
        for (sender, column) in self.received.iter().enumerate() {
            for (sequence, count) in column.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                assert_eq!(
                    count, 1,
                    "message {sequence} of sender {sender} came {count} times"
                );
            }
        }
    }
}

/// Sends its messages on one port, then reports its end.
fn sender(index: usize, messages: u32, ended: &Sender<usize>) -> Handle {
    let ended = ended.clone();
    let mut next = 0;
    Handle::new(move |me: Me, event: Event| {
        assert_ne!(event, Event::Raised, "senders are not stopped");
        if next == messages {
            ended.send(index).unwrap();
            return Next::End;
        }
        next += 1;
        me.send(0, message(index, next - 1))
    })
}

/// Notes each message that it selects from all its ports, in its sender's order, until it is
/// stopped, then reports its end.
fn receiver(ports: Vec<usize>, ledger: &Arc<Ledger>, ended: &Sender<usize>) -> Handle {
    let (ledger, ended) = (ledger.clone(), ended.clone());
    let mut latest: HashMap<usize, u32> = HashMap::new();
    Handle::new(move |me: Me, event: Event| {
        if event == Event::Raised {
            assert!(me.is_stopped());
            ended.send(usize::MAX).unwrap();
            return Next::End;
        }
        if event == Event::Done {
            let number = me.number();
            let (sender, sequence) = origin(number);
            let before = latest.insert(sender, sequence);
            assert!(
                before.is_none_or(|before| before < sequence),
                "out of order"
            );
            ledger.note(number);
        }
        match ports.as_slice() {
            [port] => me.receive(*port),
            ports => me.select(ports),
        }
    })
}

fn await_all(ended: &Receiver<usize>, count: usize) {
    for _ in 0..count {
        ended.recv_timeout(PATIENCE).expect("a component hangs");
    }
}

/// Connects every sender to every receiver; each receiver selects over `ports` ports.
fn many_to_many(senders: usize, receivers: usize, ports: usize, messages: u32) {
    let ledger = Ledger::new(senders, messages);
    let (tell, ended) = channel();
    let from: Vec<_> = (0..senders)
        .map(|index| sender(index, messages, &tell))
        .collect();
    let to: Vec<_> = (0..receivers)
        .map(|index| {
            // Each receiver names its arms in another order.
            let order = (0..ports).map(|port| (port + index) % ports).collect();
            receiver(order, &ledger, &tell)
        })
        .collect();
    for (index, source) in from.iter().enumerate() {
        for sink in &to {
            source.output(0).connect(&sink.input(index % ports));
        }
    }
    to.iter().chain(&from).for_each(|machine| {
        machine.start();
    });
    await_all(&ended, senders);
    to.iter().for_each(Handle::stop);
    await_all(&ended, to.len());
    ledger.check_complete();
}

#[test]
fn one_to_one() {
    many_to_many(1, 1, 1, 60_000);
}

#[test]
fn eight_to_eight() {
    many_to_many(8, 8, 1, 6_000);
}

#[test]
fn eight_to_one_select() {
    many_to_many(8, 1, PORTS, 6_000);
}

#[test]
fn selects_that_cross() {
    many_to_many(6, 4, PORTS, 8_000);
}

#[test]
fn connections_come_and_go() {
    const MESSAGES: u32 = 2_000;
    let ledger = Ledger::new(4, MESSAGES);
    let (tell, ended) = channel();
    let from: Vec<_> = (0..4).map(|index| sender(index, MESSAGES, &tell)).collect();
    let to: Vec<_> = (0..4)
        .map(|_| receiver(vec![0, 1], &ledger, &tell))
        .collect();
    to.iter().chain(&from).for_each(|machine| {
        machine.start();
    });
    let wirers: Vec<_> = (0..2)
        .map(|wirer: usize| {
            let outs: Vec<Half> = from.iter().map(|machine| machine.output(0)).collect();
            let ins: Vec<Half> = to.iter().map(|machine| machine.input(wirer)).collect();
            std::thread::spawn(move || {
                for round in 0..5_000 {
                    let (out, into) = (&outs[round % 4], &ins[(round / 3) % 4]);
                    match round % 5 {
                        0 => into.disconnect(),
                        1 if wirer == 0 => out.disconnect(),
                        2 => into.connect(out),
                        _ => out.connect(into),
                    }
                    // On few cores, let the components being wired run.
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    for wirer in wirers {
        wirer.join().unwrap();
    }
    // All pending sends can be completed now.
    for (index, source) in from.iter().enumerate() {
        source.output(0).connect(&to[index].input(0));
    }
    await_all(&ended, 4);
    to.iter().for_each(Handle::stop);
    await_all(&ended, to.len());
    ledger.check_complete();
}

#[test]
fn receivers_are_stopped_and_replaced() {
    const MESSAGES: u32 = 2_000;
    let ledger = Ledger::new(3, MESSAGES);
    let (tell, ended) = channel();
    let (tell_gone, gone) = channel();
    let from: Vec<_> = (0..3).map(|index| sender(index, MESSAGES, &tell)).collect();
    from.iter().for_each(|machine| {
        machine.start();
    });
    let mut senders_left = 3;
    let mut to: Vec<Handle> = Vec::new();
    let mut made = 0;
    while senders_left > 0 {
        let ports = if made % 2 == 0 {
            vec![0]
        } else {
            vec![0, 1, 2]
        };
        let count = ports.len();
        let fresh = receiver(ports, &ledger, &tell_gone);
        for (index, source) in from.iter().enumerate() {
            source.output(0).connect(&fresh.input(index % count));
        }
        fresh.start();
        made += 1;
        to.push(fresh);
        if to.len() > 2 {
            to.remove(0).stop();
            await_all(&gone, 1);
        }
        senders_left -= ended.try_iter().count();
    }
    to.iter().for_each(Handle::stop);
    await_all(&gone, to.len());
    ledger.check_complete();
}

/// A send that was stopped delivered nothing, one that ended well delivered once.
#[test]
fn senders_are_stopped() {
    const SENDERS: usize = 100;
    const MESSAGES: u32 = 1000;
    let ledger = Ledger::new(SENDERS, MESSAGES);
    let (tell, ended) = channel();
    let (tell_gone, gone) = channel();
    let sink = receiver(vec![0, 1], &ledger, &tell_gone);
    sink.start();
    let mut all_sent = Vec::new();
    for index in 0..SENDERS {
        let tell = tell.clone();
        let mut sent = 0;
        let source = Handle::new(move |me: Me, event: Event| {
            if event == Event::Done {
                sent += 1;
            }
            if event == Event::Raised || sent == MESSAGES {
                tell.send((index, sent)).unwrap();
                return Next::End;
            }
            me.send(0, message(index, sent))
        });
        source.output(0).connect(&sink.input(index % 2));
        source.start();
        for _ in 0..(index * 37) % 400 {
            std::hint::spin_loop();
        }
        source.stop();
        let (of, sent) = ended.recv_timeout(PATIENCE).expect("a sender hangs");
        assert_eq!(of, index);
        all_sent.push(sent);
    }
    sink.stop();
    await_all(&gone, 1);
    for (index, &sent) in all_sent.iter().enumerate() {
        for (sequence, count) in ledger.received[index].iter().enumerate() {
            let expected = u32::from((sequence as u32) < sent);
            let count = count.load(Ordering::Relaxed);
            assert_eq!(
                count, expected,
                "message {sequence} of {sent} by sender {index}"
            );
        }
    }
}

#[test]
fn acknowledge_holds_stops_and_refuses() {
    const ROUNDS: u32 = 3_000;
    // Sends whose end the receiver has seen, by sequence number.
    let finished = Arc::new(AtomicU32::new(0));
    let (tell, ended) = channel();
    let noted = finished.clone();
    let mut is_holding = false;
    let sink = Handle::new(move |me: Me, event: Event| {
        if event == Event::Raised {
            return Next::End;
        }
        if is_holding {
            let number = me.number();
            noted.store(number as u32 + 1, Ordering::SeqCst);
            me.let_go(number % 3 != 0);
        }
        is_holding = true;
        me.acknowledge(0)
    });
    let mut next = 0;
    let source = Handle::new(move |me: Me, event: Event| {
        if event != Event::Start {
            let expected = if (next - 1) % 3 != 0 {
                Event::Done
            } else {
                Event::Raised
            };
            assert_eq!(event, expected);
            assert!(
                finished.load(Ordering::SeqCst) >= next as u32,
                "let go too early"
            );
        }
        if next == ROUNDS as i32 {
            tell.send(0).unwrap();
            return Next::End;
        }
        next += 1;
        me.send(0, next - 1)
    });
    source.output(0).connect(&sink.input(0));
    sink.start();
    source.start();
    await_all(&ended, 1);
    sink.stop();
}

#[test]
fn a_token_runs_through_a_ring() {
    const MEMBERS: usize = 100;
    const LAPS: i32 = 50;
    let (tell, ended) = channel();
    let ring: Vec<_> = (0..MEMBERS)
        .map(|index| {
            let tell = tell.clone();
            let mut has_received = index == 0;
            let mut laps = 0;
            Handle::new(move |me: Me, event: Event| {
                if event == Event::Raised {
                    return Next::End;
                }
                let token = if index == 0 && laps == 0 {
                    0
                } else {
                    me.number()
                };
                has_received = !has_received;
                if has_received {
                    return me.receive(0);
                }
                laps += 1;
                if index == 0 && laps > LAPS {
                    assert_eq!(token, LAPS * MEMBERS as i32);
                    tell.send(0).unwrap();
                    return Next::End;
                }
                me.send(0, token + 1)
            })
        })
        .collect();
    for (index, member) in ring.iter().enumerate() {
        member
            .output(0)
            .connect(&ring[(index + 1) % MEMBERS].input(0));
    }
    ring.iter().for_each(|member| {
        member.start();
    });
    await_all(&ended, 1);
    ring.iter().for_each(Handle::stop);
}

#[test]
fn arrays_arrive_whole() {
    const MESSAGES: i32 = 5_000;
    let (out, into) = (Half::free(&INTEGERS, 1), Half::free(&INTEGERS, 0));
    out.connect(&into);
    let (tell, ended) = channel();
    let mut sent = 0;
    let mut kept = None;
    let source = Handle::new(move |me: Me, _: Event| {
        // The sender still owns an array that was not moved.
        if let Some(array) = kept.take() {
            let Array(value) = array;
            assert!(
                me.take_array(value)
                    .iter()
                    .all(|&element| element == sent - 1)
            );
        }
        if sent == MESSAGES {
            return Next::End;
        }
        let moves = sent % 2 == 0;
        let array = me.array(1 + sent as u32 % 300, sent);
        kept = (!moves).then_some(Array(array));
        sent += 1;
        me.send_value(&out, array, moves)
    });
    let mut expected = 0;
    let sink = Handle::new(move |me: Me, event: Event| {
        if event == Event::Done {
            let elements = me.take_array(me.received());
            assert_eq!(elements.len(), 1 + expected as usize % 300);
            assert!(elements.iter().all(|&element| element == expected));
            expected += 1;
        }
        if expected == MESSAGES {
            tell.send(0).unwrap();
            return Next::End;
        }
        me.receive_from(&into)
    });
    source.start();
    sink.start();
    await_all(&ended, 1);
}

/// While a sender makes a long copy, the worker serves another component and then sleeps. The
/// receiver of the copy must be woken all the same.
#[test]
fn a_sender_that_is_detached_while_it_copies_wakes_its_receiver() {
    // Several times as long to copy as a component may hold up others.
    const ELEMENTS: u32 = 24_000_000;
    let (tell, ended) = channel();
    let (give, made) = channel();
    let mut into = None;
    let sink = Handle::new(move |me: Me, event: Event| {
        if event == Event::Done {
            me.drop_array(me.received());
            tell.send(0).unwrap();
            return Next::End;
        }
        let into = into.get_or_insert_with(|| me.half(&INTEGERS, 0));
        let out = me.half(&INTEGERS, 1);
        out.connect(into);
        let source = me.make(sends_when_told(out, ELEMENTS));
        source.start();
        give.send(source).unwrap();
        me.receive_from(into)
    });
    sink.start();
    let source = made.recv_timeout(PATIENCE).expect("a component hangs");
    let go = Handle::new(|me: Me, event: Event| match event {
        Event::Start => me.send(0, 0),
        _ => Next::End,
    });
    go.output(0).connect(&source.input(0));
    go.start();
    // This one is served meanwhile.
    Handle::new(|_: Me, _: Event| Next::End).start();
    await_all(&ended, 1);
}

/// Makes an array, waits for a signal, sends the array, ends.
fn sends_when_told(out: Half, elements: u32) -> impl FnMut(Me, Event) -> Next + Send {
    let mut kept: Option<Array> = None;
    let mut is_told = false;
    move |me: Me, _: Event| match &kept {
        None => {
            kept = Some(Array(me.array(elements, 7)));
            me.receive(0)
        }
        Some(Array(array)) if !is_told => {
            is_told = true;
            me.send_value(&out, *array, false)
        }
        Some(Array(array)) => {
            me.drop_array(*array);
            Next::End
        }
    }
}

/// A select is served as its component is about to move. In another select on its new worker, it
/// does not stand at the first one's half-channels any more.
#[test]
fn who_moves_leaves_what_it_waited_at() {
    for _ in 0..20 {
        let (tell, told) = channel();
        let (give, made) = channel();
        let mut halves: Vec<Half> = Vec::new();
        let mut has_moved = false;
        let mover = Handle::new(move |me: Me, event: Event| match event {
            Event::Start => {
                halves = (0..2).map(|_| me.half(&INTEGER, 0)).collect();
                // The first sends at once, the second on a signal.
                for (number, into) in (0..).zip(&halves) {
                    let out = me.half(&INTEGER, 1);
                    out.connect(into);
                    let sender = me.make(sends_one(out, number, number == 1));
                    sender.start();
                    give.send(sender).unwrap();
                }
                me.set_core(1);
                let arms: Vec<_> = halves.iter().map(|half| me.arm_of(half)).collect();
                me.select_among(&arms, false)
            }
            Event::Done => {
                assert!(!has_moved, "message {} at no arm of its", me.number());
                has_moved = true;
                let old =
                    std::mem::replace(&mut halves, (0..2).map(|_| me.half(&INTEGER, 0)).collect());
                let arms: Vec<_> = halves.iter().map(|half| me.arm_of(half)).collect();
                halves.extend(old);
                tell.send(()).unwrap();
                me.select_among(&arms, false)
            }
            Event::Raised => Next::End,
        });
        mover.start();
        told.recv_timeout(PATIENCE).expect("the mover hangs");
        let senders: Vec<Handle> = made.try_iter().collect();
        let go = Handle::new(|me: Me, event: Event| match event {
            Event::Start => me.send(0, 0),
            _ => Next::End,
        });
        go.output(0).connect(&senders[1].input(0));
        go.start();
        // The second one's send is not received: it ends by being stopped.
        let (stop, stopped) = channel();
        let last = Handle::new(move |_: Me, _: Event| {
            stop.send(()).unwrap();
            Next::End
        });
        last.start();
        stopped.recv_timeout(PATIENCE).expect("a component hangs");
        senders.iter().for_each(Handle::stop);
        mover.stop();
    }
}

/// Sends one number, perhaps only on a signal.
fn sends_one(out: Half, number: i32, waits: bool) -> impl FnMut(Me, Event) -> Next + Send {
    let mut stage = u32::from(!waits);
    move |me: Me, event: Event| {
        stage += 1;
        match (event, stage) {
            (Event::Raised, _) => Next::End,
            (_, 1) => me.receive(0),
            (_, 2) => me.send_value(&out, hearth_runtime::abi::Value::of_integer(number), false),
            _ => Next::End,
        }
    }
}

/// An array between two steps of its owner.
struct Array(hearth_runtime::abi::Value);
// SAFETY: it follows its owner from thread to thread.
unsafe impl Send for Array {}

/// Clients send a half-channel of their own; the server connects to it and answers there.
#[test]
fn half_channels_travel() {
    const CLIENTS: usize = 8;
    const QUESTIONS: i32 = 300;
    let requests = Half::free(&REPLY, 0);
    let (tell, ended) = channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|index| {
            let ask = Half::free(&REPLY, 1);
            ask.connect(&requests);
            let tell = tell.clone();
            let mut answers = 0;
            let mut reply: Option<Half> = None;
            let mut is_asked = false;
            Handle::new(move |me: Me, event: Event| {
                assert_ne!(event, Event::Raised);
                if let (Some(half), true) = (&reply, is_asked) {
                    is_asked = false;
                    return me.receive_from(half);
                }
                if reply.take().is_some() {
                    assert_eq!(me.number(), 42);
                    answers += 1;
                }
                if answers == QUESTIONS {
                    tell.send(index).unwrap();
                    return Next::End;
                }
                let fresh = Half::free(&INTEGER, 0);
                let value = fresh.as_value();
                reply = Some(fresh);
                is_asked = true;
                me.send_value(&ask, value, false)
            })
        })
        .collect();
    let answered = Arc::new(Mutex::new(0));
    let total = answered.clone();
    let mut pending: Option<(Half, Half)> = None;
    let mut has_answered = false;
    let server = Handle::new(move |me: Me, event: Event| {
        if event == Event::Raised {
            return Next::End;
        }
        if event == Event::Done && !has_answered {
            let reply = Half::received(me.received());
            let answer = Half::free(&INTEGER, 1);
            answer.connect(&reply);
            has_answered = true;
            let step = me.send_value(&answer, hearth_runtime::abi::Value::of_integer(42), false);
            pending = Some((reply, answer));
            return step;
        }
        if pending.take().is_some() {
            *total.lock().unwrap() += 1;
        }
        has_answered = false;
        me.receive_from(&requests)
    });
    server.start();
    clients.iter().for_each(|client| {
        client.start();
    });
    await_all(&ended, CLIENTS);
    server.stop();
    assert!(*answered.lock().unwrap() >= CLIENTS as i32 * QUESTIONS - 1);
}

#[test]
fn of_two_arms_at_one_half_channel_the_first_is_chosen() {
    let (tell, ended) = channel();
    let mut left = 100;
    let sink = Handle::new(move |me: Me, event: Event| {
        if event == Event::Done {
            assert_eq!(me.arm(), 0);
            left -= 1;
        }
        if left == 0 {
            tell.send(0).unwrap();
            return Next::End;
        }
        me.select(&[2, 2])
    });
    let source = Handle::new(|me: Me, event: Event| match event {
        Event::Raised => Next::End,
        _ => me.send(0, 1),
    });
    source.output(0).connect(&sink.input(2));
    sink.start();
    source.start();
    await_all(&ended, 1);
    source.stop();
}
