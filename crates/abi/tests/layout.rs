//! The C header and its Rust mirror agree on every size, offset and constant.

use std::fmt::Write;
use std::mem::{align_of, offset_of, size_of};
use std::process::Command;

use hearth_abi as abi;

/// Lines of `name number`, by C.
fn by_c(expressions: &[(&str, usize)]) -> String {
    let mut source = String::from("#include \"hearth.h\"\n#include <stdio.h>\nint main(void){\n");
    for (expression, _) in expressions {
        let _ = writeln!(
            source,
            "printf(\"%s %zu\\n\", \"{expression}\", (size_t)({expression}));"
        );
    }
    source.push_str("return 0;}\n");
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&file, source).unwrap();
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .status()
        .expect("these tests need a C compiler: apt install gcc");
    assert!(status.success());
    String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
}

macro_rules! layout {
    ($list:ident: $($c:literal = $rust:ty { $($field:literal = $name:ident),* $(,)? })*) => {
        $(
            $list.push((concat!("sizeof(", $c, ")"), size_of::<$rust>()));
            $list.push((concat!("_Alignof(", $c, ")"), align_of::<$rust>()));
            $($list.push((concat!("offsetof(", $c, ", ", $field, ")"), offset_of!($rust, $name)));)*
        )*
    };
}

#[test]
fn header_and_mirror_agree() {
    // The runtime asserts the layout of its private types.
    let mut all: Vec<(&str, usize)> = vec![
        ("offsetof(struct hearth_worker, gate)", 0),
        ("offsetof(struct hearth_worker, busy)", 8),
        ("offsetof(struct hearth_worker, ticks)", 12),
        ("offsetof(struct hearth_worker, running)", 16),
        ("offsetof(struct hearth_worker, next)", 24),
        ("offsetof(struct hearth_worker, first)", 32),
        ("offsetof(struct hearth_worker, last)", 40),
        ("offsetof(struct hearth_worker, seeded)", 48),
        ("offsetof(struct hearth_channel, place)", 0),
        ("offsetof(struct hearth_channel, sole)", 8),
        ("offsetof(struct hearth_channel, slot)", 16),
        ("offsetof(struct hearth_channel, arm)", 32),
        ("offsetof(struct hearth_channel, served)", 36),
    ];
    layout! { all:
        "hearth_step" = abi::Step {}
        "hearth_kind" = abi::Kind {}
        "hearth_value" = abi::Value {}
        "hearth_site" = abi::Site { "file" = file, "line" = line, "column" = column, "text" = text }
        "hearth_object" = abi::Object { "refs" = refs, "spare" = spare }
        "hearth_string" = abi::Text { "object" = object, "length" = length }
        "hearth_integer_array" = abi::Array { "object" = object, "length" = length }
        "hearth_box" = abi::AnyBox { "object" = object, "type" = r#type, "value" = value }
        "hearth_procedure" = abi::Procedure { "object" = object, "code" = code, "owner" = owner }
        "hearth_field" = abi::Field { "name" = name, "type" = r#type, "offset" = offset }
        "hearth_type" = abi::Type {
            "code" = code, "kind" = kind, "size" = size, "flat" = flat, "element" = element,
            "field_count" = field_count, "fields" = fields, "object_size" = object_size,
        }
        "hearth_held" = abi::Held { "sender" = sender, "ticket" = ticket }
        "hearth_component" = abi::Component {
            "type" = r#type, "home" = home, "next" = next, "waits_at" = waits_at,
            "waits_in" = waits_in, "received" = received, "attention" = attention,
            "raised" = raised, "arm" = arm, "stage" = stage, "passes_left" = passes_left,
            "waiting" = waiting, "outcome" = outcome, "destination" = destination,
            "heap" = heap, "history" = history, "held" = waits_at,
        }
        "hearth_port" = abi::Port {
            "name" = name, "direction" = direction, "payload" = payload, "offset" = offset,
        }
        "hearth_component_type" = abi::ComponentType {
            "name" = name, "size" = size, "resume" = resume, "destroy" = destroy, "trace" = trace,
            "port_count" = port_count, "ports" = ports, "service" = service,
            "declared" = declared, "heap_bytes" = heap_bytes, "heap_largest" = heap_largest,
        }
        "hearth_arm" = abi::Arm { "channel" = channel, "acknowledge" = acknowledge, "site" = site }
        "hearth_program" = abi::Program {
            "name" = name, "abi" = abi, "main" = main, "compat_original" = compat_original,
        }
        "hearth_probe" = abi::Probe { "place" = place, "name" = name }
        "hearth_calls" = abi::Calls { "state" = state }
    }
    all.extend([
        ("offsetof(hearth_string, text)", abi::HEADER_BYTES),
        ("offsetof(hearth_byte_array, data)", abi::HEADER_BYTES),
        ("offsetof(hearth_pointer_array, data)", abi::HEADER_BYTES),
        ("HEARTH_ABI", abi::ABI as usize),
        ("HEARTH_IMMORTAL", abi::IMMORTAL as usize),
        ("HEARTH_STOPPED", abi::STOPPED as usize),
        ("HEARTH_DEFAULT", abi::DEFAULT as usize),
        ("HEARTH_PROBE_OFF", abi::PROBE_OFF as usize),
        ("HEARTH_DONE", abi::Step::Done as usize),
        ("HEARTH_BLOCKED", abi::Step::Blocked as usize),
        ("HEARTH_RAISED", abi::Step::Raised as usize),
        ("HEARTH_KIND_STRING", abi::Kind::String as usize),
        ("HEARTH_KIND_STRUCT", abi::Kind::Struct as usize),
        ("HEARTH_KIND_PROCEDURE", abi::Kind::Procedure as usize),
        (
            "HEARTH_OPERATION_FAILED",
            abi::Label::OperationFailed as usize,
        ),
        (
            "HEARTH_SEND_STATUS_UNKNOWN",
            abi::Label::SendStatusUnknown as usize,
        ),
        (
            "HEARTH_BIND_STATUS_UNKNOWN",
            abi::Label::BindStatusUnknown as usize,
        ),
    ]);
    let by_rust: String = all
        .iter()
        .map(|(what, number)| format!("{what} {number}\n"))
        .collect();
    assert_eq!(by_c(&all), by_rust);
}
