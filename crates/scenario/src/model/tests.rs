use super::*;

const WHOLE: &str = r#"
format = 1
horizon = "40ms"
window = "5ms"
modes = ["driving", "charging"]

[scheduler]
policy = "fixed-priority"
preemptive = true
scope = "global"

[[core]]
name = "left"
[[core]]
name = "right"

[[resource]]
name = "bus"
protocol = "ceiling"

[[queue]]
name = "frames"
capacity = 4
when-full = "wait"

[[task]]
name = "camera"
arrival = { period = "5ms", offset = "0us..1ms", jitter = "250us" }
steps = [{ run = "1ms..2ms" }, { push = "frames" }]
deadline = "5ms"
priority = 3
cores = ["right", "left"]
modes = ["driving"]

[[task]]
name = "filter"
arrival = { push = "frames", delay = "10us..20us" }
steps = [{ pop = "frames" }, { lock = "bus" }, { run = "100us" }, { unlock = "bus" }]
priority = 2

[[task]]
name = "button"
arrival = { between = "4ms..9ms" }
duration = "1.5ms"

[[task]]
name = "lamp"
arrival = { after = "button" }
duration = "10us"
"#;

#[test]
fn the_whole_form_is_read_and_written() {
    let model = Model::from_toml(WHOLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(model.tasks[0].cores, [CoreId(0), CoreId(1)]);
    assert_eq!(model.tasks[0].modes, [0]);
    assert_eq!(
        model.tasks[2].arrival,
        Arrival::Sporadic {
            between: Range {
                from_ns: 4_000_000,
                to_ns: 9_000_000
            },
            first: Range {
                from_ns: 0,
                to_ns: 9_000_000
            },
        }
    );
    assert_eq!(model.arrivals_max(TaskId(0)), Some(8));
    assert_eq!(model.arrivals_max(TaskId(2)), Some(10));
    assert_eq!(model.ceiling(ResourceId(0)), 2);
    let again = Model::from_toml(&model.to_toml()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, model);
    assert_eq!(again.fingerprint(), model.fingerprint());
}

/// Each mistake is made by one replacement in the whole form, and has its message, as users see it.
#[test]
fn mistakes_have_a_line_a_field_and_advice() {
    let cases = [
        (
            "format = 1",
            "format = 2",
            "line 2, field `format`: this is format 2, and 1 is read here: write `format = 1`",
        ),
        (
            "horizon = \"40ms\"",
            "horizon = \"40\"",
            "line 3, field `horizon`: `40` is not a time: write a number with ns, us, ms or s, such as `250us`, of at most 3600s",
        ),
        (
            "period = \"5ms\"",
            "period = \"0ms\"",
            "line 28, task `camera`, field `arrival`: it is 0: write a time above 0",
        ),
        (
            "run = \"1ms..2ms\"",
            "run = \"2ms..1ms\"",
            "line 29, task `camera`, step 1, field `run`: `2ms..1ms` is neither a time nor a range: write one such as `2ms`, or `1ms..2ms` with the shorter first",
        ),
        (
            "after = \"button\"",
            "after = \"buton\"",
            "line 48, task `lamp`, field `arrival`: there is no task `buton`, but `button`: name one of the file's",
        ),
        (
            "after = \"button\"",
            "after = \"lamp\"",
            "line 48, task `lamp`, field `arrival`: the task makes itself arrive, through `lamp`: break the circle",
        ),
        (
            "{ unlock = \"bus\" }",
            "{ run = \"1us\" }",
            "line 38, task `filter`, field `steps`: `bus` is still locked at the end: add `{ unlock = \"bus\" }`",
        ),
        (
            "{ lock = \"bus\" }",
            "{ run = \"1us\" }",
            "line 38, task `filter`, step 4: `bus` is unlocked where the job does not have it: lock it first",
        ),
        (
            "scope = \"global\"",
            "scope = \"partitioned\"",
            "line 32, task `camera`, field `cores`: a partitioned scheduler needs one core, and the task has 2: name one, or write `scope = \"global\"`",
        ),
        (
            "preemptive = true",
            "slice = \"1ms\"",
            "line 9, scheduler, field `slice`: `slice` and a policy other than `fair` do not go together: leave one out",
        ),
        (
            "policy = \"fixed-priority\"\npreemptive = true",
            "policy = \"edf\"",
            "line 18, resource `bus`, field `protocol`: this protocol needs `fixed-priority`: choose that policy, or write `protocol = \"none\"`",
        ),
        (
            "protocol = \"ceiling\"",
            "protocol = \"celing\"",
            "line 19, resource `bus`, field `protocol`: `celing` is not known here: write `none`, `inheritance` or `ceiling`",
        ),
        (
            "capacity = 4",
            "capacity = 0",
            "line 23, queue `frames`, field `capacity`: it is 0: write a number above 0",
        ),
        (
            "duration = \"10us\"",
            "",
            "line 47, task `lamp`, field `duration`: it is missing: add `duration`, or `steps` of which one is `run`",
        ),
        (
            "priority = 3",
            "prioritty = 3",
            "line 31, the file: unknown field `prioritty`, expected one of `name`, `arrival`, `duration`, `steps`, `deadline`, `priority`, `weight`, `cores`, `modes`: write it as `docs/scenario.md` describes",
        ),
        (
            "between = \"4ms..9ms\"",
            "between = \"4ns..9ms\"",
            "line 3, field `horizon`: the horizon holds 20000016 jobs, and 200000 are the most: shorten `horizon`",
        ),
    ];
    let mut complaints = Vec::new();
    for (right, wrong, message) in cases {
        let text = WHOLE.replacen(right, wrong, 1);
        assert_ne!(text, WHOLE, "{right}");
        let error = Model::from_toml(&text).err().map(|error| error.to_string());
        if error.as_deref() != Some(message) {
            complaints.push(format!(
                "{wrong}\n  {}\n  {message}",
                error.unwrap_or_default()
            ));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Texts made of the form's own pieces never bring the reader down, and those that it takes can be
/// written and simulated.
#[test]
fn broken_files_are_refused_in_words() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut read = 0;
    for _ in 0..3_000 {
        let mut bytes = WHOLE.as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            let (from, to) = (random.usize(0..bytes.len()), random.usize(0..bytes.len()));
            match random.u8(0..3) {
                0 => bytes[from] = b"0123456789\"=[]{},.ms \n"[random.usize(0..21)],
                1 => drop(bytes.remove(from)),
                _ => {
                    let end = (to + random.usize(0..30)).min(bytes.len());
                    let piece: Vec<u8> = bytes[to..end].to_vec();
                    bytes.splice(from..from, piece);
                }
            }
        }
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        if let Ok(model) = Model::from_toml(&text) {
            read += 1;
            assert_eq!(Model::from_toml(&model.to_toml()).as_ref(), Ok(&model));
            if model.horizon_ns < 1_000_000_000 {
                let scenario = crate::scenario::Scenario::fullest(&model, 0);
                assert_eq!(scenario.check(&model), Ok(()));
                crate::sim::evaluate(&model, &scenario);
            }
        }
    }
    assert!(read > 50, "some are still models: {read}");
}
