//! Requests as bytes, and bytes as replies.

use std::ops::Range;

/// Protocol of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's text commands: `get`, `set`.
    Text,
    /// memcached's meta commands: `mg`, `ms`.
    Meta,
    /// An echo server whose replies have a size of their own.
    Echo {
        /// Bytes of a request.
        request: usize,
        /// Bytes of a reply.
        reply: usize,
    },
}

impl std::str::FromStr for Protocol {
    type Err = String;

    /// Parses `text`, `meta`, `echo:SIZE` or `echo:REQUEST:REPLY`.
    fn from_str(text: &str) -> Result<Protocol, String> {
        let help = || {
            format!(
                "'{text}' is not a protocol; there are text, meta and echo:REQUEST:REPLY (bytes)"
            )
        };
        let size = |text: &str| match crate::units::bytes(text) {
            Ok(size) if size > 0 => Ok(size as usize),
            _ => Err(help()),
        };
        let words: Vec<&str> = text.split(':').collect();
        match words[..] {
            ["text"] => Ok(Protocol::Text),
            ["meta"] => Ok(Protocol::Meta),
            ["echo", both] => Ok(Protocol::Echo {
                request: size(both)?,
                reply: size(both)?,
            }),
            ["echo", request, reply] => Ok(Protocol::Echo {
                request: size(request)?,
                reply: size(reply)?,
            }),
            _ => Err(help()),
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Protocol::Text => f.write_str("text"),
            Protocol::Meta => f.write_str("meta"),
            Protocol::Echo { request, reply } => write!(f, "echo:{request}:{reply}"),
        }
    }
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads a key's value, or wants an echo.
    Get,
    /// Writes a key's value.
    Set,
}

/// Content of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A value, at this range of the bytes.
    Hit(Range<usize>),
    /// There is no value.
    Miss,
    /// The value was stored.
    Stored,
    /// The value was not stored, without an error.
    NotStored,
    /// The echo.
    Echoed,
    /// An error, with the range of its line.
    Error(Range<usize>),
}

/// Result of parsing the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// An incomplete reply, which needs at least this many bytes.
    Part(usize),
    /// A reply of this length.
    Whole(usize, Outcome),
    /// Bytes that do not answer the request.
    Nonsense,
}

/// Longest line of a reply.
const LINE_MAX: usize = 2048;

impl Protocol {
    /// Appends a request for a key's value.
    pub fn get(self, key: &[u8], to: &mut Vec<u8>) {
        match self {
            Protocol::Text => to.extend_from_slice(b"get "),
            Protocol::Meta => to.extend_from_slice(b"mg "),
            Protocol::Echo { request, .. } => {
                to.resize(to.len() + request, b'e');
                return;
            }
        }
        to.extend_from_slice(key);
        if self == Protocol::Meta {
            // Asks for the key, so that every reply says what it answers.
            to.extend_from_slice(b" k v");
        }
        to.extend_from_slice(b"\r\n");
    }

    /// Appends the head of a request that writes `size` bytes; the value and [`END`] follow.
    pub fn set(self, key: &[u8], size: usize, to: &mut Vec<u8>) {
        match self {
            Protocol::Text => {
                to.extend_from_slice(b"set ");
                to.extend_from_slice(key);
                to.extend_from_slice(b" 0 0 ");
            }
            Protocol::Meta | Protocol::Echo { .. } => {
                to.extend_from_slice(b"ms ");
                to.extend_from_slice(key);
                to.push(b' ');
            }
        }
        append_number(size, to);
        to.extend_from_slice(END);
    }

    /// Parses the reply to such a request for the key from the front of `bytes`.
    pub fn parse(self, kind: Kind, key: &[u8], bytes: &[u8]) -> Parsed {
        if let Protocol::Echo { reply, .. } = self {
            return if bytes.len() < reply {
                Parsed::Part(reply)
            } else {
                Parsed::Whole(reply, Outcome::Echoed)
            };
        }
        match self.parse_usual(kind, key, bytes) {
            Some(parsed) => parsed,
            None => parse_line(self, kind, bytes),
        }
    }

    /// Parses the expected reply, without a search for the end of its line; none if it is another.
    fn parse_usual(self, kind: Kind, key: &[u8], bytes: &[u8]) -> Option<Parsed> {
        match (self, kind) {
            (Protocol::Text, Kind::Get) => {
                // VALUE key flags size
                let rest = bytes.strip_prefix(b"VALUE ")?.strip_prefix(key)?;
                let rest = rest.strip_prefix(b" ")?;
                // Flags are 0, as written.
                let (_, rest) = number(rest).filter(|(flags, _)| *flags == 0)?;
                let (size, rest) = number(rest.strip_prefix(b" ")?)?;
                // A cas value would follow here, if it had been asked for.
                let rest = rest.strip_prefix(b"\r\n")?;
                Some(value(bytes.len() - rest.len(), size, b"\r\nEND\r\n", bytes))
            }
            (Protocol::Meta, Kind::Get) => {
                let (size, rest) = number(bytes.strip_prefix(b"VA ")?)?;
                let rest = rest.strip_prefix(b" k")?.strip_prefix(key)?;
                let rest = rest.strip_prefix(b"\r\n")?;
                Some(value(bytes.len() - rest.len(), size, b"\r\n", bytes))
            }
            (Protocol::Text, Kind::Set) => bytes
                .starts_with(b"STORED\r\n")
                .then_some(Parsed::Whole(8, Outcome::Stored)),
            (_, Kind::Set) => bytes
                .starts_with(b"HD\r\n")
                .then_some(Parsed::Whole(4, Outcome::Stored)),
            (Protocol::Echo { .. }, Kind::Get) => None,
        }
    }
}

/// End of a line, and of the value of a request.
pub const END: &[u8] = b"\r\n";

/// Largest value that memcached and cachet can be told to accept (`-I 1024m`); also the limit of an
/// incomplete reply.
const VALUE_MAX: usize = 1 << 30;

/// A value of `size` bytes from `begin`, checked for its end.
fn value(begin: usize, size: usize, after: &[u8], bytes: &[u8]) -> Parsed {
    // Larger than any value: this is not a length.
    if size > VALUE_MAX {
        return Parsed::Nonsense;
    }
    let end = begin + size + after.len();
    match bytes.get(begin + size..) {
        None => Parsed::Part(end),
        Some(rest) if rest.len() < after.len() => {
            if after.starts_with(rest) {
                Parsed::Part(end)
            } else {
                Parsed::Nonsense
            }
        }
        Some(rest) if rest.starts_with(after) => {
            Parsed::Whole(end, Outcome::Hit(begin..begin + size))
        }
        Some(_) => Parsed::Nonsense,
    }
}

/// Parses any other reply, which is a line.
fn parse_line(protocol: Protocol, kind: Kind, bytes: &[u8]) -> Parsed {
    let window = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = window.windows(2).position(|two| two == END) else {
        return if bytes.len() >= LINE_MAX {
            Parsed::Nonsense
        } else {
            Parsed::Part(bytes.len() + 1)
        };
    };
    let line = &bytes[..end];
    let outcome = match (protocol, kind, line) {
        (Protocol::Text, Kind::Get, b"END") | (Protocol::Meta, Kind::Get, b"EN") => Outcome::Miss,
        (Protocol::Text, Kind::Set, b"NOT_STORED") | (Protocol::Meta, Kind::Set, b"NS") => {
            Outcome::NotStored
        }
        (_, _, line)
            if line == b"ERROR"
                || line.starts_with(b"CLIENT_ERROR")
                || line.starts_with(b"SERVER_ERROR") =>
        {
            Outcome::Error(0..end)
        }
        _ => return Parsed::Nonsense,
    };
    Parsed::Whole(end + 2, outcome)
}

/// Parses a decimal number at the front, and returns what follows.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0usize;
    let mut length = 0;
    for byte in bytes.iter().take(20) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.checked_mul(10)?.checked_add(digit.into())?;
        length += 1;
    }
    (length > 0).then(|| (number, &bytes[length..]))
}

fn append_number(number: usize, to: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut place = digits.len();
    let mut rest = number;
    loop {
        place -= 1;
        digits[place] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[place..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every prefix of the bytes is incomplete, and returns the outcome of all.
    fn whole(protocol: Protocol, kind: Kind, bytes: &[u8]) -> Outcome {
        for length in 0..bytes.len() {
            match protocol.parse(kind, b"key", &bytes[..length]) {
                Parsed::Part(needed) => assert!(needed > length && needed <= bytes.len()),
                other => panic!("{length} bytes of {bytes:?}: {other:?}"),
            }
        }
        let longer = [bytes, b"VALUE"].concat();
        match protocol.parse(kind, b"key", &longer) {
            Parsed::Whole(length, outcome) => {
                assert_eq!(length, bytes.len());
                outcome
            }
            other => panic!("{bytes:?}: {other:?}"),
        }
    }

    #[test]
    fn replies_are_read_however_they_are_cut() {
        use Outcome::*;
        let (text, meta) = (Protocol::Text, Protocol::Meta);
        let hit = b"VALUE key 0 4\r\na\r\nb\r\nEND\r\n";
        assert_eq!(whole(text, Kind::Get, hit), Hit(15..19));
        assert_eq!(whole(text, Kind::Get, b"END\r\n"), Miss);
        assert_eq!(whole(text, Kind::Set, b"STORED\r\n"), Stored);
        assert_eq!(whole(text, Kind::Set, b"NOT_STORED\r\n"), NotStored);
        let error = b"SERVER_ERROR out of memory\r\n";
        assert_eq!(whole(text, Kind::Get, error), Error(0..26));
        assert_eq!(whole(meta, Kind::Get, b"VA 2 kkey\r\nab\r\n"), Hit(11..13));
        assert_eq!(whole(meta, Kind::Get, b"EN\r\n"), Miss);
        assert_eq!(whole(meta, Kind::Set, b"HD\r\n"), Stored);
        assert_eq!(whole(meta, Kind::Set, b"NS\r\n"), NotStored);
        let echo: Protocol = "echo:1:3".parse().unwrap();
        assert_eq!(echo.parse(Kind::Get, b"", b"ab"), Parsed::Part(3));
        assert_eq!(echo.parse(Kind::Get, b"", b"abc"), Parsed::Whole(3, Echoed));
    }

    #[test]
    fn what_answers_nothing_is_nonsense() {
        let bad: [&[u8]; 8] = [
            // Larger than any value.
            b"VALUE key 0 1073741825\r\n",
            b"VALUE key 7 1\r\na\r\nEND\r\n",
            b"STORED\r\n",
            b"VALUE other 0 1\r\na\r\nEND\r\n",
            b"VALUE key 0 1\r\nabEND\r\n",
            b"VALUE key 0 1\r\na\r\nVALUE",
            b"VALUE key 0 99999999999999999999999\r\n",
            b"\x80\x00\r\n",
        ];
        for bytes in bad {
            let parsed = Protocol::Text.parse(Kind::Get, b"key", bytes);
            assert_eq!(parsed, Parsed::Nonsense, "{bytes:?}");
        }
        let endless = vec![b'V'; LINE_MAX];
        let parsed = Protocol::Text.parse(Kind::Get, b"key", &endless);
        assert_eq!(parsed, Parsed::Nonsense);
    }

    /// No input makes the parser panic, return a reply longer than the input, or ask for bytes that
    /// are there.
    #[test]
    fn no_bytes_do_harm() {
        let mut random = crate::random::Random::new(11);
        let seeds: [&[u8]; 5] = [
            b"VALUE key 0 4\r\nabcd\r\nEND\r\n",
            b"VA 4 kkey\r\nabcd\r\n",
            b"SERVER_ERROR out of memory\r\n",
            b"STORED\r\n",
            b"HD\r\n",
        ];
        for round in 0..50_000usize {
            let mut bytes = seeds[round % seeds.len()].to_vec();
            for _ in 0..random.below(4) {
                let place = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[place] = random.number() as u8,
                    1 => bytes.insert(place, b"0189 \r\n"[random.below(7) as usize]),
                    _ if bytes.len() > 1 => bytes.truncate(place.max(1)),
                    _ => {}
                }
            }
            for protocol in [Protocol::Text, Protocol::Meta] {
                for kind in [Kind::Get, Kind::Set] {
                    match protocol.parse(kind, b"key", &bytes) {
                        Parsed::Part(needed) => assert!(needed > bytes.len()),
                        Parsed::Whole(length, Outcome::Hit(place) | Outcome::Error(place)) => {
                            assert!(place.start <= place.end && place.end < length);
                            assert!(length <= bytes.len());
                        }
                        Parsed::Whole(length, _) => assert!(length <= bytes.len()),
                        Parsed::Nonsense => {}
                    }
                }
            }
        }
    }

    #[test]
    fn requests_are_what_the_protocol_says() {
        let mut bytes = Vec::new();
        Protocol::Text.get(b"a", &mut bytes);
        Protocol::Text.set(b"b", 10, &mut bytes);
        Protocol::Meta.get(b"c", &mut bytes);
        Protocol::Meta.set(b"d", 0, &mut bytes);
        assert_eq!(bytes, b"get a\r\nset b 0 0 10\r\nmg c k v\r\nms d 0\r\n");
    }
}
