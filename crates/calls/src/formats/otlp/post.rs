//! Posting to a collector: OTLP over HTTP.

use std::fmt;
use std::thread;
use std::time::Duration;

use prost::Message;

use super::schema::{Response, Status};

/// Time that a collector has to answer: the default of OTLP's exporters.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Number of times that a busy collector is asked.
const TRIES: u32 = 4;
/// Longest wait that a collector may ask for.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A collector that takes OTLP over HTTP.
pub struct Endpoint {
    agent: ureq::Agent,
    url: String,
}

/// Answer of a collector that took a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Number of spans or data points that it rejected.
    pub rejected: u64,
    /// Its reason, or a warning; empty as a rule.
    pub message: String,
}

/// Reason for which a request was not taken.
#[derive(Debug)]
pub enum Unsent {
    /// The collector was not reached, or did not answer in time.
    Unreached {
        /// The request's address.
        url: String,
        /// The reason.
        why: Box<ureq::Error>,
    },
    /// It refused.
    Refused {
        /// The request's address.
        url: String,
        /// HTTP's status.
        status: u16,
        /// Its reason.
        message: String,
    },
}

impl Endpoint {
    /// A collector at an address such as `http://localhost:4318`, without a path.
    #[must_use]
    pub fn at(url: &str) -> Endpoint {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .build();
        Endpoint {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
        }
    }

    /// Posts the body of a request with spans.
    ///
    /// # Errors
    /// The collector cannot be reached, or refuses. A busy one is asked again, after the time that
    /// it names.
    pub fn post_spans(&self, body: &[u8]) -> Result<Taken, Unsent> {
        self.post("/v1/traces", body)
    }

    /// Posts the body of a request with figures.
    ///
    /// # Errors
    /// As with spans.
    pub fn post_metrics(&self, body: &[u8]) -> Result<Taken, Unsent> {
        self.post("/v1/metrics", body)
    }

    fn post(&self, path: &str, body: &[u8]) -> Result<Taken, Unsent> {
        let url = format!("{}{path}", self.url);
        let mut tries = 1;
        loop {
            let unreached = |why| Unsent::Unreached {
                url: url.clone(),
                why: Box::new(why),
            };
            let request = self.agent.post(&url);
            let request = request.header("content-type", "application/x-protobuf");
            let mut answer = request.send(body).map_err(unreached)?;
            let status = answer.status().as_u16();
            let after = answer.headers().get("retry-after");
            let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            let content = answer.body_mut().read_to_vec();
            match status {
                200..=299 => return Ok(taken(&content.map_err(unreached)?)),
                // The statuses after which OTLP lets a client try again.
                429 | 502..=504 if tries < TRIES => {
                    let wait = after.map_or(Duration::from_secs(1 << (tries - 1)), |seconds| {
                        Duration::from_secs(seconds)
                    });
                    thread::sleep(wait.min(WAIT_MAX));
                    tries += 1;
                }
                status => {
                    let message = content
                        .ok()
                        .and_then(|content| Status::decode(content.as_slice()).ok())
                        .map(|status| status.message);
                    return Err(Unsent::Refused {
                        url,
                        status,
                        message: message.unwrap_or_default(),
                    });
                }
            }
        }
    }
}

fn taken(content: &[u8]) -> Taken {
    let response = Response::decode(content).unwrap_or_default();
    let partial = response.partial_success.unwrap_or_default();
    Taken {
        rejected: u64::try_from(partial.rejected).unwrap_or(0),
        message: partial.error_message,
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::Unreached { url, why } => write!(
                f,
                "no collector answers at {url} ({why}); start one that takes OTLP over HTTP there"
            ),
            Unsent::Refused {
                url,
                status,
                message,
            } if message.is_empty() => write!(f, "the collector at {url} answers {status}"),
            Unsent::Refused {
                url,
                status,
                message,
            } => write!(f, "the collector at {url} answers {status}: {message}"),
        }
    }
}

impl std::error::Error for Unsent {}
