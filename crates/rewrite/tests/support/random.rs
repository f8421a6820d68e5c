//! Random graphs and rules, as text, over a few types with inheritance.

use fastrand::Rng;
use hearth_rewrite::{Graph, Value, VertexId};

pub const TYPES: &str = "\
vertex A { n: int }
vertex B: A { flag: bool }
vertex C { n: int, name: string }
edge e { w: int }
edge f: e;
edge g;
";

pub fn graph(random: &mut Rng, schema: hearth_rewrite::Schema, vertices: u32) -> Graph {
    let mut graph = Graph::new(schema);
    for _ in 0..vertices {
        let number = random.u16(0..3);
        let vertex = graph.add_vertex(number);
        assert!(graph.set_value(vertex, "n", &Value::Int(random.i64(0..4))));
        if graph.value(vertex, "flag").is_some() {
            assert!(graph.set_value(vertex, "flag", &Value::Bool(random.bool())));
        }
        if graph.value(vertex, "name").is_some() {
            let name = Value::Text(random.choice(["", "x", "y"]).unwrap().into());
            assert!(graph.set_value(vertex, "name", &name));
        }
    }
    for _ in 0..random.u32(0..=vertices * 2) {
        let mut any = || VertexId(random.u32(0..vertices));
        let ends = (any(), any());
        let edge = graph.add_edge(random.u16(0..3), ends.0, ends.1);
        if graph.edge_value(edge, "w").is_some() {
            assert!(graph.set_edge_value(edge, "w", &Value::Int(random.i64(0..3))));
        }
    }
    graph
}

/// A vertex or edge of a pattern, by name and type.
type Named = (String, &'static str);

fn vertex_type(random: &mut Rng) -> &'static str {
    random.choice(["A", "A", "B", "C"]).unwrap()
}

fn edge_type(random: &mut Rng) -> &'static str {
    random.choice(["e", "e", "f", "g"]).unwrap()
}

fn number(random: &mut Rng, vertices: &[Named], edges: &[Named]) -> String {
    let mut terms: Vec<String> = vertices
        .iter()
        .map(|(name, _)| format!("{name}.n"))
        .collect();
    let weighted = edges.iter().filter(|(_, of)| *of != "g");
    terms.extend(weighted.map(|(name, _)| format!("{name}.w")));
    terms.push(random.u32(0..4).to_string());
    let term = random.choice(&terms).unwrap().clone();
    match random.u32(0..5) {
        0 => format!("{term} + 1"),
        1 => format!("({term} * 3 - {}) % 5", random.choice(&terms).unwrap()),
        _ => term,
    }
}

fn condition(random: &mut Rng, vertices: &[Named], edges: &[Named]) -> String {
    let flags: Vec<&Named> = vertices.iter().filter(|(_, of)| *of == "B").collect();
    let names: Vec<&Named> = vertices.iter().filter(|(_, of)| *of == "C").collect();
    match random.u32(0..8) {
        0 if !flags.is_empty() => format!("not {}.flag", random.choice(flags).unwrap().0),
        1 if !names.is_empty() => {
            let sign = random.choice(["==", "!=", "<"]).unwrap();
            format!("{}.name {sign} \"x\"", random.choice(names).unwrap().0)
        }
        2 => {
            let left = condition(random, vertices, edges);
            let right = condition(random, vertices, edges);
            format!("({left} {} {right})", random.choice(["and", "or"]).unwrap())
        }
        _ => {
            let sign = random.choice(["<", "<=", "==", "!=", ">="]).unwrap();
            let left = number(random, vertices, edges);
            format!("{left} {sign} {}", number(random, vertices, edges))
        }
    }
}

/// A rule set with its types.
pub fn rules(random: &mut Rng) -> String {
    let mut text = TYPES.to_owned();
    for place in 0..random.usize(1..4) {
        text += &rule(random, place);
    }
    text
}

fn rule(random: &mut Rng, place: usize) -> String {
    let mut text = format!("rule r{place} {{\n");
    let vertices: Vec<Named> = (0..random.usize(1..4))
        .map(|vertex| (format!("v{vertex}"), vertex_type(random)))
        .collect();
    let mut edges: Vec<(Named, usize, usize)> = Vec::new();
    for vertex in 1..vertices.len() {
        // Now and then nothing connects a vertex with those before.
        if random.u32(0..8) > 0 {
            let other = random.usize(0..vertex);
            let ends = if random.bool() {
                (vertex, other)
            } else {
                (other, vertex)
            };
            let name = format!("e{}", edges.len());
            edges.push(((name, edge_type(random)), ends.0, ends.1));
        }
    }
    for _ in 0..random.u32(0..2) {
        let mut any = || random.usize(0..vertices.len());
        let ends = (any(), any());
        let name = format!("e{}", edges.len());
        edges.push(((name, edge_type(random)), ends.0, ends.1));
    }
    let names: Vec<Named> = edges.iter().map(|(named, ..)| named.clone()).collect();
    let mut items: Vec<String> = Vec::new();
    for (name, of) in &vertices {
        items.push(format!("{name}: {of}"));
    }
    for ((name, of), source, target) in &edges {
        items.push(format!("v{source} -[{name}: {of}]-> v{target}"));
    }
    text += &format!("  match {};\n", items.join(", "));
    for _ in 0..random.u32(0..3) {
        text += &format!("  if {};\n", condition(random, &vertices, &names));
    }
    for pattern in 0..random.choice([0, 1, 1, 2]).unwrap() {
        text += &unless(random, pattern, &vertices, &names);
    }
    if random.u32(0..4) == 0 {
        text += "  strict;\n";
    }
    // Every third rule only adds edges: such matches share their vertices, and only `unless`
    // patterns tell whether they may.
    let adds = random.u32(0..3) == 0;
    let gone: Vec<bool> = vertices
        .iter()
        .map(|_| !adds && random.u32(0..4) == 0)
        .collect();
    for (vertex, _) in gone.iter().enumerate().filter(|(_, is)| **is) {
        text += &format!("  delete v{vertex};\n");
    }
    for (name, _) in &names {
        if !adds && random.u32(0..3) == 0 {
            text += &format!("  delete {name};\n");
        }
    }
    let deleted = text.clone();
    let is_deleted = |name: &str| deleted.contains(&format!("delete {name};"));
    let kept: Vec<&Named> = vertices
        .iter()
        .filter(|(name, _)| !is_deleted(name))
        .collect();
    let mut ends: Vec<String> = kept.iter().map(|(name, _)| name.clone()).collect();
    if random.u32(0..3) == 0 {
        let of = vertex_type(random);
        text += &format!("  create new: {of};\n");
        text += &format!("  set new.n = {};\n", number(random, &vertices, &names));
        ends.push("new".into());
    }
    if !ends.is_empty() && (adds || random.bool()) {
        let (source, target) = (random.choice(&ends).unwrap(), random.choice(&ends).unwrap());
        text += &format!("  create {source} -[{}]-> {target};\n", edge_type(random));
    }
    if adds {
        return text + "}\n";
    }
    for (name, _) in kept {
        if random.u32(0..3) == 0 {
            text += &format!("  set {name}.n = {};\n", number(random, &vertices, &names));
        }
    }
    for (name, of) in &names {
        if *of != "g" && !is_deleted(name) && random.u32(0..4) == 0 {
            text += &format!("  set {name}.w = {};\n", number(random, &vertices, &names));
        }
    }
    text + "}\n"
}

fn unless(random: &mut Rng, pattern: usize, vertices: &[Named], edges: &[Named]) -> String {
    let mut items = Vec::new();
    let mut seen = vertices.to_vec();
    let mut own = Vec::new();
    for extra in 0..random.choice([0, 1, 1, 2]).unwrap() {
        let name = format!("x{pattern}_{extra}");
        let of = vertex_type(random);
        items.push(format!("{name}: {of}"));
        seen.push((name.clone(), of));
        own.push(name);
    }
    let count = if own.is_empty() {
        1
    } else {
        random.usize(0..3)
    };
    let mut all_edges = edges.to_vec();
    for edge in 0..count {
        let name = format!("y{pattern}_{edge}");
        let of = edge_type(random);
        let source = match own.is_empty() || random.bool() {
            true => random.choice(vertices).unwrap().0.clone(),
            false => random.choice(&own).unwrap().clone(),
        };
        let target = random.choice(&seen).unwrap().0.clone();
        items.push(format!("{source} -[{name}: {of}]-> {target}"));
        all_edges.push((name, of));
    }
    let mut text = format!("  unless {}", items.join(", "));
    if random.u32(0..3) == 0 {
        text += &format!(" if {}", condition(random, &seen, &all_edges));
    }
    text + ";\n"
}
