//! Packets of a network put together, and searched for attacks.
//!
//! Each thread takes a packet from a queue, puts it into its flow, and if a flow has become whole,
//! takes one that is and looks for the signature of an attack. Transactions are short, and all
//! meet at both queues.

use std::sync::{Mutex, PoisonError};

use hearth_stm::{Algorithm, Halt, Map, Queue, Stm, Tx, Var};

use super::{Kernel, Random, Size};

pub(super) struct Parameters {
    /// Flows in 100 that are attacks.
    pub(super) attacks: usize,
    /// Most bytes of a flow that is none.
    pub(super) length: usize,
    pub(super) flows: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        let flows = match size {
            Size::Small => 100,
            Size::Published => 2038,
        };
        Parameters {
            attacks: 10,
            length: 4,
            flows,
        }
    }
}

/// Attacks are in small letters, other flows in capitals.
const SIGNATURES: [&str; 6] = [
    "overflowstack",
    "formatstring",
    "unionselect",
    "pathtraversal",
    "heartbleed",
    "shellcode",
];

struct Packet {
    flow: u32,
    /// Its number in its flow, and how many the flow has.
    number: u32,
    of: u32,
    bytes: Vec<u8>,
    /// The packet behind it in its flow, plus 1, of those that have come.
    next: Var<u32>,
}

pub(super) struct Intruder<A: Algorithm> {
    stm: Stm<A>,
    packets: Vec<Packet>,
    stream: Queue<u32>,
    /// First packet, plus 1, of the flows that are not whole.
    parts: Map<u32, u32>,
    whole: Queue<u32>,
    /// The texts of all flows.
    texts: Vec<Vec<u8>>,
    attacks: Vec<u32>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    flows: usize,
    damaged: usize,
    attacks: Vec<u32>,
}

impl<A: Algorithm> Intruder<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, seed: u64) -> Intruder<A> {
        let parameters = Parameters::of(size);
        let mut random = Random::new(seed);
        let (mut packets, mut texts, mut attacks) = (Vec::new(), Vec::new(), Vec::new());
        for flow in 0..parameters.flows as u32 {
            let text: Vec<u8> = if random.happens(parameters.attacks) {
                attacks.push(flow);
                SIGNATURES[random.below(SIGNATURES.len())].into()
            } else {
                let length = random.below(parameters.length) + 1;
                (0..length).map(|_| b'A' + random.below(26) as u8).collect()
            };
            packets.extend(cut(flow, &text, &mut random));
            texts.push(text);
        }
        random.shuffle(&mut packets);
        let stream = Queue::new();
        for packet in 0..packets.len() as u32 {
            stm.atomically(|tx| stream.push(tx, packet));
        }
        Intruder {
            stm,
            packets,
            stream,
            parts: Map::with_capacity(parameters.flows),
            whole: Queue::new(),
            texts,
            attacks,
            found: Mutex::default(),
        }
    }

    /// Puts a packet into its flow, and hands the flow on if it is whole.
    fn place<'v>(&'v self, tx: &mut Tx<'v, A>, number: u32) -> Result<(), Halt> {
        let packet = &self.packets[number as usize];
        let mut first = self.parts.get(tx, packet.flow)?.unwrap_or(0);
        let (mut before, mut behind, mut count) = (None, first, 1);
        let mut at = first;
        while at != 0 {
            let other = &self.packets[at as usize - 1];
            let next = tx.read(&other.next)?;
            if other.number < packet.number {
                (before, behind) = (Some(other), next);
            }
            count += 1;
            at = next;
        }
        tx.write(&packet.next, behind)?;
        match before {
            Some(before) => tx.write(&before.next, number + 1)?,
            None => first = number + 1,
        }
        if count == packet.of {
            self.parts.remove(tx, packet.flow)?;
            self.whole.push(tx, first)
        } else {
            self.parts.insert(tx, packet.flow, first).map(drop)
        }
    }

    /// Takes a whole flow and gives its text.
    fn take<'v>(&'v self, tx: &mut Tx<'v, A>) -> Result<Option<(u32, Vec<u8>)>, Halt> {
        let Some(mut at) = self.whole.pop(tx)? else {
            return Ok(None);
        };
        let flow = self.packets[at as usize - 1].flow;
        let mut text = Vec::new();
        while at != 0 {
            let packet = &self.packets[at as usize - 1];
            text.extend_from_slice(&packet.bytes);
            at = tx.read(&packet.next)?;
        }
        Ok(Some((flow, text)))
    }
}

/// Packets of a flow: as many as chance says, of at least a byte each.
fn cut(flow: u32, text: &[u8], random: &mut Random) -> Vec<Packet> {
    let of = random.below(text.len()) + 1;
    let piece = |number: usize| {
        let begin = number * (text.len() / of);
        let end = match number + 1 == of {
            true => text.len(),
            false => begin + text.len() / of,
        };
        Packet {
            flow,
            number: number as u32,
            of: of as u32,
            bytes: text[begin..end].to_vec(),
            next: Var::new(0),
        }
    };
    (0..of).map(piece).collect()
}

fn is_attack(text: &[u8]) -> bool {
    let is_in = |signature: &str| {
        let signature = signature.as_bytes();
        text.windows(signature.len()).any(|part| part == signature)
    };
    SIGNATURES.into_iter().any(is_in)
}

impl<A: Algorithm> Kernel for Intruder<A> {
    fn work(&self, _thread: usize) {
        let mut own = Found::default();
        while let Some(number) = self.stm.atomically(|tx| self.stream.pop(tx)) {
            self.stm.atomically(|tx| self.place(tx, number));
            if let Some((flow, text)) = self.stm.atomically(|tx| self.take(tx)) {
                own.flows += 1;
                own.damaged += usize::from(text != self.texts[flow as usize]);
                if is_attack(&text) {
                    own.attacks.push(flow);
                }
            }
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.flows += own.flows;
        found.damaged += own.damaged;
        found.attacks.extend(own.attacks);
    }

    fn check(&self) -> Result<(), String> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.attacks.sort_unstable();
        if found.flows != self.texts.len() || found.damaged != 0 {
            let (flows, damaged) = (found.flows, found.damaged);
            return Err(format!("{flows} flows were whole, {damaged} damaged"));
        }
        match found.attacks == self.attacks {
            true => Ok(()),
            false => Err("other attacks were found than there are".to_owned()),
        }
    }
}
