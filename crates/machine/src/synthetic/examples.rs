//! Machines that the sources measured, and kinds of machines that tests need.

/// Machines by name: those of the sources, then kinds of machines. Tests read each description.
pub const EXAMPLES: &[(&str, &str)] = &[
    // cache-impact, section 3.5. The extraction knows neither its memory nor the ways.
    (
        "xeon-5130",
        "2 packages, 2 cores, 1 node, l1d 32K per core, l2 4M per package",
    ),
    (
        "e5-2695-v2",
        "2 packages, 12 cores, l1d 32K per core, l2 256K per core, l3 30M per package",
    ),
    // nmart-evaluation, sections 2 and 6: firmware says 20 for every other node.
    (
        "nmart-4",
        "4 packages, 4 cores, memory 4G, l1d 64K per core, l2 512K per core, l3 2M per package, \
         distances 10 20 20 20/20 10 20 20/20 20 10 20/20 20 20 10",
    ),
    // The same section: four packages of two nodes, with the firmware's table.
    (
        "nmart-8",
        "4 packages, 8 cores, 8 nodes, memory 16G, l1d 128K per core, l2 512K per core, \
         l3 12M per package, distances \
         10 16 16 22 16 22 16 22/16 10 22 16 22 16 22 16/\
         16 22 10 16 16 22 16 22/22 16 16 10 22 16 22 16/\
         16 22 16 22 10 16 16 22/22 16 22 16 16 10 22 16/\
         16 22 16 22 16 22 10 16/22 16 22 16 22 16 16 10",
    ),
    (
        "server-smt",
        "2 packages, 16 cores, 2 threads, memory 64G, l1d 32K per core, l1i 32K per core, \
         l2 1M per core, l3 32M per package, distances 10 21/21 10, numbering spread",
    ),
    (
        "desktop-clustered",
        "1 package, 8 cores, 2 threads, memory 16G, l1d 32K per core, l1i 32K per core, \
         l2 512K per core, l3 16M per 4 cores, numbering spread",
    ),
    (
        "one-cpu",
        "1 package, memory 1G, l1d 32K per core, l2 1M per core",
    ),
];

/// The description of that name in [`EXAMPLES`].
pub fn example(name: &str) -> Option<&'static str> {
    let found = EXAMPLES.iter().find(|(known, _)| *known == name)?;
    Some(found.1)
}
