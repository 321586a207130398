//! Blocks that wait for blocks before them: they end, and the waiting costs little.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

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
        for seed in 0..6 {
            for sole_writer in [false, true] {
                let options = Options { seed, sole_writer, checks: Checks::ALL, ..Options::default() };
                let (outcome, sums) = chained_sum(poll, 64, &options);
                assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
                let sums: Vec<u32> =
                    sums.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
                assert_eq!(sums, (0..64).map(|block| (0..=block).sum()).collect::<Vec<u32>>());
                // About 40 instructions of work in a block; the rest is waiting, 0.6 to 1.2 million by the order of the seed.
                let instructions = outcome.counters.warp_instructions;
                assert!(instructions < 1_500_000, "{poll} seed {seed}: {instructions} instructions");
            }
        }
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
            let (lock, sum) = (memory.allocate_with(&[0; 8]), memory.allocate_with(&[0; 4]));
            let arguments = [lock, sum].map(u64::to_le_bytes).concat();
            let options = Options { seed, checks: Checks::ALL, ..Options::default() };
            let entry = program.entry("count").unwrap();
            let outcome =
                entry.launch(&LaunchShape::linear(1, 32), &arguments, &[], &memory, &options).unwrap();
            assert!(outcome.is_clean(), "{take} seed {seed}: {:#?}", outcome.findings);
            assert_eq!(memory.read(sum, 4).unwrap(), 32u32.to_le_bytes(), "{take}");
            // About ten instructions of each lane, and some dozens of looks at the lock.
            let instructions = outcome.counters.warp_instructions;
            assert!(instructions < 32 * 400, "{take} seed {seed}: {instructions} instructions");
        }
    }
}
