//! What a race says about how to order its two sides.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, RaceRemedy, SimpleMemory,
};

/// Runs blocks of 128 threads with one buffer of zeros.
fn run(body: &str, blocks: u32, seed: u64) -> ExecOutcome {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {{
         .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<6>; .shared .align 4 .b8 s[1024];
         ld.param.u64 %d1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; mov.u64 %d3, s; add.s64 %d3, %d3, %d2;
         mov.u32 %r2, %ctaid.x; mul.wide.u32 %d4, %r2, 4; add.s64 %d4, %d4, %d1;
         {body}
         ret; }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let arguments = memory.allocate(4096).to_le_bytes();
    let checks = Checks { strict: false, ..Checks::ALL };
    let options = Options { seed, checks, ..Options::default() };
    program
        .entry("k")
        .unwrap()
        .launch(&LaunchShape::linear(blocks, 128), &arguments, &[], &memory, &options)
        .unwrap()
}

/// The remedies of all races within four seeds.
fn remedies(body: &str, blocks: u32) -> Vec<RaceRemedy> {
    let findings = (0..4).flat_map(|seed| run(body, blocks, seed).findings);
    let mut remedies: Vec<RaceRemedy> = Vec::new();
    for finding in findings {
        let ExecFindingKind::Race { remedy, .. } = finding.kind else { panic!("{finding}") };
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies
}

#[test]
fn a_race_inside_a_warp_asks_for_a_barrier_of_the_warp() {
    let body = "st.shared.u32 [%d3], %r1; xor.b32 %r3, %r1, 1; mul.wide.u32 %d5, %r3, 4; mov.u64 %d2, s; add.s64 %d5, %d5, %d2;
                ld.shared.u32 %r4, [%d5];";
    assert_eq!(remedies(body, 1), [RaceRemedy::WarpBarrier]);
    let other_warps = body.replace("%r1, 1;", "%r1, 64;");
    assert_eq!(remedies(&other_warps, 1), [RaceRemedy::Order]);
    let next = body.replace("xor.b32 %r3, %r1, 1;", "add.u32 %r3, %r1, 1; and.b32 %r3, %r3, 127;");
    assert_eq!(
        remedies(&next, 1),
        [RaceRemedy::Order],
        "the last lane of a warp reads what the next warp writes"
    );
    let first =
        "setp.eq.u32 %p0, %r1, 0; @%p0 st.shared.u32 [%d3], %r1; mov.u64 %d5, s; ld.shared.u32 %r4, [%d5];";
    assert_eq!(remedies(first, 1), [RaceRemedy::Order], "other warps read it, too");
    let named = format!("bar.sync 1, 128; {other_warps}");
    assert_eq!(remedies(&named, 1), [RaceRemedy::NamedBarrier]);
}

#[test]
fn an_update_in_two_steps_asks_for_the_atomic_that_does_it_in_one() {
    for (instruction, function) in [
        ("add.u32", "atomicAdd"),
        ("sub.u32", "atomicSub"),
        ("or.b32", "atomicOr"),
        ("and.b32", "atomicAnd"),
        ("xor.b32", "atomicXor"),
        ("max.u32", "atomicMax"),
    ] {
        let body =
            format!("ld.global.u32 %r4, [%d1]; {instruction} %r4, %r4, %r1; st.global.u32 [%d1], %r4;");
        assert_eq!(remedies(&body, 2), [RaceRemedy::Atomic(function)], "{instruction}");
    }
    // Another place than the one that is written.
    let sum = "ld.global.u32 %r4, [%d1+4]; add.u32 %r4, %r4, %r1; st.global.u32 [%d1], %r4;";
    assert_eq!(remedies(sum, 2), [RaceRemedy::OneThread]);
}

#[test]
fn threads_of_different_blocks_are_not_told_of_a_barrier_of_a_block() {
    // Each block writes one word and reads that of the other one.
    let swap = "setp.ne.u32 %p0, %r1, 0; @%p0 ret; st.global.u32 [%d4], %r2; xor.b32 %r3, %r2, 1; mul.wide.u32 %d5, %r3, 4;
                add.s64 %d5, %d5, %d1; ld.global.u32 %r4, [%d5];";
    assert_eq!(remedies(swap, 2), [RaceRemedy::Grid]);
    // Threads of one block race, and those of the other block at the same two lines.
    let shared = "add.s64 %d2, %d2, %d1; st.global.u32 [%d2], %r2; xor.b32 %r3, %r1, 64; mul.wide.u32 %d5, %r3, 4; add.s64 %d5, %d5, %d1;
                  ld.global.u32 %r4, [%d5];";
    assert_eq!(remedies(shared, 1), [RaceRemedy::Order]);
    let found = remedies(shared, 2);
    assert!(found.contains(&RaceRemedy::Grid) && !found.contains(&RaceRemedy::Order), "{found:?}");
}

#[test]
fn one_instruction_of_several_threads_has_no_barrier_in_between() {
    let body = "mov.u64 %d5, s; st.shared.u32 [%d5], %r1;";
    assert_eq!(remedies(body, 1), [RaceRemedy::OneThread]);
    let in_loop =
        format!("mov.u32 %r5, 0; LOOP: {body} add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 3; @%p0 bra LOOP;");
    assert_eq!(remedies(&in_loop, 1), [RaceRemedy::Order]);
}

/// One thread of each block takes a lock and adds to a sum. Fences may be left out.
fn locked(taken: &str, released: &str) -> String {
    format!(
        "setp.ne.u32 %p0, %r1, 0; @%p0 ret; TAKE: atom.global.cas.b32 %r3, [%d1], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra TAKE; {taken}
         ld.global.u32 %r4, [%d1+8]; add.u32 %r4, %r4, 1; st.global.u32 [%d1+8], %r4; {released} atom.global.exch.b32 %r3, [%d1], 0;"
    )
}

#[test]
fn a_lock_without_fences_is_told_to_have_them() {
    let fence = "membar.gl;";
    assert_eq!(remedies(&locked(fence, fence), 4), []);
    for (taken, released) in [("", ""), (fence, ""), ("", fence)] {
        assert_eq!(remedies(&locked(taken, released), 4), [RaceRemedy::LockFences], "{taken} {released}");
    }
    let acquires = locked("", "").replace("atom.global.cas", "atom.acquire.gpu.global.cas");
    assert_eq!(remedies(&acquires, 4), [RaceRemedy::LockFences]);
    let both = acquires.replace("atom.global.exch", "atom.release.gpu.global.exch");
    assert_eq!(remedies(&both, 4), []);
    // One block does not take the lock.
    let around = locked(fence, fence).replace("TAKE: ", "setp.eq.u32 %p2, %r2, 0; @%p2 bra ADD; TAKE: ");
    let around = around.replace("ld.global.u32 %r4", "ADD: ld.global.u32 %r4");
    let found = remedies(&around, 4);
    assert!(!found.is_empty() && !found.contains(&RaceRemedy::LockFences), "{found:?}");
}

#[test]
fn the_plain_load_of_a_compare_and_swap_loop_is_named() {
    let body = |load: &str| {
        format!(
            "{load} %r4, [%d1]; AGAIN: mov.u32 %r5, %r4; add.u32 %r6, %r5, 1; atom.global.cas.b32 %r4, [%d1], %r5, %r6;
             setp.ne.u32 %p1, %r4, %r5; @%p1 bra AGAIN;"
        )
    };
    assert_eq!(remedies(&body("ld.global.u32"), 2), [RaceRemedy::StrongLoad]);
    assert_eq!(remedies(&body("ld.volatile.global.u32"), 2), []);
}

/// The last block sums what all blocks have stored. Either fence may be left out.
fn last_block(writer: &str, reader: &str) -> String {
    format!(
        "setp.ne.u32 %p0, %r1, 0; @%p0 ret; add.s64 %d4, %d4, 64; st.global.u32 [%d4], %r2; {writer}
         atom.global.add.u32 %r3, [%d1], 1; setp.ne.u32 %p1, %r3, 3; @%p1 ret; {reader}
         ld.global.u32 %r4, [%d1+64]; ld.global.u32 %r4, [%d1+68]; ld.global.u32 %r4, [%d1+72]; ld.global.u32 %r4, [%d1+76];"
    )
}

#[test]
fn the_last_block_is_told_which_fence_is_missing() {
    assert_eq!(remedies(&last_block("membar.gl;", "membar.gl;"), 4), []);
    assert_eq!(remedies(&last_block("membar.gl;", ""), 4), [RaceRemedy::ReaderFence]);
    assert_eq!(remedies(&last_block("", ""), 4), [RaceRemedy::Grid]);
    assert_eq!(remedies(&last_block("", "membar.gl;"), 4), [RaceRemedy::Grid]);
}
