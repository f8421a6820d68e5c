use super::*;

struct World {
    model: Model,
    content: Content,
}

fn world(may_evict: bool) -> World {
    World {
        model: Model::new(4, 77, may_evict),
        content: Content::new(100),
    }
}

impl World {
    fn sees(&self, key: u64, bar: Bar, version: u64) -> Result<(), Wrong> {
        let mut value = Vec::new();
        self.content.append(key, version, 100, &mut value);
        self.model.read_sees(&self.content, key, bar, &value)
    }
}

#[test]
fn what_was_replaced_before_the_request_is_too_old() {
    let world = world(false);
    let model = &world.model;
    let first = model.write_begins(1);
    model.write_ends(1, first, 10, 20);
    let second = model.write_begins(1);
    // The write is in flight: either value may be seen.
    let bar = model.read_begins(1);
    assert_eq!(world.sees(1, bar, first), Ok(()));
    assert_eq!(world.sees(1, bar, second), Ok(()));
    model.write_ends(1, second, 30, 40);
    // The same read, answered later, may still have seen either.
    assert_eq!(world.sees(1, bar, first), Ok(()));
    let bar = model.read_begins(1);
    let wrong = Wrong::TooOld {
        version: first,
        by_ns: 10,
    };
    assert_eq!(world.sees(1, bar, first), Err(wrong));
    assert_eq!(world.sees(1, bar, second), Ok(()));
}

#[test]
fn of_writes_at_the_same_time_either_wins() {
    let world = world(false);
    let model = &world.model;
    let (first, second) = (model.write_begins(1), model.write_begins(1));
    model.write_ends(1, second, 10, 20);
    model.write_ends(1, first, 11, 30);
    let bar = model.read_begins(1);
    assert_eq!(world.sees(1, bar, first), Ok(()));
    assert_eq!(world.sees(1, bar, second), Ok(()));
}

#[test]
fn versions_forgotten_are_old_and_those_lost_on_the_way_may_come() {
    let world = world(false);
    let model = &world.model;
    let lost = model.write_begins(1);
    let first = model.write_begins(1);
    model.write_ends(1, first, 1, 2);
    for round in 1..=REMEMBERED as u64 {
        let version = model.write_begins(1);
        model.write_ends(1, version, 10 * round, 10 * round + 5);
    }
    let bar = model.read_begins(1);
    assert_eq!(world.sees(1, bar, lost), Ok(()));
    let seen = world.sees(1, bar, first);
    assert!(matches!(seen, Err(Wrong::TooOld { .. })), "{seen:?}");
}

#[test]
fn foreign_torn_and_impossible_values_are_told_apart() {
    let world = world(false);
    let model = &world.model;
    let bar = model.read_begins(1);
    let earlier_run = 5;
    assert_eq!(world.sees(1, bar, earlier_run), Ok(()));
    let never = world.sees(1, bar, NEVER);
    assert_eq!(never, Err(Wrong::NeverWritten { version: NEVER }));
    let first = model.write_begins(1);
    let next = world.sees(1, bar, first + 1);
    assert_eq!(next, Err(Wrong::NeverWritten { version: first + 1 }));
    model.write_ends(1, first, 10, 20);
    let bar = model.read_begins(1);
    let old = world.sees(1, bar, earlier_run);
    assert!(matches!(old, Err(Wrong::TooOld { .. })), "{old:?}");
    let mut value = Vec::new();
    world.content.append(2, first, 100, &mut value);
    let other = model.read_sees(&world.content, 1, bar, &value);
    assert_eq!(other, Err(Wrong::OtherKey { seen: 2 }));
    value[50] ^= 1;
    let harmed = model.read_sees(&world.content, 1, bar, &value);
    assert_eq!(harmed, Err(Wrong::Harmed(Harm::Body(50))));
}

#[test]
fn a_missing_value_is_lost_only_if_it_had_to_be_there() {
    for may_evict in [false, true] {
        let world = world(may_evict);
        let model = &world.model;
        assert_eq!(model.read_misses(model.read_begins(1)), Ok(()));
        let version = model.write_begins(1);
        let bar = model.read_begins(1);
        model.write_ends(1, version, 10, 20);
        assert_eq!(model.read_misses(bar), Ok(()));
        let missed = model.read_misses(model.read_begins(1));
        assert_eq!(missed.is_ok(), may_evict);
        model.write_refused(1, model.write_begins(1));
    }
}
