//! Memory that was written in part: of a vector load only the parts that are used count, and of atomics those that read.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Writes the first two words of a vector of four, loads all four, and decides by the one that `used` names.
fn load(space: &str, used: &str) -> ExecOutcome {
    let load = format!(
        "ld.{space}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%{space}]; setp.gt.u32 %p1, {used}, 9; @%p1 st.global.u32 [%rd2], 1;"
    );
    run(space, &load)
}

/// Writes the first two of four words, and goes on with `code`.
fn run(space: &str, code: &str) -> ExecOutcome {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u64 out) {{
         .shared .align 16 .b8 tile[64]; .local .align 16 .b8 own[64];
         .reg .b32 %r<9>; .reg .b64 %rd<9>;
         ld.param.u64 %global, [data]; ld.param.u64 %rd2, [out];
         mov.u64 %shared, tile; mov.u64 %local, own;
         st.{space}.u32 [%{space}], 1; st.{space}.u32 [%{space}+4], 2;
         {code}
         ret; }}"
    );
    let text = text.replace(
        ".reg .b64 %rd<9>;",
        ".reg .b64 %rd<9>; .reg .pred %p<2>; .reg .b64 %global; .reg .b64 %shared; .reg .b64 %local;",
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let arguments = [memory.allocate_uninitialised(64), memory.allocate(64)].map(u64::to_le_bytes).concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    program
        .entry("k")
        .unwrap()
        .launch(&LaunchShape::linear(1, 1), &arguments, &[], &memory, &options)
        .unwrap()
}

#[test]
fn parts_that_are_not_used_are_not_reported() {
    for space in ["global", "shared", "local"] {
        for used in ["%r1", "%r2"] {
            let outcome = load(space, used);
            assert!(outcome.is_clean(), "{space} {used}: {:#?}", outcome.findings);
        }
        for used in ["%r3", "%r4"] {
            let outcome = load(space, used);
            let [finding] = &outcome.findings[..] else { panic!("{space} {used}: {:#?}", outcome.findings) };
            assert!(matches!(finding.kind, ExecFindingKind::Uninitialised { .. }), "{finding}");
        }
    }
}

#[test]
fn an_atomic_reads_unless_it_exchanges() {
    for space in ["global", "shared"] {
        let atomic = |operation: &str| run(space, &format!("atom.{space}.{operation} %r1, [%{space}+8], 5;"));
        let outcome = atomic("add.u32");
        let [finding] = &outcome.findings[..] else { panic!("{space}: {:#?}", outcome.findings) };
        assert!(matches!(finding.kind, ExecFindingKind::Uninitialised { .. }), "{finding}");
        assert!(atomic("exch.b32").is_clean());
        let both = format!(
            "atom.{space}.exch.b32 %r1, [%{space}+8], 5; atom.{space}.add.u32 %r2, [%{space}+8], 1; ld.{space}.u32 %r3, [%{space}+8];"
        );
        let outcome = run(space, &both);
        assert!(outcome.is_clean(), "{space}: {:#?}", outcome.findings);
    }
}
