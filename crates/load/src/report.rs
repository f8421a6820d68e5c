//! Results as text, as JSON, and for plotters of histograms.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::plan::{Gaps, LoadPlan, Pacing, Per};
use crate::run::{PERCENTILES, Run, percentiles};
use crate::tally::Times;
use crate::units::{show_count, show_ns};

/// Formats a pacing.
pub fn pacing_text(pacing: Pacing) -> String {
    match pacing {
        Pacing::Closed => "closed loop".into(),
        Pacing::Open { rate, gaps, per } => format!(
            "open loop, {} requests/s{}{}",
            show_count(rate.round() as u64),
            match gaps {
                Gaps::Constant => "",
                Gaps::Poisson => " at random (Poisson)",
            },
            match per {
                Per::Overall => "",
                Per::Connection => ", each connection its share",
            }
        ),
    }
}

/// Formats a plan, in two lines.
pub fn plan_text(plan: &LoadPlan) -> String {
    format!(
        "{} at {}, {}, {} connections × {} under way, {} threads\n\
         {:.0} % reads, {} keys of {} bytes ({}), values of {} bytes",
        plan.protocol,
        plan.target,
        pacing_text(plan.pacing),
        show_count(plan.connections as u64),
        plan.outstanding,
        plan.threads,
        plan.gets * 100.0,
        show_count(plan.keys),
        plan.key_sizes,
        plan.spread,
        plan.value_sizes,
    )
}

/// Formats a run for a terminal.
pub fn run_text(run: &Run) -> String {
    let mut text = String::new();
    let tally = &run.tally;
    let replies = &tally.replies;
    let _ = writeln!(
        text,
        "{} requests/s   {} replies in {:.1} s   {:.1} MB/s out, {:.1} MB/s in",
        show_count(run.rate().round() as u64),
        show_count(replies.all()),
        run.seconds,
        tally.bytes_sent as f64 / 1e6 / run.seconds,
        tally.bytes_received as f64 / 1e6 / run.seconds,
    );
    let shares: Vec<String> = [
        ("hits", replies.hits),
        ("misses", replies.misses),
        ("stored", replies.stored),
        ("not stored", replies.not_stored),
        ("echoes", replies.echoes),
        ("errors", replies.errors),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .map(|(name, count)| format!("{} {name}", show_count(count)))
    .collect();
    let _ = writeln!(text, "{}", shares.join(", "));
    text.push_str(&times_table(run));
    let _ = write!(
        text,
        "generator: {:.2} cores, {} a request",
        run.own_cores(),
        show_ns(run.own_ns_per_request())
    );
    if let (Some(cores), Some(ns)) = (run.server_cores(), run.server_ns_per_request()) {
        let _ = write!(
            text,
            "   server: {cores:.2} cores, {} a request, {} requests/s a core",
            show_ns(ns),
            show_count((1e9 / ns.max(1e-9)).round() as u64)
        );
    }
    text.push('\n');
    text.push_str(&troubles(run));
    text
}

fn times_table(run: &Run) -> String {
    let tally = &run.tally;
    let latency = tally.latency();
    let rows: [(&str, &Times); 6] = [
        ("latency", &latency),
        ("  reads", &tally.gets),
        ("  writes", &tally.sets),
        ("service", &tally.service),
        ("slip", &tally.slip),
        ("  own", &tally.own_slip),
    ];
    let mut text = format!("{:<10}", "");
    for percent in PERCENTILES {
        let _ = write!(text, "{:>11}", format!("p{percent}"));
    }
    let _ = writeln!(text, "{:>11}{:>11}", "longest", "mean");
    for (name, times) in rows {
        if times.is_empty() || (name == "  reads" && tally.sets.is_empty()) {
            continue;
        }
        let _ = write!(text, "{name:<10}");
        for (_, ns) in percentiles(times) {
            let _ = write!(text, "{:>11}", show_ns(ns as f64));
        }
        let max = show_ns(times.max() as f64);
        let _ = writeln!(text, "{max:>11}{:>11}", show_ns(times.mean()));
    }
    text
}

fn troubles(run: &Run) -> String {
    let tally = &run.tally;
    let mut text = String::new();
    for (line, times) in &tally.errors {
        let _ = writeln!(text, "the server said {} times: {line}", show_count(*times));
    }
    for (why, times) in &tally.broken {
        let _ = writeln!(text, "connections, {} times: {why}", show_count(*times));
    }
    if tally.lost_on_the_way > 0 {
        let lost = show_count(tally.lost_on_the_way);
        let _ = writeln!(
            text,
            "{lost} requests were under way on connections that broke"
        );
    }
    if tally.unanswered > 0 {
        let _ = writeln!(
            text,
            "{} requests had no reply in the end; each counts with the time it waited",
            show_count(tally.unanswered)
        );
    }
    let verified = &tally.verified;
    if verified.looked_at > 0 {
        let _ = writeln!(
            text,
            "verified {} replies: {} corrupt, {} too old, {} lost",
            show_count(verified.looked_at),
            show_count(verified.corrupt),
            show_count(verified.too_old),
            show_count(verified.lost)
        );
        for sample in &verified.samples {
            let _ = writeln!(text, "  {sample}");
        }
    }
    for doubt in run.doubts() {
        let _ = writeln!(text, "note: {doubt}");
    }
    text
}

fn times_json(times: &Times) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("count".into(), times.len().into());
    for (percent, ns) in percentiles(times) {
        object.insert(format!("p{percent}_ns"), ns.into());
    }
    object.insert("max_ns".into(), times.max().into());
    object.insert("mean_ns".into(), times.mean().into());
    Value::Object(object)
}

/// A run as JSON.
pub fn run_json(run: &Run) -> Value {
    let tally = &run.tally;
    let replies = &tally.replies;
    let offered = match run.pacing {
        Pacing::Closed => Value::Null,
        Pacing::Open { rate, .. } => rate.into(),
    };
    json!({
        "offered_per_s": offered,
        "seconds": run.seconds,
        "replies_per_s": run.rate(),
        "replies": {
            "hits": replies.hits, "misses": replies.misses, "stored": replies.stored,
            "not_stored": replies.not_stored, "echoes": replies.echoes, "errors": replies.errors,
        },
        "latency": times_json(&tally.latency()),
        "latency_reads": times_json(&tally.gets),
        "latency_writes": times_json(&tally.sets),
        "service": times_json(&tally.service),
        "slip": times_json(&tally.slip),
        "own_slip": times_json(&tally.own_slip),
        "unanswered": tally.unanswered,
        "errors": tally.errors,
        "broken_connections": tally.broken,
        "lost_on_the_way": tally.lost_on_the_way,
        "verified": {
            "looked_at": tally.verified.looked_at, "corrupt": tally.verified.corrupt,
            "too_old": tally.verified.too_old, "lost": tally.verified.lost,
            "samples": tally.verified.samples,
        },
        "bytes_sent": tally.bytes_sent,
        "bytes_received": tally.bytes_received,
        "generator": {
            "cores": run.own_cores(), "ns_per_request": run.own_ns_per_request(),
            "busiest_thread": tally.busiest, "calls": tally.calls,
        },
        "server": {
            "cores": run.server_cores(), "ns_per_request": run.server_ns_per_request(),
        },
        "doubts": run.doubts(),
    })
}

/// A plan as JSON.
pub fn plan_json(plan: &LoadPlan) -> Value {
    json!({
        "target": plan.target.to_string(),
        "protocol": plan.protocol.to_string(),
        "pacing": pacing_text(plan.pacing),
        "connections": plan.connections,
        "outstanding": plan.outstanding,
        "threads": plan.threads,
        "reads": plan.gets,
        "keys": plan.keys,
        "key_sizes": plan.key_sizes.to_string(),
        "value_sizes": plan.value_sizes.to_string(),
        "spread": plan.spread.to_string(),
        "seed": plan.seed,
        "warm_up_s": plan.warm_up.as_secs_f64(),
        "measure_s": plan.measure.as_secs_f64(),
    })
}

/// Formats times for HdrHistogram's plotters: value, share, count, 1/(1-share); in milliseconds.
pub fn hgrm(times: &Times) -> String {
    let histogram = times.histogram();
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut seen = 0;
    for step in histogram.iter_quantiles(5) {
        seen += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / 1e6;
        let share = step.quantile_iterated_to();
        let _ = write!(text, "{value:12.6} {share:.12} {seen:10}");
        let _ = match share < 1.0 {
            true => writeln!(text, " {:14.2}", 1.0 / (1.0 - share)),
            false => writeln!(text),
        };
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:12.6}, StdDeviation   = {:12.6}]\n\
         #[Max     = {:12.6}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.mean() / 1e6,
        histogram.stdev() / 1e6,
        histogram.max() as f64 / 1e6,
        histogram.len(),
        histogram.buckets(),
        2048,
    );
    text
}
