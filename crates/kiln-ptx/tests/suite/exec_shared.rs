//! Shared variables: an access leaves none of them unseen, and a kernel cannot tell that gaps lie between them.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Runs a body with one thread, two shared arrays of so many words and some dynamic shared memory; also says what it left in memory.
fn run(words: u64, body: &str, dynamic_shared_bytes: u32) -> (ExecOutcome, Vec<u32>) {
    let bytes = 4 * words;
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .extern .shared .align 16 .b8 rest[];
        .visible .entry k(.param .u64 out) {{
            .shared .align 4 .b8 a[{bytes}]; .shared .align 4 .b8 b[{bytes}];
            .reg .b32 %r<8>; .reg .b64 %out;
            ld.param.u64 %out, [out];
            {body}
            ret;
        }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let out = memory.allocate(16);
    let shape = LaunchShape { dynamic_shared_bytes, ..LaunchShape::linear(1, 1) };
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &out.to_le_bytes(), &[], &memory, &Options::default()).unwrap();
    let left = memory.read(out, 16).unwrap();
    (outcome, left.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

fn near(outcome: &ExecOutcome) -> &str {
    let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
    let ExecFindingKind::OutOfBounds(access) = &finding.kind else { panic!("{finding}") };
    assert_eq!(access.memory, "shared");
    &access.near
}

#[test]
fn an_access_that_leaves_a_variable_is_found_and_does_no_harm() {
    let body = "mov.u32 %r1, 7; st.shared.u32 [b], %r1; mov.u32 %r2, a; st.shared.u32 [%r2+#1], %r2;
                ld.shared.u32 %r3, [b]; st.global.u32 [%out], %r3;";
    let at = |offset: &str| run(4, &body.replace("#1", offset), 0);
    let (outcome, left) = at("12");
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    assert_eq!(left[0], 7);
    let (outcome, left) = at("16");
    assert_eq!(near(&outcome), "just past the end of `a`, 16 bytes of shared memory");
    assert_eq!((outcome.fault, left[0]), (None, 7), "the launch goes on");
    let (outcome, _) = run(4, "mov.u32 %r2, b; ld.shared.u32 %r3, [%r2+65536];", 0);
    assert!(!outcome.findings[0].to_string().contains("dynamic"), "{}", outcome.findings[0]);
    let (outcome, _) = run(4, "mov.u32 %r2, b; ld.shared.u32 %r3, [%r2+-8];", 0);
    assert_eq!(near(&outcome), "8 bytes before the start of `b`, 16 bytes of shared memory");
    let (outcome, _) = run(4, "mov.u32 %r2, b; ld.shared.u32 %r3, [%r2+16]; mov.u32 %r1, rest;", 64);
    assert_eq!(near(&outcome), "just past the end of `b`, 16 bytes of shared memory");
    let (outcome, _) = run(4, "mov.u32 %r2, rest; ld.shared.u32 %r3, [%r2+-4];", 64);
    assert_eq!(near(&outcome), "4 bytes before the start of dynamic shared memory");
    let (outcome, _) = run(4, "mov.u32 %r2, rest; ld.shared.u32 %r3, [%r2+64];", 64);
    assert_eq!(near(&outcome), "just past the end of the 64 bytes of dynamic shared memory");
    assert!(outcome.fault.is_some(), "that is the end of the memory of the block");
}

#[test]
fn gaps_count_for_nothing() {
    // As much as a kernel may declare, and as much as a block may have.
    let sizes =
        "mov.u32 %r1, a; mov.u32 %r1, b; mov.u32 %r1, %total_smem_size; mov.u32 %r2, %dynamic_smem_size;
                 st.global.u32 [%out], %r1; st.global.u32 [%out+4], %r2;";
    let dynamic = (LaunchShape::MAX_SHARED_BYTES - LaunchShape::MAX_STATIC_SHARED_BYTES) as u32;
    for (dynamic, name) in [(0, ""), (dynamic, "mov.u32 %r3, rest;")] {
        let words = LaunchShape::MAX_STATIC_SHARED_BYTES / 8;
        let (outcome, left) = run(words, &format!("{sizes} {name}"), dynamic);
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        assert_eq!(u64::from(left[0]), 8 * words + u64::from(dynamic));
        assert_eq!(left[1], dynamic);
    }
}
