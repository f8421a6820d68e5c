//! Forms read and written, with tools that are not ours on the other side.

use std::io::Write as _;
use std::process::{Command, Stdio};

use hearth_rewrite::forms::{FormError, Loaded, csv, dot, graphml, xmi};
use hearth_rewrite::{Graph, Kind, SchemaBuilder, Sort, Value, VertexId};

/// Output of a program for an input; none where the program is missing, with a line that says so.
fn other(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "skipped: there is no `{program}` here");
        return None;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if complaint.contains("No module named 'networkx'") {
        let _ = writeln!(std::io::stderr(), "skipped: python3 has no networkx here");
        return None;
    }
    assert!(output.status.success(), "{program}: {complaint}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn load(loose: Result<hearth_rewrite::forms::Loose, FormError>) -> Loaded {
    loose.unwrap().load(SchemaBuilder::new()).unwrap()
}

fn value(loaded: &Loaded, name: &str, attribute: &str) -> Option<Value> {
    let place = loaded.names.iter().position(|other| other == name).unwrap();
    loaded.graph.value(VertexId(place as u32), attribute)
}

fn sample() -> (Graph, Vec<String>) {
    let mut builder = SchemaBuilder::new();
    let attributes = [
        ("n", Kind::Int),
        ("rate", Kind::Float),
        ("seen", Kind::Bool),
        ("title", Kind::Text),
    ];
    builder
        .declare(Sort::Vertex, "Video", None, &attributes)
        .unwrap();
    builder
        .declare(Sort::Vertex, "Clip", Some("Video"), &[])
        .unwrap();
    // The same name with another kind.
    builder
        .declare(Sort::Vertex, "User", None, &[("n", Kind::Text)])
        .unwrap();
    builder
        .declare(Sort::Edge, "related", None, &[("w", Kind::Float)])
        .unwrap();
    let mut graph = Graph::new(builder.build().unwrap());
    let names = ["Video", "Clip", "User"];
    let all: Vec<VertexId> = names
        .iter()
        .map(|name| {
            let number = graph.schema().vertices.named(name).unwrap().range.first;
            graph.add_vertex(number)
        })
        .collect();
    assert!(graph.set_value(all[0], "n", &Value::Int(-3)));
    assert!(graph.set_value(all[0], "rate", &Value::Float(0.1)));
    assert!(graph.set_value(all[1], "seen", &Value::Bool(true)));
    let title = "a <b> & \"c\"\nänd\tmore";
    assert!(graph.set_value(all[1], "title", &Value::Text(title.into())));
    assert!(graph.set_value(all[2], "n", &Value::Text("7".into())));
    for (source, target) in [(0, 1), (1, 0), (1, 2), (1, 2)] {
        let edge = graph.add_edge(0, all[source], all[target]);
        assert!(graph.set_edge_value(edge, "w", &Value::Float(source as f64 / 3.0)));
    }
    (graph, vec!["x 1".into(), "<y>".into()])
}

#[test]
fn graphml_comes_back() {
    let (graph, names) = sample();
    let text = graphml::write(&graph, &names);
    let back = load(graphml::read(&text));
    assert_eq!(back.names, ["x 1", "<y>", "v2"]);
    // Types are met in another order than they were declared, so the numbers may differ.
    assert_eq!(back.graph.listing(), graph.listing());
    assert_eq!(graphml::write(&back.graph, &back.names).len(), text.len());
}

#[test]
fn networkx_reads_what_is_written_and_is_read() {
    let (graph, names) = sample();
    let text = graphml::write(&graph, &names);
    let script = "
import sys, networkx
g = networkx.read_graphml(sys.stdin.buffer, force_multigraph=True)
for n, d in g.nodes(data=True): print('node', n, sorted(d.items()), file=sys.stderr)
assert g.is_directed() and g.number_of_nodes() == 3 and g.number_of_edges() == 4
assert g.nodes['x 1'] == {'type': 'Video', 'n': -3, 'rate': 0.1, 'seen': False, 'title': ''}, g.nodes
assert g.nodes['<y>']['title'] == 'a <b> & \"c\"\\nänd\\tmore', g.nodes
assert g.nodes['v2'] == {'type': 'User', 'n': '7'}, g.nodes
assert [d['w'] for _, _, d in g.edges(data=True)].count(1 / 3) == 3
networkx.write_graphml(g, sys.stdout.buffer)
";
    let Some(back) = other("python3", &["-c", script], &text) else {
        return;
    };
    let loaded = load(graphml::read(&back));
    assert_eq!(loaded.graph.vertex_count(), 3);
    assert_eq!(value(&loaded, "x 1", "n"), Some(Value::Int(-3)));
    assert_eq!(value(&loaded, "x 1", "rate"), Some(Value::Float(0.1)));
    assert_eq!(
        value(&loaded, "<y>", "title"),
        graph.value(VertexId(1), "title")
    );
}

#[test]
fn undirected_graphml_has_both_directions() {
    let script = "
import sys, networkx
networkx.write_graphml(networkx.cycle_graph(5), sys.stdout.buffer)";
    let Some(text) = other("python3", &["-c", script], "") else {
        return;
    };
    let loaded = load(graphml::read(&text));
    assert_eq!(
        (loaded.graph.vertex_count(), loaded.graph.edge_count()),
        (5, 10)
    );
}

const DOT: &str = r#"
/* a comment */ digraph "G" {
    rankdir = LR; // another
    node [type=Video, views=10]
    a [views=-3 label="an \"a\""]; b
    subgraph cluster_x { node [type=Clip]; c [rate=.5]; edge [type=has]; c -> d:n }
    a -> b -> c [type="related", w=1.5];
    a -> "e f"
}
"#;

fn check_dot(loaded: &Loaded) {
    assert_eq!(
        (loaded.graph.vertex_count(), loaded.graph.edge_count()),
        (5, 4)
    );
    let type_of = |name: &str| {
        let place = loaded.names.iter().position(|other| other == name).unwrap();
        loaded.graph.type_of(VertexId(place as u32)).name.clone()
    };
    assert_eq!(
        [type_of("a"), type_of("c"), type_of("e f")],
        ["Video", "Clip", "Video"]
    );
    assert_eq!(value(loaded, "a", "views"), Some(Value::Int(-3)));
    assert_eq!(value(loaded, "b", "views"), Some(Value::Int(10)));
    assert_eq!(
        value(loaded, "a", "label"),
        Some(Value::Text("an \"a\"".into()))
    );
    let edge_types = loaded
        .graph
        .edges()
        .map(|edge| loaded.graph.type_of_edge(edge));
    let related = edge_types.filter(|of| of.name == "related").count();
    assert_eq!(related, 2);
}

#[test]
fn dot_is_read() {
    let loaded = load(dot::read(DOT));
    check_dot(&loaded);
    assert_eq!(value(&loaded, "c", "rate"), Some(Value::Float(0.5)));
    let both = load(dot::read("strict graph { a -- b -- c }"));
    assert_eq!(both.graph.edge_count(), 4);
}

/// Graphviz reads the same text as we do, and we read what it writes.
#[test]
fn graphviz_agrees() {
    let Some(canonical) = other("dot", &["-Tcanon"], DOT) else {
        return;
    };
    check_dot(&load(dot::read(&canonical)));
    // With positions, line breaks in texts, and numbers as Graphviz has them.
    let laid_out = other("dot", &["-Tdot"], DOT).expect("dot was there");
    check_dot(&load(dot::read(&laid_out)));
}

#[test]
fn csv_is_read() {
    let edges = "source,target,type,w\n# a comment\na,b,related,1\n\"b, c\",a,,2.5\r\n";
    let vertices = "id,type,title\na,Video,\"say \"\"hi\"\"\"\nz,User,\n";
    let loaded = load(csv::read(edges, Some(vertices)));
    assert_eq!(loaded.names, ["a", "z", "b", "b, c"]);
    assert_eq!(
        value(&loaded, "a", "title"),
        Some(Value::Text("say \"hi\"".into()))
    );
    assert_eq!(
        loaded.graph.listing(),
        "v0: Video title=say \"hi\"\nv1: User\nv2: Vertex\nv3: Vertex\n\
         e0: v0 -[related]-> v2 w=1\ne1: v3 -[edge]-> v0 w=2.5\n"
    );
}

#[test]
fn csv_by_python_is_read() {
    let script = "
import csv, sys
out = csv.writer(sys.stdout)
out.writerows([['source', 'target', 'note'], ['a', 'b', 'x, \"y\"\\nz'], ['b', 'a', '']])";
    let Some(text) = other("python3", &["-c", script], "") else {
        return;
    };
    let loaded = load(csv::read(&text, None));
    let edge = loaded.graph.edges().next().unwrap();
    let note = loaded.graph.edge_value(edge, "note");
    assert_eq!(note, Some(Value::Text("x, \"y\"\nz".into())));
}

const XMI: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<am:Amalthea xmlns:am="http://app4mc.eclipse.org/amalthea/3.3.0" xmlns:xmi="http://www.omg.org/XMI"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmi:version="2.0">
  <swModel>
    <tasks name="T1" priority="3" label="L"/>
    <tasks xsi:type="am:ISR" name="I" calls="//@swModel/@tasks.0 //@swModel/@runnables.0"/>
    <runnables name="R" id="r"><text>some words</text></runnables>
    <tasks name="T2" uses="r" other="far"><next href="b.xmi#/"/></tasks>
  </swModel>
</am:Amalthea>"#;

#[test]
fn xmi_is_read() {
    let loaded = load(xmi::read(XMI));
    assert_eq!(
        loaded.graph.listing(),
        "v0: Amalthea\nv1: swModel\nv2: tasks name=T1 priority=3 label=L other=\nv3: ISR name=I\n\
         v4: runnables name=R id=r text=some words\nv5: tasks name=T2 priority=0 label= other=far\n\
         v6: next\n\
         e0: v0 -[swModel]-> v1\ne1: v1 -[tasks]-> v2\ne2: v1 -[tasks]-> v3\n\
         e3: v1 -[runnables]-> v4\ne4: v1 -[tasks]-> v5\ne5: v5 -[next]-> v6\n\
         e6: v3 -[calls]-> v2\ne7: v3 -[calls]-> v4\ne8: v5 -[uses]-> v4\n"
    );
    assert_eq!(loaded.notes, ["1 reference to other files left out"]);
}

#[test]
fn faults_name_their_lines() {
    let graphml = |body: &str| format!("<graphml>\n<graph>\n{body}\n</graph></graphml>");
    let cases: Vec<(Result<_, FormError>, &str)> = vec![
        (graphml::read("<a/>"), "line 1: it begins with `a`"),
        (
            graphml::read(&graphml("<edge source='a'/>")),
            "line 3: `edge` has no `target`",
        ),
        (
            graphml::read(&graphml("<edge source='a' target='b'/>")),
            "`a`, which is no node",
        ),
        (
            graphml::read(&graphml("<node id='a'><graph/></node>")),
            "line 3: a graph is inside",
        ),
        (graphml::read(&graphml("<node id='a'>")), "line 4"),
        (
            dot::read("digraph {\n a -> {b c}\n}"),
            "line 2: an edge joins a subgraph",
        ),
        (dot::read("digraph {\n a"), "line 2: the end stands where"),
        (dot::read("graph { \"a }"), "line 1: a text does not end"),
        (
            csv::read("from,to\n", None),
            "line 1: no column is called `source`",
        ),
        (
            csv::read("source,target\na\n", None),
            "line 2: there are 1 cells for 2 columns",
        ),
        (
            csv::read("source,target\na,\"b\n", None),
            "line 2: a quoted cell",
        ),
        (xmi::read("<a><b></a>"), "line 1"),
        (xmi::read(""), "no element"),
    ];
    for (result, wanted) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(wanted), "{message} / {wanted}");
    }
    let mut schema = SchemaBuilder::new();
    schema
        .declare(Sort::Edge, "e", None, &[("w", Kind::Int)])
        .unwrap();
    let loose = csv::read("source,target,w\na,b,heavy\n", None).unwrap();
    let message = loose.load(schema).unwrap_err().to_string();
    assert!(
        message.contains("`w` of `e` is of kind int, and `heavy` is not"),
        "{message}"
    );
}
