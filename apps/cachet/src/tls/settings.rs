//! Settings, by memcached's names.

use std::path::PathBuf;

use rustls::crypto::ring;
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite};

/// Default size of memcached's buffer for output, in kilobytes.
const BUFFER_KB: u32 = 16;

/// Settings of encrypted connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// File of the server's certificate and those that vouch for it, in PEM.
    pub chain: PathBuf,
    /// File of the private key; otherwise it is in the file of the certificate.
    pub key: Option<PathBuf>,
    /// Form of the private key.
    pub key_format: KeyFormat,
    /// Treatment of clients' certificates.
    pub verify: VerifyMode,
    /// File of the authorities that may vouch for clients, in PEM.
    pub authorities: Option<PathBuf>,
    /// Names of ciphers, as given.
    pub cipher_names: Option<String>,
    /// Whether clients may resume sessions.
    pub resumes: bool,
    /// Oldest version of the protocol.
    pub version_min: ProtocolVersion,
    /// Size of memcached's buffer for output, in kilobytes: only shown.
    pub buffer_kb: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            chain: PathBuf::new(),
            key: None,
            key_format: KeyFormat::Pem,
            verify: VerifyMode::None,
            authorities: None,
            cipher_names: None,
            resumes: false,
            version_min: ProtocolVersion::TLSv1_2,
            buffer_kb: BUFFER_KB,
        }
    }
}

/// Form of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFormat {
    /// Text.
    Pem,
    /// Bytes.
    Der,
}

impl KeyFormat {
    /// Number of the form, as memcached shows it.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            KeyFormat::Pem => 1,
            KeyFormat::Der => 2,
        }
    }
}

/// Treatment of clients' certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMode {
    /// Clients are not asked for one.
    None,
    /// A client may have none, but no wrong one.
    Request,
    /// A client must have one.
    Require,
    /// The same: a connection is never negotiated twice.
    Once,
}

impl VerifyMode {
    /// Flags of the mode, as memcached shows them.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            VerifyMode::None => 0,
            VerifyMode::Request => 1,
            VerifyMode::Require => 3,
            VerifyMode::Once => 7,
        }
    }
}

impl Settings {
    /// Sets what `-o name=value` says.
    ///
    /// # Errors
    /// It is wrong, or means nothing here; the text says what to do.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let given = || {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("-o {name} needs a value: -o {name}=…"))
        };
        match name {
            "ssl_chain_cert" => self.chain = given()?.into(),
            "ssl_key" => self.key = Some(given()?.into()),
            "ssl_ca_cert" => self.authorities = Some(given()?.into()),
            "ssl_keyformat" => self.key_format = key_format(given()?)?,
            "ssl_verify_mode" => self.verify = verify_mode(given()?)?,
            "ssl_ciphers" => {
                suites_named(given()?)?;
                self.cipher_names = Some(given()?.into());
            }
            "ssl_min_version" => self.version_min = version(given()?)?,
            "ssl_session_cache" => self.resumes = true,
            "no_ssl_session_cache" => self.resumes = false,
            "ssl_wbuf_size" => {
                let number = given()?.parse();
                self.buffer_kb =
                    number.map_err(|_| "-o ssl_wbuf_size needs a number of kilobytes")?;
            }
            "ssl_kernel_tls" => {
                return Err(
                    "-o ssl_kernel_tls: the server encrypts by itself; leave it away".into(),
                );
            }
            _ => return Err(format!("-o {name} is unknown: see cachet --help")),
        }
        Ok(())
    }

    /// Checks the settings together.
    ///
    /// # Errors
    /// Something is missing; the text says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.chain.as_os_str().is_empty() {
            return Err("-Z needs a certificate: -o ssl_chain_cert=FILE,ssl_key=FILE".into());
        }
        if self.key.is_none() && self.key_format == KeyFormat::Der {
            return Err("a key in the file of the certificate is in PEM: give ssl_key=FILE".into());
        }
        if self.verify != VerifyMode::None && self.authorities.is_none() {
            return Err(
                "-o ssl_verify_mode needs authorities to verify by: -o ssl_ca_cert=FILE".into(),
            );
        }
        Ok(())
    }

    /// Name of the oldest version, as memcached shows it.
    #[must_use]
    pub fn version_name(&self) -> &'static str {
        match self.version_min {
            ProtocolVersion::TLSv1_3 => "tlsv1.3",
            _ => "tlsv1.2",
        }
    }

    /// The ciphers to offer. A list names those of TLS 1.2, as OpenSSL's does; those of TLS 1.3 are
    /// always there.
    #[must_use]
    pub fn suites(&self) -> Vec<SupportedCipherSuite> {
        let named = self.cipher_names.as_deref().map(suites_named);
        let Some(Ok(named)) = named else {
            return ring::ALL_CIPHER_SUITES.to_vec();
        };
        let all = ring::ALL_CIPHER_SUITES.iter();
        let newest = all.filter(|suite| suite.tls13().is_some());
        newest.copied().chain(named).collect()
    }
}

fn key_format(text: &str) -> Result<KeyFormat, String> {
    match text {
        "1" | "PEM" => Ok(KeyFormat::Pem),
        "2" | "DER" => Ok(KeyFormat::Der),
        "ENGINE" => Err("-o ssl_keyformat: keys are in files; give PEM or DER".into()),
        _ => Err("-o ssl_keyformat is PEM (or 1) or DER (or 2)".into()),
    }
}

fn verify_mode(text: &str) -> Result<VerifyMode, String> {
    Ok(match text {
        "0" => VerifyMode::None,
        "1" => VerifyMode::Request,
        "2" => VerifyMode::Require,
        "3" => VerifyMode::Once,
        _ => return Err("-o ssl_verify_mode is 0, 1, 2 or 3".into()),
    })
}

fn version(text: &str) -> Result<ProtocolVersion, String> {
    match text {
        "2" => Ok(ProtocolVersion::TLSv1_2),
        "3" => Ok(ProtocolVersion::TLSv1_3),
        "0" | "1" => {
            Err("-o ssl_min_version: versions before 1.2 are broken; give 2 or 3".to_owned())
        }
        _ => Err("-o ssl_min_version is 2 (TLS 1.2) or 3 (TLS 1.3)".into()),
    }
}

/// OpenSSL's names of the ciphers of TLS 1.2.
const CIPHERS: &[(&str, CipherSuite)] = &[
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// The ciphers of a list, with colons between them.
fn suites_named(list: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let suite = |name: &str| {
        let (_, id) = CIPHERS.iter().find(|(known, _)| *known == name)?;
        let mut all = ring::ALL_CIPHER_SUITES.iter();
        all.find(|suite| suite.suite() == *id).copied()
    };
    let names = list.split(':').filter(|name| !name.is_empty());
    let found = names.map(|name| {
        suite(name).ok_or_else(|| {
            let known: Vec<&str> = CIPHERS.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            format!("-o ssl_ciphers: {name} is not one of {known}; TLS 1.3 has its own, all on")
        })
    });
    found.collect()
}
