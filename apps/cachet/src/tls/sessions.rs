//! Sessions to be resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

/// Sessions kept, as many as OpenSSL keeps.
const SESSIONS_MAX: usize = 20 << 10;

/// A cache of sessions that counts those added.
#[derive(Debug)]
pub(super) struct Sessions {
    cache: Arc<ServerSessionMemoryCache>,
    added: Arc<AtomicU64>,
}

impl Sessions {
    pub(super) fn new(added: Arc<AtomicU64>) -> Sessions {
        Sessions {
            cache: ServerSessionMemoryCache::new(SESSIONS_MAX),
            added,
        }
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.added.fetch_add(1, Ordering::Relaxed);
        self.cache.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(key)
    }

    fn can_cache(&self) -> bool {
        self.cache.can_cache()
    }
}
