//! What statistics count, against kernels counted by hand.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    ExecProgram, ExecutionCounts, InstructionKind, LaunchShape, Options, SimpleMemory, StatisticsReport,
};

/// Runs `body` in blocks of so many threads, with 64 KiB of global memory behind `%data`, 16 KiB of shared memory behind `%tile`, and the number of the thread in `%t`.
fn run(blocks: u32, threads: u32, body: &str) -> StatisticsReport {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n.reg .b32 %r<8>, %t, %tile;\n.reg .f32 %f<4>;\n.reg .b64 %data, %at, %l<4>;\n.reg .pred %p;\n.shared .align 16 .b8 tile[16384];\n\
         ld.param.u64 %data, [data];\nmov.u32 %t, %tid.x;\nmov.u32 %tile, tile;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = SimpleMemory::new();
    let data = memory.allocate(65_536);
    let entry = program.entry("k").unwrap();
    let statistics = entry.statistics();
    let options = Options { statistics: Some(&statistics), ..Options::default() };
    let shape = LaunchShape::linear(blocks, threads);
    let outcome = entry.launch(&shape, &data.to_le_bytes(), &[], &memory, &options).unwrap();
    assert!(outcome.fault.is_none(), "{:?}", outcome.findings);
    let report = entry.statistics_report(&statistics);
    assert_eq!(report.total.thread_instructions, outcome.counters.thread_instructions);
    assert_eq!(report.total.warp_instructions, outcome.counters.warp_instructions);
    report
}

fn of(report: &StatisticsReport, kind: InstructionKind) -> ExecutionCounts {
    report.kinds.iter().find(|(known, _)| *known == kind).map_or_else(Default::default, |(_, counts)| *counts)
}

/// A load of one word by each thread, so many bytes apart.
fn strided(bytes: u32) -> String {
    format!("mul.wide.u32 %at, %t, {bytes};\nadd.u64 %at, %data, %at;\nld.global.f32 %f0, [%at];")
}

#[test]
fn instructions_are_counted_by_kind() {
    let report = run(3, 64, &strided(4));
    // ld.param, mov, mov, mul, add, ld.global, ret.
    assert_eq!((report.total.warp_instructions, report.total.thread_instructions), (3 * 2 * 7, 3 * 64 * 7));
    assert_eq!(of(&report, InstructionKind::Integer).thread_instructions, 3 * 64 * 2);
    assert_eq!(of(&report, InstructionKind::Move).thread_instructions, 3 * 64 * 2);
    assert_eq!(of(&report, InstructionKind::Load).thread_instructions, 3 * 64 * 2);
    assert_eq!(of(&report, InstructionKind::Control).warp_instructions, 3 * 2);
    let bytes = report.total.bytes;
    assert_eq!(
        (bytes.global_loaded, bytes.parameter_loaded, bytes.global_stored),
        (3 * 64 * 4, 3 * 64 * 8, 0)
    );
    assert!(report.lines.is_empty(), "there is no line information");
}

#[test]
fn a_stride_takes_more_sectors() {
    // 32 words side by side are 4 sectors; 8 bytes apart 8, 32 bytes and more 32; one address for all is one.
    for (stride, sectors, ideal) in [(4, 4, 4), (8, 8, 4), (16, 16, 4), (32, 32, 4), (128, 32, 4), (0, 1, 1)]
    {
        let total = run(1, 32, &strided(stride)).total;
        let found = (total.global_requests, total.global_sectors, total.ideal_sectors);
        assert_eq!(found, (1, sectors, ideal), "stride {stride}");
    }
    // Four words by each thread are 16 sectors side by side, and words that begin in the middle of a sector one more.
    let wide =
        "mul.wide.u32 %at, %t, 16;\nadd.u64 %at, %data, %at;\nld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%at];";
    assert_eq!(run(1, 32, wide).total.global_sectors, 16);
    let shifted = strided(4).replace("[%at]", "[%at+16]");
    let total = run(1, 32, &shifted).total;
    assert_eq!((total.global_sectors, total.ideal_sectors), (5, 4));
    // The same through generic addresses, for stores.
    let store = strided(64).replace("ld.global.f32 %f0, [%at];", "st.u32 [%at], %t;");
    let total = run(1, 32, &store).total;
    assert_eq!((total.global_sectors, total.bytes.global_stored, total.bytes.global_loaded), (32, 128, 0));
}

#[test]
fn banks_conflict_where_words_share_one() {
    let load = |words: u32| format!("mad.lo.u32 %r0, %t, {}, %tile;\nst.shared.u32 [%r0], %t;", words * 4);
    // Two words apart use every second bank twice, 32 apart one bank 32 times; an odd stride none twice.
    for (words, wavefronts) in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (32, 32), (33, 1), (0, 1)] {
        let total = run(1, 32, &load(words)).total;
        assert_eq!(
            (total.shared_requests, total.shared_wavefronts, total.ideal_wavefronts),
            (1, wavefronts, 1),
            "{words}"
        );
    }
    // 16 bytes by each thread take four rounds, of a quarter of the warp each.
    let wide = "shl.b32 %r0, %t, 4;\nadd.u32 %r0, %r0, %tile;\nst.shared.v4.u32 [%r0], {%t, %t, %t, %t};";
    let total = run(1, 32, wide).total;
    assert_eq!((total.shared_wavefronts, total.ideal_wavefronts, total.bytes.shared_stored), (4, 4, 512));
}

#[test]
fn lanes_that_part_are_counted() {
    // Half of the warp executes each side: 3 instructions before, setp and bra, 1 on one side, 2 on the other, ret.
    let body = "setp.lt.u32 %p, %t, 16;\n@%p bra less;\nadd.u32 %r0, %t, 1;\nbra.uni end;\nless:\nadd.u32 %r0, %t, 2;\nend:\nxor.b32 %r1, %r0, %r0;";
    let report = run(1, 32, body);
    let total = report.total;
    assert_eq!((total.warp_threads, total.warp_instructions), (10 * 32, 10));
    // A branch is executed by all lanes, whether they take it or not.
    assert_eq!((total.active_threads, total.thread_instructions), (7 * 32 + 3 * 16, 7 * 32 + 3 * 16));
    assert_eq!(of(&report, InstructionKind::Integer).active_threads, 2 * 16);
    // A guard leaves lanes active that execute nothing.
    let guarded = "setp.lt.u32 %p, %t, 8;\n@%p add.u32 %r0, %t, 1;";
    let sum = of(&run(1, 32, guarded), InstructionKind::Integer);
    assert_eq!((sum.active_threads, sum.thread_instructions), (32, 8));
}

#[test]
fn atomics_and_barriers_are_counted() {
    let same = "red.global.add.u32 [%data], %t;\nbar.sync 0;\nbar.sync 0;";
    let total = run(2, 64, same).total;
    assert_eq!((total.atomic_updates, total.atomic_passes, total.barriers), (128, 128, 8));
    let apart = format!("{}\nred.global.add.u32 [%at], %t;", strided(4));
    let total = run(2, 64, &apart).total;
    assert_eq!((total.atomic_updates, total.atomic_passes, total.barriers), (128, 4, 0));
}

#[test]
fn lines_come_with_the_most_executed_first() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n{\n.reg .b32 %r<4>;\n.reg .pred %p;\n.loc 1 3 0\nmov.u32 %r0, 0;\nloop:\n.loc 1 5 0\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p, %r0, 10;\n@%p bra loop;\n.loc 1 7 0\nret;\n}\n.file 1 \"k.cu\"\n";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let entry = program.entry("k").unwrap();
    let statistics = entry.statistics();
    let options = Options { statistics: Some(&statistics), ..Options::default() };
    let memory = SimpleMemory::new();
    entry.launch(&LaunchShape::linear(4, 32), &[0; 8], &[], &memory, &options).unwrap();
    let report = entry.statistics_report(&statistics);
    let lines: Vec<_> =
        report.lines.iter().map(|line| (&*line.file, line.line, line.counts.warp_instructions)).collect();
    assert_eq!(lines, [("k.cu", 5, 120), ("k.cu", 3, 4), ("k.cu", 7, 4)]);
}
