//! Shared memory that is reserved for the system: `%reserved_smem_offset_1` and its siblings.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Runs `body` in 64 threads, with a word of global memory for each behind `%out`. Gives those words.
fn run(body: &str) -> (Vec<u32>, ExecOutcome) {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<8>, %t;\n.reg .b64 %out, %o;\n.shared .align 4 .b8 own[256];\n.extern .shared .align 16 .b8 more[];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\nadd.u64 %out, %out, %o;\n{body}\nret;\n}}\n"
    );
    // Variables of open length stand outside of functions.
    let text = text
        .replace(".extern .shared .align 16 .b8 more[];\n", "")
        .replace(".visible .entry", ".extern .shared .align 16 .b8 more[];\n.visible .entry");
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = SimpleMemory::new();
    let out = memory.allocate(4 * 64);
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape { dynamic_shared_bytes: 64, ..LaunchShape::linear(2, 64) };
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &out.to_le_bytes(), &[], &memory, &options).unwrap();
    let words = memory.read(out, 4 * 64).unwrap();
    (words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect(), outcome)
}

const STORE: &str = "mov.u32 %r3, %ctaid.x;\n.reg .pred %first;\nsetp.eq.u32 %first, %r3, 0;\n@%first st.global.u32 [%out], %r1;";

#[test]
fn threads_of_a_block_meet_in_reserved_memory() {
    // 288 bytes are what libraries may use behind the second offset.
    let body = format!(
        "mov.u32 %r0, %reserved_smem_offset_1;\nmad.lo.u32 %r2, %t, 4, %r0;\nst.shared.u32 [%r2], %t;\nst.shared.u32 [own], %r2;\nbar.sync 0;\nxor.b32 %r2, %t, 32;\nmad.lo.u32 %r2, %r2, 4, %r0;\n\
         ld.shared.u32 %r1, [%r2];\n{STORE}"
    )
    .replace("st.shared.u32 [own], %r2;\n", "mov.u32 %r5, own;\nmad.lo.u32 %r4, %t, 4, %r5;\nst.shared.u32 [%r4], %r0;\n");
    let (words, outcome) = run(&body);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(words, (0..64).map(|thread| thread ^ 32).collect::<Vec<u32>>());
}

#[test]
fn the_region_has_a_start_an_end_and_a_size() {
    let body = "mov.u32 %r0, %reserved_smem_offset_begin;\nmov.u32 %r1, %reserved_smem_offset_end;\nsub.u32 %r1, %r1, %r0;\nmov.u32 %r2, %reserved_smem_offset_cap;\nsub.u32 %r1, %r1, %r2;\n\
                mov.u32 %r2, %reserved_smem_offset_0;\nsub.u32 %r2, %r2, %r0;\nmad.lo.u32 %r1, %r2, 10, %r1;\n";
    let (words, outcome) = run(&format!("{body}{STORE}"));
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(words, [0; 64]);
    // Libraries have the upper half.
    let half = "mov.u32 %r0, %reserved_smem_offset_1;\nmov.u32 %r1, %reserved_smem_offset_begin;\nsub.u32 %r1, %r0, %r1;\n";
    assert_eq!(run(&format!("{half}{STORE}")).0, [512; 64]);
    let size = format!("mov.u32 %r1, %reserved_smem_offset_cap;\n{STORE}");
    assert_eq!(run(&size).0, [1024; 64]);
}

#[test]
fn accesses_are_checked_as_in_other_shared_memory() {
    let found = |body: &str| run(body).1.findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    let at = |code: &str| {
        format!("mov.u32 %r5, more;\nmov.u32 %r0, %reserved_smem_offset_1;\nmov.u32 %r1, 1;\n{code}\n{STORE}")
    };
    let past = found(&at("st.shared.u32 [%r0+1024], %r1;"));
    assert!(past[0].contains("out of bounds") && past[0].contains("reserved"), "{past:?}");
    let race = found(&at("st.shared.u32 [%r0], %t;"));
    assert!(race[0].contains("race"), "{race:?}");
    let unwritten =
        found(&at(".reg .pred %q;\nld.shared.u32 %r1, [%r0];\nsetp.eq.u32 %q, %r1, 77;\n@%q trap;"));
    assert!(unwritten.iter().any(|text| text.contains("never written")), "{unwritten:?}");
    // 256 bytes of the kernel and 64 of the launch.
    let total = "mov.u32 %r0, own;\nmov.u32 %r1, %total_smem_size;\n";
    assert_eq!(run(&format!("{total}{STORE}")).0, [320; 64]);
    // The shared memory of the kernel is where it is without it.
    let own = "mov.u32 %r1, own;\n";
    assert_eq!(run(&at(own)).0, [0; 64]);
}
