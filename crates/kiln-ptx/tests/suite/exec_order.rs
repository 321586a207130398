//! Blocks that wait for blocks before them: they end, and the waiting costs little.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// A chained sum: a block waits until the block before it has published its sum, adds its number and publishes. `poll` loads the flag at
/// `%rd3` into `%r5`.
fn chained_sum(poll: &str, blocks: u32, options: &Options<'_>) -> (ExecOutcome, Vec<u8>) {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry sum(.param .u64 flags, .param .u64 sums) {{
         .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
         ld.param.u64 %rd1, [flags]; ld.param.u64 %rd2, [sums];
         mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r6, 0;
         mul.wide.u32 %rd4, %r2, 4;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
         setp.eq.u32 %p2, %r2, 0; @%p2 bra PUBLISH;
         add.s64 %rd3, %rd1, %rd4; add.s64 %rd3, %rd3, -4;
         WAIT: {poll}
         setp.eq.u32 %p3, %r5, 0; @%p3 bra WAIT;
         fence.acq_rel.gpu;
         add.s64 %rd5, %rd2, %rd4; ld.relaxed.gpu.global.u32 %r6, [%rd5+-4];
         PUBLISH:
         add.u32 %r6, %r6, %r2;
         add.s64 %rd5, %rd2, %rd4; st.relaxed.gpu.global.u32 [%rd5], %r6;
         fence.acq_rel.gpu;
         add.s64 %rd6, %rd1, %rd4; atom.global.exch.b32 %r7, [%rd6], 1;
         DONE: bar.sync 0;
         ret; }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let bytes = u64::from(blocks) * 4;
    let zeros = vec![0; bytes as usize];
    let (flags, sums) = (memory.allocate_with(&zeros), memory.allocate_with(&zeros));
    let arguments = [flags, sums].map(u64::to_le_bytes).concat();
    let entry = program.entry("sum").unwrap();
    let outcome = entry.launch(&LaunchShape::linear(blocks, 64), &arguments, &[], &memory, options).unwrap();
    (outcome, memory.read(sums, bytes).unwrap())
}

const POLLS: [&str; 3] = [
    "ld.volatile.global.u32 %r5, [%rd3];",
    "ld.acquire.gpu.global.u32 %r5, [%rd3];",
    "atom.global.add.u32 %r5, [%rd3], 0;",
];

#[test]
fn a_chain_of_blocks_costs_about_its_work() {
    for poll in POLLS {
        for (blocks, sole_writer) in [(64, false), (64, true), (1024, true)] {
            for seed in 0..6 {
                let checks = if blocks == 64 { Checks::ALL } else { Checks::NONE };
                let options = Options { seed, sole_writer, checks, ..Options::default() };
                let (outcome, sums) = chained_sum(poll, blocks, &options);
                assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
                let sums: Vec<u32> =
                    sums.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
                assert_eq!(sums, (0..blocks).map(|block| (0..=block).sum()).collect::<Vec<u32>>());
                // The same work with a flag that is always set.
                let alone = Options { checks: Checks::NONE, ..options };
                let work = chained_sum("mov.u32 %r5, 1;", blocks, &alone).0.counters.warp_instructions;
                let instructions = outcome.counters.warp_instructions;
                assert!(
                    instructions <= 2 * work,
                    "{poll} {blocks} blocks, seed {seed}: {instructions} instructions for {work} of work"
                );
            }
        }
    }
}

/// A scan with one look back for each block: a warp reads the states of the 32 blocks before it until all of them are there, adds up those behind the last whole
/// sum, and goes on before them if there is none. A state is a sum times four, and 1 for the sum of one block or 2 for that of all blocks up to it.
fn look_back(blocks: u32, options: &Options<'_>) -> (ExecOutcome, Vec<u32>) {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry scan(.param .u64 states) {
         .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %rd<6>;
         ld.param.u64 %rd1, [states]; mov.u32 %r1, %laneid; mov.u32 %r2, %ctaid.x;
         mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;
         add.u32 %r3, %r2, 1; shl.b32 %r4, %r3, 2; or.b32 %r4, %r4, 1;
         setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.global.u32 [%rd2], %r4; bar.warp.sync 0xffffffff;
         mov.u32 %r5, 0; sub.s32 %r6, %r2, %r1; add.s32 %r6, %r6, -1;
         WINDOW: mul.wide.s32 %rd3, %r6, 4; add.s64 %rd3, %rd1, %rd3; setp.ge.s32 %p2, %r6, 0;
         SPIN: mov.u32 %r7, 2; @%p2 ld.volatile.global.u32 %r7, [%rd3]; setp.eq.u32 %p3, %r7, 0;
         vote.sync.any.pred %p4, %p3, 0xffffffff; @%p4 bra SPIN;
         and.b32 %r8, %r7, 3; setp.eq.u32 %p3, %r8, 2; vote.sync.ballot.b32 %r9, %p3, 0xffffffff;
         brev.b32 %r10, %r9; clz.b32 %r10, %r10; setp.le.u32 %p5, %r1, %r10;
         shr.u32 %r11, %r7, 2; selp.b32 %r11, %r11, 0, %p5; redux.sync.add.u32 %r12, %r11, 0xffffffff;
         add.u32 %r5, %r5, %r12; add.s32 %r6, %r6, -32; setp.eq.u32 %p3, %r9, 0; @%p3 bra WINDOW;
         add.u32 %r5, %r5, %r3; shl.b32 %r5, %r5, 2; or.b32 %r5, %r5, 2;
         @%p1 st.volatile.global.u32 [%rd2], %r5;
         ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let mut memory = SimpleMemory::new();
    let states = memory.allocate_with(&vec![0; blocks as usize * 4]);
    let entry = program.entry("scan").unwrap();
    let shape = LaunchShape::linear(blocks, 32);
    let outcome = entry.launch(&shape, &states.to_le_bytes(), &[], &memory, options).unwrap();
    let words = memory.read(states, u64::from(blocks) * 4).unwrap();
    (outcome, words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

#[test]
fn a_scan_that_looks_back_costs_about_its_work() {
    let alone = Options { sole_writer: true, checks: Checks::NONE, ..Options::default() };
    for blocks in [64, 1024] {
        // In order each block finds the sum of all before it at once. In another order it looks at more of them, and again whenever one has changed.
        let work = look_back(blocks, &alone).0.counters.thread_instructions;
        for seed in 0..6 {
            let (outcome, states) = look_back(blocks, &Options { seed, ..alone });
            assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
            let sum = |block: u32| (block + 1) * (block + 2) / 2 * 4 + 2;
            assert_eq!(states, (0..blocks).map(sum).collect::<Vec<u32>>());
            let instructions = outcome.counters.thread_instructions;
            assert!(
                instructions <= 6 * work,
                "{blocks} blocks, seed {seed}: {instructions} instructions for {work}"
            );
        }
    }
}

#[test]
fn blocks_that_all_wait_for_the_last_one_cost_about_their_work() {
    // More blocks than are in flight otherwise: a GPU runs so many at once, too.
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry meet(.param .u64 count) {
         .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<2>;
         ld.param.u64 %rd1, [count]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %tid.x;
         setp.ne.u32 %p1, %r2, 0; @%p1 bra MET;
         atom.acq_rel.gpu.global.add.u32 %r3, [%rd1], 1;
         WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.lt.u32 %p1, %r3, %r1; @%p1 bra WAIT;
         MET: bar.sync 0;
         ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    for seed in 0..4 {
        let mut memory = SimpleMemory::new();
        let count = memory.allocate_with(&[0; 4]);
        let options = Options { seed, sole_writer: true, checks: Checks::NONE, ..Options::default() };
        let shape = LaunchShape::linear(500, 64);
        let entry = program.entry("meet").unwrap();
        let outcome = entry.launch(&shape, &count.to_le_bytes(), &[], &memory, &options).unwrap();
        assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
        let instructions = outcome.counters.warp_instructions;
        assert!(instructions < 500 * 500, "seed {seed}: {instructions} instructions");
    }
}

#[test]
fn blocks_that_wait_for_what_no_thread_writes_are_told_of_at_once() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry wait(.param .u64 flag) {
         .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<2>;
         ld.param.u64 %rd1, [flag];
         WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;
         ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    for (seed, blocks) in [(0, 1), (1, 1), (0, 100), (3, 100), (0, 100_000), (2, 100_000)] {
        let mut memory = SimpleMemory::new();
        let flag = memory.allocate_with(&[0; 4]);
        let options = Options { seed, sole_writer: true, ..Options::default() };
        let shape = LaunchShape::linear(blocks, 32);
        let entry = program.entry("wait").unwrap();
        let outcome = entry.launch(&shape, &flag.to_le_bytes(), &[], &memory, &options).unwrap();
        let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
        assert_eq!(finding.kind, ExecFindingKind::EndlessWait, "{blocks} blocks");
        // About a dozen for each block that has started.
        let instructions = outcome.counters.warp_instructions;
        assert!(instructions < 60_000, "{blocks} blocks, seed {seed}: {instructions} instructions");
    }
}

#[test]
fn a_chain_longer_than_the_blocks_in_flight_ends() {
    for seed in 0..4 {
        let (outcome, _) =
            chained_sum(POLLS[0], 2000, &Options { seed, sole_writer: true, ..Options::default() });
        assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
    }
}

#[test]
fn blocks_of_an_empty_kernel_cost_nothing() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry empty() { ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let memory = SimpleMemory::new();
    let shape = LaunchShape::linear(u32::MAX >> 1, 64);
    let outcome =
        program.entry("empty").unwrap().launch(&shape, &[], &[], &memory, &Options::default()).unwrap();
    assert!(outcome.is_clean());
    let blocks = u64::from(u32::MAX >> 1);
    let counters = outcome.counters;
    assert_eq!((counters.blocks, counters.warp_instructions), (blocks, 2 * blocks));
    assert_eq!(counters.thread_instructions, 64 * blocks);
}

/// What each lane of a warp found at a counter that all of them increment at once.
fn tickets(seed: u64, place: &str) -> Vec<u32> {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {{
         .shared .align 4 .b32 s; .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<6>;
         ld.param.u64 %rd1, [data]; mov.u64 %rd2, s; mov.u32 %r1, %tid.x;
         setp.ne.u32 %p, %r1, 0; @!%p st.shared.u32 [s], 0; bar.warp.sync 0xffffffff;
         atom.{place}.add.u32 %r2, [{}], 1;
         mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd1; st.global.u32 [%rd3+4], %r2;
         ret; }}",
        if place == "shared" { "%rd2" } else { "%rd1" }
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let data = memory.allocate_with(&[0; 132]);
    let options = Options { seed, checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, 32);
    let outcome = program.entry("k").unwrap().launch(&shape, &data.to_le_bytes(), &[], &memory, &options);
    assert!(outcome.unwrap().is_clean());
    let words = memory.read(data + 4, 128).unwrap();
    words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn a_seed_picks_the_order_of_the_lanes_of_an_atomic() {
    let rising: Vec<u32> = (0..32).collect();
    for place in ["shared", "global"] {
        assert_eq!(tickets(0, place), rising);
        let orders: Vec<Vec<u32>> = (1..17).map(|seed| tickets(seed, place)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, rising, "every lane gets one ticket");
        }
        let differ = orders.iter().filter(|order| **order != rising).count();
        assert!(differ >= 12, "{place}: {differ} of 16 seeds give another order");
        assert_eq!(tickets(3, place), orders[2], "a seed gives the same order again");
    }
}

#[test]
fn a_lock_that_every_lane_takes_costs_about_its_work() {
    let take = [
        // As NVRTC writes it, with the constants in the loop.
        "mov.u32 %r1, 1; mov.u32 %r2, 0; atom.global.cas.b32 %r3, [%rd1], %r2, %r1; setp.ne.s32 %p1, %r3, 0; @%p1 bra TAKE;",
        "atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra TAKE;",
        "atom.global.exch.b32 %r3, [%rd1], 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra TAKE;",
        "ld.volatile.global.u32 %r3, [%rd1]; setp.ne.s32 %p1, %r3, 0; @%p1 bra TAKE; \
         atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra TAKE;",
    ];
    let release = "atom.global.exch.b32 %r6, [%rd1], 0;";
    let mut locks: Vec<(String, &str)> = take.map(|take| (format!("TAKE: {take}"), release)).into();
    let ticket = "atom.global.add.u32 %r1, [%rd1], 1; TAKE: ld.volatile.global.u32 %r2, [%rd1+4]; \
                  setp.ne.s32 %p1, %r2, %r1; @%p1 bra TAKE;";
    locks.push((ticket.to_owned(), "atom.global.add.u32 %r6, [%rd1+4], 1;"));
    for (take, release) in &locks {
        for seed in 0..4 {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry count(.param .u64 lock, .param .u64 sum) {{
                 .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<3>;
                 ld.param.u64 %rd1, [lock]; ld.param.u64 %rd2, [sum];
                 {take}
                 fence.acq_rel.gpu;
                 ld.relaxed.gpu.global.u32 %r4, [%rd2]; add.s32 %r5, %r4, 1; st.relaxed.gpu.global.u32 [%rd2], %r5;
                 fence.acq_rel.gpu;
                 {release}
                 ret; }}"
            );
            let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
            let mut memory = SimpleMemory::new();
            let options = Options { seed, checks: Checks::ALL, ..Options::default() };
            let entry = program.entry("count").unwrap();
            for blocks in [1, 64] {
                let (lock, sum) = (memory.allocate_with(&[0; 8]), memory.allocate_with(&[0; 4]));
                let arguments = [lock, sum].map(u64::to_le_bytes).concat();
                let shape = LaunchShape::linear(blocks, 32);
                let outcome = entry.launch(&shape, &arguments, &[], &memory, &options).unwrap();
                assert!(outcome.is_clean(), "{take} seed {seed}: {:#?}", outcome.findings);
                assert_eq!(memory.read(sum, 4).unwrap(), (32 * blocks).to_le_bytes(), "{take}");
                // About ten instructions of each lane, and some looks at the lock.
                let instructions = outcome.counters.warp_instructions;
                let most = u64::from(32 * blocks) * 200;
                assert!(
                    instructions < most,
                    "{take} {blocks} blocks, seed {seed}: {instructions} instructions"
                );
            }
        }
    }
}
