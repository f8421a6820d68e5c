//! JSON form of a profile, and its errors.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::{
    Bandwidth, CacheFinding, Claim, CurvePoint, Exchange, FORMAT, Figure, HandOver, LevelCost,
    Noise, PairTransfer, Profile, REVISION, StateTransfer,
};

const AGAIN: &str = "write it again with `hearth probe`";

/// Reason why a text is not a profile that this Hearth can use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// The text ends in the middle.
    #[error("the profile ends in the middle, at line {line}: copy it again, or {again}", again = AGAIN)]
    Truncated {
        /// The last line, from 1.
        line: usize,
    },
    /// The text is not JSON.
    #[error("the profile is not JSON at line {line}, column {column}: undo the change there, or {again}", again = AGAIN)]
    NotJson {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// JSON, but without a profile's `format`.
    #[error(
        "this JSON is not a profile, since it has no number `format`: name the file that `hearth probe` wrote"
    )]
    NotAProfile,
    /// The file comes from a newer Hearth, in a format that this one does not know.
    #[error("the profile has format {format} and this Hearth reads up to {newest}: {newer}or {again}", newer = newer(.written_by.as_deref()), newest = FORMAT, again = AGAIN)]
    Newer {
        /// The file's format.
        format: u64,
        /// The version that wrote it, if the file says.
        written_by: Option<String>,
    },
    /// A field is missing or invalid.
    #[error("the profile cannot be used, {reason}: {again}", again = AGAIN)]
    Field {
        /// The parser's explanation.
        reason: String,
    },
    /// A figure that is not finite, or outside its own interval.
    #[error("the profile's `{field}` is not a finite number inside its interval: {again}", again = AGAIN)]
    Figure {
        /// The field.
        field: String,
    },
    /// A field names a part that the topology lacks.
    #[error("the profile contradicts itself, {reason}: {again}", again = AGAIN)]
    Part {
        /// The field and the part.
        reason: String,
    },
}

/// The Hearth to use for a profile in a newer format.
fn newer(written_by: Option<&str>) -> String {
    match written_by {
        Some(version) => format!("use Hearth {version}, which wrote it, or newer; "),
        None => "use a newer Hearth; ".to_owned(),
    }
}

/// The part that every format has.
#[derive(Deserialize)]
struct Header {
    format: Option<Value>,
    revision: Option<Value>,
    origin: Option<Value>,
}

/// The few figures of a profile that programs need each time they start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Brief {
    /// Cost of waking a thread on another core, in nanoseconds, if measured.
    pub wake_ns: Option<f64>,
    /// Distances of the nodes with memory, local being 10: a row for each node whose threads use
    /// it, a column for each whose memory it is. Empty unless all of them were measured.
    pub distances: Vec<Vec<f64>>,
    /// Cost of loading a line that another core has written, in nanoseconds: the median over the
    /// measured relations between cores.
    pub transfer_ns: Option<f64>,
}

impl Brief {
    /// Reads a profile's text. None if it is not a profile of this [`FORMAT`].
    ///
    /// ```
    /// use hearth_machine::profile::Brief;
    ///
    /// let text = r#"{"format": 1, "system": {"futex_wake_other_core_ns": {"value": 52000.0}},
    ///     "node_distances": {"scaled": [[10.0, 14.2], [13.9, 10.0]]},
    ///     "transfers": [{"state": "modified", "read_ns": {"value": 38.0}}]}"#;
    /// let brief = Brief::from_json(text).unwrap();
    /// assert_eq!(brief.transfer_ns, Some(38.0));
    /// assert_eq!(brief.wake_ns, Some(52000.0));
    /// assert_eq!(brief.distances, [[10.0, 13.9], [14.2, 10.0]]);
    /// ```
    #[must_use]
    pub fn from_json(text: &str) -> Option<Brief> {
        #[derive(Deserialize)]
        struct Part {
            format: u32,
            #[serde(default)]
            system: System,
            #[serde(default)]
            node_distances: Distances,
            #[serde(default)]
            transfers: Vec<Transfer>,
        }
        #[derive(Deserialize)]
        struct Transfer {
            state: String,
            read_ns: Number,
        }
        #[derive(Default, Deserialize)]
        struct System {
            futex_wake_other_core_ns: Option<Number>,
        }
        #[derive(Deserialize)]
        struct Number {
            value: f64,
        }
        #[derive(Default, Deserialize)]
        struct Distances {
            scaled: Vec<Vec<Option<f64>>>,
        }
        let part: Part = serde_json::from_str(text).ok()?;
        let is_known = (1..=FORMAT).contains(&part.format);
        let modified = part.transfers.iter().filter(|t| t.state == "modified");
        let mut transfers: Vec<f64> = modified.map(|t| t.read_ns.value).collect();
        transfers.sort_by(f64::total_cmp);
        is_known.then(|| Brief {
            transfer_ns: transfers.get(transfers.len() / 2).copied(),
            wake_ns: part.system.futex_wake_other_core_ns.map(|ns| ns.value),
            distances: by_user(&part.node_distances.scaled).unwrap_or_default(),
        })
    }
}

/// Distances by user and memory, from those by memory and user, of nodes that have memory. None if
/// one is missing.
fn by_user(scaled: &[Vec<Option<f64>>]) -> Option<Vec<Vec<f64>>> {
    let has_memory = |node: &usize| scaled[*node].iter().any(Option::is_some);
    let nodes: Vec<usize> = (0..scaled.len()).filter(has_memory).collect();
    let between = |user: usize, memory: usize| *scaled[memory].get(user)?;
    let row = |user: &usize| nodes.iter().map(|memory| between(*user, *memory)).collect();
    nodes.iter().map(row).collect()
}

impl Profile {
    /// Reads a profile, ignoring unknown fields. For a later [`REVISION`], unreadable entries are
    /// left out, and a note in [`Origin::notes`](super::Origin::notes) says so.
    ///
    /// # Errors
    /// [`ProfileError`], whose text says what to do.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        let header: Header = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            match error.classify() {
                serde_json::error::Category::Eof => ProfileError::Truncated { line },
                serde_json::error::Category::Data => ProfileError::NotAProfile,
                _ if ends_at(text, line, column) => ProfileError::Truncated { line },
                _ => ProfileError::NotJson { line, column },
            }
        })?;
        let format = header.format.as_ref().and_then(serde_json::Value::as_u64);
        match format {
            None | Some(0) => return Err(ProfileError::NotAProfile),
            Some(format) if format > u64::from(FORMAT) => {
                let version = header.origin.as_ref().map(|o| &o["hearth_version"]);
                let written_by = version.and_then(|v| v.as_str()).map(str::to_owned);
                return Err(ProfileError::Newer { format, written_by });
            }
            Some(_) => {}
        }
        let field = |error: serde_json::Error| ProfileError::Field {
            reason: error.to_string(),
        };
        let revision = header.revision.as_ref().and_then(Value::as_u64);
        let profile: Self = if revision > Some(u64::from(REVISION)) {
            known_part(serde_json::from_str(text).map_err(field)?).map_err(field)?
        } else {
            serde_json::from_str(text).map_err(field)?
        };
        profile.check()?;
        Ok(profile)
    }

    /// The profile as JSON, with line breaks, ready for a file.
    ///
    /// # Errors
    /// The fault found by [`Profile::check`]: such a profile would not be read back.
    pub fn to_json(&self) -> Result<String, ProfileError> {
        self.check()?;
        let text = serde_json::to_string_pretty(self).map_err(|error| ProfileError::Field {
            reason: error.to_string(),
        })?;
        Ok(text + "\n")
    }

    /// Checks that every figure is finite and inside its interval, and that every named part
    /// exists.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), ProfileError> {
        if !self.origin.duration_s.is_finite() {
            return Err(unsound("origin.duration_s"));
        }
        self.check_figures()?;
        self.check_system()?;
        self.check_parts()
    }

    fn check_figures(&self) -> Result<(), ProfileError> {
        for cache in &self.caches {
            sound("caches.inferred_bytes", cache.inferred_bytes.iter())?;
        }
        sound("curve.load_ns", self.curve.iter().map(|p| &p.load_ns))?;
        for cost in &self.levels {
            sound("levels.read_ns", [&cost.read_ns])?;
            sound("levels.write_ns", cost.write_ns.iter())?;
        }
        for cost in &self.transfers {
            sound("transfers.read_ns", [&cost.read_ns])?;
            sound("transfers.write_ns", cost.write_ns.iter())?;
        }
        for pair in &self.pairs {
            sound("pairs.round_trip_ns", [&pair.round_trip_ns])?;
            sound("pairs.one_way_ns", [&pair.one_way_ns])?;
            let states = pair.states.iter();
            sound("pairs.states.one_way_ns", states.map(|s| &s.one_way_ns))?;
            let states = pair.states.iter();
            sound("pairs.states.time_share", states.map(|s| &s.time_share))?;
            check_states(pair)?;
        }
        let bandwidths = self.bandwidths.iter().map(|b| &b.bytes_per_ns);
        sound("bandwidths.bytes_per_ns", bandwidths)?;
        let hand_overs = self.hand_overs.iter().map(|cost| &cost.one_way_ns);
        sound("hand_overs.one_way_ns", hand_overs)?;
        sound(
            "exchanges.exchange_ns",
            self.exchanges.iter().map(|e| &e.exchange_ns),
        )?;
        let mut exchanges = self.exchanges.iter();
        if exchanges.any(|exchange| exchange.exchange_ns.value <= 0.0) {
            let reason = "an exchange took no time".to_owned();
            return Err(ProfileError::Part { reason });
        }
        for noise in &self.noise {
            sound("noise.interrupts_per_s", noise.interrupts_per_s.iter())?;
            sound("noise.steal_share", noise.steal_share.iter())?;
            if !noise.observed_s.is_finite() {
                return Err(unsound("noise.observed_s"));
            }
        }
        for claim in &self.claims {
            sound("claims.effect_ratio", claim.effect_ratio.iter())?;
        }
        if let Some(distances) = &self.node_distances {
            let cells = distances.measured_s.iter().flatten().flatten();
            sound("node_distances.measured_s", cells)?;
            let mut cells = distances.scaled.iter().flatten().flatten();
            if !cells.all(|distance| distance.is_finite()) {
                return Err(unsound("node_distances.scaled"));
            }
        }
        Ok(())
    }

    fn check_system(&self) -> Result<(), ProfileError> {
        let system = &self.system;
        let named = [
            ("thread_create_join_ns", &system.thread_create_join_ns),
            ("context_switch_ns", &system.context_switch_ns),
            ("futex_wake_same_core_ns", &system.futex_wake_same_core_ns),
            ("futex_wake_other_core_ns", &system.futex_wake_other_core_ns),
            ("page_fault_ns", &system.page_fault_ns),
            ("huge_page_fault_ns", &system.huge_page_fault_ns),
            ("mutex_ns", &system.mutex_ns),
            ("semaphore_ns", &system.semaphore_ns),
            ("sched_yield_ns", &system.sched_yield_ns),
            ("syscall_ns", &system.syscall_ns),
            ("clock_read_ns", &system.clock_read_ns),
        ];
        for (name, figure) in named {
            sound(&format!("system.{name}"), figure.iter())?;
        }
        let host = [
            ("host.tsc_ghz", self.host.tsc_ghz),
            ("host.quota_cpus", self.host.quota_cpus),
        ];
        for (name, number) in host {
            if number.is_some_and(|number| !number.is_finite()) {
                return Err(unsound(name));
            }
        }
        Ok(())
    }

    fn check_parts(&self) -> Result<(), ProfileError> {
        let threads = self.topology.threads().len();
        let nodes = self.topology.nodes().len();
        let pairs = self.pairs.iter().flat_map(|pair| [pair.a, pair.b]);
        let exchanges = self.exchanges.iter().flat_map(|e| [e.sender, e.receiver]);
        let noise = self.noise.iter().map(|noise| noise.thread);
        for thread in pairs.chain(exchanges).chain(noise) {
            if thread.index() >= threads {
                let reason = format!("a figure names {thread} and there are {threads} threads");
                return Err(ProfileError::Part { reason });
            }
        }
        if let Some(distances) = &self.node_distances {
            let square = |rows: usize, mut lengths: &mut dyn Iterator<Item = usize>| {
                rows == nodes && (&mut lengths).all(|length| length == nodes)
            };
            let measured = &distances.measured_s;
            let scaled = &distances.scaled;
            let whole = square(measured.len(), &mut measured.iter().map(Vec::len))
                && square(scaled.len(), &mut scaled.iter().map(Vec::len))
                && distances
                    .firmware
                    .as_ref()
                    .is_none_or(|rows| square(rows.len(), &mut rows.iter().map(Vec::len)));
            if !whole {
                let reason = format!("a table of distances does not have {nodes} rows and columns");
                return Err(ProfileError::Part { reason });
            }
        }
        Ok(())
    }
}

/// How far the sum of shares may be from 1: they are written with all their digits.
const SHARES_OFF: f64 = 1e-6;

fn check_states(pair: &PairTransfer) -> Result<(), ProfileError> {
    let states = &pair.states;
    let shares = || states.iter().map(|state| state.time_share.value);
    let is_whole = (shares().sum::<f64>() - 1.0).abs() <= SHARES_OFF && shares().all(|s| s >= 0.0);
    let fault = if states.len() == 1 {
        "a single state"
    } else if !states.is_empty() && !is_whole {
        "states whose shares of time do not add up to 1"
    } else if states.iter().any(|state| state.one_way_ns.value <= 0.0) {
        "a state that takes no time"
    } else {
        return Ok(());
    };
    let reason = format!("the pair of {} and {} has {fault}", pair.a, pair.b);
    Err(ProfileError::Part { reason })
}

/// The part of a later revision's profile that this Hearth can read.
fn known_part(mut value: Value) -> Result<Profile, serde_json::Error> {
    let mut notes = Vec::new();
    keep::<CacheFinding>(&mut value, "caches", &mut notes);
    keep::<CurvePoint>(&mut value, "curve", &mut notes);
    keep::<LevelCost>(&mut value, "levels", &mut notes);
    keep::<StateTransfer>(&mut value, "transfers", &mut notes);
    keep::<PairTransfer>(&mut value, "pairs", &mut notes);
    keep::<Bandwidth>(&mut value, "bandwidths", &mut notes);
    keep::<Noise>(&mut value, "noise", &mut notes);
    keep::<HandOver>(&mut value, "hand_overs", &mut notes);
    keep::<Exchange>(&mut value, "exchanges", &mut notes);
    keep::<Claim>(&mut value, "claims", &mut notes);
    if let Some(system) = value.get_mut("system").and_then(Value::as_object_mut) {
        let before = system.len();
        // Costs with unknown names are ignored anyway.
        system.retain(|_, cost| !cost.is_object() || reads::<Figure>(cost));
        notes.extend(left_out("system", before - system.len()));
    }
    let mut profile: Profile = serde_json::from_value(value)?;
    profile.revision = REVISION;
    profile.origin.notes.extend(notes);
    Ok(profile)
}

/// Keeps the readable entries of a list.
fn keep<T: DeserializeOwned>(value: &mut Value, list: &str, notes: &mut Vec<String>) {
    if let Some(entries) = value.get_mut(list).and_then(Value::as_array_mut) {
        let before = entries.len();
        entries.retain(reads::<T>);
        notes.extend(left_out(list, before - entries.len()));
    }
}

fn reads<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

fn left_out(list: &str, count: usize) -> Option<String> {
    let entries = if count == 1 { "entry" } else { "entries" };
    (count > 0).then(|| {
        format!(
            "{count} {entries} of `{list}` left out: a newer Hearth wrote them and can read them"
        )
    })
}

/// Whether the text ends where the parser gave up: a number cut after its point is not one.
fn ends_at(text: &str, line: usize, column: usize) -> bool {
    let last = text.split('\n').nth(line.saturating_sub(1));
    line == text.split('\n').count() && last.is_some_and(|last| column + 1 >= last.len())
}

fn sound<'a>(
    field: &str,
    figures: impl IntoIterator<Item = &'a Figure>,
) -> Result<(), ProfileError> {
    if figures.into_iter().all(Figure::is_sound) {
        Ok(())
    } else {
        Err(unsound(field))
    }
}

fn unsound(field: &str) -> ProfileError {
    ProfileError::Figure {
        field: field.to_owned(),
    }
}
