//! The arrays of a large graph, built from a list of edges.
//!
//! A transaction adds one edge to the arrays of the vertex at its end: two words written, hardly a
//! conflict, and not much time in transactions. Vertices form cliques with edges between them.

use hearth_stm::{Algorithm, Stm, Var};

use super::{Kernel, Random, Size, shares};

pub(super) struct Parameters {
    /// Logarithm of the number of vertices.
    pub(super) scale: u32,
    /// Chance of an edge to the nearest clique; half as much to one twice as far.
    pub(super) between_percent: usize,
    /// Chance that an edge inside of a clique has one direction only.
    pub(super) one_way_percent: usize,
    /// Most edges beside each other.
    pub(super) parallel: usize,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        let scale = match size {
            Size::Small => 8,
            Size::Published => 13,
        };
        Parameters {
            scale,
            between_percent: 100,
            one_way_percent: 100,
            parallel: 3,
        }
    }
}

pub(super) struct Ssca2<A: Algorithm> {
    stm: Stm<A>,
    threads: usize,
    edges: Vec<(u32, u32)>,
    /// First place of the edges into each vertex in `sources`.
    begins: Vec<usize>,
    degrees: Vec<Var<u32>>,
    sources: Vec<Var<u32>>,
}

fn edges(parameters: &Parameters, random: &mut Random) -> Vec<(u32, u32)> {
    let vertices = 1_usize << parameters.scale;
    let clique_max = 1 << (parameters.scale / 3);
    // Vertices are renamed, lest neighbours in a clique lie side by side.
    let mut names: Vec<u32> = (0..vertices as u32).collect();
    random.shuffle(&mut names);
    let mut edges = Vec::new();
    let mut put = |from: usize, to: usize, random: &mut Random| {
        for _ in 0..random.below(parameters.parallel) + 1 {
            edges.push((names[from], names[to]));
        }
    };
    let mut begin = 0;
    while begin < vertices {
        let end = (begin + random.below(clique_max) + 1).min(vertices);
        for from in begin..end {
            for to in from + 1..end {
                let (from, to) = match random.happens(50) {
                    true => (from, to),
                    false => (to, from),
                };
                put(from, to, random);
                if !random.happens(parameters.one_way_percent) {
                    put(to, from, random);
                }
            }
            let (mut distance, mut percent) = (1, parameters.between_percent);
            while distance < vertices && percent > 0 {
                let to = (end + distance) % vertices;
                if to != from && random.happens(percent) {
                    put(from, to, random);
                }
                (distance, percent) = (2 * distance, percent / 2);
            }
        }
        begin = end;
    }
    random.shuffle(&mut edges);
    edges
}

impl<A: Algorithm> Ssca2<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, threads: usize, seed: u64) -> Ssca2<A> {
        let parameters = Parameters::of(size);
        let edges = edges(&parameters, &mut Random::new(seed));
        let vertices = 1 << parameters.scale;
        let mut begins = vec![0; vertices + 1];
        for &(_, to) in &edges {
            begins[to as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            begins[vertex + 1] += begins[vertex];
        }
        Ssca2 {
            stm,
            threads,
            begins,
            degrees: (0..vertices).map(|_| Var::new(0)).collect(),
            sources: edges.iter().map(|_| Var::new(0)).collect(),
            edges,
        }
    }
}

impl<A: Algorithm> Kernel for Ssca2<A> {
    fn work(&self, thread: usize) {
        for &(from, to) in &self.edges[shares(self.edges.len(), self.threads, thread)] {
            let begin = self.begins[to as usize];
            self.stm.atomically(|tx| {
                let degree = tx.read(&self.degrees[to as usize])?;
                tx.write(&self.sources[begin + degree as usize], from)?;
                tx.write(&self.degrees[to as usize], degree + 1)
            });
        }
    }

    fn check(&self) -> Result<(), String> {
        let read = |var: &Var<u32>| self.stm.atomically(|tx| tx.read(var));
        let mut found = Vec::with_capacity(self.edges.len());
        for (vertex, degree) in self.degrees.iter().enumerate() {
            let (begin, end) = (self.begins[vertex], self.begins[vertex + 1]);
            if read(degree) as usize != end - begin {
                return Err(format!("vertex {vertex} has lost edges"));
            }
            let sources = self.sources[begin..end].iter();
            found.extend(sources.map(|source| (read(source), vertex as u32)));
        }
        let mut edges = self.edges.clone();
        edges.sort_unstable();
        found.sort_unstable();
        match found == edges {
            true => Ok(()),
            false => Err("the arrays have other edges than the list".to_owned()),
        }
    }
}
