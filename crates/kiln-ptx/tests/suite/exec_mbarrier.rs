//! `mbarrier`: phases order threads, and misuse is told.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, DeadlockPlace, ExecFindingKind, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory,
};

const HOPPER: &str = ".version 8.0\n.target sm_90";

/// Runs `body` in one block with a barrier object behind `%bar` and 1 KiB of data behind `%data`, both in shared memory, and with a word of
/// global memory for each thread behind `%out`. Gives those words.
fn run(header: &str, threads: u32, body: &str, seed: u64) -> (Vec<u32>, ExecOutcome) {
    let text = format!(
        "{header}\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n.reg .b32 %r<16>, %t, %bar, %data, %own;\n.reg .b64 %out, %in, %s<4>, %o;\n\
         .reg .pred %p<4>, %first;\n.shared .align 8 .b8 bar[16];\n.shared .align 16 .b8 data[1024];\nld.param.u64 %out, [out];\nld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %bar, bar;\nmov.u32 %data, data;\nmad.lo.u32 %own, %t, 4, %data;\nmul.wide.u32 %o, %t, 4;\nadd.u64 %out, %out, %o;\nsetp.eq.u32 %first, %t, 0;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = SimpleMemory::new();
    let out = memory.allocate_with(&vec![0; 4 * threads as usize]);
    let from: Vec<u8> = (0..256u32).flat_map(|word| (word * 3).to_le_bytes()).collect();
    let from = memory.allocate_with(&from);
    let arguments = [out.to_le_bytes(), from.to_le_bytes()].concat();
    let options = Options { checks: Checks::ALL, seed, sole_writer: true, ..Options::default() };
    let shape = LaunchShape::linear(1, threads);
    let outcome = program.entry("k").unwrap().launch(&shape, &arguments, &[], &memory, &options).unwrap();
    let words = memory.read(out, 4 * u64::from(threads)).unwrap();
    (words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect(), outcome)
}

fn findings(threads: u32, body: &str) -> Vec<String> {
    run(HOPPER, threads, body, 0).1.findings.iter().map(ToString::to_string).collect()
}

fn told(found: &[String], words: &str) {
    assert!(found.iter().any(|text| text.contains(words)), "`{words}` is not in {found:?}");
}

/// The first thread initialises the object, and all threads wait for that.
fn init(count: u32) -> String {
    format!("@%first mbarrier.init.shared::cta.b64 [%bar], {count};\nbar.sync 0;\n")
}

const WRITE: &str = "st.shared.u32 [%own], %t;\n";
const ARRIVE: &str = "mbarrier.arrive.shared::cta.b64 %s0, [%bar];\n";
const WAIT: &str = "wait:\nmbarrier.test_wait.shared::cta.b64 %p0, [%bar], %s0;\n@!%p0 bra wait;\n";
/// The word of the thread 32 further on.
const READ: &str = "xor.b32 %r0, %t, 32;\nmad.lo.u32 %r0, %r0, 4, %data;\nld.shared.u32 %r1, [%r0];\nst.global.u32 [%out], %r1;\n";

#[test]
fn a_phase_orders_what_came_before_its_arrivals() {
    for seed in 0..4 {
        let (words, outcome) = run(HOPPER, 64, &format!("{}{WRITE}{ARRIVE}{WAIT}{READ}", init(64)), seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|thread| thread ^ 32).collect::<Vec<u32>>());
    }
    told(&findings(64, &format!("{}{WRITE}{ARRIVE}{READ}", init(64))), "race");
    let relaxed = ARRIVE.replace("arrive.", "arrive.relaxed.cluster.");
    told(&findings(64, &format!("{}{WRITE}{relaxed}{WAIT}{READ}", init(64))), "race");
}

#[test]
fn phases_follow_each_other_by_parity() {
    let round = |parity: u32, add: u32| {
        format!(
            "add.u32 %r2, %t, {add};\nst.shared.u32 [%own], %r2;\nmbarrier.arrive.shared::cta.b64 _, [%bar];\nwait{parity}:\n\
             mbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], {parity};\n@!%p0 bra wait{parity};\n{READ}"
        )
    };
    let body = format!("{}{}bar.sync 0;\n{}", init(64), round(0, 0), round(1, 100));
    for seed in 0..4 {
        let (words, outcome) = run(HOPPER, 64, &body, seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|thread| (thread ^ 32) + 100).collect::<Vec<u32>>());
    }
    let racing = format!("{}{}{}", init(64), round(0, 0), round(1, 100));
    told(&findings(64, &racing), "race");
}

#[test]
fn dropped_arrivals_counts_and_bytes_are_counted() {
    let wait = |parity: u32| {
        format!(
            "mbarrier.test_wait.parity.shared::cta.b64 %p0, [%bar], {parity};\nselp.u32 %r1, 1, 0, %p0;\nmad.lo.u32 %r2, %r2, 10, %r1;\n"
        )
    };
    let body = format!(
        "{}mov.u32 %r2, 0;\nmbarrier.arrive.noComplete.release.cta.shared::cta.b64 %s0, [%bar], 2;\nmbarrier.pending_count.b64 %r3, %s0;\n{}\
         mbarrier.arrive_drop.shared::cta.b64 %s0, [%bar];\nmbarrier.pending_count.b64 %r4, %s0;\n{}\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 64;\nmbarrier.arrive.shared::cta.b64 _, [%bar];\n{}\
         mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%bar], 64;\n{}\
         mad.lo.u32 %r2, %r3, 10000, %r2;\nmad.lo.u32 %r2, %r4, 100000, %r2;\nst.global.u32 [%out], %r2;\nmbarrier.inval.shared::cta.b64 [%bar];\n",
        init(3),
        wait(0),
        wait(0),
        wait(1),
        wait(1)
    );
    let (words, outcome) = run(HOPPER, 1, &body, 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    // Three arrivals were pending before the first, one before the dropped one.
    assert_eq!(words, [130_000 + 101]);
}

#[test]
fn objects_are_initialised_once_and_used_behind_that() {
    told(&findings(1, ARRIVE), "there is no mbarrier object here");
    let twice = format!("{}mbarrier.init.shared::cta.b64 [%bar], 1;\n", init(1));
    told(&findings(1, &twice), "is initialised here already");
    let again = format!(
        "{}mbarrier.inval.shared::cta.b64 [%bar];\n{}",
        init(1),
        "mbarrier.init.shared::cta.b64 [%bar], 1;\n"
    );
    assert_eq!(findings(1, &again), Vec::<String>::new());
    let unordered = "setp.eq.u32 %p1, %t, 32;\n@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
    told(&findings(64, unordered), "race");
    told(&findings(1, "mbarrier.init.shared::cta.b64 [%bar], 0;"), "cannot count 0");
    told(&findings(1, "mbarrier.init.shared::cta.b64 [%bar+4], 1;"), "misaligned");
    told(&findings(1, "mbarrier.init.b64 [%out], 1;"), "must lie in shared memory");
    told(&findings(1, "mbarrier.init.shared::cta.b64 [%bar+4096], 1;"), "out of bounds");
}

#[test]
fn arrivals_beyond_the_count_and_waits_for_old_phases_are_told() {
    let over = format!("{}mbarrier.arrive.shared::cta.b64 _, [%bar], 3;\n", init(2));
    told(&findings(1, &over), "3 arrivals at an mbarrier object that waits for 2");
    // Up to 2^20 - 1 bytes are counted.
    let expect = |bytes: u32| format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], {bytes};\n");
    assert_eq!(findings(1, &format!("{}{}", init(1), expect(0xf_ffff))), Vec::<String>::new());
    for more in [expect(0x10_0000), format!("{}{}", expect(0xf_ffff), expect(1))] {
        told(&findings(1, &format!("{}{more}", init(1))), "would wait for 1048576 bytes");
    }
    let silent = format!("{}mbarrier.arrive.noComplete.shared::cta.b64 %s0, [%bar], 1;\n", init(1));
    told(&findings(1, &silent), "`.noComplete`");
    let old = format!("{}{ARRIVE}mbarrier.arrive.shared::cta.b64 _, [%bar];\n{WAIT}", init(1));
    told(&findings(1, &old), "is older than the last one");
}

#[test]
fn a_phase_that_never_completes_is_told() {
    for seed in 0..3 {
        for wait in [WAIT.to_owned(), WAIT.replace("test_wait", "try_wait")] {
            let (_, outcome) = run(HOPPER, 64, &format!("{}{ARRIVE}{wait}", init(65)), seed);
            let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
            let ExecFindingKind::Deadlock { text, place: DeadlockPlace::Mbarrier } = &finding.kind else {
                panic!("{finding}")
            };
            told(
                std::slice::from_ref(text),
                "for phase 0 (parity 0) of the mbarrier object at byte 0 of `bar`: 64 of 65 arrivals came, and no thread is left that could arrive",
            );
            assert!(finding.site.instruction.contains("_wait"), "{finding}");
            assert!(outcome.counters.warp_instructions < 10_000, "{:?}", outcome.counters);
        }
    }
}

/// A wait as libraries write it: a few rounds at once, then with pauses that become longer. It ends with the phase alone.
const PATIENT_WAIT: &str = "mov.u64 %s1, %globaltimer;\nmov.u32 %r5, 0;\nbra test;\nsoon:\nadd.u32 %r5, %r5, 1;\ntest:\n\
    mbarrier.test_wait.shared::cta.b64 %p0, [%bar], %s0;\nselp.u32 %r6, 1, 0, %p0;\nsetp.eq.s32 %p1, %r6, 0;\n@%p1 bra later;\nbra done;\nlater:\n\
    setp.lt.u32 %p2, %r5, 16;\n@%p2 bra soon;\nmov.u64 %s2, %globaltimer;\nsub.u64 %s2, %s2, %s1;\nsetp.lt.u64 %p3, %s2, 4000;\n@%p3 bra test;\n\
    nanosleep.u32 100;\nbra test;\ndone:\n";

#[test]
fn a_wait_with_timers_and_pauses_is_told_unless_it_gives_up() {
    let found = findings(64, &format!("{}{ARRIVE}{PATIENT_WAIT}", init(65)));
    told(&found, "64 of 65 arrivals came");
    for seed in 0..4 {
        let right = format!("{}{WRITE}{ARRIVE}{PATIENT_WAIT}{READ}", init(64));
        let (words, outcome) = run(HOPPER, 64, &right, seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|thread| thread ^ 32).collect::<Vec<u32>>());
    }
    // It gives up after some rounds, or after some time.
    let counted = PATIENT_WAIT.replace("@%p2 bra soon;", "@%p2 bra soon;\nbra done;");
    let timed = PATIENT_WAIT.replace("nanosleep.u32 100;\nbra test;", "");
    for wait in [counted, timed] {
        assert_eq!(findings(64, &format!("{}{ARRIVE}{wait}", init(65))), Vec::<String>::new(), "{wait}");
    }
}

#[test]
fn threads_that_wait_at_a_barrier_or_have_gone_do_not_hide_a_phase_that_never_completes() {
    // The first warp waits at a barrier of the block, some threads of the second have exited, and the rest waits for a phase.
    let body = format!(
        "{}setp.lt.u32 %p2, %t, 32;\n@%p2 bra meet;\nsetp.gt.u32 %p2, %t, 40;\n@%p2 bra out;\n{ARRIVE}{WAIT}meet:\nbar.sync 0;\nout:\n",
        init(32)
    );
    let found = findings(64, &body);
    told(&found, "32 threads wait at barrier 0 at PTX line ");
    told(&found, "9 of 32 arrivals came");
    told(&found, "23 have exited");
}

#[test]
fn a_wait_for_the_wrong_phase_names_the_last_complete_one() {
    let late = "late:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%bar], 1;\n@!%p0 bra late;\n";
    let found = findings(64, &format!("{}{ARRIVE}{WAIT}{late}", init(64)));
    told(&found, "for phase 1 (parity 1)");
    told(&found, "0 of 64 arrivals came");
    told(&found, "; phase 0 (parity 0) is complete");
}

#[test]
fn bytes_that_were_announced_and_never_copied_are_told() {
    let body = format!(
        "{}mbarrier.arrive.expect_tx.shared::cta.b64 %s0, [%bar], 64;\nmbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%bar], 48;\n{WAIT}",
        init(1)
    );
    told(
        &findings(1, &body),
        "1 of 1 arrivals came, 16 announced bytes were not copied, and no thread is left",
    );
    told(
        &findings(1, &body.replace("48;", "80;")),
        "1 of 1 arrivals came, 16 bytes were copied that no arrival announced, and no thread is left",
    );
}

/// Producers of one warp fill two slots for consumers of another, round after round; each slot has an object for "full" and one for "empty".
fn stages(arrivals_of_consumers: u32) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [%bar], 32;\n@%first mbarrier.init.shared::cta.b64 [%bar+8], 32;\n\
         @%first mbarrier.init.shared::cta.b64 [%data+512], {arrivals_of_consumers};\n@%first mbarrier.init.shared::cta.b64 [%data+520], {arrivals_of_consumers};\nbar.sync 0;\n\
         and.b32 %r1, %t, 31;\nmad.lo.u32 %own, %r1, 4, %data;\nmov.u32 %r2, 0;\nmov.u32 %r9, 0;\nsetp.ge.u32 %p1, %t, 32;\nround:\nand.b32 %r3, %r2, 1;\nshr.u32 %r4, %r2, 1;\nand.b32 %r4, %r4, 1;\n\
         mad.lo.u32 %r5, %r3, 8, %bar;\nmad.lo.u32 %r6, %r3, 8, %data;\nmad.lo.u32 %r7, %r3, 128, %own;\n@%p1 bra consume;\n\
         xor.b32 %r8, %r4, 1;\nempty:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r6+512], %r8;\n@!%p0 bra empty;\n\
         add.u32 %r10, %r2, %t;\nst.shared.u32 [%r7], %r10;\nmbarrier.arrive.shared::cta.b64 _, [%r5];\nbra next;\n\
         consume:\nfull:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r5], %r4;\n@!%p0 bra full;\n\
         ld.shared.u32 %r10, [%r7];\nadd.u32 %r9, %r9, %r10;\nmbarrier.arrive.shared::cta.b64 _, [%r6+512];\n\
         next:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 8;\n@%p2 bra round;\nst.global.u32 [%out], %r9;\n"
    )
}

#[test]
fn producers_and_consumers_with_two_stages_are_clean_and_a_wrong_count_is_told() {
    for seed in 0..6 {
        let (words, outcome) = run(HOPPER, 64, &stages(32), seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words[33], 28 + 8, "sums of what the second thread produced");
        let (_, outcome) = run(HOPPER, 64, &stages(33), seed);
        let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        told(&found, "32 of 33 arrivals came");
        assert!(outcome.counters.warp_instructions < 100_000, "{:?}", outcome.counters);
    }
}

/// How `cuda::pipeline` ends its objects: one lane of each warp counts for those that came with it, and the last one ends the object.
const QUIT: &str = "activemask.b32 %r1;\nmatch.any.sync.b32 %r2, %bar, %r1;\nbrev.b32 %r3, %r2;\nbfind.shiftamt.u32 %r4, %r3;\nmov.u32 %r5, %laneid;\n\
    setp.ne.s32 %p1, %r5, %r4;\n@%p1 bra quit;\npopc.b32 %r6, %r2;\nneg.s32 %r7, %r6;\nfence.sc.cta;\natom.add.acquire.cta.shared.u32 %r8, [%data+512], %r7;\n\
    setp.ne.s32 %p2, %r8, %r6;\n@%p2 bra quit;\nmbarrier.inval.shared::cta.b64 [%bar];\nquit:\n";

#[test]
fn an_object_ends_when_all_its_uses_are_over() {
    let count = "@%first st.relaxed.cta.shared.u32 [%data+512], 64;\n";
    let body = format!("{count}{}{WRITE}{ARRIVE}{WAIT}{READ}{QUIT}", init(64));
    for seed in 0..6 {
        let (_, outcome) = run(HOPPER, 64, &body, seed);
        assert!(outcome.is_clean(), "seed {seed}: {:?}", outcome.findings);
    }
    // The lanes of a warp do not meet before one of them counts for all.
    let apart = body.replace("match.any.sync.b32 %r2, %bar, %r1;", "mov.u32 %r2, 0xffffffff;");
    told(&findings(64, &apart), "race");
    // The other warp has not counted.
    let early = body.replace("@%p2 bra quit;\nmbarrier.inval", "mbarrier.inval");
    assert_ne!(findings(64, &early), Vec::<String>::new());
    // Nothing at all.
    let alone =
        format!("{}{WRITE}{ARRIVE}{WAIT}{READ}@%first mbarrier.inval.shared::cta.b64 [%bar];\n", init(64));
    assert_ne!(findings(64, &alone), Vec::<String>::new());
    let met = alone.replace("@%first mbarrier.inval", "bar.sync 0;\n@%first mbarrier.inval");
    assert_eq!(findings(64, &met), Vec::<String>::new());
    let used = format!("{met}bar.sync 0;\n{ARRIVE}");
    told(&findings(64, &used), "the mbarrier object here was ended with `mbarrier.inval` at PTX line ");
}

#[test]
fn plain_accesses_to_an_object_are_told() {
    let stored = format!("{}st.shared.u32 [%bar+4], %t;\n", init(1));
    told(&findings(1, &stored), "write of 4 bytes at shared address 0x4, where an mbarrier object is");
    let loaded = format!("{}ld.shared.u64 %s0, [%bar];\n", init(1));
    told(&findings(1, &loaded), "where an mbarrier object is");
    let beside = format!("{}st.shared.u32 [%bar+8], %t;\n", init(1));
    assert_eq!(findings(1, &beside), Vec::<String>::new());
    let ended = format!("{}mbarrier.inval.shared::cta.b64 [%bar];\nst.shared.u32 [%bar], %t;\n", init(1));
    assert_eq!(findings(1, &ended), Vec::<String>::new());
}

#[test]
fn asynchronous_copies_are_done_with_their_phase() {
    let copy =
        "mul.wide.u32 %o, %t, 4;\nadd.u64 %in, %in, %o;\ncp.async.ca.shared.global [%own], [%in], 4;\n";
    let arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];\n";
    let wait = "wait:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n@!%p0 bra wait;\n";
    for seed in 0..4 {
        let (words, outcome) = run(HOPPER, 64, &format!("{}{copy}{arrive}{wait}{READ}", init(64)), seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|thread| (thread ^ 32) * 3).collect::<Vec<u32>>());
    }
    // Without `.noinc` the arrival is one more than the object expects.
    let more = arrive.replace(".noinc", "");
    let (_, outcome) = run(HOPPER, 64, &format!("{}{copy}{more}{ARRIVE}{wait}{READ}", init(64)), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    let early = format!("{}{copy}{arrive}ld.shared.u32 %r1, [%own];\n{wait}", init(64));
    told(&findings(64, &early), "pending copy");
    // A copy behind the arrival is not done with the phase.
    let behind = "cp.async.ca.shared.global [%own+256], [%in], 4;\n";
    let read = "setp.lt.u32 %p1, %t, 32;\n@%p1 ld.shared.u32 %r1, [%own+256];\n";
    told(&findings(64, &format!("{}{copy}{arrive}{behind}{wait}{read}", init(64))), "pending copy");
    let waited = format!("{}{copy}{arrive}{behind}{wait}cp.async.wait_all;\n{read}", init(64));
    assert_eq!(findings(64, &waited), Vec::<String>::new());
}

#[test]
fn an_arrival_at_another_object_does_not_take_copies_from_the_first() {
    let copy =
        "mul.wide.u32 %o, %t, 4;\nadd.u64 %in, %in, %o;\ncp.async.ca.shared.global [%own], [%in], 4;\n";
    let first = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];\n";
    let second = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar+8];\n";
    let objects = "@%first mbarrier.init.shared::cta.b64 [%bar+8], 64;\n".to_owned() + &init(64);
    let wait = "wait:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n@!%p0 bra wait;\n";
    for seed in 0..4 {
        let body = format!("{objects}{copy}{first}{second}{wait}{READ}");
        let (words, outcome) = run(HOPPER, 64, &body, seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|thread| (thread ^ 32) * 3).collect::<Vec<u32>>());
    }
    // A copy behind the first arrival is told of by the second alone.
    let late = format!("{objects}{first}{copy}{second}{wait}{READ}");
    assert_ne!(findings(64, &late), Vec::<String>::new());
}

#[test]
fn fences_of_objects_and_proxies_are_executed() {
    let body = format!(
        "{}fence.mbarrier_init.release.cluster;\nfence.proxy.async;\nfence.proxy.async.shared::cta;\n{ARRIVE}",
        init(1)
    );
    assert_eq!(findings(1, &body), Vec::<String>::new());
}

#[test]
fn versions_and_targets_without_the_instruction_are_refused() {
    let found = |header: &str, body: &str| {
        let outcome = run(header, 1, body, 0).1;
        outcome.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let old = found(".version 7.0\n.target sm_75", ARRIVE);
    told(&old, "requires PTX 7.0 and sm_80 or newer; the module is PTX 7.0 for sm_75");
    told(&old, "PTX line 20");
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n";
    told(&found(".version 8.0\n.target sm_80", wait), "requires PTX 7.8 and sm_90");
    let bytes = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 16;\n";
    told(&found(".version 7.8\n.target sm_90", bytes), "requires PTX 8.0 and sm_90");
    told(&found(".version 7.8\n.target sm_90", "fence.proxy.async;\n"), "requires PTX 8.0 and sm_90");
}
