//! Buffers of more than 2^32 elements, as emitted code sees them.
//!
//! The length is a parameter, so a short buffer with a long length shows how indices are compared, as long as the program stays
//! inside of the short one.

use kiln_ir::{EntryParameterKind, Program, PtxTarget};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{self, LaunchShape, Options, SimpleMemory};

/// What `statement`, which stores to `y[0]`, leaves there, with `x` said to have so many elements; really it has eight, 10 to 17.
fn run(statement: &str, index: u64, length: u64) -> u64 {
    let text = format!(
        "kernel long(in x: u64[], inout y: u64[1], n: u32, w: u64, s: i32) block(1) {{ {statement} }}"
    );
    let program = Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let emitted = program.emit(PtxTarget::new(90).unwrap());
    let entry = exec::ExecProgram::new(PtxModule::parse(&emitted.text).unwrap()).entry("long").unwrap();
    let mut memory = SimpleMemory::new();
    let x = memory.allocate_with(&(10..18u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>());
    let y = memory.allocate_with(&[0; 8]);
    let arguments = emitted.layout.pack(|kind| match kind {
        EntryParameterKind::Pointer(id) => [x, y][id.0 as usize],
        EntryParameterKind::Length(id) => [length, 1][id.0 as usize],
        _ => index,
    });
    let shape = LaunchShape {
        grid: [1, 1, 1],
        block: [1, 1, 1],
        dynamic_shared_bytes: 0,
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
    };
    let outcome = entry.launch(&shape, &arguments, &[], &memory, &Options::default()).unwrap();
    assert!(outcome.is_clean(), "{:?}\n{}", outcome.findings, emitted.text);
    u64::from_le_bytes(memory.read(y, 8).unwrap().try_into().unwrap())
}

#[test]
fn an_index_of_any_width_is_compared_with_the_whole_length() {
    // A length whose lower half is below the index, and one whose upper half is zero.
    for length in [1 << 32, (1 << 32) + 1, u64::from(u32::MAX), 8] {
        for index in ["n", "w", "s", "u16(n)"] {
            assert_eq!(run(&format!("y[0] = x[{index}];"), 5, length), 15, "x[{index}] of {length}");
        }
    }
    for index in ["n", "w", "s", "u16(n)"] {
        assert_eq!(run(&format!("y[0] = x[{index}] + 1;"), 5, 5), 1, "x[{index}] of 5");
        assert_eq!(run(&format!("y[0] = x[{index}] + 1;"), 5, 0), 1, "x[{index}] of none");
    }
    // Negative is out of range, however long the buffer is.
    assert_eq!(run("y[0] = x[s] + 1;", u64::from(u32::MAX), 1 << 33), 1);
}

#[test]
fn a_length_is_not_cut() {
    assert_eq!(run("y[0] = len(x);", 0, (1 << 40) + 3), (1 << 40) + 3);
    assert_eq!(run("if w < len(x) { y[0] = x[w]; }", 7, 1 << 32), 17);
}

#[test]
fn adjacent_elements_are_compared_with_the_whole_length() {
    let four = "let at = n * 4; y[0] = x[at] + x[at + 1] * 100 + x[at + 2] * 10000 + x[at + 3] * 1000000;";
    assert_eq!(run(four, 1, 1 << 32), 17_161_514);
    assert_eq!(run(four, 1, 6), 1514);
}
