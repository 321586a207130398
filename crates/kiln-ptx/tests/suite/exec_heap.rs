//! The device heap: what is left of it, and memory that is given out again.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, DeviceHeap, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory,
};

/// Runs `body` in the first threads of two warps, one after the other; `%first` holds in the first of them.
fn run(heap: &DeviceHeap, body: &str) -> ExecOutcome {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b64 got) malloc (.param .b64 bytes);\n.extern .func free (.param .b64 block);\n\
         .visible .entry k()\n{{\n.reg .b32 %t, %r<4>;\n.reg .b64 %a, %b;\n.reg .pred %first, %p;\nmov.u32 %t, %tid.x;\nsetp.eq.u32 %first, %t, 0;\nand.b32 %r0, %t, 31;\n\
         setp.ne.u32 %p, %r0, 0;\n@%p ret;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let memory = SimpleMemory::new();
    let options = Options { checks: Checks::ALL, heap: Some(heap), ..Options::default() };
    program.entry("k").unwrap().launch(&LaunchShape::linear(1, 64), &[], &[], &memory, &options).unwrap()
}

fn malloc(to: &str, bytes: u32) -> String {
    format!(
        "{{ .param .b64 bytes; .param .b64 got; st.param.b64 [bytes], {bytes}; call (got), malloc, (bytes); ld.param.b64 {to}, [got]; }}\n"
    )
}

fn free(block: &str) -> String {
    format!("{{ .param .b64 block; st.param.b64 [block], {block}; call free, (block); }}\n")
}

#[test]
fn blocks_that_are_not_freed_are_told_and_no_others() {
    let heap = DeviceHeap::default();
    let outcome =
        run(&heap, &format!("{}{}st.u32 [%a], 1;\n{}", malloc("%a", 24), malloc("%b", 8), free("%a")));
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    let leaks = heap.leaks();
    let [leak] = &leaks[..] else { panic!("{leaks:#?}") };
    assert!(matches!(leak.kind, ExecFindingKind::HeapLeak { blocks: 2, bytes: 16 }), "{leak}");
    let whole = DeviceHeap::default();
    run(&whole, &format!("{}{}", malloc("%a", 24), free("%a")));
    assert!(whole.leaks().is_empty(), "{:#?}", whole.leaks());
}

#[test]
fn memory_that_is_given_out_again_has_no_earlier_accesses() {
    // There is room for one block: the second thread has that of the first, which was freed.
    let heap = DeviceHeap::new(16);
    let body = format!("{}st.u32 [%a], %t;\nld.u32 %r1, [%a];\n{}", malloc("%a", 16), free("%a"));
    let outcome = run(&heap, &body);
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    assert!(heap.leaks().is_empty());
    // What the first wrote is not there.
    let read = format!(
        "{}@%first st.u32 [%a], %t;\nld.u32 %r1, [%a];\nsetp.eq.u32 %p, %r1, 7;\n@%p trap;\n{}",
        malloc("%a", 16),
        free("%a")
    );
    let found: Vec<String> = run(&heap, &read).findings.iter().map(ToString::to_string).collect();
    assert!(
        found.iter().any(|text| text.contains("never written") && text.contains("thread (32,0,0)")),
        "{found:?}"
    );
}

#[test]
fn a_block_is_freed_once() {
    let heap = DeviceHeap::default();
    let twice = format!("{}{}{}", malloc("%a", 16), free("%a"), free("%a"));
    let found = run(&heap, &twice).findings;
    assert!(found.iter().any(|finding| matches!(finding.kind, ExecFindingKind::BadFree(_))), "{found:#?}");
    let inside = format!("{}add.u64 %b, %a, 8;\n{}", malloc("%a", 16), free("%b"));
    let found = run(&heap, &inside).findings;
    assert!(found.iter().any(|finding| matches!(finding.kind, ExecFindingKind::BadFree(_))), "{found:#?}");
}
