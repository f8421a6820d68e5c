//! Attributes: of the recording as a whole, and of its threads.

use super::schema::{AnyValue, KeyValue, Resource, Scope, Value};
use crate::recorded::{Caller, Recorded};

/// The recording, as what a collector takes for the origin of spans and figures.
pub(super) fn resource(recorded: &Recorded) -> Resource {
    let mut attributes = vec![
        text("service.name", recorded.program()),
        text("process.executable.name", recorded.program()),
        number("process.pid", u64::from(recorded.process())),
        text("hearth.law", recorded.law().name()),
        truth("hearth.ended", recorded.has_ended()),
    ];
    if recorded.homeless() > 0 {
        attributes.push(number("hearth.records_without_thread", recorded.homeless()));
    }
    Resource { attributes }
}

/// Hearth, as what made spans and figures.
pub(super) fn scope() -> Scope {
    Scope {
        name: "hearth".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Attributes of a thread or a component.
pub(super) fn caller(recorded: &Recorded, number: u32) -> Vec<KeyValue> {
    match recorded.caller(number) {
        Caller::Thread(id, name) => thread(id, &name),
        Caller::Component(name) => vec![text("hearth.component", &name)],
    }
}

/// Attributes of a thread.
pub(super) fn thread(id: u32, name: &str) -> Vec<KeyValue> {
    vec![
        number("thread.id", u64::from(id)),
        text("thread.name", name),
    ]
}

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::Text(value.to_owned()))
}

pub(super) fn number(key: &str, value: u64) -> KeyValue {
    pair(key, Value::Number(i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(super) fn truth(key: &str, value: bool) -> KeyValue {
    pair(key, Value::Truth(value))
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}
