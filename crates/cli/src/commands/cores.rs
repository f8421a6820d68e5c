//! `hearth cores`: the CPUs that a program can have.

use std::time::Duration;

use hearth_cores::Cores;
use hearth_machine::topology::format_list;
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;

use crate::arguments::cores::CoresArguments;

pub(crate) fn cores(arguments: &CoresArguments) -> Result<(), Failure> {
    let cores = match arguments.limits {
        true => Cores::limits(),
        false => Cores::measured(Duration::from_millis(arguments.milliseconds)),
    };
    if arguments.threads {
        return output::write(format!("{}\n", cores.threads));
    }
    if arguments.json {
        let document = serde_json::to_value(&cores);
        return output::write_json(&document.map_err(|error| Failure::Bug(error.to_string()))?);
    }
    output::write(text(&cores))
}

fn text(cores: &Cores) -> String {
    let list = |cpus: &[usize]| format_list(cpus.iter().map(|cpu| *cpu as u32));
    let mut columns = Columns::new(&[Side::Right, Side::Left]);
    let online = counted(cores.online.len(), "CPU");
    let verb = if cores.online.len() == 1 { "is" } else { "are" };
    columns.row([
        format!("{:.1}", cores.online.len() as f64),
        format!("{online} {verb} online ({})", list(&cores.online)),
    ]);
    for missing in &cores.missing {
        columns.row([format!("-{:.1}", missing.cpus), missing.text.clone()]);
    }
    let threads = counted(cores.allowed.len(), "thread");
    columns.row([
        format!("{:.1}", cores.obtainable),
        format!(
            "for a program whose {threads} never {}, on CPUs {}",
            if cores.allowed.len() == 1 {
                "waits"
            } else {
                "wait"
            },
            list(&cores.allowed)
        ),
    ]);
    let harmless = match (cores.is_measured, cores.threads) {
        (false, threads) => format!(
            "{} by what is written down; nobody else was looked at.",
            counted(threads, "thread")
        ),
        (true, 1) if cores.idle < 0.5 => format!(
            "1 thread takes time from others: {:.1} CPUs are idle.",
            cores.idle
        ),
        (true, threads) => format!(
            "{} {} to others what they have; {:.1} CPUs are idle.",
            counted(threads, "thread"),
            if threads == 1 { "leaves" } else { "leave" },
            cores.idle
        ),
    };
    format!("{}\n{harmless}\n", columns.lines(2))
}

#[cfg(test)]
mod tests {
    use hearth_cores::{Missing, Reason};

    use super::*;

    #[test]
    fn each_part_has_its_reason() {
        let cores = Cores {
            online: (0..8).collect(),
            allowed: vec![0, 1, 2],
            obtainable: 1.25,
            idle: 0.75,
            threads: 1,
            is_measured: true,
            missing: vec![
                Missing {
                    reason: Reason::Affinity,
                    cpus: 5.0,
                    text: "CPUs 3-7 are elsewhere".into(),
                },
                Missing {
                    reason: Reason::Others,
                    cpus: 1.75,
                    text: "other programs want CPUs: make (7) 2.00".into(),
                },
            ],
        };
        let expected = "   8.0  8 CPUs are online (0-7)
  -5.0  CPUs 3-7 are elsewhere
  -1.8  other programs want CPUs: make (7) 2.00
   1.2  for a program whose 3 threads never wait, on CPUs 0-2

1 thread leaves to others what they have; 0.8 CPUs are idle.
";
        assert_eq!(text(&cores), expected);
    }
}
