//! Choices as users write them, in a variable of the environment.

use std::env;
use std::fmt;
use std::path::PathBuf;

use hearth_text::near::nearest;
use hearth_watch::stream::Law;

use crate::options::{Core, Destination, Mode, Options};
use crate::rules::Rule;

/// Name of the variable.
pub const VARIABLE: &str = "HEARTH_MONITOR";

const KEYS: [&str; 10] = [
    "file",
    "aggregate",
    "tcp",
    "law",
    "buffer",
    "on",
    "off",
    "mode",
    "core",
    "children",
];

/// Reason for which choices cannot be read, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread(String);

impl Options {
    /// Reads the variable [`VARIABLE`] as [`parse`](Options::parse) does. None if it is not set, or
    /// empty.
    ///
    /// # Errors
    /// The variable's text is wrong; the error says how to mend it.
    pub fn of_env() -> Result<Option<Options>, Misread> {
        match env::var(VARIABLE) {
            Ok(text) if text.is_empty() => Ok(None),
            Ok(text) => Options::parse(&text).map(Some),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => {
                Err(Misread("it is not UTF-8; name another file".into()))
            }
        }
    }

    /// Reads choices: a file's name, or `file=NAME` and others, with commas between them.
    ///
    /// | choice | |
    /// |---|---|
    /// | `file=NAME` | records go there; `%p` stands for the number of the process |
    /// | `aggregate=NAME` | calls are added up, and the sums go there |
    /// | `tcp=HOST:PORT`, `tcp://HOST:PORT` | records go to `hearth watch --listen` there |
    /// | `law=LAW` | `block`, `drop-newest`, `drop-oldest` or `sample` |
    /// | `buffer=BYTES` | bytes of blocks, with K, M or G |
    /// | `on=PATTERN`, `off=PATTERN` | rules; the last that matches decides |
    /// | `mode=async`, `mode=sync` | the writer: a thread of its own, or who fills a block |
    /// | `core=N`, `core=any`, `core=near` | the writer's core; any; or near the threads that record, as it is otherwise |
    /// | `children=off`, `children=follow` | children of forks, for C and C++ |
    ///
    /// All probes are on if there is no rule, or if the first one is `off`. A pattern cannot have
    /// a comma; write `?` for it.
    ///
    /// ```
    /// use hearth_monitor::Options;
    ///
    /// assert!(Options::parse("/tmp/server.calls").is_ok());
    /// assert!(Options::parse("file=/tmp/%p.calls,law=block,on=Server*,off=*.help").is_ok());
    /// let error = Options::parse("file=a,lwa=block").unwrap_err();
    /// assert!(error.to_string().contains("did you mean law?"));
    /// ```
    ///
    /// # Errors
    /// The text is wrong; the error says how to mend it.
    pub fn parse(text: &str) -> Result<Options, Misread> {
        let mut options = Options::to(Destination::Nowhere);
        let mut rules = Vec::new();
        for (nth, item) in text.split(',').enumerate() {
            let (key, value) = match item.split_once('=') {
                Some(pair) => pair,
                None if nth == 0 => match item.split_once("://") {
                    Some(("tcp", address)) => ("tcp", address),
                    Some((scheme, _)) => return Err(foreign(scheme)),
                    None => ("file", item),
                },
                None => {
                    return Err(Misread(format!(
                        "'{item}' has no '='; write KEY=VALUE, and '?' for a comma in a pattern"
                    )));
                }
            };
            if value.is_empty() {
                return Err(Misread(format!(
                    "nothing follows '{key}='; write its value or leave it out"
                )));
            }
            match key {
                "file" => options.to = Destination::File(file(value)),
                "aggregate" => options.to = Destination::Aggregate(file(value)),
                "tcp" => options.to = Destination::Tcp(address(value)?),
                "law" => options.law = value.parse::<Law>().map_err(Misread)?,
                "buffer" => options.buffer = Some(bytes(value)?),
                "on" => rules.push(Rule::on(value)),
                "off" => rules.push(Rule::off(value)),
                "mode" => {
                    options.mode = choice(
                        item,
                        value,
                        [("async", Mode::Asynchronous), ("sync", Mode::Synchronous)],
                    )?;
                }
                "core" => options.core = core(value)?,
                "children" => {
                    options.follows_children =
                        choice(item, value, [("off", false), ("follow", true)])?;
                }
                _ => return Err(unknown(key)),
            }
        }
        if options.to == Destination::Nowhere {
            return Err(Misread("it names no destination; add file=NAME".into()));
        }
        if !rules.first().is_some_and(Rule::is_on) {
            options.rules.push(Rule::on("*"));
        }
        options.rules.extend(rules);
        Ok(options)
    }
}

fn file(name: &str) -> PathBuf {
    name.replace("%p", &std::process::id().to_string()).into()
}

/// A host and a port.
fn address(text: &str) -> Result<String, Misread> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(1..)) => Ok(text.to_owned()),
        _ => Err(Misread(format!(
            "'{text}' is no address; write HOST:PORT, such as localhost:4000"
        ))),
    }
}

/// A destination that a monitor does not write to by itself.
fn foreign(scheme: &str) -> Misread {
    let next = match scheme {
        "otlp" | "http" | "https" => {
            "record into a file, and send it while the program runs: \
             hearth watch PID --as otlp --to http://HOST:4318 --follow"
        }
        _ => "name a file, or tcp://HOST:PORT",
    };
    Misread(format!(
        "{scheme}:// is no destination of a monitor; {next}"
    ))
}

fn bytes(text: &str) -> Result<u64, Misread> {
    let (digits, shift) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().filter(|&number| number > 0);
    let number = number.and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| {
        Misread(format!(
            "'{text}' is no number of bytes; write one like 500000, 64K, 16M or 1G"
        ))
    })
}

fn core(text: &str) -> Result<Core, Misread> {
    let wrong = |_| {
        Misread(format!(
            "'{text}' is no core; write its number, from 0, as lscpu shows it, or any or near"
        ))
    };
    match text {
        "any" => Ok(Core::Any),
        "near" => Ok(Core::Modelled),
        _ => text.parse().map(Core::One).map_err(wrong),
    }
}

fn choice<T: Copy>(item: &str, value: &str, choices: [(&str, T); 2]) -> Result<T, Misread> {
    let found = choices.iter().find(|(name, _)| *name == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let [(one, _), (other, _)] = choices;
        let key = item.split('=').next().unwrap_or_default();
        Misread(format!(
            "'{value}' is no {key}; write {key}={one} or {key}={other}"
        ))
    })
}

fn unknown(key: &str) -> Misread {
    let guess = match nearest(key, KEYS) {
        Some(near) => format!("did you mean {near}? "),
        None => String::new(),
    };
    let (last, others) = (KEYS[KEYS.len() - 1], KEYS[..KEYS.len() - 1].join(", "));
    Misread(format!(
        "'{key}' is no option; {guess}there are {others} and {last}"
    ))
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not read {VARIABLE}: {}", self.0)
    }
}

impl std::error::Error for Misread {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::is_on;

    #[test]
    fn all_choices_are_read() {
        let text = "file=/tmp/%p.calls,law=sample,buffer=3M,off=*help,on=S*,mode=sync,core=1,children=follow";
        let options = Options::parse(text).expect("it is right");
        let name = format!("/tmp/{}.calls", std::process::id());
        assert_eq!(options.to, Destination::File(name.into()));
        assert_eq!((options.law, options.buffer), (Law::Sample, Some(3 << 20)));
        let one = Core::One(1);
        assert_eq!((options.mode, options.core), (Mode::Synchronous, one));
        assert!(options.follows_children());
        let on = ["other", "help", "Shelp"].map(|name| is_on(&options.rules, name));
        assert_eq!(on, [true, false, true]);
        for text in ["tcp://here:4000,law=block", "law=block,tcp=here:4000"] {
            let options = Options::parse(text).expect("it is right");
            assert_eq!(options.to, Destination::Tcp("here:4000".into()));
        }
        for (text, core) in [("x,core=any", Core::Any), ("x,core=near", Core::Modelled)] {
            assert_eq!(Options::parse(text).expect("it is right").core, core);
        }
        let options = Options::parse("x.calls,on=S*").expect("it is right");
        assert!(!is_on(&options.rules, "other") && !options.follows_children());
    }

    #[test]
    fn errors_name_the_remedy() {
        for (text, remedy) in [
            ("file=a,lwa=block", "did you mean law?"),
            ("file=a,law=best", "write block, drop-newest"),
            ("file=a,buffer=0", "write one like 500000"),
            ("file=a,buffer=99999999999G", "write one like"),
            ("file=a,mode=both", "write mode=async or mode=sync"),
            ("file=a,core=x", "from 0"),
            ("file=a,children=yes", "children=off or children=follow"),
            ("on=*", "add file=NAME"),
            ("a,b", "'?' for a comma"),
            ("file=", "write its value"),
            ("tcp=here", "write HOST:PORT"),
            ("tcp://:90", "write HOST:PORT"),
            ("tcp://here:0", "write HOST:PORT"),
            ("otlp://here:4318", "--as otlp"),
            ("udp://here:90", "tcp://HOST:PORT"),
            ("file=a,color=red", "there are file, aggregate, tcp,"),
        ] {
            let error = Options::parse(text).expect_err(text).to_string();
            assert!(
                error.starts_with("could not read HEARTH_MONITOR: "),
                "{error}"
            );
            assert!(error.contains(remedy), "{error}");
        }
    }
}
