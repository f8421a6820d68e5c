use super::*;

fn part(component: usize, messages: f64) -> Part {
    Part {
        component,
        messages,
        is_exact: true,
    }
}

fn hub(senders: &[(usize, f64)], receivers: &[(usize, f64)]) -> Hub {
    let parts = |side: &[(usize, f64)]| side.iter().map(|&(c, m)| part(c, m)).collect();
    Hub {
        senders: parts(senders),
        receivers: parts(receivers),
    }
}

fn rates(speeds: &[f64], hubs: &[Hub]) -> Vec<f64> {
    let solution = solve(speeds, hubs);
    assert_eq!(solution.unbalanced, Vec::<usize>::new());
    solution.rates
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-3 * b.abs();
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(near),
        "{found:?} is not {expected:?}"
    );
}

#[test]
fn the_slower_of_two_decides() {
    assert_near(
        &rates(&[10.0, 4.0], &[hub(&[(0, 1.0)], &[(1, 1.0)])]),
        &[4.0, 4.0],
    );
    // A pass of the sender feeds three of the receiver.
    assert_near(
        &rates(&[10.0, 6.0], &[hub(&[(0, 3.0)], &[(1, 1.0)])]),
        &[2.0, 6.0],
    );
}

#[test]
fn a_pipeline_goes_at_its_slowest() {
    let hubs: Vec<Hub> = (0..99).map(|i| hub(&[(i, 1.0)], &[(i + 1, 1.0)])).collect();
    let mut speeds = vec![50.0; 100];
    speeds[70] = 2.0;
    assert_near(&rates(&speeds, &hubs), &[2.0; 100]);
}

#[test]
fn waiting_clients_are_served_in_turn() {
    // The server is slow: all clients alike.
    let shared = hub(&[(0, 1.0), (1, 1.0), (2, 1.0)], &[(3, 1.0)]);
    assert_near(
        &rates(&[100.0, 200.0, 300.0, 6.0], std::slice::from_ref(&shared)),
        &[2.0, 2.0, 2.0, 6.0],
    );
    // One client is slower than its part; the others have the rest.
    assert_near(
        &rates(&[1.0, 200.0, 300.0, 6.0], std::slice::from_ref(&shared)),
        &[1.0, 2.5, 2.5, 6.0],
    );
    // All clients are slow: the server waits.
    assert_near(
        &rates(&[1.0, 2.0, 3.0, 100.0], &[shared]),
        &[1.0, 2.0, 3.0, 6.0],
    );
}

#[test]
fn quick_workers_take_more() {
    let jobs = hub(&[(0, 1.0)], &[(1, 1.0), (2, 1.0)]);
    assert_near(&rates(&[100.0, 3.0, 9.0], &[jobs]), &[12.0, 3.0, 9.0]);
}

#[test]
fn requests_and_answers_agree() {
    let hubs = [
        hub(&[(0, 1.0), (1, 1.0)], &[(2, 1.0)]),
        hub(&[(2, 1.0)], &[(0, 1.0), (1, 1.0)]),
    ];
    assert_near(&rates(&[50.0, 50.0, 10.0], &hubs), &[5.0, 5.0, 10.0]);
}

#[test]
fn room_that_one_leaves_goes_to_others() {
    // Sender 1 is held back elsewhere, by component 3; sender 0 has what it leaves.
    let hubs = [
        hub(&[(0, 1.0), (1, 1.0)], &[(2, 1.0)]),
        hub(&[(1, 1.0)], &[(3, 1.0)]),
    ];
    assert_near(
        &rates(&[100.0, 100.0, 10.0, 1.0], &hubs),
        &[9.0, 1.0, 10.0, 1.0],
    );
}

#[test]
fn stages_of_several_each_settle() {
    // Twenty stages of two, the first of which is slow.
    let hubs: Vec<Hub> = (0..19)
        .map(|i| {
            let (a, b) = (2 * i, 2 * i + 2);
            hub(&[(a, 1.0), (a + 1, 1.0)], &[(b, 1.0), (b + 1, 1.0)])
        })
        .collect();
    for slow in [0, 19] {
        let mut speeds = vec![100.0; 40];
        speeds[2 * slow] = 3.0;
        speeds[2 * slow + 1] = 3.0;
        assert_near(&rates(&speeds, &hubs), &[3.0; 40]);
    }
}

#[test]
fn contradictions_are_told() {
    // One to one by the first channel, two to one by the second: nobody can go on for long.
    let hubs = [hub(&[(0, 1.0)], &[(1, 1.0)]), hub(&[(0, 2.0)], &[(1, 1.0)])];
    let solution = solve(&[10.0, 10.0], &hubs);
    assert_eq!(solution.unbalanced, [1]);
    assert_near(&solution.rates, &[10.0, 10.0]);
}

#[test]
fn what_falls_for_ever_is_left_out() {
    // Two send to one that answers only half of the time: fewer and fewer can go on.
    let hubs = [
        hub(&[(0, 1.0), (1, 1.0)], &[(2, 1.0)]),
        hub(&[(2, 0.5)], &[(0, 1.0), (1, 1.0)]),
    ];
    let solution = solve(&[10.0, 10.0, 10.0], &hubs);
    assert_eq!(solution.unbalanced, [0]);
    assert_near(&solution.rates, &[2.5, 2.5, 10.0]);
}

#[test]
fn estimates_give_way_to_constants() {
    let mut guess = hub(&[(0, 0.5)], &[(1, 1.0)]);
    guess.senders[0].is_exact = false;
    let hubs = [guess, hub(&[(0, 1.0)], &[(1, 1.0)])];
    let solution = solve(&[10.0, 10.0], &hubs);
    assert_eq!(solution.unbalanced, Vec::<usize>::new());
    assert_near(&solution.rates, &[10.0, 10.0]);
}

#[test]
fn who_meets_nobody_goes_at_its_own_speed() {
    assert_near(&rates(&[7.0, f64::INFINITY], &[]), &[7.0, 0.0]);
}

#[test]
fn many_components_are_no_more_work_each() {
    // 100,000 clients of 1,000 servers, which all report to one.
    let (clients, servers) = (100_000, 1_000);
    let mut hubs: Vec<Hub> = (0..servers)
        .map(|s| {
            let mut hub = hub(&[], &[(clients + s, 1.0)]);
            hub.senders = (0..clients / servers)
                .map(|c| part(s * (clients / servers) + c, 1.0))
                .collect();
            hub
        })
        .collect();
    let mut reports = hub(&[], &[(clients + servers, 1.0)]);
    reports.senders = (0..servers).map(|s| part(clients + s, 1.0)).collect();
    hubs.push(reports);
    let mut speeds = vec![1000.0; clients + servers];
    speeds.push(1000.0);
    let found = rates(&speeds, &hubs);
    assert_near(&found[..2], &[0.01, 0.01]);
    assert_near(&found[clients..=clients], &[1.0]);
}
