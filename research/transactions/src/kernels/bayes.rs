//! The structure of a Bayesian network, learned from records.
//!
//! Each variable has a task: the edge into it that would help most. A transaction takes the best
//! task; another adds its edge, unless that would close a circle; a third, which is long, reads the
//! graph for the variable's next task. Scores are counted from columns of bits, where the published
//! kernel has a tree of counts.

use hearth_stm::{Algorithm, Halt, Stm, Tx, Var};

use super::{Kernel, Random, Size};

pub(super) struct Parameters {
    pub(super) variables: usize,
    pub(super) records: usize,
    /// Most edges into a variable of the network that made the records.
    pub(super) parents: usize,
    /// Chance of each of them.
    pub(super) percent: usize,
    /// Cost of an edge, in units of its bits.
    pub(super) penalty: f64,
    /// Most edges that are learned into a variable.
    pub(super) edges_max: u32,
}

impl Parameters {
    pub(super) const fn of(size: Size) -> Parameters {
        // Few variables need more edges, or there may be none to be found.
        let (variables, records, percent) = match size {
            Size::Small => (10, 256, 90),
            Size::Published => (32, 1024, 20),
        };
        Parameters {
            variables,
            records,
            parents: 2,
            percent,
            penalty: 2.0,
            edges_max: 2,
        }
    }
}

pub(super) struct Bayes<A: Algorithm> {
    stm: Stm<A>,
    parameters: Parameters,
    /// The records' bits of each variable.
    columns: Vec<Vec<u64>>,
    /// Edges into each variable, as bits.
    parents: Vec<Var<u64>>,
    /// The best edge into each variable: its gain, and where it begins plus 1; zero if none helps.
    tasks: Vec<Var<(u32, u32)>>,
}

impl<A: Algorithm> Bayes<A> {
    pub(super) fn new(stm: Stm<A>, size: Size, seed: u64) -> Bayes<A> {
        let parameters = Parameters::of(size);
        let columns = records(&parameters, &mut Random::new(seed));
        let bayes = Bayes {
            stm,
            parents: columns.iter().map(|_| Var::new(0)).collect(),
            tasks: columns.iter().map(|_| Var::new((0, 0))).collect(),
            columns,
            parameters,
        };
        for variable in 0..bayes.columns.len() {
            bayes.stm.atomically(|tx| bayes.find_task(tx, variable));
        }
        bayes
    }

    /// How well the records follow from a variable's parents: the logarithm of their likelihood.
    fn score(&self, variable: usize, parents: u64) -> f64 {
        let parents: Vec<usize> = (0..64).filter(|bit| parents >> bit & 1 == 1).collect();
        let mut score = 0.0;
        for values in 0..1_u32 << parents.len() {
            let (mut all, mut set) = (0, 0);
            for block in 0..self.columns[0].len() {
                let mut matching = self.valid(block);
                for (nth, &parent) in parents.iter().enumerate() {
                    let column = self.columns[parent][block];
                    matching &= if values >> nth & 1 == 1 {
                        column
                    } else {
                        !column
                    };
                }
                all += matching.count_ones();
                set += (matching & self.columns[variable][block]).count_ones();
            }
            for part in [set, all - set] {
                if part > 0 {
                    score += f64::from(part) * (f64::from(part) / f64::from(all)).ln();
                }
            }
        }
        score
    }

    /// The bits of a block that are records.
    fn valid(&self, block: usize) -> u64 {
        let left = self.parameters.records - 64 * block;
        if left >= 64 {
            u64::MAX
        } else {
            (1 << left) - 1
        }
    }

    /// Whether a variable can be reached from another against the edges.
    fn reaches<'v>(&'v self, tx: &mut Tx<'v, A>, from: usize, to: usize) -> Result<bool, Halt> {
        let (mut seen, mut open) = (0_u64, 1_u64 << from);
        while open != 0 {
            let at = open.trailing_zeros() as usize;
            seen |= 1 << at;
            open &= open - 1;
            if at == to {
                return Ok(true);
            }
            open |= tx.read(&self.parents[at])? & !seen;
        }
        Ok(false)
    }

    /// Finds the best edge into a variable and makes it its task.
    fn find_task<'v>(&'v self, tx: &mut Tx<'v, A>, to: usize) -> Result<(), Halt> {
        let parents = tx.read(&self.parents[to])?;
        let mut best = (0.0, 0);
        if parents.count_ones() < self.parameters.edges_max {
            let now = self.score(to, parents);
            for from in 0..self.columns.len() {
                if from == to || parents >> from & 1 == 1 || self.reaches(tx, from, to)? {
                    continue;
                }
                let bits = f64::from(1 << parents.count_ones());
                let cost = self.parameters.penalty * 0.5 * (self.parameters.records as f64).ln();
                let gain = self.score(to, parents | 1 << from) - now - cost * bits;
                if gain > best.0 {
                    best = (gain, from as u32 + 1);
                }
            }
        }
        tx.write(&self.tasks[to], ((best.0 as f32).to_bits(), best.1))
    }

    /// Takes the best task of all.
    fn take<'v>(&'v self, tx: &mut Tx<'v, A>) -> Result<Option<(usize, usize)>, Halt> {
        let mut best = ((0, 0), 0);
        for (to, task) in self.tasks.iter().enumerate() {
            let task = tx.read(task)?;
            // Bits of positive floating-point numbers are in the order of the numbers.
            if task.1 != 0 && task > best.0 {
                best = (task, to);
            }
        }
        let ((_, from), to) = best;
        if from == 0 {
            return Ok(None);
        }
        tx.write(&self.tasks[to], (0, 0))?;
        Ok(Some((from as usize - 1, to)))
    }

    fn add_edge<'v>(&'v self, tx: &mut Tx<'v, A>, from: usize, to: usize) -> Result<(), Halt> {
        if self.reaches(tx, from, to)? {
            return Ok(());
        }
        tx.update(&self.parents[to], |parents| parents | 1 << from)
            .map(drop)
    }
}

/// Records of a random network, as columns.
fn records(parameters: &Parameters, random: &mut Random) -> Vec<Vec<u64>> {
    let variables = parameters.variables;
    let mut columns = vec![vec![0_u64; parameters.records.div_ceil(64)]; variables];
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); variables];
    for (variable, parents) in parents.iter_mut().enumerate().skip(1) {
        for _ in 0..parameters.parents {
            let parent = random.below(variable);
            if random.happens(parameters.percent) && !parents.contains(&parent) {
                parents.push(parent);
            }
        }
    }
    // A chance for each combination of the parents' values.
    let chances: Vec<Vec<usize>> = parents
        .iter()
        .map(|parents| (0..1 << parents.len()).map(|_| random.below(101)).collect())
        .collect();
    for record in 0..parameters.records {
        let (block, bit) = (record / 64, record % 64);
        for variable in 0..variables {
            let value = |parent: &usize| (columns[*parent][block] >> bit & 1) as usize;
            let values = parents[variable].iter().map(value);
            let combination = values.fold(0, |sum, value| sum << 1 | value);
            if random.happens(chances[variable][combination]) {
                columns[variable][block] |= 1 << bit;
            }
        }
    }
    columns
}

impl<A: Algorithm> Kernel for Bayes<A> {
    fn work(&self, _thread: usize) {
        while let Some((from, to)) = self.stm.atomically(|tx| self.take(tx)) {
            self.stm.atomically(|tx| self.add_edge(tx, from, to));
            self.stm.atomically(|tx| self.find_task(tx, to));
        }
    }

    fn check(&self) -> Result<(), String> {
        let all: Vec<u64> = self
            .parents
            .iter()
            .map(|parents| self.stm.atomically(|tx| tx.read(parents)))
            .collect();
        // Variables without edges into them go first, and take theirs with them.
        let (mut placed, mut is_moving) = (0_u64, true);
        while is_moving {
            is_moving = false;
            for (variable, parents) in all.iter().enumerate() {
                if placed >> variable & 1 == 0 && parents & !placed == 0 {
                    placed |= 1 << variable;
                    is_moving = true;
                }
            }
        }
        if placed.count_ones() as usize != all.len() {
            return Err("the network has a circle".to_owned());
        }
        let is_more = |parents: &u64| parents.count_ones() > self.parameters.edges_max;
        if all.iter().any(is_more) {
            return Err("a variable has too many edges".to_owned());
        }
        let learned = || all.iter().enumerate();
        let with: f64 = learned()
            .map(|(to, &parents)| self.score(to, parents))
            .sum();
        let without: f64 = learned().map(|(to, _)| self.score(to, 0)).sum();
        let edges: u32 = all.iter().map(|parents| parents.count_ones()).sum();
        // The records come of a network with edges, so some must help.
        match edges > 0 && with > without {
            true => Ok(()),
            false => Err(format!(
                "{edges} edges, and the score is {with} after {without}"
            )),
        }
    }
}
