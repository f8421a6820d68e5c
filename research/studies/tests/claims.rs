//! The tables of claims: every row is understood, and no two claims of a study have one name.

use std::collections::BTreeSet;

use hearth_studies::claims::Claims;
use hearth_studies::{event_patterns, insense_multicore, memcached, message_passing, transactions};

#[test]
fn every_claim_is_understood_and_has_a_name_of_its_own() {
    let all: [(&Claims, usize); 5] = [
        (&event_patterns::verdict::CLAIMS, 13),
        (&insense_multicore::verdict::CLAIMS, 13),
        (&memcached::verdict::CLAIMS, 15),
        (&message_passing::evidence::CLAIMS, 15),
        (&transactions::verdict::CLAIMS, 23),
    ];
    for (claims, count) in all {
        let rows = claims.rows();
        assert_eq!(rows.len() + 2, claims.table.lines().count());
        let names: BTreeSet<&str> = rows.iter().map(|claim| claim.id).collect();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
