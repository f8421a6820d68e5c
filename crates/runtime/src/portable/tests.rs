//! Random values of random types survive the round trip.

use std::ptr;

use super::reading::Portable;
use super::writing::{DEEPEST, write_bytes, write_length};
use super::{Stays, leave_no_node, read, type_of_code, write};
use crate::abi::{Kind, Type, Value, fields, literal};
use crate::exchange::values::object;

struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

/// The code of a random type.
fn code(dice: &mut Dice, depth: usize) -> String {
    let simple = [
        "i",
        "u",
        "r",
        "b",
        "8",
        "s",
        "a",
        "eOn_Off__",
        "eNorth_East_South_my$West__",
    ];
    let choices = if depth == 0 {
        simple.len()
    } else {
        simple.len() + 4
    };
    let choice = dice.draw(choices as u64) as usize;
    if let Some(code) = simple.get(choice) {
        return (*code).to_owned();
    }
    if choice < simple.len() + 2 {
        return format!("A{}", code(dice, depth - 1));
    }
    let count = 1 + dice.draw(4);
    let fields: String = (0..count)
        .map(|index| format!("{}f{index}_", code(dice, depth - 1)))
        .collect();
    format!("S{fields}_")
}

/// A random value of a type.
fn value(of: &Type, dice: &mut Dice, depth: usize) -> Portable {
    match of.kind {
        Kind::Integer | Kind::Unsigned => Portable::Word(dice.draw(1 << 31) as u32),
        Kind::Real => Portable::Word((dice.draw(1000) as f32 / 8.0).to_bits()),
        Kind::Enum => Portable::Word(dice.draw(2) as u32),
        Kind::Bool => Portable::Byte(dice.draw(2) as u8),
        Kind::Byte => Portable::Byte(dice.draw(256) as u8),
        Kind::String => {
            let length = dice.draw(200);
            Portable::Text((0..length).map(|_| dice.draw(256) as u8).collect())
        }
        Kind::Any => {
            let inside = if depth == 0 {
                "i".to_owned()
            } else {
                code(dice, depth - 1)
            };
            let inside = type_of_code(&inside).unwrap();
            Portable::Box(
                inside,
                Box::new(value(inside, dice, depth.saturating_sub(1))),
            )
        }
        Kind::Array => {
            // SAFETY: descriptors are static.
            let element = unsafe { &*of.element };
            let length = dice.draw(6);
            let elements = (0..length).map(|_| value(element, dice, depth));
            if object::is_reference(element) {
                return Portable::Array(elements.collect());
            }
            let bytes = elements.map(|element| match element {
                Portable::Word(word) => word.to_le_bytes().to_vec(),
                Portable::Byte(byte) => vec![byte],
                other => unreachable!("{other:?} is no number"),
            });
            Portable::Flat(bytes.flatten().collect())
        }
        Kind::Struct => {
            // SAFETY: descriptors are static.
            let types = unsafe { fields(of).iter().map(|field| &*field.r#type) };
            Portable::Struct(types.map(|of| value(of, dice, depth)).collect())
        }
        kind => unreachable!("{kind:?} does not travel"),
    }
}

/// Sends a value through a heap and back to bytes.
fn journey(of: &Type, value: &Portable) -> Vec<u8> {
    // SAFETY: the value is of this type; the system's allocator needs no component.
    unsafe {
        let placed = value.place(of, ptr::null_mut());
        let mut bytes = Vec::new();
        write(of, placed, &mut bytes).unwrap();
        object::release_value(ptr::null_mut(), of, placed);
        bytes
    }
}

#[test]
fn values_come_back_equal() {
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let code = code(&mut dice, 3);
        let of = type_of_code(&code).unwrap_or_else(|| panic!("seed {seed}: {code}"));
        // SAFETY: codes are literals.
        assert_eq!(unsafe { literal(of.code) }, code.as_str());
        let sent = value(of, &mut dice, 3);
        let bytes = journey(of, &sent);
        assert_eq!(read(of, &bytes), Some(sent), "seed {seed}: {code}");
    }
}

#[test]
fn bytes_that_are_no_value_are_refused_quietly() {
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let of = type_of_code(&code(&mut dice, 3)).unwrap();
        let mut bytes = journey(of, &value(of, &mut dice, 3));
        // One byte more or less is never the same value.
        bytes.push(0);
        assert_eq!(read(of, &bytes), None);
        bytes.truncate(bytes.len() - 2);
        assert_eq!(read(of, &bytes), None, "seed {seed}");
        // Any other change may make another value, but nothing worse.
        if !bytes.is_empty() {
            let place = dice.draw(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << dice.draw(8);
        }
        let _ = read(of, &bytes);
    }
}

/// Any bytes that read as a value make a valid value: it can be made in a heap, and written.
#[test]
fn damaged_bytes_are_refused_or_are_another_value() {
    let any = type_of_code("a").unwrap();
    let mut read_all_the_same = 0;
    for seed in 0..1000 {
        let mut dice = Dice(seed);
        let mut bytes = journey(any, &value(any, &mut dice, 3));
        for _ in 0..=dice.draw(3) {
            let place = dice.draw(bytes.len() as u64) as usize;
            match dice.draw(5) {
                0 => bytes[place] ^= 1 << dice.draw(8),
                1 => bytes[place] = [0, 1, 0x7F, 0x80, 0xFF][dice.draw(5) as usize],
                2 => bytes.truncate(place + 1),
                3 => bytes.insert(place, dice.draw(256) as u8),
                // A letter of a code for another.
                _ => bytes[place] = b"iurb8saAIOSe_CP$x"[dice.draw(17) as usize],
            }
        }
        if let Some(value) = read(any, &bytes) {
            read_all_the_same += 1;
            assert_eq!(read(any, &journey(any, &value)), Some(value), "seed {seed}");
        }
    }
    assert!(read_all_the_same > 25, "{read_all_the_same}");
}

/// Arrays of numbers are read into no more memory than they take.
#[test]
fn flat_arrays_are_read_as_they_lie() {
    let of = type_of_code("A8").unwrap();
    let mut bytes = Vec::new();
    write_length(1000, &mut bytes);
    bytes.extend((0..1000).map(|nth| nth as u8));
    match read(of, &bytes) {
        Some(Portable::Flat(elements)) => {
            assert_eq!(elements, bytes[bytes.len() - 1000..]);
            assert!(elements.capacity() < 2000);
        }
        other => panic!("{other:?}"),
    }
}

/// Labels are counted in the code, which may be long, and values may be many: uncached, this would
/// take minutes.
#[test]
fn labels_are_counted_once() {
    let labels: String = (0..8000).map(|nth| format!("L{nth}_")).collect();
    let of = type_of_code(&format!("Ae{labels}_")).unwrap();
    let mut bytes = Vec::new();
    write_length(100_000, &mut bytes);
    bytes.resize(bytes.len() + 400_000, 0);
    assert!(read(of, &bytes).is_some());
}

#[test]
fn out_of_range_values_are_refused() {
    let of = |code| type_of_code(code).unwrap();
    assert_eq!(read(of("b"), &[2]), None);
    assert_eq!(read(of("eOn_Off__"), &[2, 0, 0, 0]), None);
    assert_eq!(
        read(of("eOn_Off__"), &[1, 0, 0, 0]),
        Some(Portable::Word(1))
    );
    assert_eq!(read(of("Ab"), &[2, 1, 2]), None);
    assert_eq!(read(of("AeOn_Off__"), &[1, 2, 0, 0, 0]), None);
    assert_eq!(read(of("A8"), &[3, 1, 2]), None);
    assert_eq!(read(of("Ab"), &[2, 1, 0]), Some(Portable::Flat(vec![1, 0])));
    // A length that the bytes cannot hold.
    assert_eq!(read(of("Ai"), &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), None);
    assert_eq!(read(of("s"), &[0x80; 9]), None);
    // A box of a channel.
    let mut bytes = Vec::new();
    write_bytes(b"Ii", &mut bytes);
    write_length(0, &mut bytes);
    assert_eq!(read(of("a"), &bytes), None);
}

#[test]
fn only_codes_are_types() {
    for bad in [
        "", "x", "ii", "A", "S", "S_", "Six", "Si_", "Six__i", "e", "eOn_", "Sx_", "C_", "Pi_v",
    ] {
        assert!(type_of_code(bad).is_none(), "{bad}");
    }
    assert!(type_of_code(&"A".repeat(1000)).is_none());
    let one = type_of_code("Six_Asnames__").unwrap();
    assert!(ptr::eq(one, type_of_code("Six_Asnames__").unwrap()));
}

#[test]
fn structs_are_laid_out_as_c_does() {
    #[repr(C)]
    struct Mixed {
        object: crate::abi::Object,
        bit: bool,
        number: i32,
        byte: u8,
        text: *const u8,
        last: u8,
    }
    let of = type_of_code("Sbbit_inumber_8byte_stext_8last__").unwrap();
    // SAFETY: a valid struct type.
    let offsets: Vec<usize> = unsafe { fields(of) }
        .iter()
        .map(|field| field.offset)
        .collect();
    use std::mem::offset_of;
    assert_eq!(
        offsets,
        [
            offset_of!(Mixed, bit),
            offset_of!(Mixed, number),
            offset_of!(Mixed, byte),
            offset_of!(Mixed, text),
            offset_of!(Mixed, last),
        ]
    );
    assert_eq!(of.object_size, size_of::<Mixed>());
    assert_eq!(type_of_code("Sbbit__").unwrap().object_size, 12);
}

#[test]
fn what_belongs_to_a_node_stays_there() {
    let of = |code| type_of_code(code).unwrap();
    assert!(leave_no_node(of("SIic__")) && leave_no_node(of("AOs")));
    assert!(!leave_no_node(of("a")) && !leave_no_node(of("ASix__")));
    let channel = Value {
        pointer: ptr::dangling_mut::<u8>().cast(),
    };
    // SAFETY: a channel is not looked into.
    let result = unsafe { write(of("Ii"), channel, &mut Vec::new()) };
    assert_eq!(result, Err(Stays::Channel));
}

#[test]
fn boxes_in_boxes_have_a_limit() {
    let any = type_of_code("a").unwrap();
    let integer = type_of_code("i").unwrap();
    let nested = |depth| {
        (1..depth).fold(
            Portable::Box(integer, Box::new(Portable::Word(5))),
            |inside, _| Portable::Box(any, Box::new(inside)),
        )
    };
    let deep = nested(DEEPEST);
    let bytes = journey(any, &deep);
    assert_eq!(read(any, &bytes), Some(deep));
    // SAFETY: as in `journey`.
    unsafe {
        let deeper = nested(DEEPEST + 1).place(any, ptr::null_mut());
        assert_eq!(write(any, deeper, &mut Vec::new()), Err(Stays::TooDeep));
        object::release_value(ptr::null_mut(), any, deeper);
    }
}
