//! Races are found in every memory, and what is ordered is not told.

use std::collections::HashSet;

use crate::race_cases::{PAIRS, Pair, Told, all};
use crate::race_spins::SPINS;
use crate::race_waits::WAITS;
use kiln_ptx::exec::{Checks, ExecFindingKind, Options};

#[test]
fn every_wrong_twin_is_found_within_four_seeds() {
    for pair in all() {
        let found = (0..4).any(|seed| {
            let outcome = pair.run(pair.wrong, &Options { seed, ..Options::default() });
            outcome.findings.iter().any(|finding| pair.told.is(&finding.kind))
        });
        assert!(found, "{}", pair.name);
    }
}

#[test]
fn every_right_twin_is_clean() {
    for pair in all() {
        for seed in 0..32 {
            let outcome = pair.run(pair.right, &Options { seed, ..Options::default() });
            assert!(outcome.is_clean(), "{} with seed {seed}: {:#?}", pair.name, outcome.findings);
        }
        let threads = pair.run(pair.right, &Options { threads: 3, ..Options::default() });
        assert!(threads.is_clean(), "{} on threads: {:#?}", pair.name, threads.findings);
    }
}

#[test]
fn the_wrong_twins_are_found_on_several_threads() {
    for pair in all() {
        // Which orders come about depends on the host's load, too.
        let found = (0..32).any(|seed| {
            let outcome = pair.run(pair.wrong, &Options { seed, threads: 3, ..Options::default() });
            outcome.findings.iter().any(|finding| pair.told.is(&finding.kind))
        });
        assert!(found, "{}", pair.name);
    }
}

#[test]
fn threads_are_preempted_in_half_of_the_orders() {
    for pair in SPINS {
        let found = |seed: &u64| {
            let outcome = pair.run(pair.wrong, &Options { seed: *seed, ..Options::default() });
            outcome.findings.iter().any(|finding| pair.told.is(&finding.kind))
        };
        let count = (1..65).filter(found).count();
        assert!(count >= 32, "{}: found in {count} of 64 orders", pair.name);
        assert!(!found(&0), "{}: found in the order of the numbers", pair.name);
    }
}

#[test]
fn what_a_wait_may_miss_is_found_in_three_quarters_of_the_orders() {
    for pair in WAITS {
        let found = |seed: &u64| {
            let outcome = pair.run(pair.wrong, &Options { seed: *seed, ..Options::default() });
            outcome.findings.iter().any(|finding| pair.told.is(&finding.kind))
        };
        let count = (1..65).filter(found).count();
        assert!(count >= 48, "{}: found in {count} of 64 orders", pair.name);
    }
}

#[test]
fn a_launch_on_one_thread_says_the_same_every_time() {
    for pair in all() {
        let options = Options { seed: 9, ..Options::default() };
        assert_eq!(pair.run(pair.wrong, &options), pair.run(pair.wrong, &options), "{}", pair.name);
    }
}

#[test]
fn both_sides_of_a_race_are_named() {
    let pair = PAIRS.iter().find(|pair| pair.name == "a barrier does not order blocks").unwrap();
    let outcome = pair.run(pair.wrong, &Options::default());
    let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
    let ExecFindingKind::Race { access, earlier_site, .. } = &finding.kind else { panic!("{finding}") };
    assert_eq!((finding.site.block, finding.site.thread), ([1, 0, 0], [0, 0, 0]));
    assert_eq!((earlier_site.block, earlier_site.thread), ([0, 0, 0], [0, 0, 0]));
    assert_eq!((access.memory, access.bytes), ("global", 4));
    assert!(earlier_site.ptx_line > 0 && finding.site.ptx_line > 0);
    assert_eq!(
        (finding.site.instruction.as_str(), earlier_site.instruction.as_str()),
        ("st.global.u32", "ld.global.u32")
    );
    let text = finding.to_string();
    assert!(text.starts_with("race: write of 4 bytes at global address 0x"), "{text}");
    assert!(text.contains(" and the read by block (0,0,0) thread (0,0,0) at PTX line "), "{text}");
}

#[test]
fn races_are_counted_by_the_pair_of_places() {
    let pair = PAIRS.iter().find(|pair| pair.name == "a sum over blocks").unwrap();
    let outcome = pair.run(pair.wrong, &Options::default());
    assert!(outcome.findings.len() <= 3, "{:#?}", outcome.findings);
    let lines = |finding: &kiln_ptx::exec::ExecFinding| match &finding.kind {
        ExecFindingKind::Race { earlier_site, .. } => {
            (finding.site.instruction.clone(), earlier_site.instruction.clone())
        }
        kind => panic!("{kind}"),
    };
    let places: HashSet<_> = outcome.findings.iter().map(lines).collect();
    assert_eq!(places.len(), outcome.findings.len());
    assert!(outcome.findings.iter().map(|finding| finding.times).sum::<u64>() >= 4);
}

#[test]
fn the_same_value_is_a_note_unless_checks_are_strict() {
    let pair = PAIRS.iter().find(|pair| pair.name == "different values in one place").unwrap();
    let usual = pair.run(pair.right, &Options::default());
    assert!(usual.is_clean(), "{:#?}", usual.findings);
    let [note] = &usual.notes[..] else { panic!("{:#?}", usual.notes) };
    assert!(matches!(note.kind, ExecFindingKind::SameValue { .. }) && note.is_race());
    assert!(note.to_string().starts_with("same value: write of 4 bytes at global address"), "{note}");
    let checks = Checks { strict: true, ..Checks::default() };
    let strict = pair.run(pair.right, &Options { checks, ..Options::default() });
    assert_eq!((strict.findings.len(), strict.notes.len()), (1, 0));
    let off = pair.run(pair.wrong, &Options { checks: Checks::NONE, ..Options::default() });
    assert!(off.is_clean() && off.notes.is_empty());
}

#[test]
fn a_narrow_scope_is_said() {
    let pair = PAIRS.iter().find(|pair| pair.told == Told::NarrowScope).unwrap();
    let outcome = pair.run(pair.wrong, &Options::default());
    let text = outcome.findings[0].to_string();
    assert!(text.contains("strong, but with a scope that does not include both threads"), "{text}");
}

/// Lanes exchange values through memory, and each keeps what it got.
fn exchange(target_name: &'static str) -> Pair {
    Pair {
        name: target_name,
        shape: (1, 32),
        told: Told::Race,
        body: "add.u32 %r1, %t, 1; st.global.u32 [%own], %r1; #1 xor.b32 %r2, %t, 1; mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d1, %data;
               ld.global.u32 %r3, [%d1]; st.global.u32 [%own+2048], %r3;",
        wrong: ["", ""],
        right: ["bar.warp.sync 0xffffffff;", ""],
    }
}

#[test]
fn seeds_show_what_a_missing_barrier_of_the_warp_does() {
    let results = |pair: &Pair, fix: [&str; 2]| -> HashSet<Vec<u8>> {
        let run = |seed| pair.run_in_memory(fix, &Options { seed, ..Options::default() }).1;
        (0..64).map(run).collect()
    };
    let volta = exchange("exchange");
    assert!(results(&volta, volta.wrong).len() > 1, "lanes are interleaved");
    assert_eq!(results(&volta, volta.right).len(), 1);
    let pascal = exchange("exchange sm_60");
    assert_eq!(results(&pascal, pascal.wrong).len(), 1, "before sm_70 lanes run in lockstep");
    assert!(pascal.run(pascal.wrong, &Options::default()).is_clean());
}

#[test]
fn a_volatile_reduction_of_a_warp_without_barriers_is_no_race_and_gives_other_sums_in_some_orders() {
    // Volatile accesses are relaxed ones of the system, which do not race with each other. What they read is another matter.
    let pair = Pair {
        name: "a volatile reduction",
        shape: (1, 32),
        told: Told::Race,
        body: "st.volatile.shared.u32 [%so], %t; bar.warp.sync 0xffffffff; mov.u32 %r9, 16;
               LOOP: setp.ge.u32 %p0, %t, %r9; #1 @%p0 bra NEXT;
               shl.b32 %r8, %r9, 2; add.u32 %r8, %r8, %so; ld.volatile.shared.u32 %r1, [%r8]; ld.volatile.shared.u32 %r2, [%so];
               add.u32 %r1, %r1, %r2; st.volatile.shared.u32 [%so], %r1;
               NEXT: shr.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0; @%p1 bra LOOP;
               ld.volatile.shared.u32 %r1, [%so]; st.global.u32 [%own], %r1;",
        wrong: ["", ""],
        right: ["bar.warp.sync 0xffffffff;", ""],
    };
    let sum = |fix: [&str; 2], seed| {
        let (outcome, memory) = pair.run_in_memory(fix, &Options { seed, ..Options::default() });
        assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
        u32::from_le_bytes(memory[..4].try_into().unwrap())
    };
    let wrong = (1..65).filter(|seed| sum(pair.wrong, *seed) != 496).count();
    assert!(wrong >= 8, "{wrong} of 64 orders show it");
    assert!((0..64).all(|seed| sum(pair.right, seed) == 496));
}

#[test]
fn seeds_do_not_part_the_lanes_of_a_kernel_that_reads_their_mask() {
    let mut pair = exchange("mask");
    pair.body = "st.global.u32 [%own], %t; #1 ld.global.u32 %r1, [%own]; activemask.b32 %r3; st.global.u32 [%own+2048], %r3;";
    for seed in 0..64 {
        let (outcome, memory) = pair.run_in_memory(pair.wrong, &Options { seed, ..Options::default() });
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        assert_eq!(memory[2048..2048 + 128], [0xff; 128], "seed {seed}");
    }
}

#[test]
fn a_million_races_are_counted_and_not_kept() {
    let pair = Pair {
        name: "many",
        shape: (8, 256),
        told: Told::Race,
        body: "mov.u32 %r9, 0; LOOP: ld.global.u32 %r1, [%data]; add.u32 %r1, %r1, 1; st.global.u32 [%data], %r1;
               add.u32 %r9, %r9, 1; setp.lt.u32 %p0, %r9, 500; @%p0 bra LOOP;",
        wrong: ["", ""],
        right: ["", ""],
    };
    let outcome = pair.run(pair.wrong, &Options::default());
    assert!(outcome.findings.len() <= 3, "{:#?}", outcome.findings);
    let times: u64 = outcome.findings.iter().map(|finding| finding.times).sum();
    assert!(times > 10_000, "{times}");
    let few = pair.run(pair.wrong, &Options { max_findings: 1, ..Options::default() });
    assert_eq!((few.findings.len(), few.notes.len() <= 1), (1, true));
}
