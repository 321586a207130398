//! What the checks remember is shared by host threads: they find the same, and count the same, as one thread.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory, StatisticsReport,
};

const BLOCKS: u32 = 96;
const THREADS: u32 = 64;
/// Words that every block reads, and words of the output: one for each thread.
const INPUT_WORDS: u64 = 1024;
const OUTPUT_WORDS: u64 = (BLOCKS * THREADS) as u64;

/// Every block reads rows of the input, and single words of it, and adds them up in its part of the output. What block 40 does then is `last`; its thread is in
/// `%t`, the input in `%rd1`, the output in `%rd2`.
fn kernel(last: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {{
    .reg .pred %p<4>; .reg .b32 %r<8>, %t, %b; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mul.wide.u32 %rd3, %t, 4;
    add.u64 %rd4, %rd1, %rd3;
    mad.lo.u32 %r1, %b, {THREADS}, %t;
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd5, %rd2, %rd5;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    mov.u64 %rd6, %rd1;
AGAIN:
    ld.global.u32 %r4, [%rd4];
    add.u32 %r2, %r2, %r4;
    ld.global.u32 %r4, [%rd6+2048];
    add.u32 %r2, %r2, %r4;
    st.global.u32 [%rd5], %r2;
    add.u64 %rd4, %rd4, 256;
    add.u64 %rd6, %rd6, 68;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 8;
    @%p1 bra AGAIN;
    setp.ne.u32 %p2, %b, 40;
    @%p2 ret;
    {last}
    ret;
}}"
    )
}

/// What a launch says, its output, and what was counted.
fn run(ptx: &str, threads: usize) -> (ExecOutcome, Vec<u8>, StatisticsReport) {
    let program = ExecProgram::new(PtxModule::parse(ptx).unwrap());
    let entry = program.entry("k").unwrap();
    let mut memory = SimpleMemory::new();
    let input: Vec<u8> = (0..INPUT_WORDS as u32).flat_map(u32::to_le_bytes).collect();
    let arguments = [memory.allocate_with(&input), memory.allocate(4 * OUTPUT_WORDS)];
    let statistics = entry.statistics();
    let options =
        Options { threads, checks: Checks::ALL, statistics: Some(&statistics), ..Options::default() };
    let packed = arguments.map(u64::to_le_bytes).concat();
    let shape = LaunchShape::linear(BLOCKS, THREADS);
    let outcome = entry.launch(&shape, &packed, &[], &memory, &options).unwrap();
    let report = entry.statistics_report(&statistics);
    (outcome, memory.read(arguments[1], 4 * OUTPUT_WORDS).unwrap(), report)
}

#[test]
fn blocks_that_read_the_same_are_clean_on_several_threads() {
    let ptx = kernel("ld.global.u32 %r4, [%rd1];");
    // What each thread adds up: rows of 64 words, and words 512, 529 and so on.
    let sum = |thread: u32| (0..8).map(|k| thread + 64 * k + 512 + 17 * k).sum::<u32>();
    let wanted: Vec<u8> = (0..BLOCKS).flat_map(|_| (0..THREADS).flat_map(|t| sum(t).to_le_bytes())).collect();
    let (first, _, counted) = run(&ptx, 1);
    assert!(first.is_clean(), "{:#?}", first.findings);
    for round in 0..40 {
        let (outcome, output, report) = run(&ptx, 2 + round % 3);
        assert_eq!(outcome, first, "the findings and counters of one thread");
        assert_eq!(report, counted, "the statistics of one thread");
        assert_eq!(output, wanted);
    }
}

#[test]
fn one_write_among_reads_of_many_blocks_is_found_on_several_threads() {
    for last in [
        // All lanes write a word each; one lane writes a word, or a byte, of a row; one writes what all lanes read at once, one updates it.
        "mul.wide.u32 %rd3, %t, 4; add.u64 %rd4, %rd1, %rd3; st.global.u32 [%rd4+512], %b;",
        "setp.ne.u32 %p3, %t, 7; @%p3 ret; st.global.u32 [%rd1+300], %b;",
        "setp.ne.u32 %p3, %t, 7; @%p3 ret; st.global.u8 [%rd1+301], %b;",
        "setp.ne.u32 %p3, %t, 7; @%p3 ret; st.global.u32 [%rd1+2116], %b;",
        "atom.global.add.u32 %r4, [%rd1+2116], %b;",
    ] {
        let ptx = kernel(last);
        let is_race = |outcome: &ExecOutcome| {
            outcome.findings.iter().any(|finding| matches!(finding.kind, ExecFindingKind::Race { .. }))
        };
        assert!(is_race(&run(&ptx, 1).0), "{last}");
        for round in 0..20 {
            let (outcome, ..) = run(&ptx, 2 + round % 3);
            assert!(is_race(&outcome), "{last}: {:#?}", outcome.findings);
            assert!(outcome.fault.is_none(), "{last}: {:#?}", outcome.fault);
        }
    }
}

#[test]
fn neighbouring_blocks_that_write_one_page_are_clean_on_several_threads() {
    // Neighbouring words belong to neighbouring blocks, which different threads run.
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
    .reg .b32 %r<8>, %t, %b; .reg .b64 %rd<8>;
    ld.param.u64 %rd2, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mad.lo.u32 %r1, %t, 96, %b;
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd5, %rd2, %rd5;
    st.global.u32 [%rd5], %r1;
    ld.global.u32 %r2, [%rd5];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd5], %r2;
    ret;
}";
    let wanted: Vec<u8> = (1..=OUTPUT_WORDS as u32).flat_map(u32::to_le_bytes).collect();
    for round in 0..40 {
        let (outcome, output, _) = run(ptx, 1 + round % 4);
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        assert!(output == wanted);
    }
}
