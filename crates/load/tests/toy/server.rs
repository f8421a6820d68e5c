//! A small server that speaks the generator's protocols, and lies or stalls on request.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The fault that it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Honest,
    /// Every hundredth write is acknowledged, but not done.
    Forgets,
    /// Every hundredth read gives the value written last, whatever its key.
    Confuses,
    /// Every hundredth read has one byte changed.
    Harms,
    /// Every hundredth read finds nothing.
    Loses,
    /// Every hundredth write is refused.
    Refuses,
    /// Every hundredth request ends the connection.
    HangsUp,
    /// Every hundredth read is answered as if another key had been asked for.
    Misroutes,
}

#[derive(Debug)]
struct Store {
    values: HashMap<Vec<u8>, Vec<u8>>,
    last: Vec<u8>,
    requests: u64,
}

pub(crate) struct Toy {
    pub(crate) address: String,
    store: Arc<Mutex<Store>>,
}

impl Toy {
    /// Starts to serve; its threads end with the process.
    pub(crate) fn begin(manner: Manner) -> Toy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let store = Arc::new(Mutex::new(Store {
            values: HashMap::new(),
            last: Vec::new(),
            requests: 0,
        }));
        let toy = Toy {
            address,
            store: Arc::clone(&store),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&store);
                thread::spawn(move || serve(stream, &store, manner));
            }
        });
        toy
    }

    /// Stops answering for about this long, and returns the exact time.
    #[allow(dead_code, reason = "not every test stalls")]
    pub(crate) fn stall(&self, time: Duration) -> Duration {
        let _held = self.store.lock().unwrap();
        let begin = Instant::now();
        thread::sleep(time);
        begin.elapsed()
    }
}

/// Starts a server that answers each `request` bytes with `reply` bytes in two pieces, and returns
/// its address.
pub(crate) fn echo(request: usize, reply: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut bytes = vec![0; request];
                while stream.read_exact(&mut bytes).is_ok() {
                    let answer = vec![b'r'; reply];
                    let (first, rest) = answer.split_at(reply / 2);
                    if stream.write_all(first).and(stream.write_all(rest)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Serves a connection until it ends or fails.
fn serve(stream: TcpStream, store: &Mutex<Store>, manner: Manner) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let words: Vec<&[u8]> = line.trim_ascii_end().split(|byte| *byte == b' ').collect();
        let reply = match words[..] {
            [b"get", key] => read(&mut store.lock().unwrap(), key, manner)?,
            [b"set", key, _, _, size] => {
                let size: usize = std::str::from_utf8(size).ok()?.parse().ok()?;
                let mut value = vec![0; size + 2];
                input.read_exact(&mut value).ok()?;
                value.truncate(size);
                write(&mut store.lock().unwrap(), key, value, manner)?
            }
            _ => b"ERROR\r\n".to_vec(),
        };
        output.write_all(&reply).ok()?;
    }
}

fn is_turn(store: &mut Store) -> bool {
    store.requests += 1;
    store.requests.is_multiple_of(100)
}

fn read(store: &mut Store, key: &[u8], manner: Manner) -> Option<Vec<u8>> {
    let is_turn = is_turn(store);
    let mut value = store.values.get(key).cloned();
    match manner {
        Manner::Confuses if is_turn => value = Some(store.last.clone()),
        Manner::Loses if is_turn => value = None,
        Manner::HangsUp if is_turn => return None,
        Manner::Harms if is_turn => {
            if let Some(byte) = value.as_mut().and_then(|value| value.last_mut()) {
                *byte ^= 1;
            }
        }
        _ => {}
    }
    let mut reply = Vec::new();
    if let Some(value) = value {
        let named = match manner {
            Manner::Misroutes if is_turn => b"another",
            _ => key,
        };
        reply.extend_from_slice(b"VALUE ");
        reply.extend_from_slice(named);
        reply.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
        reply.extend_from_slice(&value);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(b"END\r\n");
    Some(reply)
}

fn write(store: &mut Store, key: &[u8], value: Vec<u8>, manner: Manner) -> Option<Vec<u8>> {
    let is_turn = is_turn(store);
    match manner {
        Manner::HangsUp if is_turn => return None,
        Manner::Refuses if is_turn => {
            return Some(b"SERVER_ERROR out of memory storing object\r\n".to_vec());
        }
        Manner::Forgets if is_turn => {}
        _ => {
            store.last = value.clone();
            store.values.insert(key.to_vec(), value);
        }
    }
    Some(b"STORED\r\n".to_vec())
}
