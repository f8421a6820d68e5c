//! Spans and figures, read with OpenTelemetry's own messages, and posted to a server.

use std::collections::{BTreeMap, HashMap, HashSet};

use hearth_calls::formats::otlp::{Spans, metrics, spans};
use hearth_calls::{Recorded, Tree};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::fixture::{Counts, Temporary, lossy, whole};

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let pair = attributes.iter().find(|pair| pair.key == key)?;
    pair.value.as_ref()?.value.as_ref()
}

fn number(attributes: &[KeyValue], key: &str) -> Option<u64> {
    match attribute(attributes, key)? {
        Value::IntValue(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match attribute(attributes, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn check_resource(recorded: &Recorded, resource: Option<&Resource>) {
    let attributes = &resource.expect("a resource").attributes;
    assert_eq!(text(attributes, "service.name"), Some(recorded.program()));
    let process = u64::from(recorded.process());
    assert_eq!(number(attributes, "process.pid"), Some(process));
}

fn all_spans(recorded: &Recorded, at_once: usize) -> (Vec<Span>, Spans) {
    let mut all = Vec::new();
    let mut requests = 0;
    let written = spans(recorded, at_once, &mut |body| {
        requests += 1;
        let request = ExportTraceServiceRequest::decode(body).expect("a request");
        assert_eq!(request.encode_to_vec(), body, "it has nothing else");
        for of_resource in request.resource_spans {
            check_resource(recorded, of_resource.resource.as_ref());
            for of_scope in of_resource.scope_spans {
                assert!(of_scope.spans.len() <= at_once);
                all.extend(of_scope.spans);
            }
        }
        Ok(())
    });
    let written = written.expect("they are written");
    assert_eq!(written.requests, requests);
    (all, written)
}

/// Counts by what a collector receives.
pub(crate) fn counted(recorded: &Recorded) -> Counts {
    let (all, written) = all_spans(recorded, 10);
    let mut counts = Counts::default();
    for span in &all {
        let is_known = |key| u64::from(text(&span.attributes, key) != Some("unknown"));
        match number(&span.attributes, "hearth.lost") {
            Some(lost) => {
                counts.gaps += 1;
                counts.lost += lost;
            }
            None => {
                counts.calls += 1;
                counts.begins += is_known("hearth.begin");
                counts.ends += is_known("hearth.end");
            }
        }
    }
    assert_eq!((counts.calls, counts.lost), (written.calls, written.lost));
    counts
}

fn check_spans(recorded: &Recorded) {
    let (all, _) = all_spans(recorded, 10);
    let by_id: HashMap<&[u8], &Span> = all
        .iter()
        .map(|span| (span.span_id.as_slice(), span))
        .collect();
    assert_eq!(by_id.len(), all.len(), "numbers differ");
    let mut outermost = HashMap::new();
    for span in &all {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert!(span.trace_id.iter().any(|byte| *byte != 0));
        assert!(span.span_id.iter().any(|byte| *byte != 0));
        assert!(span.start_time_unix_nano >= recorded.began_at());
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let thread = text(&span.attributes, "thread.name").expect("a thread");
        let account = recorded
            .accounts()
            .iter()
            .find(|account| account.name == thread)
            .expect("an account");
        let id = number(&span.attributes, "thread.id");
        assert_eq!(id, Some(u64::from(account.id)));
        if span.parent_span_id.is_empty() {
            let other = outermost.insert(span.trace_id.clone(), span);
            assert!(other.is_none(), "a trace has one outermost call");
            continue;
        }
        let parent = by_id[span.parent_span_id.as_slice()];
        assert_eq!(parent.trace_id, span.trace_id);
        assert!(parent.start_time_unix_nano <= span.start_time_unix_nano);
        assert!(parent.end_time_unix_nano >= span.end_time_unix_nano);
        assert_eq!(text(&parent.attributes, "thread.name"), Some(thread));
        let parent_of = match span.name.as_str() {
            "Shop::find" | "say \"hi\\\"" => &["Shop::handle", "?"][..],
            "größe; 2" => &["Shop::find", "?"][..],
            _ => continue,
        };
        assert!(parent_of.contains(&parent.name.as_str()), "{}", parent.name);
    }
    let traces: HashSet<&Vec<u8>> = all.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), outermost.len());
    // The same again.
    assert_eq!(all_spans(recorded, 1000).0, all);
}

/// Calls by probe, and records lost by thread.
fn check_metrics(recorded: &Recorded) {
    let tree = Tree::of(recorded).expect("it is read");
    let mut sums: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut lengths = 0;
    let written = metrics(recorded, &tree, 3, &mut |body| {
        let request = ExportMetricsServiceRequest::decode(body).expect("a request");
        assert_eq!(request.encode_to_vec(), body, "it has nothing else");
        for of_resource in request.resource_metrics {
            check_resource(recorded, of_resource.resource.as_ref());
            for metric in of_resource
                .scope_metrics
                .into_iter()
                .flat_map(|it| it.metrics)
            {
                match metric.data.expect("data") {
                    metric::Data::Sum(sum) => {
                        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                        for point in sum.data_points {
                            let of = text(&point.attributes, "hearth.probe");
                            let of = of.or(text(&point.attributes, "thread.name"));
                            let Some(number_data_point::Value::AsInt(value)) = point.value else {
                                panic!("{point:?}");
                            };
                            let sums = sums.entry(metric.name.clone()).or_default();
                            sums.insert(of.expect("a subject").to_owned(), value as u64);
                        }
                    }
                    metric::Data::ExponentialHistogram(histogram) => {
                        assert_eq!(metric.unit, "ns");
                        for point in histogram.data_points {
                            let positive = point.positive.expect("buckets");
                            let counted: u64 = positive.bucket_counts.iter().sum();
                            assert_eq!(point.count, counted + point.zero_count);
                            let (min, max) = (point.min.expect("one"), point.max.expect("one"));
                            let sum = point.sum.expect("one");
                            let calls = point.count as f64;
                            // Digits that a histogram keeps.
                            assert!(sum <= calls * max && sum * 1.001 >= calls * min);
                            lengths += point.count;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        Ok(())
    });
    written.expect("they are written");
    let counts = Counts::of(recorded);
    assert_eq!(sums["hearth.calls"].values().sum::<u64>(), counts.calls);
    let known: u64 = tree
        .nodes
        .iter()
        .map(|node| node.calls - node.unknown)
        .sum();
    assert_eq!(lengths, known);
    for account in recorded.accounts() {
        assert_eq!(sums["hearth.records.lost"][&account.name], account.lost());
        assert_eq!(sums["hearth.records.stored"][&account.name], account.stored);
    }
}

#[test]
fn a_collector_reads_whole_recordings() {
    let directory = Temporary::new();
    let recorded = whole(&directory);
    check_spans(&recorded);
    check_metrics(&recorded);
}

#[test]
fn a_collector_reads_losses() {
    let directory = Temporary::new();
    let recorded = lossy(&directory);
    check_spans(&recorded);
    check_metrics(&recorded);
}

#[cfg(feature = "otlp")]
mod http {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use hearth_calls::formats::otlp::{Endpoint, Taken, Unsent};

    use super::*;

    /// A request: its first line, its type and its body.
    type Request = (String, String, Vec<u8>);

    /// A server that gives these answers, one a request, and returns the requests.
    fn server(answers: Vec<(&'static str, Vec<u8>)>) -> (String, JoinHandle<Vec<Request>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let serve = move || {
            answers
                .into_iter()
                .map(move |answer| answered(&listener, &answer))
        };
        (address, thread::spawn(move || serve().collect()))
    }

    fn answered(listener: &TcpListener, (status, content): &(&str, Vec<u8>)) -> Request {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut from = BufReader::new(stream.try_clone().expect("a socket"));
        let mut line = || {
            let mut line = String::new();
            from.read_line(&mut line).expect("a line");
            line.trim_end().to_owned()
        };
        let first = line();
        let (mut kind, mut length) = (String::new(), 0);
        loop {
            let header = line().to_ascii_lowercase();
            match header.split_once(": ") {
                Some(("content-type", value)) => value.clone_into(&mut kind),
                Some(("content-length", value)) => length = value.parse().expect("a number"),
                None if header.is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).expect("a body");
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\nretry-after: 0\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            content.len()
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        stream.write_all(content).expect("it listens");
        (first, kind, body)
    }

    #[test]
    fn an_endpoint_takes_spans_and_metrics() {
        let directory = Temporary::new();
        let recorded = lossy(&directory);
        let (all, written) = all_spans(&recorded, 20);
        let requests = written.requests as usize;
        let (url, server) = server(vec![("200 OK", Vec::new()); requests + 2]);
        let endpoint = Endpoint::at(&url);
        let post = |taken: Result<Taken, Unsent>| match taken {
            Ok(taken) => {
                assert_eq!(taken, Taken::default());
                Ok(())
            }
            Err(error) => Err(std::io::Error::other(error)),
        };
        spans(&recorded, 20, &mut |body| post(endpoint.post_spans(body))).expect("sent");
        let tree = Tree::of(&recorded).expect("it is read");
        metrics(&recorded, &tree, 1000, &mut |body| {
            post(endpoint.post_metrics(body))
        })
        .expect("sent");
        let got = server.join().expect("it ends");
        let mut received = Vec::new();
        for (first, kind, body) in &got[..requests] {
            assert_eq!(first, "POST /v1/traces HTTP/1.1");
            assert_eq!(kind, "application/x-protobuf");
            let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("a request");
            let scopes = request
                .resource_spans
                .into_iter()
                .flat_map(|it| it.scope_spans);
            received.extend(scopes.flat_map(|it| it.spans));
        }
        assert_eq!(received, all);
        for (first, _, body) in &got[requests..] {
            assert_eq!(first, "POST /v1/metrics HTTP/1.1");
            ExportMetricsServiceRequest::decode(body.as_slice()).expect("a request");
        }
    }

    #[test]
    fn a_busy_endpoint_is_asked_again() {
        let (url, server) = server(vec![
            ("503 Service Unavailable", Vec::new()),
            ("429 Too Many Requests", Vec::new()),
            // partial_success: 2 rejected, "no".
            ("200 OK", b"\x0a\x06\x08\x02\x12\x02no".to_vec()),
        ]);
        let taken = Endpoint::at(&format!("{url}/"))
            .post_spans(b"")
            .expect("it is taken");
        assert_eq!((taken.rejected, taken.message.as_str()), (2, "no"));
        assert_eq!(server.join().expect("it ends").len(), 3);
    }

    #[test]
    fn a_refusal_says_why() {
        let (url, server) = server(vec![("400 Bad Request", b"\x12\x03bad".to_vec())]);
        let error = Endpoint::at(&url).post_metrics(b"x").expect_err("refused");
        server.join().expect("it ends");
        let text = error.to_string();
        assert_eq!(
            text,
            format!("the collector at {url}/v1/metrics answers 400: bad")
        );
        let error = Endpoint::at(&url)
            .post_spans(b"x")
            .expect_err("nobody is there");
        assert!(
            error.to_string().contains("start one that takes OTLP"),
            "{error}"
        );
    }
}
