//! Encrypted connections as their clients see them.

mod support;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cachet::options::{Arguments, Wanted};
use cachet::server::Running;
use clap::Parser;
use hearth_net::{Mechanism, Pattern};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedProtocolVersion};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use support::{ask, connect, mechanisms, read_to, start, statistic, wait_for};

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// An authority, and a folder for the files of those that it vouches for.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// Files of a certificate and its key.
#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

static FOLDERS: AtomicU64 = AtomicU64::new(0);

impl Authority {
    fn new() -> Authority {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("cachet-tls-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        fs::write(folder.join("authority.pem"), issuer.pem()).expect("a file");
        Authority { issuer, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Issues a certificate for `localhost`.
    fn issue(&self, name: &str) -> Files {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("it is signed");
        let files = Files {
            certificate: self.folder.join(format!("{name}.pem")),
            key: self.folder.join(format!("{name}.key")),
        };
        fs::write(&files.certificate, certificate.pem()).expect("a file");
        fs::write(&files.key, key.serialize_pem()).expect("a file");
        files
    }

    /// Settings of a client that trusts this authority, with a certificate of its own.
    fn client(&self, own: Option<&Files>) -> ClientConfig {
        self.client_of(&[&TLS13, &TLS12], own)
    }

    /// The same, for some versions of the protocol.
    fn client_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        own: Option<&Files>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let root = self.issuer.der().clone();
        roots.add(root).expect("it is an authority");
        let builder = ClientConfig::builder_with_protocol_versions(versions);
        let builder = builder.with_root_certificates(roots);
        let Some(own) = own else {
            return builder.with_no_client_auth();
        };
        let certificate = CertificateDer::from_pem_file(&own.certificate).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(&own.key).expect("a key");
        let config = builder.with_client_auth_cert(vec![certificate], key);
        config.expect("they belong together")
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a server with a certificate.
fn start_with(files: &Files, options: &str) -> Running {
    start(&format!(
        "-Z -o ssl_chain_cert={},ssl_key={} {options}",
        files.certificate.display(),
        files.key.display()
    ))
}

fn wrap(stream: TcpStream, config: &Arc<ClientConfig>) -> Stream {
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::clone(config), name).expect("the name is right");
    StreamOwned::new(client, stream)
}

fn secure(server: &Running, config: &Arc<ClientConfig>) -> Stream {
    let socket = connect(server);
    // Records of single bytes would wait for each other.
    socket.set_nodelay(true).expect("an option");
    wrap(socket, config)
}

/// An authority, a server that it vouches for, and its client.
fn trusted(options: &str) -> (Authority, Running, Arc<ClientConfig>) {
    let authority = Authority::new();
    let server = start_with(&authority.issue("server"), options);
    let config = Arc::new(authority.client(None));
    (authority, server, config)
}

/// Options for every pattern and mechanism that go together and that this system allows.
fn grid() -> impl Iterator<Item = String> {
    Pattern::all().into_iter().flat_map(|pattern| {
        let mut all = Mechanism::all().to_vec();
        all.retain(|one| one.goes_with(pattern) && one.check().is_ok());
        all.into_iter()
            .map(move |mechanism| format!("--pattern {pattern} --mechanism {mechanism}"))
    })
}

/// Reads until the server says that it sends no more.
fn read_to_goodbye(stream: &mut Stream) -> Vec<u8> {
    let mut all = Vec::new();
    // Without the message this is an error.
    stream.read_to_end(&mut all).expect("it says goodbye");
    all
}

#[test]
fn every_pattern_serves_encrypted_connections() {
    for options in grid() {
        let (_authority, server, config) = trusted(&options);
        let mut stream = secure(&server, &config);
        ask(&mut stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        // A record for each byte.
        for byte in b"set b 7 0 3\r\nxyz\r\n" {
            stream.write_all(&[*byte]).expect("it reads");
        }
        ask(&mut stream, b"", b"STORED\r\n");
        let count = 1000;
        ask(
            &mut stream,
            &b"get b\r\n".repeat(count),
            &b"VALUE b 7 3\r\nxyz\r\nEND\r\n".repeat(count),
        );
        let value = "v".repeat(1_000_000);
        let sent = format!("set big 0 0 {}\r\n{value}\r\n", value.len());
        ask(&mut stream, sent.as_bytes(), b"STORED\r\n");
        let one = format!("VALUE big 0 {}\r\n{value}\r\n", value.len());
        ask(
            &mut stream,
            b"get big big big\r\nmn\r\n",
            format!("{}END\r\nMN\r\n", one.repeat(3)).as_bytes(),
        );
        ask(&mut stream, b"quit\r\n", b"");
        assert_eq!(read_to_goodbye(&mut stream), b"", "{options}");
        server.stop(false);
    }
}

/// A socket that takes a few bytes at a time.
struct Drip(TcpStream);

impl Read for Drip {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let few = bytes.len().min(7);
        self.0.read(&mut bytes[..few])
    }
}

impl Write for Drip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(3)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn records_come_in_pieces_of_any_length() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&format!("-t 1 {options}"));
        let name = ServerName::try_from("localhost").expect("a name");
        let client = ClientConnection::new(Arc::clone(&config), name).expect("a right name");
        let socket = connect(&server);
        socket.set_nodelay(true).expect("an option");
        let mut slow = StreamOwned::new(client, Drip(socket));
        let value = "v".repeat(3000);
        let sent = format!("set a 0 0 3000\r\n{value}\r\nget a\r\n");
        let answer = format!("STORED\r\nVALUE a 0 3000\r\n{value}\r\nEND\r\n");
        ask(&mut slow, sent.as_bytes(), answer.as_bytes());
        // Half of a handshake delays nobody.
        let mut half = connect(&server);
        half.write_all(b"\x16\x03\x01\x02").expect("it reads");
        let mut other = secure(&server, &config);
        ask(&mut other, b"mn\r\n", b"MN\r\n");
        server.stop(false);
    }
}

#[test]
fn who_does_not_read_gets_all_in_the_end() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&format!("-t 1 {options}"));
        let mut slow = secure(&server, &config);
        let value = "v".repeat(500_000);
        let sent = format!("set big 0 0 {}\r\n{value}\r\n", value.len());
        ask(&mut slow, sent.as_bytes(), b"STORED\r\n");
        let count = 60;
        slow.write_all(&b"get big\r\n".repeat(count))
            .expect("it reads");
        let mut other = secure(&server, &config);
        ask(&mut other, b"mn\r\n", b"MN\r\n");
        let one = format!("VALUE big 0 {}\r\n{value}\r\nEND\r\n", value.len());
        for _ in 0..count {
            ask(&mut slow, b"", one.as_bytes());
        }
        ask(&mut slow, b"mn\r\n", b"MN\r\n");
        server.stop(false);
    }
}

#[test]
fn who_speaks_plainly_to_an_encrypted_port_is_closed_and_counted() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&options);
        for (number, sent) in [
            &b"mn\r\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            // Whatever begins like a handshake.
            b"\x16\x03\x01\x00\x05hello",
            b"\x16\x03\x01\xff\xffhello",
        ]
        .iter()
        .enumerate()
        {
            let mut plain = connect(&server);
            plain.write_all(sent).expect("it reads");
            let mut answer = Vec::new();
            // The connection may be closed before its input is read.
            let _ = plain.read_to_end(&mut answer);
            assert!(
                answer.first().is_none_or(|kind| *kind == 21),
                "an alert at most: {}",
                answer.escape_ascii()
            );
            let mut stream = secure(&server, &config);
            let errors = statistic(&mut stream, "ssl_handshake_errors");
            assert_eq!(errors, number as u64 + 1, "{options}");
        }
        // After the handshake it is no error of the handshake.
        let mut stream = secure(&server, &config);
        ask(&mut stream, b"mn\r\n", b"MN\r\n");
        stream.sock.write_all(b"get a\r\n").expect("it reads");
        assert!(stream.read_to_end(&mut Vec::new()).is_err(), "no goodbye");
        let mut stream = secure(&server, &config);
        assert_eq!(statistic(&mut stream, "ssl_handshake_errors"), 4);
        ask(&mut stream, b"stats reset\r\n", b"RESET\r\n");
        assert_eq!(statistic(&mut stream, "ssl_handshake_errors"), 0);
        server.stop(false);
    }
}

#[test]
fn places_named_so_are_not_encrypted() {
    let authority = Authority::new();
    let server = start_with(
        &authority.issue("server"),
        "-l 127.0.0.1:0,notls:127.0.0.1:0",
    );
    let config = Arc::new(authority.client(None));
    let addresses = server.addresses();
    let [.., first, second] = &addresses[..] else {
        panic!("it listens at {addresses:?}");
    };
    let mut stream = wrap(TcpStream::connect(first).expect("it listens"), &config);
    ask(&mut stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    let mut plain = TcpStream::connect(second).expect("it listens");
    ask(&mut plain, b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    server.stop(false);
}

#[test]
fn silent_handshakes_end_when_idle_connections_do() {
    let (_authority, server, config) = trusted("-o idle_timeout=1");
    let mut half = connect(&server);
    half.write_all(b"\x16\x03\x01\x02").expect("it reads");
    assert_eq!(half.read(&mut [0; 1]).expect("an end"), 0);
    let mut stream = secure(&server, &config);
    wait_for("the count", || statistic(&mut stream, "idle_kicks") >= 1);
    server.stop(false);
}

#[test]
fn who_leaves_half_way_leaves_nothing_behind() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&format!("-t 1 {options}"));
        for round in 0..50 {
            let mut stream = secure(&server, &config);
            stream
                .write_all(b"set gone 0 0 100000\r\nsome of it")
                .expect("it reads");
            // Amid a handshake, amid a record, and with a goodbye amid a value.
            let mut early = connect(&server);
            early.write_all(b"\x16\x03\x01\x02").expect("it reads");
            let mut amid = secure(&server, &config);
            ask(&mut amid, b"mn\r\n", b"MN\r\n");
            amid.sock
                .write_all(b"\x17\x03\x03\x00\x50")
                .expect("it reads");
            if round % 2 == 0 {
                stream.conn.send_close_notify();
                stream.flush().expect("it reads");
                assert_eq!(read_to_goodbye(&mut stream), b"");
            }
            amid.sock.shutdown(Shutdown::Both).expect("it is open");
        }
        let mut stream = secure(&server, &config);
        wait_for("the others' end", || {
            statistic(&mut stream, "curr_connections") == 1
        });
        ask(&mut stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        assert_eq!(statistic(&mut stream, "curr_items"), 1);
        server.stop(false);
    }
}

#[test]
fn who_sends_no_more_is_answered_before_the_end() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&format!("-t 1 {options}"));
        let mut stream = secure(&server, &config);
        let count = 5000;
        stream
            .write_all(&b"mn\r\n".repeat(count))
            .expect("it reads");
        stream.conn.send_close_notify();
        stream.flush().expect("it reads");
        assert_eq!(read_to_goodbye(&mut stream), b"MN\r\n".repeat(count));
        server.stop(false);
    }
}

#[test]
fn stopping_lets_what_is_begun_come_to_its_end() {
    let (_authority, server, config) = trusted("");
    let mut amid = secure(&server, &config);
    ask(&mut amid, b"mn\r\nset a 0 0 3\r\nx", b"MN\r\n");
    let mut begun = secure(&server, &config);
    ask(&mut begun, b"mn\r\nget", b"MN\r\n");
    // Half of a record.
    let mut half = secure(&server, &config);
    ask(&mut half, b"mn\r\n", b"MN\r\n");
    half.conn.writer().write_all(b"mn\r\n").expect("room");
    let mut record = Vec::new();
    half.conn.write_tls(&mut record).expect("memory");
    half.sock.write_all(&record[..9]).expect("it reads");
    let stopping = std::thread::spawn(move || server.stop(true));
    ask(&mut amid, b"yz\r\n", b"STORED\r\n");
    ask(&mut begun, b" b\r\n", b"END\r\n");
    half.sock.write_all(&record[9..]).expect("it reads");
    ask(&mut half, b"", b"MN\r\n");
    stopping.join().expect("it ends");
}

/// Tries a conversation, and tells whether it was accepted.
fn is_accepted(server: &Running, config: ClientConfig) -> bool {
    let mut stream = secure(server, &Arc::new(config));
    let mut answer = [0; 4];
    let _ = stream.write_all(b"mn\r\n");
    // A version in which the client is refused after it has sent something.
    stream.read_exact(&mut answer).is_ok() && &answer == b"MN\r\n"
}

#[test]
fn clients_show_the_certificates_that_are_asked_for() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (known, stranger) = (ours.issue("client"), theirs.issue("client"));
    for (mode, without, with_wrong) in [
        (0, true, true),
        (1, true, false),
        (2, false, false),
        (3, false, false),
    ] {
        let file = ours.file();
        let options = format!("-o ssl_verify_mode={mode},ssl_ca_cert={}", file.display());
        let server = start_with(&ours.issue("server"), &options);
        let mut refused = 0;
        for version in [&TLS13, &TLS12] {
            let config = |own| ours.client_of(&[version], own);
            assert!(is_accepted(&server, config(Some(&known))), "mode {mode}");
            assert_eq!(is_accepted(&server, config(None)), without, "mode {mode}");
            let is_taken = is_accepted(&server, config(Some(&stranger)));
            assert_eq!(is_taken, with_wrong, "mode {mode}");
            refused += u64::from(!without) + u64::from(!with_wrong);
        }
        let mut stream = secure(&server, &Arc::new(ours.client(Some(&known))));
        assert_eq!(statistic(&mut stream, "ssl_handshake_errors"), refused);
        server.stop(false);
    }
}

/// The first certificate that a server shows.
fn shown(stream: &Stream) -> CertificateDer<'static> {
    let all = stream.conn.peer_certificates().expect("the server has one");
    all[0].clone().into_owned()
}

/// The same of a new connection.
fn secure_shown(server: &Running, config: &Arc<ClientConfig>) -> CertificateDer<'static> {
    let mut stream = secure(server, config);
    ask(&mut stream, b"mn\r\n", b"MN\r\n");
    shown(&stream)
}

#[test]
fn certificates_are_loaded_again_while_connections_live() {
    let (authority, server, config) = trusted("");
    let mut old = secure(&server, &config);
    ask(&mut old, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    authority.issue("server");
    server.server().read_again();
    let before = secure_shown(&server, &config);
    assert_ne!(shown(&old), before);
    let files = authority.issue("server");
    ask(&mut old, b"refresh_certs\r\n", b"OK\r\n");
    assert!(statistic(&mut old, "time_since_server_cert_refresh") < 3600);
    let mut new = secure(&server, &config);
    ask(&mut new, b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    assert_ne!(before, shown(&new));
    ask(&mut old, b"mn\r\n", b"MN\r\n");
    // What is wrong changes nothing.
    let good = fs::read(&files.key).expect("a key");
    let other = KeyPair::generate().expect("a key").serialize_pem();
    for (key, expected) in [
        ("", "Error loading the key: "),
        (&other, "Error validating the certificate: "),
    ] {
        fs::write(&files.key, key).expect("a file");
        old.write_all(b"refresh_certs\r\n").expect("it reads");
        let told = read_to(&mut old, "\r\n");
        assert!(told.starts_with(expected), "{told}");
        let mut still = secure(&server, &config);
        ask(&mut still, b"mn\r\n", b"MN\r\n");
        assert_eq!(shown(&still), shown(&new));
    }
    fs::write(&files.key, good).expect("a file");
    fs::write(&files.certificate, "no certificate").expect("a file");
    old.write_all(b"refresh_certs\r\n").expect("it reads");
    let told = read_to(&mut old, "\r\n");
    assert!(
        told.starts_with("Error loading the certificate chain: "),
        "{told}"
    );
    server.stop(false);
}

/// Reads some bytes more, and tells whether this is among them.
fn reads(stream: &mut Stream, all: &mut Vec<u8>, part: &[u8]) -> bool {
    let before = all.len().saturating_sub(part.len());
    let mut some = [0; 16 << 10];
    let count = stream.read(&mut some).expect("it answers");
    all.extend_from_slice(&some[..count]);
    all[before..].windows(part.len()).any(|bytes| bytes == part)
}

#[test]
fn watchers_are_told_what_happens_however_slowly_they_read() {
    for options in mechanisms() {
        let (_authority, server, config) = trusted(&options);
        let mut watcher = secure(&server, &config);
        // The request comes together with the end of the handshake.
        watcher
            .write_all(b"watch fetchers mutations\r\nget a\r\n")
            .expect("it reads");
        assert_eq!(read_to(&mut watcher, "\n"), "OK\r\n");
        let mut stream = secure(&server, &config);
        let key = "k".repeat(240);
        while statistic(&mut stream, "log_watcher_skipped") == 0 {
            let some = format!("get {key}\r\n").repeat(500);
            ask(&mut stream, some.as_bytes(), &b"END\r\n".repeat(500));
        }
        ask(&mut stream, b"set last 0 0 1\r\nx\r\n", b"STORED\r\n");
        let mut told = Vec::new();
        while !reads(&mut watcher, &mut told, b"key=last ") {
            // Lines that found no room are dropped, perhaps this one.
            ask(&mut stream, b"set last 0 0 1\r\nx\r\n", b"STORED\r\n");
        }
        let text = String::from_utf8(told.clone()).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let (_, whole) = lines.split_last().expect("there are lines");
        for line in whole {
            assert!(
                line.starts_with("ts=") && line.contains(" cfd=") || line.starts_with("skipped="),
                "{line}"
            );
        }
        // It asks for a new key for its own side, and the answer goes the same way.
        watcher.conn.refresh_traffic_keys().expect("it may");
        watcher.write_all(b"ignored\r\n").expect("it reads");
        ask(&mut stream, b"set later 0 0 1\r\nx\r\n", b"STORED\r\n");
        while !reads(&mut watcher, &mut told, b"key=later ") {}
        drop(watcher);
        wait_for("the watcher's end", || {
            statistic(&mut stream, "log_watchers") == 0
        });
        server.stop(false);
    }
}

#[test]
fn sessions_are_resumed_if_they_are_kept() {
    for (options, version, expected) in [
        ("-o ssl_session_cache", &TLS13, HandshakeKind::Resumed),
        ("-o ssl_session_cache", &TLS12, HandshakeKind::Resumed),
        ("", &TLS13, HandshakeKind::Full),
        ("", &TLS12, HandshakeKind::Full),
    ] {
        let (authority, server, _) = trusted(options);
        let config = Arc::new(authority.client_of(&[version], None));
        let mut first = secure(&server, &config);
        ask(&mut first, b"mn\r\n", b"MN\r\n");
        let mut second = secure(&server, &config);
        ask(&mut second, b"mn\r\n", b"MN\r\n");
        assert_eq!(second.conn.handshake_kind(), Some(expected), "{options}");
        if expected == HandshakeKind::Resumed {
            assert!(statistic(&mut second, "ssl_new_sessions") > 0);
        }
        // A session from before new certificates is not resumed.
        ask(&mut second, b"refresh_certs\r\n", b"OK\r\n");
        let mut third = secure(&server, &config);
        ask(&mut third, b"mn\r\n", b"MN\r\n");
        assert_eq!(third.conn.handshake_kind(), Some(HandshakeKind::Full));
        server.stop(false);
    }
}

#[test]
fn versions_and_ciphers_are_those_asked_for() {
    let (authority, server, _) = trusted("-o ssl_min_version=3");
    assert!(is_accepted(&server, authority.client_of(&[&TLS13], None)));
    assert!(!is_accepted(&server, authority.client_of(&[&TLS12], None)));
    server.stop(false);
    let (authority, server, _) = trusted("-o ssl_ciphers=ECDHE-ECDSA-CHACHA20-POLY1305");
    let mut old = secure(&server, &Arc::new(authority.client_of(&[&TLS12], None)));
    ask(&mut old, b"mn\r\n", b"MN\r\n");
    let suite = old.conn.negotiated_cipher_suite().expect("they agreed");
    assert_eq!(
        suite.suite(),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    );
    assert!(is_accepted(&server, authority.client_of(&[&TLS13], None)));
    server.stop(false);
}

#[test]
fn keys_are_in_any_file_and_form() {
    let authority = Authority::new();
    let files = authority.issue("server");
    let text = fs::read_to_string(&files.certificate).expect("a certificate");
    let key = fs::read_to_string(&files.key).expect("a key");
    let both = authority.folder.join("both.pem");
    fs::write(&both, format!("{text}{key}")).expect("a file");
    let der = authority.folder.join("server.der");
    let bytes = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    fs::write(&der, bytes.secret_der()).expect("a file");
    for options in [
        format!("ssl_chain_cert={}", both.display()),
        format!(
            "ssl_chain_cert={},ssl_key={},ssl_keyformat=2",
            files.certificate.display(),
            der.display()
        ),
    ] {
        let server = start(&format!("-Z -o {options}"));
        assert!(is_accepted(&server, authority.client(None)), "{options}");
        server.stop(false);
    }
}

#[test]
fn what_cannot_be_used_is_told_by_its_name() {
    let authority = Authority::new();
    let files = authority.issue("server");
    let chain = format!("ssl_chain_cert={}", files.certificate.display());
    let other = authority.issue("other").key;
    for (options, told) in [
        (
            "ssl_chain_cert=/nowhere".to_owned(),
            "certificate chain: /nowhere : ",
        ),
        (chain.clone(), "no private key in PEM"),
        (
            format!("{chain},ssl_key={}", other.display()),
            "validating the certificate",
        ),
        (
            format!(
                "{chain},ssl_key={},ssl_verify_mode=2,ssl_ca_cert={}",
                files.key.display(),
                files.key.display()
            ),
            "CA certificate: ",
        ),
    ] {
        let words = ["cachet", "-p", "0", "-l", "127.0.0.1", "-Z", "-o", &options];
        let Ok(Wanted::Server(wanted)) = Arguments::parse_from(words).wanted() else {
            panic!("{options} is a server");
        };
        let error = Running::start(*wanted).err().expect("it cannot be used");
        assert!(error.to_string().contains(told), "{options}: {error}");
    }
}

/// A client that shares no code with the server.
#[test]
fn openssl_is_served() {
    let (authority, server, _) = trusted("");
    let client = Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-servername",
            "localhost",
        ])
        .arg("-CAfile")
        .arg(authority.file())
        .args(["-connect", &server.addresses()[0]])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut client) = client else {
        return;
    };
    let mut input = client.stdin.take().expect("it was asked for");
    let value = "v".repeat(100_000);
    let sent = format!("set a 0 0 100000\r\n{value}\r\nget a\r\nquit\r\n");
    input.write_all(sent.as_bytes()).expect("it reads");
    let mut output = client.stdout.take().expect("it was asked for");
    let mut answer = String::new();
    output.read_to_string(&mut answer).expect("it answers");
    assert!(answer == format!("STORED\r\nVALUE a 0 100000\r\n{value}\r\nEND\r\n"));
    drop(input);
    client.wait().expect("it ends");
    server.stop(false);
}
