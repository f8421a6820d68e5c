//! The Rust side of a program whose other side is written in Insense: `tests/insense.rs` compiles that
//! and links both.

use hearth::insense::{Compiled, ForeignType, Program, Record};
use hearth::{Error, Hearth, In, Out, block_on};
use hearth_runtime::abi;

hearth::record! {
    #[derive(Clone, Debug, PartialEq)]
    struct Reading {
        place: String,
        degrees: f32,
    }
}

fn talk(program: Program, hasty: ForeignType) -> Result<(), Error> {
    let hearth = Hearth::builder().workers(2).start()?;
    block_on(hearth.start_program(program))?;
    let clerk = hearth.find("Clerk")?;

    let (number, double) = (Out::<i32>::new(), In::<i32>::new());
    let (name, greeting) = (Out::<String>::new(), In::<String>::new());
    let (reading, warmer) = (Out::<Reading>::new(), In::<Reading>::new());
    let (numbers, words) = (Out::<Vec<i32>>::new(), In::<Vec<String>>::new());
    number.connect_port(&clerk.port("number")?)?;
    double.connect_port(&clerk.port("double")?)?;
    name.connect_port(&clerk.port("name")?)?;
    greeting.connect_port(&clerk.port("greeting")?)?;
    reading.connect_port(&clerk.port("reading")?)?;
    warmer.connect_port(&clerk.port("warmer")?)?;
    numbers.connect_port(&clerk.port("numbers")?)?;
    words.connect_port(&clerk.port("words")?)?;

    // What does not fit is refused, with the reason.
    let types = Error::Types {
        ours: "r".to_owned(),
        theirs: "i".to_owned(),
    };
    assert_eq!(
        Out::<f32>::new().connect_port(&clerk.port("number")?),
        Err(types)
    );
    let direction = In::<i32>::new().connect_port(&clerk.port("number")?);
    assert_eq!(direction, Err(Error::Direction));
    let Err(Error::NoSuchPort { ports, .. }) = clerk.port("numbr") else {
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
        Ok::<_, Error>(number)
    });
    let number = block_on(customer)??;

    // It waits for the next number now, and nobody has one but the half-channel here.
    let Err(Error::Deadlock { report }) = block_on(hearth.wait()) else {
        panic!("the clerk waits");
    };
    assert!(report.contains("Clerk at clerk.isf"), "{report}");
    drop(number);
    clerk.stop();
    hearth.find("Hasty")?.stop();
    assert_eq!(block_on(hearth.wait()), Ok(()));

    // An exception ends its component, and is a value.
    let hasty = Compiled::new(hasty);
    let divisor = Out::<i32>::new();
    divisor.connect_port(&hasty.port("divisor")?)?;
    let ending = hasty.run();
    block_on(hearth.spawn(async move { divisor.send(0).await }))??;
    let Err(Error::Uncaught { message }) = block_on(ending) else {
        panic!("one cannot divide by nought");
    };
    assert!(
        message.contains("DivisionByZeroException at clerk.isf"),
        "{message}"
    );
    assert!(hearth.failures().is_empty());
    let fields = Reading::NAMES;
    assert_eq!(fields, ["place", "degrees"]);
    Ok(())
}

/// Called by the C side's `main`.
///
/// # Safety
/// Both were made by Hearth's compiler and stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_side(
    program: *const abi::Program,
    hasty: *const abi::ComponentType,
) -> i32 {
    // SAFETY: as the caller promises; the constructor takes no arguments.
    let (program, hasty) = unsafe { (Program::from_raw(program), ForeignType::from_raw(hasty)) };
    let Some(program) = program else { return 3 };
    match std::panic::catch_unwind(|| talk(program, hasty)) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 2,
    }
}
