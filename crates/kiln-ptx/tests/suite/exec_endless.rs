//! Kernels that do not end are stopped soon, and those that end late are not.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecFault, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory,
};

/// Runs two blocks of so many threads until they end or are found not to.
fn run_ptx(body: &str, count: u32, options: &Options<'_>) -> ExecOutcome {
    run_blocks(body, (2, count), options)
}

/// Runs so many blocks of so many threads.
fn run_blocks(body: &str, (blocks, count): (u32, u32), options: &Options<'_>) -> ExecOutcome {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 flag, .param .u64 out) {{
         .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<3>;
         ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out]; mov.u32 %r8, %tid.x;
         {body}
         ret; }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let arguments = [memory.allocate(64), memory.allocate(4096)].map(u64::to_le_bytes).concat();
    let entry = program.entry("k").unwrap();
    entry.launch(&LaunchShape::linear(blocks, count), &arguments, &[], &memory, options).unwrap()
}

#[test]
fn a_loop_that_cannot_end_is_found_at_once() {
    for (body, count) in [
        ("LOOP: bra LOOP;", 1),
        ("LOOP: bra LOOP;", 256),
        // One thread of many; the others are done.
        ("setp.ne.u32 %p1, %r8, 77; @%p1 ret; LOOP: xor.b32 %r1, %r1, 1; bra LOOP;", 256),
        // A loop inside of a loop, some thousand instructions long.
        (
            "OUTER: mov.u32 %r1, 0; INNER: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5000; @%p1 bra INNER; bra OUTER;",
            1,
        ),
    ] {
        for seed in 0..4 {
            let outcome = run_ptx(body, count, &Options { seed, ..Options::default() });
            let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
            assert_eq!(finding.kind, ExecFindingKind::Endless, "{body}");
            assert_eq!(outcome.fault, Some(ExecFault::LaunchTimeout));
            assert!(outcome.counters.warp_instructions < 2_000_000, "{body}: {:?}", outcome.counters);
        }
    }
}

#[test]
fn a_wait_for_what_no_thread_writes_is_found_where_nothing_else_writes() {
    let alone = Options { sole_writer: true, ..Options::default() };
    for body in [
        "LOOP: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;",
        "LOOP: ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;",
        // A lock that is never given back.
        "LOOP: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP; bar.sync 0;
         setp.ne.u32 %p2, %r8, 99; @%p2 bra LOOP;",
    ] {
        for (seed, count) in [(0, 1), (1, 1), (0, 200), (1, 200)] {
            let outcome = run_ptx(body, count, &Options { seed, ..alone });
            let [finding] = &outcome.findings[..] else { panic!("{body} {count}: {:#?}", outcome.findings) };
            assert_eq!(finding.kind, ExecFindingKind::EndlessWait, "{body}");
            assert!(outcome.counters.warp_instructions < 2_000_000, "{body}: {:?}", outcome.counters);
        }
    }
    let others = run_ptx(
        "LOOP: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;",
        1,
        &Options { step_limit: 100_000, ..Options::default() },
    );
    assert_eq!(others.findings[0].kind, ExecFindingKind::StepLimit(100_000), "another thread may write it");
}

#[test]
fn what_ends_late_is_not_said_to_be_endless() {
    // Several threads count in one place.
    let checks = Checks { races: false, ..Checks::default() };
    let alone = Options { sole_writer: true, checks, ..Options::default() };
    for (body, count) in [
        // It counts; the registers differ every time.
        ("LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 300000; @%p1 bra LOOP;", 1),
        // It counts in memory.
        (
            "LOOP: ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; setp.lt.u32 %p1, %r1, 60000;
             @%p1 bra LOOP;",
            1,
        ),
        // It waits for time to pass.
        (
            "mov.u32 %r2, %clock; LOOP: mov.u32 %r1, %clock; sub.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 50000;
             mov.u32 %r1, 0; @%p1 bra LOOP;",
            1,
        ),
        // All but one thread wait for the last one of the block, which works for a while first.
        (
            "setp.eq.u32 %p1, %r8, 199; @%p1 bra WORK;
             WAIT: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; ret;
             WORK: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 2000; @%p3 bra WORK; st.volatile.global.u32 [%rd1], 1;",
            200,
        ),
        // The second block waits for the first, or the first for the second.
        (
            "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 1; @%p1 bra WORK;
             WAIT: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; ret;
             WORK: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 2000; @%p3 bra WORK; st.volatile.global.u32 [%rd1], 1;",
            64,
        ),
        // A lock that one lane holds while its neighbours ask for it.
        (
            "LOOP: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
             mov.u32 %r3, 0; WORK: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 700; @%p3 bra WORK;
             atom.global.exch.b32 %r1, [%rd1], 0;",
            40,
        ),
    ] {
        for seed in 0..6 {
            let outcome = run_ptx(body, count, &Options { seed, ..alone });
            assert!(outcome.is_clean(), "{body} with seed {seed}: {:#?}", outcome.findings);
        }
    }
}

#[test]
fn warps_that_run_on_are_stopped_together_unless_one_of_them_ends() {
    // Each warp counts to another number, with a store that no state survives.
    let body = |last: u32| {
        format!(
            "shr.u32 %r7, %r8, 5; mad.lo.u32 %r7, %r7, 1000, {last};
             LOOP: add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1; setp.lt.u32 %p1, %r1, %r7; @%p1 bra LOOP;"
        )
    };
    let options = Options { stall_limit: 100_000, checks: Checks::NONE, ..Options::default() };
    let outcome = run_ptx(&body(1000), 256, &options);
    assert!(outcome.is_clean(), "each ends before the limit: {:#?}", outcome.findings);
    assert!(outcome.counters.warp_instructions > 100_000);
    let outcome = run_ptx(&body(100_000), 256, &options);
    assert_eq!(outcome.findings[0].kind, ExecFindingKind::Stalled(100_000));
    assert_eq!(outcome.fault, Some(ExecFault::LaunchTimeout));
    assert!(outcome.counters.warp_instructions < 1_000_000, "{:?}", outcome.counters);
}

#[test]
fn blocks_that_each_end_soon_are_not_stopped_together() {
    // All threads of a block exit behind its barrier, at once. 100 blocks run 10 times what may run without an exit.
    let body = "LOOP: add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1; bar.sync 0; setp.lt.u32 %p1, %r1, 25; @%p1 bra LOOP;";
    for threads in [1, 3] {
        let options = Options { stall_limit: 1000, threads, checks: Checks::NONE, ..Options::default() };
        let outcome = run_blocks(body, (100, 32), &options);
        assert!(outcome.is_clean(), "{threads} threads: {:#?}", outcome.findings);
        assert!(outcome.counters.warp_instructions > 10_000, "{:?}", outcome.counters);
    }
    // A block that does not end is stopped on several threads, too.
    let endless = body.replace("25;", "100000;");
    for threads in [1, 3] {
        let options = Options { stall_limit: 100_000, threads, checks: Checks::NONE, ..Options::default() };
        let outcome = run_blocks(&endless, (4, 32), &options);
        assert_eq!(outcome.fault, Some(ExecFault::LaunchTimeout), "{threads} threads");
        assert_eq!(outcome.findings[0].kind, ExecFindingKind::Stalled(100_000));
    }
}

#[test]
fn a_lock_that_all_lanes_of_a_warp_spin_for_costs_about_its_work() {
    let checks = Checks { strict: false, ..Checks::ALL };
    let alone = Options { sole_writer: true, checks, ..Options::default() };
    for take in ["atom.global.exch.b32 %r1, [%rd1], 1;", "atom.global.cas.b32 %r1, [%rd1], 0, 1;"] {
        let body = format!(
            "TAKE: {take} setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKE; membar.gl;
             ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1; st.global.u32 [%rd2], %r2; membar.gl; atom.global.exch.b32 %r1, [%rd1], 0;"
        );
        for seed in 0..3 {
            let outcome = run_ptx(&body, 64, &Options { seed, ..alone });
            assert!(outcome.is_clean(), "{take} with seed {seed}: {:#?}", outcome.findings);
            let instructions = outcome.counters.warp_instructions;
            assert!(instructions < 200_000, "{take} with seed {seed}: {instructions} instructions");
        }
    }
}
