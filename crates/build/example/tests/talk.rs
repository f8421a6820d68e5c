//! Components in Rust and in Insense talk with each other. One test in a process of its own: it is
//! about all components.
#![forbid(unsafe_code)]

use hearth::error::{ConnectError, Deadlock, NoSuchPort, UncaughtException};
use hearth::insense::Record;
use hearth::{Hearth, In, Out, block_on};
use hearth_build_example::clerk;

type Failure = Box<dyn std::error::Error + Send + Sync>;

hearth::record! {
    #[derive(Clone, Debug, PartialEq)]
    struct Reading {
        place: String,
        degrees: f32,
    }
}

#[test]
fn components_in_rust_and_insense_talk_both_ways() -> Result<(), Failure> {
    let hearth = Hearth::builder().workers(2).start()?;
    let other = Hearth::start()?;
    // The storage does not exist yet, and never does in another runtime.
    let too_early = clerk::new_keeper(&hearth).unwrap_err();
    assert!(
        too_early
            .to_string()
            .contains("component Keeper uses services"),
        "{too_early}"
    );
    block_on(hearth.start_program(clerk::program()))?;
    assert_eq!(clerk::new_keeper(&other).unwrap_err(), too_early);
    let keeper = clerk::new_keeper(&hearth)?;
    let offset = In::<u32>::new();
    offset.connect_port(&keeper.port("offset")?)?;
    let _end = keeper.run();
    assert_eq!(
        block_on(hearth.spawn(async move { offset.recv().await }))?,
        Ok(0)
    );
    keeper.stop();

    let found = hearth.find("Clerk")?;

    let (number, double) = (Out::<i32>::new(), In::<i32>::new());
    let (name, greeting) = (Out::<String>::new(), In::<String>::new());
    let (reading, warmer) = (Out::<Reading>::new(), In::<Reading>::new());
    let (numbers, words) = (Out::<Vec<i32>>::new(), In::<Vec<String>>::new());
    number.connect_port(&found.port("number")?)?;
    double.connect_port(&found.port("double")?)?;
    name.connect_port(&found.port("name")?)?;
    greeting.connect_port(&found.port("greeting")?)?;
    reading.connect_port(&found.port("reading")?)?;
    warmer.connect_port(&found.port("warmer")?)?;
    numbers.connect_port(&found.port("numbers")?)?;
    words.connect_port(&found.port("words")?)?;

    // Ports of other types and directions are refused, with the reason.
    let types = ConnectError::Types {
        ours: "r".to_owned(),
        theirs: "i".to_owned(),
    };
    assert_eq!(
        Out::<f32>::new().connect_port(&found.port("number")?),
        Err(types)
    );
    let direction = In::<i32>::new().connect_port(&found.port("number")?);
    assert_eq!(direction, Err(ConnectError::Direction));
    let Err(NoSuchPort { ports, .. }) = found.port("numbr") else {
        panic!("there is no such port");
    };
    assert_eq!(ports[..2], ["number", "double"]);

    let customer = hearth.component("Customer").spawn(async move {
        for round in 0..100 {
            number.send(round).await?;
            assert_eq!(double.recv().await?, 2 * round);
            name.send(format!("Änne {round}")).await?;
            assert_eq!(greeting.recv().await?, format!("Änne {round}"));
            let cold = Reading {
                place: format!("attic {round}"),
                degrees: 0.5,
            };
            reading.send(cold.clone()).await?;
            let warm = Reading {
                degrees: 2.0,
                ..cold
            };
            assert_eq!(warmer.recv().await?, warm);
            let list = (round % 3..round).collect();
            numbers.send(list).await?;
            let mut expected = ["word"; 3];
            if round > 2 {
                expected[round as usize % 3] = "first";
            }
            assert_eq!(words.recv().await?, expected);
        }
        Ok::<_, Failure>(number)
    });
    let number = block_on(customer)??;

    // The clerk waits for the next number now, and only this half-channel can send one.
    let Err(Deadlock { report }) = block_on(hearth.wait()) else {
        panic!("the clerk waits");
    };
    assert!(report.contains("Clerk at src/clerk.isf"), "{report}");
    drop(number);
    found.stop();
    hearth.find("Hasty")?.stop();
    assert_eq!(block_on(hearth.wait()), Ok(()));

    // An exception ends its component, and is a value.
    let hasty = clerk::new_hasty(&hearth);
    let divisor = Out::<i32>::new();
    divisor.connect_port(&hasty.port("divisor")?)?;
    let ending = hasty.run();
    block_on(hearth.spawn(async move { divisor.send(0).await }))??;
    let Err(UncaughtException { message }) = block_on(ending) else {
        panic!("one cannot divide by nought");
    };
    assert!(
        message.contains("DivisionByZeroException at src/clerk.isf"),
        "{message}"
    );
    assert!(hearth.take_failures().is_empty());
    let fields = Reading::NAMES;
    assert_eq!(fields, ["place", "degrees"]);
    Ok(())
}

/// The book shows this crate: its program in Insense, its build script and its Rust.
#[test]
fn the_book_shows_what_is_compiled_here() {
    let page = include_str!("../../../../docs/rust.md");
    assert!(page.contains(include_str!("../src/celsius.isf")));
    let script = "hearth_build::compile(\"src/celsius.isf\");";
    assert!(page.contains(script) && include_str!("../build.rs").contains(script));
    let (_, shown) = page.split_once("    let (fahrenheit, degrees)").unwrap();
    let (shown, _) = shown.split_once("    Ok(())\n").unwrap();
    for line in shown.lines().map(str::trim) {
        assert!(include_str!("../src/lib.rs").contains(line), "{line}");
    }
}
