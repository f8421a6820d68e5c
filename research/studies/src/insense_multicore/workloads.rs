//! The six workloads with their parameters: their text in Insense, what they print, and how they
//! are started in C.
//!
//! The Insense texts are those of `tests/workloads`, with other sizes in their components and
//! another main sequence: component by component, so that each can be given its core.

use super::layouts::Hand;

/// A workload of the source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// An array made and dropped in each pass.
    Alloc,
    /// A walk over an array of the component's own, again and again.
    Cache,
    /// Messages and nothing else.
    SenderReceiver,
    /// Many clients ask, few servers compute.
    ClientServer,
    /// Few dispatchers hand out, many workers compute.
    DispatchWorker,
    /// Computing side by side.
    NoCommunication,
}

impl Workload {
    /// All.
    pub const ALL: [Workload; 6] = [
        Workload::Alloc,
        Workload::Cache,
        Workload::SenderReceiver,
        Workload::ClientServer,
        Workload::DispatchWorker,
        Workload::NoCommunication,
    ];

    /// Its name on the command line and in file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Workload::Alloc => "alloc",
            Workload::Cache => "cache",
            Workload::SenderReceiver => "sender-receiver",
            Workload::ClientServer => "client-server",
            Workload::DispatchWorker => "dispatch-worker",
            Workload::NoCommunication => "no-communication",
        }
    }

    /// Do its components send to each other?
    #[must_use]
    pub const fn communicates(self) -> bool {
        matches!(
            self,
            Workload::SenderReceiver | Workload::ClientServer | Workload::DispatchWorker
        )
    }

    fn text(self) -> &'static str {
        match self {
            Workload::Alloc => include_str!("../../../../tests/workloads/alloc.isf"),
            Workload::Cache => include_str!("../../../../tests/workloads/cache.isf"),
            Workload::SenderReceiver => {
                include_str!("../../../../tests/workloads/sender-receiver.isf")
            }
            Workload::ClientServer => include_str!("../../../../tests/workloads/client-server.isf"),
            Workload::DispatchWorker => {
                include_str!("../../../../tests/workloads/dispatch-worker.isf")
            }
            Workload::NoCommunication => {
                include_str!("../../../../tests/workloads/no-communication.isf")
            }
        }
    }

    /// The rows of its array in `tests/workloads`.
    const fn rows_of_text(self) -> u32 {
        match self {
            Workload::Cache => 250,
            _ => 1000,
        }
    }
}

/// A component's role, as far as it matters for where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Computes by itself.
    Alone,
    /// The one in the middle of its group: server, dispatcher; the sender of a pair.
    Middle,
    /// One of those around it: client, worker; the receiver of a pair.
    Around,
}

/// A component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its role.
    pub role: Role,
    /// Its group, from 0.
    pub group: u32,
}

/// Clients of a server, workers of a dispatcher: four in the source's listings (three in its text).
pub const AROUND: u32 = 4;
/// Elements in a row.
const COLUMNS: u32 = 5;

/// A workload with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The workload.
    pub workload: Workload,
    /// Instances, pairs or groups.
    pub groups: u32,
    /// Rows of the array, of five elements each.
    pub rows: u32,
    /// Passes of an instance; messages of a pair, a client, a worker.
    pub passes: u32,
    /// Number of times that each element is incremented in a pass, or for a message.
    pub rounds: u32,
}

impl Load {
    /// Its name in tables and file names, such as `alloc-4x1000`.
    #[must_use]
    pub fn id(&self) -> String {
        match self.workload {
            Workload::Alloc | Workload::Cache | Workload::NoCommunication => {
                format!("{}-{}x{}", self.workload.id(), self.groups, self.rows)
            }
            workload => workload.id().to_owned(),
        }
    }

    /// Its parameters, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Load {
            groups,
            rows,
            passes,
            rounds,
            ..
        } = self;
        match self.workload {
            Workload::Alloc => format!("{groups} × {passes} passes, {rows}x5"),
            Workload::Cache => format!("{groups} × {passes} passes over {rows}x5"),
            Workload::SenderReceiver => format!("{groups} pairs, {passes} messages each"),
            Workload::ClientServer => format!(
                "{groups} servers with {AROUND} clients each, {passes} requests a client, {rounds} rounds a \
                 request over {rows}x5"
            ),
            Workload::DispatchWorker => format!(
                "{groups} dispatchers with {AROUND} workers each, {passes} jobs a worker, {rounds} rounds a \
                 job over {rows}x5"
            ),
            Workload::NoCommunication => {
                format!("{groups} × {passes} passes of {rounds} rounds over {rows}x5")
            }
        }
    }

    /// Its components, in the order in which they are made.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let groups = 0..self.groups;
        let each = |role| move |group| Part { role, group };
        match self.workload {
            Workload::SenderReceiver => {
                let senders = groups.clone().map(each(Role::Middle));
                senders.chain(groups.map(each(Role::Around))).collect()
            }
            Workload::ClientServer | Workload::DispatchWorker => groups
                .flat_map(|group| {
                    let around = (0..AROUND).map(move |_| Part {
                        role: Role::Around,
                        group,
                    });
                    std::iter::once(Part {
                        role: Role::Middle,
                        group,
                    })
                    .chain(around)
                })
                .collect(),
            _ => groups.map(each(Role::Alone)).collect(),
        }
    }

    /// Its text in Insense; with a layout by hand each component binds itself to its core.
    #[must_use]
    pub fn insense(&self, hand: Option<Hand>, cores: &[usize]) -> String {
        let places = hand.map(|hand| hand.cores(self, cores));
        let text = self.workload.text();
        // What follows the last component is the main sequence.
        let (components, _) = text.rsplit_once("\n}\n\n").unwrap_or((text, ""));
        let mut components = self.sized(components);
        if places.is_some() {
            components = bound(&components);
        }
        format!("{components}\n}}\n\n{}", self.main(places.as_deref()))
    }

    /// The components with this load's array.
    fn sized(&self, components: &str) -> String {
        let (of_text, rows) = (self.workload.rows_of_text(), self.rows);
        let replaced = [
            (format!("[{of_text}][5]"), format!("[{rows}][5]")),
            (
                format!("grid[{}][4]", of_text - 1),
                format!("grid[{}][4]", rows - 1),
            ),
            (format!("pass % {of_text}"), format!("pass % {rows}")),
        ];
        replaced
            .iter()
            .fold(components.to_owned(), |text, (from, to)| {
                text.replace(from, to)
            })
    }

    fn main(&self, places: Option<&[usize]>) -> String {
        let Load { passes, rounds, .. } = *self;
        let mut text = String::new();
        let mut around = 0;
        let mut middle = 0;
        for (number, part) in self.parts().into_iter().enumerate() {
            let core = places.map_or(String::new(), |cores| format!(", ${}", cores[number]));
            let group = part.group + 1;
            match part.role {
                Role::Around => around += 1,
                _ => middle += 1,
            }
            let line = match (self.workload, part.role) {
                (Workload::Alloc, _) => {
                    format!("a{group} = new Allocator({group}, {passes}{core})")
                }
                (Workload::Cache, _) => format!("w{group} = new Walker({group}, {passes}{core})"),
                (Workload::NoCommunication, _) => {
                    format!("w{group} = new Worker({group}, {passes}, {rounds}{core})")
                }
                (Workload::SenderReceiver, Role::Middle) => {
                    format!("s{group} = new Sender({passes}{core})")
                }
                (Workload::SenderReceiver, _) => format!(
                    "r{group} = new Receiver({group}, {passes}{core})\nconnect s{group}.value to r{group}.value"
                ),
                (Workload::ClientServer, Role::Middle) => {
                    format!(
                        "s{middle} = new Server({middle}, {}{core})",
                        passes * AROUND
                    )
                }
                (Workload::ClientServer, _) => format!(
                    "c{around} = new Client({passes}, {rounds}{core})\nconnect c{around}.request to \
                     s{middle}.request"
                ),
                (Workload::DispatchWorker, Role::Middle) => {
                    format!(
                        "d{middle} = new Dispatcher({}, {rounds}{core})",
                        passes * AROUND
                    )
                }
                (Workload::DispatchWorker, _) => format!(
                    "w{around} = new Worker({around}, {passes}{core})\nconnect d{middle}.job to w{around}.job"
                ),
            };
            text += &line;
            text += "\n";
        }
        text
    }

    /// The output that it prints, in Insense and in C.
    #[must_use]
    pub fn prints(&self) -> String {
        let name = self.workload.id();
        let (passes, rounds) = (i64::from(self.passes), i64::from(self.rounds));
        let taken = match self.workload {
            Workload::ClientServer => passes * i64::from(AROUND),
            _ => passes,
        };
        let mut text = String::new();
        if taken % 2 == 0 {
            text += &format!("{name}: 50 %\n");
        }
        text += &format!("{name}: 100 %\n");
        match self.workload {
            Workload::SenderReceiver => {}
            // The first element of the first row is 1, the last one of the pass's row 2.
            Workload::Alloc => text += &format!("{name}: sum {}\n", 3 * passes),
            Workload::Cache => {
                let elements = i64::from(self.rows * COLUMNS);
                text += &format!("{name}: sum {}\n", elements * passes);
            }
            _ => text += &format!("{name}: last element {}\n", taken * rounds),
        }
        text
    }

    /// The arguments of its C program: groups, passes, rounds, and a core for each thread, or none.
    #[must_use]
    pub fn arguments(&self, places: Option<&[usize]>) -> Vec<String> {
        let numbers = [self.groups, self.passes, self.rounds];
        let cores = places.unwrap_or_default().iter().map(ToString::to_string);
        numbers
            .iter()
            .map(ToString::to_string)
            .chain(cores)
            .collect()
    }
}

/// Components that bind themselves to the core that their constructor is given.
fn bound(components: &str) -> String {
    let lines =
        components.lines().map(
            |line| match line.trim_start().strip_prefix("constructor(") {
                None => line.to_owned(),
                Some(rest) => {
                    let indent = &line[..line.len() - line.trim_start().len()];
                    let rest = rest.replacen(
                        ") {",
                        &format!("; unsigned core) {{\n{indent}  setCore(core)\n{indent} "),
                        1,
                    );
                    format!("{indent}constructor({rest}")
                }
            },
        );
    lines.collect::<Vec<_>>().join("\n")
}
