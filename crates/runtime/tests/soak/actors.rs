//! The components: each decides its next action from a random sequence of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hearth_runtime::abi::{Arm, DEFAULT, Value};

use crate::ledger::{Account, Ledger};
use crate::machine::{Event, Half, Handle, INTEGER, INTEGERS, Me, Next, PORTS, Program, REPLY};

/// A sequence of numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // Neighbouring seeds begin alike, and zero stays zero.
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    /// Returns true once in this many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub(crate) fn child(&mut self) -> Random {
        Random::new(self.next())
    }
}

/// The objects that third parties meddle with.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) outs: Vec<Half>,
    pub(crate) ins: Vec<Half>,
    pub(crate) victims: Vec<Handle>,
}

impl Pool {
    /// Meddles with one of them.
    pub(crate) fn meddle(&self, random: &mut Random, how_often_stop: usize) {
        if !self.victims.is_empty() && random.once_in(how_often_stop) {
            random.one_of(&self.victims).stop();
            return;
        }
        match random.below(5) {
            0 => random.one_of(&self.outs).disconnect(),
            1 => random.one_of(&self.ins).disconnect(),
            2 => random.one_of(&self.ins).connect(random.one_of(&self.outs)),
            _ => random.one_of(&self.outs).connect(random.one_of(&self.ins)),
        }
    }
}

/// The state common to all components of a round.
pub(crate) struct Life {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) random: Random,
    latest: HashMap<usize, u32>,
    /// True if it does nothing but its work, as fast as it can.
    hurries: bool,
}

impl Life {
    pub(crate) fn new(ledger: &Arc<Ledger>, random: &mut Random) -> Life {
        ledger.alive.fetch_add(1, Ordering::Relaxed);
        Life {
            ledger: ledger.clone(),
            random: random.child(),
            latest: HashMap::new(),
            hurries: random.once_in(3),
        }
    }

    /// Sometimes computes for longer than a short slice, and sometimes moves elsewhere.
    fn dally(&mut self, me: Me) {
        if self.hurries {
            return;
        }
        if self.random.once_in(40) {
            let until = Instant::now() + Duration::from_micros(self.random.below(400) as u64);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        if self.random.once_in(5000) {
            // A system call that takes longer than any slice.
            std::thread::sleep(Duration::from_millis(25));
        }
        if self.random.once_in(60) {
            me.set_core(self.random.below(4) as u32);
        }
    }

    fn note(&mut self, number: i32, is_held: bool) {
        let (sender, sequence) = self.ledger.note(number, is_held);
        let before = self.latest.insert(sender, sequence);
        assert!(
            before.is_none_or(|before| before < sequence),
            "message {sequence} of sender {sender} came after {before:?}"
        );
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.ledger.alive.fetch_sub(1, Ordering::Release);
    }
}

/// Records the outcome of a send. False: it was stopped.
fn settle(me: Me, event: Event, account: &Account) -> bool {
    match event {
        Event::Raised if me.is_stopped() => {
            account.stopped();
            return false;
        }
        Event::Raised => account.refused(),
        _ => account.accepted(),
    }
    true
}

/// Sends its messages, and makes other senders.
pub(crate) struct Sends {
    pub(crate) life: Life,
    pub(crate) account: Account,
    pub(crate) outs: usize,
    /// True if everything must be delivered.
    pub(crate) owes: bool,
    /// Half-channels that the components it makes send to; empty: it makes none.
    pub(crate) children_to: Vec<Half>,
    pub(crate) children: Arc<Mutex<Vec<Handle>>>,
    pub(crate) is_sending: bool,
}

impl Sends {
    fn make_another(&mut self, me: Me) {
        let messages = 1 + self.life.random.below(6) as u32;
        let Some(account) = self.life.ledger.sender(messages) else {
            return;
        };
        let ledger = self.life.ledger.clone();
        let child = me.make(Sends {
            life: Life::new(&ledger, &mut self.life.random),
            account,
            outs: 1,
            owes: false,
            children_to: Vec::new(),
            children: self.children.clone(),
            is_sending: false,
        });
        let to = self.life.random.one_of(&self.children_to);
        child.output(0).connect(to);
        child.start();
        self.children.lock().unwrap().push(child);
    }
}

impl Program for Sends {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if self.is_sending && !settle(me, event, &self.account) {
            return Next::End;
        }
        self.life.dally(me);
        if !self.children_to.is_empty() && self.life.random.once_in(8) {
            self.make_another(me);
        }
        let Some(number) = self.account.next() else {
            if self.owes {
                self.life.ledger.owing.fetch_sub(1, Ordering::Relaxed);
            }
            return Next::End;
        };
        self.is_sending = true;
        me.send(self.life.random.below(self.outs), number)
    }
}

/// Receives from its ports in every possible way.
pub(crate) struct Receives {
    pub(crate) life: Life,
    /// True if it takes any message, in the plainest way.
    pub(crate) drains: bool,
    /// For each arm of the operation, whether it holds its sender.
    pub(crate) holds: Vec<bool>,
    pub(crate) has_default: bool,
    /// Messages left before it ends.
    pub(crate) left: u32,
}

impl Receives {
    pub(crate) fn new(life: Life, drains: bool, left: u32) -> Receives {
        Receives {
            life,
            drains,
            holds: Vec::new(),
            has_default: false,
            left,
        }
    }

    fn take(&mut self, me: Me) {
        if self.has_default && me.arm() == DEFAULT {
            return;
        }
        let arm = if self.holds.len() == 1 { 0 } else { me.arm() };
        let is_held = self.holds[arm as usize];
        self.life.note(me.number(), is_held);
        self.left -= 1;
        if is_held {
            self.life.dally(me);
            let is_well = self.drains || !self.life.random.once_in(4);
            me.let_go(is_well);
        }
    }

    fn select(&mut self, me: Me, count: usize, has_default: bool) -> Next {
        let random = &mut self.life.random;
        let first = random.below(PORTS);
        self.holds = (0..count)
            .map(|_| !self.drains && random.once_in(8))
            .collect();
        self.has_default = has_default;
        let arms: Vec<Arm> = (0..count)
            .map(|index| me.arm_at((first + index) % PORTS, self.holds[index]))
            .collect();
        me.select_among(&arms, has_default)
    }
}

impl Program for Receives {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if event == Event::Raised {
            assert!(me.is_stopped());
            return Next::End;
        }
        let had_default = self.has_default;
        if event == Event::Done {
            self.take(me);
        }
        self.has_default = false;
        if self.left == 0 {
            return Next::End;
        }
        self.life.dally(me);
        if self.drains {
            return self.select(me, PORTS, false);
        }
        let port = self.life.random.below(PORTS);
        match self.life.random.below(8) {
            0 | 1 => {
                self.holds = vec![false];
                me.receive(port)
            }
            2 => {
                self.holds = vec![true];
                me.acknowledge(port)
            }
            3 if !had_default => self.select(me, PORTS, true),
            4 => self.select(me, 2, false),
            _ => self.select(me, PORTS, false),
        }
    }
}

/// Receives, then sends a message of its own, in turn.
pub(crate) struct Relays {
    pub(crate) life: Life,
    pub(crate) account: Account,
    pub(crate) is_sending: bool,
}

impl Program for Relays {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if self.is_sending {
            if !settle(me, event, &self.account) {
                return Next::End;
            }
        } else if event == Event::Raised {
            return Next::End;
        } else if event == Event::Done {
            self.life.note(me.number(), false);
        }
        self.life.dally(me);
        self.is_sending = event != Event::Start && !self.is_sending;
        if !self.is_sending {
            return me.receive(0);
        }
        match self.account.next() {
            Some(number) => me.send(0, number),
            None => Next::End,
        }
    }
}

/// Meddles with third parties for each message that it gets.
pub(crate) struct Meddles {
    pub(crate) life: Life,
    pub(crate) pool: Arc<Pool>,
    pub(crate) meddlers: Arc<AtomicU32>,
    pub(crate) stops_once_in: usize,
}

impl Program for Meddles {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if event == Event::Raised {
            return Next::End;
        }
        if event == Event::Done {
            self.life.note(me.number(), false);
            self.pool.meddle(&mut self.life.random, self.stops_once_in);
        }
        self.life.dally(me);
        me.receive(0)
    }
}

impl Drop for Meddles {
    fn drop(&mut self) {
        self.meddlers.fetch_sub(1, Ordering::Release);
    }
}

/// An array between two steps of its owner.
struct Array(Value);
// SAFETY: it follows its owner from thread to thread.
unsafe impl Send for Array {}

/// Length of the array that carries a message.
fn length_of(number: i32) -> usize {
    let number = number as usize;
    if number.is_multiple_of(31) {
        // Copying this takes longer than a short slice.
        300_000
    } else {
        1 + number % 60
    }
}

/// Sends arrays, by copy and by move, on a half-channel of its own, which it reconnects at times.
pub(crate) struct SendsArrays {
    life: Life,
    account: Account,
    to: Option<Half>,
    out: Option<Half>,
    kept: Option<(Array, i32)>,
    is_sending: bool,
}

impl SendsArrays {
    pub(crate) fn new(life: Life, account: Account) -> SendsArrays {
        SendsArrays {
            life,
            account,
            to: None,
            out: None,
            kept: None,
            is_sending: false,
        }
    }
}

impl Program for SendsArrays {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if let Some((Array(value), number)) = self.kept.take() {
            // The sender still owns a copied array.
            assert!(
                me.take_array(value)
                    .iter()
                    .all(|&element| element == number)
            );
        }
        if self.is_sending && !settle(me, event, &self.account) {
            return Next::End;
        }
        self.life.dally(me);
        let Some(number) = self.account.next() else {
            self.life.ledger.owing.fetch_sub(1, Ordering::Relaxed);
            return Next::End;
        };
        let random = &mut self.life.random;
        let to = self.to.as_ref().expect("told before it starts");
        let out = self.out.get_or_insert_with(|| {
            let out = me.half(&INTEGERS, 1);
            out.connect(to);
            out
        });
        if random.once_in(30) {
            out.disconnect();
            out.connect(to);
        }
        let array = me.array(length_of(number) as u32, number);
        let moves = random.once_in(2);
        self.kept = (!moves).then_some((Array(array), number));
        self.is_sending = true;
        me.send_value(out, array, moves)
    }
}

/// Makes senders of arrays, and receives from them.
pub(crate) struct ReceivesArrays {
    pub(crate) life: Life,
    pub(crate) senders: Vec<SendsArrays>,
    pub(crate) children: Arc<Mutex<Vec<Handle>>>,
    pub(crate) from: Option<Half>,
}

impl ReceivesArrays {
    fn begin(&mut self, me: Me) {
        let from = me.half(&INTEGERS, 0);
        for mut sender in self.senders.drain(..) {
            sender.to = Some(from.clone());
            start_child(me, sender, &self.children);
        }
        self.from = Some(from);
    }
}

fn start_child(me: Me, program: impl Program + 'static, children: &Mutex<Vec<Handle>>) {
    let child = me.make(program);
    child.start();
    children.lock().unwrap().push(child);
}

impl Program for ReceivesArrays {
    fn next(&mut self, me: Me, event: Event) -> Next {
        match event {
            Event::Raised => return Next::End,
            Event::Start => self.begin(me),
            Event::Done => {
                let elements = me.take_array(me.received());
                let number = elements[0];
                assert_eq!(elements.len(), length_of(number));
                assert!(elements.iter().all(|&element| element == number));
                self.life.note(number, false);
            }
        }
        self.life.dally(me);
        me.receive_from(self.from.as_ref().expect("made at the start"))
    }
}

/// Asks by sending a half-channel made for the answer, and receives there.
pub(crate) struct Asks {
    life: Life,
    left: u32,
    to: Option<Half>,
    out: Option<Half>,
    reply: Option<Half>,
    has_asked: bool,
}

impl Asks {
    pub(crate) fn new(life: Life, left: u32) -> Asks {
        Asks {
            life,
            left,
            to: None,
            out: None,
            reply: None,
            has_asked: false,
        }
    }
}

impl Program for Asks {
    fn next(&mut self, me: Me, event: Event) -> Next {
        assert_ne!(event, Event::Raised, "those that ask are not stopped");
        if let (Some(reply), true) = (&self.reply, self.has_asked) {
            self.has_asked = false;
            return me.receive_from(reply);
        }
        if self.reply.take().is_some() {
            self.life.note(me.number(), false);
        }
        if self.left == 0 {
            self.life.ledger.owing.fetch_sub(1, Ordering::Relaxed);
            return Next::End;
        }
        self.left -= 1;
        self.life.dally(me);
        let reply = me.half(&INTEGER, 0);
        let value = reply.as_value();
        self.reply = Some(reply);
        self.has_asked = true;
        let to = self.to.as_ref().expect("told before it starts");
        let out = self.out.get_or_insert_with(|| {
            let out = me.half(&REPLY, 1);
            out.connect(to);
            out
        });
        me.send_value(out, value, false)
    }
}

/// Makes the components that ask, and answers on each half-channel received.
pub(crate) struct Answers {
    pub(crate) life: Life,
    pub(crate) account: Account,
    pub(crate) askers: Vec<Asks>,
    pub(crate) children: Arc<Mutex<Vec<Handle>>>,
    pub(crate) questions: Option<Half>,
    /// A half-channel that it uses again and again.
    pub(crate) out: Option<Half>,
    pub(crate) asker: Option<Half>,
}

impl Answers {
    fn begin(&mut self, me: Me) {
        let questions = me.half(&REPLY, 0);
        for mut asker in self.askers.drain(..) {
            asker.to = Some(questions.clone());
            start_child(me, asker, &self.children);
        }
        self.questions = Some(questions);
    }
}

impl Program for Answers {
    fn next(&mut self, me: Me, event: Event) -> Next {
        if event == Event::Start {
            self.begin(me);
        } else if self.asker.take().is_some() {
            if !settle(me, event, &self.account) {
                return Next::End;
            }
            if let Some(out) = &self.out {
                out.disconnect();
            }
        } else if event == Event::Raised {
            return Next::End;
        } else {
            let asker = Half::received(me.received());
            let Some(number) = self.account.next() else {
                return Next::End;
            };
            let out = self.out.get_or_insert_with(|| me.half(&INTEGER, 1));
            out.connect(&asker);
            self.asker = Some(asker);
            return me.send_value(out, Value::of_integer(number), false);
        }
        self.life.dally(me);
        me.receive_from(self.questions.as_ref().expect("made at the start"))
    }
}
