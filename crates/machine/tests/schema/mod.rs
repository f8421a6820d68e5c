//! A checker for the part of JSON schema that ours uses. It is stricter: it also rejects fields
//! that the schema does not describe, so that the schema cannot lag behind, and unknown keywords.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;

use serde_json::Value;

const ANNOTATIONS: &[&str] = &["$schema", "$id", "$defs", "title", "description"];

/// Everything wrong with `value`, one line each.
pub(crate) fn faults(root: &Value, value: &Value) -> Vec<String> {
    let mut check = Check::new(root);
    check.value(root, value, "");
    check.faults
}

/// Fields that the schema describes and `value` does not have anywhere.
pub(crate) fn unused(root: &Value, value: &Value) -> Vec<String> {
    let mut check = Check::new(root);
    check.value(root, value, "");
    let described = described(root, root, "", 0);
    described.difference(&check.seen).cloned().collect()
}

struct Check<'a> {
    root: &'a Value,
    faults: Vec<String>,
    /// Places of fields met, with `[]` for any index.
    seen: BTreeSet<String>,
}

impl<'a> Check<'a> {
    fn new(root: &'a Value) -> Self {
        Check {
            root,
            faults: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn value(&mut self, rule: &Value, value: &Value, place: &str) {
        for (keyword, argument) in rule.as_object().expect("a rule is an object") {
            let right = match keyword.as_str() {
                "type" => is(value, argument.as_str().expect("one type")),
                "enum" => argument.as_array().expect("a list").contains(value),
                "minimum" => value.as_f64() >= argument.as_f64(),
                "required" => argument.as_array().expect("a list").iter().all(|name| {
                    let name = name.as_str().expect("a name");
                    value.get(name).is_some()
                }),
                "$ref" => {
                    self.value(target(self.root, argument), value, place);
                    true
                }
                "anyOf" => argument.as_array().expect("a list").iter().any(|rule| {
                    let mut attempt = Check::new(self.root);
                    attempt.value(rule, value, place);
                    let right = attempt.faults.is_empty();
                    if right {
                        self.seen.extend(attempt.seen);
                    }
                    right
                }),
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.value(argument, item, &format!("{place}[]"));
                    }
                    true
                }
                "properties" => {
                    for (name, item) in value.as_object().into_iter().flatten() {
                        let place = format!("{place}.{name}");
                        match argument.get(name) {
                            Some(rule) => self.value(rule, item, &place),
                            None => self.faults.push(format!("{place}: not described")),
                        }
                        self.seen.insert(place);
                    }
                    true
                }
                other => ANNOTATIONS.contains(&other),
            };
            if !right {
                self.faults.push(format!("{place}: {keyword} {argument}"));
            }
        }
    }
}

fn target<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let path = reference.as_str().and_then(|text| text.strip_prefix('#'));
    path.and_then(|path| root.pointer(path))
        .unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        other => panic!("the schema has type {other}"),
    }
}

fn described(root: &Value, rule: &Value, place: &str, depth: u32) -> BTreeSet<String> {
    assert!(depth < 32, "the schema refers to itself at {place}");
    let mut places = BTreeSet::new();
    for (keyword, argument) in rule.as_object().expect("a rule is an object") {
        match keyword.as_str() {
            "$ref" => places.extend(described(root, target(root, argument), place, depth + 1)),
            "items" => {
                let place = format!("{place}[]");
                places.extend(described(root, argument, &place, depth + 1));
            }
            "anyOf" => {
                for rule in argument.as_array().expect("a list") {
                    places.extend(described(root, rule, place, depth + 1));
                }
            }
            "properties" => {
                for (name, rule) in argument.as_object().expect("an object") {
                    let place = format!("{place}.{name}");
                    places.extend(described(root, rule, &place, depth + 1));
                    places.insert(place);
                }
            }
            _ => {}
        }
    }
    places
}
