//! A profile's measurements in hwloc's terms.

use super::{Extras, Matrix, MatrixOf, Meaning, MemoryFigure};
use crate::profile::{Access, Figure, Level, Profile, Provenance};
use crate::topology::{Node, OsThread, Thread};

/// hwloc counts bandwidth in MiB a second.
const MIB: f64 = 1024.0 * 1024.0;
/// A distance of 10 keeps three digits more than the firmware's whole numbers.
const DISTANCE_SCALE: f64 = 1000.0;

impl Extras {
    /// The parts of a profile that go with its topology:
    ///
    /// - `HearthOneWay_ps`, the transfer latency between hardware threads, one way, in picoseconds.
    ///   Threads with an unknown pair are left out; 0 from a thread to itself.
    /// - `HearthNodeDistance_milli`, the measured node distances, local being 10000.
    /// - Latency and read bandwidth of each node's memory for its own threads, and latency for
    ///   threads of other nodes where distances were measured: the local one times the ratio.
    /// - The version, time and machine of the measurement.
    ///
    /// Assumed figures are left out: hwloc cannot mark them as such.
    #[must_use]
    pub fn of(profile: &Profile) -> Extras {
        let matrices = pairs(profile).into_iter().chain(distances(profile));
        Extras {
            matrices: matrices.collect(),
            memory: memory(profile),
            about: about(profile),
        }
    }
}

fn known(figure: &Figure) -> bool {
    figure.provenance != Provenance::Assumed && figure.is_sound() && figure.value >= 0.0
}

fn pairs(profile: &Profile) -> Option<Matrix> {
    let count = profile.topology.threads().len();
    let mut table: Vec<Vec<Option<f64>>> = vec![vec![None; count]; count];
    for (at, row) in table.iter_mut().enumerate() {
        row[at] = Some(0.0);
    }
    for pair in profile.pairs.iter().filter(|p| known(&p.one_way_ns)) {
        let (a, b) = (pair.a.index(), pair.b.index());
        if a.max(b) < count {
            table[a][b] = Some(pair.one_way_ns.value);
            table[b][a] = Some(pair.one_way_ns.value);
        }
    }
    // Remove the thread that lacks most first, until nothing is missing.
    let mut kept: Vec<usize> = (0..count).collect();
    loop {
        let missing = |i: &usize| kept.iter().filter(|j| table[*i][**j].is_none()).count();
        let worst = kept.iter().copied().max_by_key(missing)?;
        if missing(&worst) == 0 {
            break;
        }
        kept.retain(|i| *i != worst);
    }
    if kept.len() < 2 {
        return None;
    }
    let os = |i: &usize| profile.topology.threads()[*i].os;
    let row = |i: &usize| kept.iter().filter_map(|j| table[*i][*j]).collect();
    let rows: Vec<Vec<f64>> = kept.iter().map(row).collect();
    let threads: Vec<OsThread> = kept.iter().map(os).collect();
    Matrix::latencies_ns("HearthOneWay", MatrixOf::Threads(threads), &rows).ok()
}

fn distances(profile: &Profile) -> Option<Matrix> {
    let nodes = profile.topology.nodes();
    let found = profile.node_distances.as_ref()?;
    let cell = |cell: &Option<f64>| {
        let scaled = (*cell)? * DISTANCE_SCALE;
        (scaled.is_finite() && scaled >= 0.0).then(|| scaled.round() as u64)
    };
    let rows = found
        .scaled
        .iter()
        .map(|row| row.iter().map(cell).collect());
    let rows: Option<Vec<Vec<u64>>> = rows.collect();
    Some(Matrix {
        name: "HearthNodeDistance_milli".into(),
        of: MatrixOf::Nodes(nodes.iter().map(|node| node.os).collect()),
        meaning: Meaning::Latency,
        rows: rows.filter(|rows| rows.len() > 1)?,
    })
}

fn memory(profile: &Profile) -> Vec<MemoryFigure> {
    let latency = profile.level(Level::Memory).map(|cost| cost.read_ns);
    let latency = latency.filter(known).map(|figure| figure.value);
    let bandwidth = profile.bandwidth(Level::Memory, Access::Read, 1);
    let bandwidth = bandwidth.map(|b| b.bytes_per_ns).filter(known);
    let nodes = profile.topology.nodes();
    let os = |thread: &Thread| profile.topology.os_thread(*thread);
    let mut figures = Vec::new();
    for (memory, target) in (0..).map(Node).zip(nodes) {
        if target.memory.is_some_and(|size| size.0 == 0) {
            continue;
        }
        for (user, initiator) in (0..).map(Node).zip(nodes) {
            if initiator.threads.is_empty() {
                continue;
            }
            let mut from: Vec<OsThread> = initiator.threads.iter().map(os).collect();
            from.sort_unstable();
            let mut add = |meaning, value: f64| {
                figures.push(MemoryFigure {
                    node: target.os,
                    from: from.clone(),
                    meaning,
                    value: value.round() as u64,
                });
            };
            let distances = profile.node_distances.as_ref();
            let ratio = match (memory == user, distances) {
                (true, _) => Some(1.0),
                (false, Some(distances)) => distances
                    .between(memory, user)
                    .zip(distances.between(memory, memory))
                    .map(|(far, near)| far / near),
                (false, None) => None,
            };
            if let (Some(latency), Some(ratio)) = (latency, ratio) {
                add(Meaning::Latency, latency * ratio);
            }
            if let (Some(bandwidth), true) = (bandwidth, memory == user) {
                add(Meaning::Bandwidth, bandwidth.value * 1e9 / MIB);
            }
        }
    }
    figures
}

fn about(profile: &Profile) -> Vec<(String, String)> {
    let host = &profile.host;
    let text = |text: &Option<String>| text.clone();
    let started = profile.origin.started_unix_s.map(|s| s.to_string());
    let lines = [
        ("HearthVersion", Some(profile.origin.hearth_version.clone())),
        ("HearthStartedUnixSeconds", started),
        ("CPUModel", text(&host.cpu_model)),
        ("OSRelease", text(&host.kernel)),
        ("Architecture", text(&host.architecture)),
        ("Hypervisor", text(&host.hypervisor)),
    ];
    let lines = lines.into_iter();
    lines
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
