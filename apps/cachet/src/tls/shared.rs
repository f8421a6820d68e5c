//! Certificates, keys and counters that all encrypted connections share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, version};

use super::sessions::Sessions;
use super::settings::{KeyFormat, Settings, VerifyMode};

/// The state that all encrypted connections of a server share.
#[derive(Debug)]
pub struct Tls {
    settings: Settings,
    /// Configuration of new connections.
    config: Mutex<Arc<ServerConfig>>,
    sessions: Arc<AtomicU64>,
    failures: AtomicU64,
}

/// Certificates or keys that cannot be used, in memcached's words.
#[derive(Debug, thiserror::Error)]
pub enum NoTls {
    /// The server's certificate.
    #[error("Error loading the certificate chain: {} : {why}", path.display())]
    Chain {
        /// Its file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Its private key.
    #[error("Error loading the key: {} : {why}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Both together.
    #[error("Error validating the certificate: {0}")]
    Pair(rustls::Error),
    /// The authorities that vouch for clients.
    #[error("Error loading the CA certificate: {} : {why}", path.display())]
    Authorities {
        /// Their file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The versions and ciphers together.
    #[error("Error setting the provided cipher(s): {0}")]
    Ciphers(rustls::Error),
}

impl Tls {
    /// Loads certificates and keys.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn load(settings: Settings) -> Result<Tls, NoTls> {
        let sessions = Arc::default();
        let config = configure(&settings, &sessions)?;
        Ok(Tls {
            settings,
            config: Mutex::new(config),
            sessions,
            failures: AtomicU64::new(0),
        })
    }

    /// Loads them again, for new connections. Keeps the former ones if these cannot be used.
    /// Sessions begun before are not resumed, as their clients may not be trusted any more.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn refresh(&self) -> Result<(), NoTls> {
        let config = configure(&self.settings, &self.sessions)?;
        *self.config() = config;
        Ok(())
    }

    fn config(&self) -> MutexGuard<'_, Arc<ServerConfig>> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection, by the present certificates.
    pub(super) fn connection(&self) -> ServerConnection {
        let config = Arc::clone(&self.config());
        let mut connection = ServerConnection::new(config)
            .expect("a connection was made by this configuration when it was loaded");
        // The service's output is limited, and this copy of it is sent at once.
        connection.set_buffer_limit(None);
        connection
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counts a failed handshake.
    pub fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of failed handshakes.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Number of sessions begun that may be resumed.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Resets the counters.
    pub fn reset(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.sessions.store(0, Ordering::Relaxed);
    }
}

fn configure(settings: &Settings, sessions: &Arc<AtomicU64>) -> Result<Arc<ServerConfig>, NoTls> {
    let chain = read_chain(&settings.chain)?;
    let key = read_key(settings)?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: settings.suites(),
        ..ring::default_provider()
    });
    let versions = match settings.version_min {
        ProtocolVersion::TLSv1_3 => &[&version::TLS13][..],
        _ => &[&version::TLS13, &version::TLS12],
    };
    let verifier = verifier(settings, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(NoTls::Ciphers)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(NoTls::Pair)?;
    if settings.resumes {
        config.session_storage = Arc::new(Sessions::new(Arc::clone(sessions)));
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    let config = Arc::new(config);
    ServerConnection::new(Arc::clone(&config)).map_err(NoTls::Ciphers)?;
    Ok(config)
}

/// All certificates of a file; the reason if there is none, or one is damaged.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| error.to_string())?;
    match found.is_empty() {
        true => Err("it has no certificate in PEM".into()),
        false => Ok(found),
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, NoTls> {
    certificates(path).map_err(|why| NoTls::Chain {
        path: path.to_owned(),
        why,
    })
}

fn read_key(settings: &Settings) -> Result<PrivateKeyDer<'static>, NoTls> {
    let path = settings.key.as_ref().unwrap_or(&settings.chain);
    let wrong = |why: String| NoTls::Key {
        path: path.clone(),
        why,
    };
    let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    match settings.key_format {
        KeyFormat::Pem => PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
            wrong(match error {
                pem::Error::NoItemsFound => {
                    "it has no private key in PEM that is not encrypted".into()
                }
                error => error.to_string(),
            })
        }),
        KeyFormat::Der => {
            PrivateKeyDer::try_from(bytes).map_err(|why| wrong(format!("not a key in DER: {why}")))
        }
    }
}

fn verifier(
    settings: &Settings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, NoTls> {
    let Some(path) = &settings.authorities else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let wrong = |why: String| NoTls::Authorities {
        path: path.clone(),
        why,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path).map_err(wrong)? {
        let added = roots.add(certificate);
        added.map_err(|error| wrong(error.to_string()))?;
    }
    let provider = Arc::clone(provider);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match settings.verify {
        VerifyMode::None => return Ok(WebPkiClientVerifier::no_client_auth()),
        VerifyMode::Request => builder.allow_unauthenticated(),
        VerifyMode::Require | VerifyMode::Once => builder,
    };
    builder.build().map_err(|error| wrong(error.to_string()))
}
