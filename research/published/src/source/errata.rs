//! Differences between the printed equations and their intended meaning.

/// One difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erratum {
    /// Our number, from 1.
    pub number: u32,
    /// The equations concerned.
    pub equations: &'static str,
    /// The text on the page.
    pub printed: &'static str,
    /// The text that we compute instead.
    pub intended: &'static str,
}

/// Every difference we know of. Those about equations have their printed form in
/// [`super::printed`]; 7, 8 and 9 concern labels and prose.
pub const ERRATA: &[Erratum] = &[
    Erratum {
        number: 1,
        equations: "3.2, 3.7",
        printed: "the third level is charged with memory's latency (writes in both, reads in 3.7)",
        intended: "the third level's own latency, as in 3.5",
    },
    Erratum {
        number: 2,
        equations: "3.7, 7.13 to 7.16",
        printed: "reads that fit the first level cost n times the latency",
        intended: "n/ns times the latency, as the writes do and as in 3.5",
    },
    Erratum {
        number: 3,
        equations: "7.13, 7.14",
        printed: "deeper levels cost n times the latency, without l1w or l1r",
        intended: "n/cls times the latency plus l1w or l1r, as in 7.15 and 7.16",
    },
    Erratum {
        number: 4,
        equations: "7.8, 7.10",
        printed: "faults and interrupts begin above the second level of a machine that has three",
        intended: "above the last level, as in 7.12",
    },
    Erratum {
        number: 5,
        equations: "7.8, 7.10, 7.12, 7.16",
        printed: "type 3 of the E5 starts from 699229 ns, the other machine's value, giving 655763",
        intended: "from 1073144 ns, giving 1029678",
    },
    Erratum {
        number: 6,
        equations: "7.12, 7.16",
        printed: "the E5's slope is 0.2309 ns a byte, and 0.2108 for types 2 and 3 of 7.16",
        intended: "0.23174, from 7.8's own terms; 0.2108 is the faults' part alone",
    },
    Erratum {
        number: 7,
        equations: "7.6",
        printed: "the three values are labelled 2, 3 and 3",
        intended: "1, 2 and 3",
    },
    Erratum {
        number: 8,
        equations: "the section on method",
        printed: "write-through caches are considered",
        intended: "write-back caches, as everywhere else",
    },
    Erratum {
        number: 9,
        equations: "the example for n = 1280064, type 2, Xeon 5130",
        printed: "1477750 ns, which follows with words of 4 bytes",
        intended: "997726 ns with the declared 8 bytes",
    },
];
