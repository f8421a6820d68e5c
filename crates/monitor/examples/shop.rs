//! A shop whose calls are recorded: two threads serve customers for some seconds.
//!
//! `cargo run --release -p hearth-monitor --example shop -- shop.calls 5`, and meanwhile or
//! afterwards `hearth watch shop.calls`.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, thread};

use hearth_monitor::{Monitor, Options, call};

struct Store {
    stock: HashMap<u64, u64>,
}

impl Store {
    fn read(&mut self, article: u64) -> u64 {
        call!("Store.read");
        let mut value = article;
        for _ in 0..200 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
        }
        self.stock.insert(article, value % 100);
        value % 100
    }
}

struct Cache {
    store: Store,
    known: HashMap<u64, u64>,
}

impl Cache {
    fn get(&mut self, article: u64) -> u64 {
        call!("Cache.get");
        if let Some(&left) = self.known.get(&article) {
            return left;
        }
        let left = self.store.read(article);
        if self.known.len() > 500 {
            self.clear();
        }
        self.known.insert(article, left);
        left
    }

    fn clear(&mut self) {
        call!("Cache.clear");
        self.known.clear();
    }
}

struct Server {
    cache: Cache,
}

impl Server {
    fn handle(&mut self, customer: u64) -> u64 {
        call!("Server.handle");
        (0..3)
            .map(|nth| self.cache.get(customer * 7 % 1_009 + nth))
            .sum()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "shop.calls".into());
    let seconds = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let monitor = Monitor::begin(Options::to_file(Path::new(&file)).on("*"))?;
    let end = Instant::now() + Duration::from_secs(seconds);
    thread::scope(|scope| {
        for door in 0..2 {
            scope.spawn(move || {
                let store = Store {
                    stock: HashMap::new(),
                };
                let cache = Cache {
                    store,
                    known: HashMap::new(),
                };
                let mut server = Server { cache };
                let mut customer = door;
                while Instant::now() < end {
                    server.handle(customer);
                    customer += 2;
                }
            });
        }
    });
    let report = monitor.finish();
    assert!(report.failure.is_none(), "{:?}", report.failure);
    Ok(())
}
