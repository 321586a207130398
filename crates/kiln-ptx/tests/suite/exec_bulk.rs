//! Bulk copies: `cp.async.bulk` with `mbarrier` objects and groups, `cp.reduce.async.bulk`; and the zeros of `cp.async`.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Runs `body` in one block of 64 threads with an object behind `%bar`, 256 bytes of shared memory behind `%data` (a word of each thread behind `%own`), 256 bytes of input
/// behind `%in` with the numbers 0, 3, 6, … and 256 bytes of ones behind `%out` (a word of each thread behind `%mine`). Gives the words of `%out`.
fn run(body: &str, seed: u64) -> (Vec<u32>, ExecOutcome) {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %r<16>, %t, %bar, %data, %own;\n.reg .b64 %in, %out, %mine, %o;\n\
         .reg .pred %p<4>, %first;\n.shared .align 8 .b8 bar[8];\n.shared .align 16 .b8 data[256];\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %bar, bar;\nmov.u32 %data, data;\nmad.lo.u32 %own, %t, 4, %data;\nmul.wide.u32 %o, %t, 4;\nadd.u64 %mine, %out, %o;\nsetp.eq.u32 %first, %t, 0;\n\
         @%first mbarrier.init.shared::cta.b64 [%bar], 1;\nbar.sync 0;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = SimpleMemory::new();
    let words =
        |step: u32, start: u32| (0..64).flat_map(|at| (at * step + start).to_le_bytes()).collect::<Vec<u8>>();
    let (from, to) = (memory.allocate_with(&words(3, 0)), memory.allocate_with(&words(0, 1)));
    let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let options = Options { checks: Checks::ALL, seed, sole_writer: true, ..Options::default() };
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&LaunchShape::linear(1, 64), &arguments, &[], &memory, &options).unwrap();
    let words = memory.read(to, 256).unwrap();
    (words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect(), outcome)
}

fn told(body: &str, words: &str) {
    let found: Vec<String> = run(body, 0).1.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains(words)), "`{words}` is not in {found:?}");
}

const EXPECT: &str = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\n";
const COPY: &str = "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%data], [%in], 256, [%bar];\n";
const WAIT: &str = "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%bar], 0;\n@!%p0 bra wait;\n";
const READ: &str = "ld.shared.u32 %r0, [%own];\nst.global.u32 [%mine], %r0;\n";

#[test]
fn a_phase_ends_when_its_bytes_are_copied() {
    let expected: Vec<u32> = (0..64).map(|at| at * 3).collect();
    for seed in 0..4 {
        for copy in [COPY.to_owned(), COPY.replace("shared::cluster", "shared::cta")] {
            let (words, outcome) = run(&format!("{EXPECT}{copy}{WAIT}{READ}"), seed);
            assert!(outcome.is_clean(), "{:?}", outcome.findings);
            assert_eq!(words, expected);
        }
    }
    // Without the wait nothing orders the copy before the reads of other threads.
    told(&format!("{EXPECT}{COPY}{READ}"), "race");
    // Bytes that were announced and are not copied.
    let half = COPY.replace("256, [%bar]", "128, [%bar]");
    told(&format!("{EXPECT}{half}{WAIT}{READ}"), "no thread is left");
}

#[test]
fn groups_copy_to_global_memory_and_reduce_it() {
    let write = "mad.lo.u32 %r0, %t, 5, 7;\nst.shared.u32 [%own], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    let end = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\n";
    let copy = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%data], 256;\n";
    for seed in 0..3 {
        let (words, outcome) = run(&format!("{write}{copy}{end}"), seed);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!(words, (0..64).map(|at| at * 5 + 7).collect::<Vec<u32>>());
    }
    let add = "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%data], 256;\n";
    let (words, outcome) = run(&format!("{write}{add}{add}{end}"), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(words, (0..64).map(|at| 1 + 2 * (at * 5 + 7)).collect::<Vec<u32>>());
    // A block whose thread does not wait for the copy takes the memory away that the copy reads, whether it is committed to a group or not.
    for copy in [copy, add] {
        told(
            &format!("{write}{copy}"),
            "end with cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0",
        );
        let committed = "@%first cp.async.bulk.commit_group;\n";
        told(
            &format!("{write}{copy}{committed}"),
            "ends and its shared memory with it: end with cp.async.bulk.wait_group.read 0",
        );
        // A wait that leaves a group open, and one of a copy that is in no group.
        told(
            &format!("{write}{copy}{}", end.replace("read 0", "read 1")),
            "end with cp.async.bulk.wait_group.read 0",
        );
        told(&format!("{write}{end}{copy}"), "end with cp.async.bulk.commit_group");
        let found = run(&format!("{write}{copy}{committed}"), 0).1.findings;
        assert_eq!((found.len(), found[0].kind.word(), found[0].times), (1, "pending-copy", 1), "{found:?}");
    }
    // The barrier between the stores and the copy is missing.
    told(&format!("{}{copy}{end}", write.replace("bar.sync 0;\n", "")), "race");
}

#[test]
fn inc_and_dec_take_the_element_in_memory_as_the_old_value() {
    let write =
        "and.b32 %r0, %t, 3;\nst.shared.u32 [%own], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    let end = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\n";
    let reduce = |operation: &str| {
        format!(
            "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.u32 [%out], [%data], 256;\n"
        )
    };
    let (words, outcome) = run(&format!("{write}{}{end}", reduce("inc")), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    // One is counted up, or becomes zero where the limit is not above it.
    let limits = || (0..64u32).map(|at| at % 4);
    let counted: Vec<u32> = limits().map(|limit| if 1 >= limit { 0 } else { 2 }).collect();
    assert_eq!(words, counted);
    let (words, outcome) = run(&format!("{write}{}{}{end}", reduce("inc"), reduce("dec")), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    let down = |(old, limit): (&u32, u32)| if *old == 0 || *old > limit { limit } else { old - 1 };
    assert_eq!(words, counted.iter().zip(limits()).map(down).collect::<Vec<u32>>());
}

#[test]
fn a_sum_of_halves_keeps_subnormal_numbers() {
    let write =
        "mov.b32 %r0, 0x00010001;\nst.shared.b32 [%own], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    let end = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\n";
    let add =
        "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%out], [%data], 256;\n";
    let (words, outcome) = run(&format!("{write}{add}{end}"), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    // The smallest numbers are counted as if they were integers; the upper halves were zero.
    assert_eq!(words, [0x0001_0002; 64]);
    // There is no other sum of halves.
    told(&format!("{write}{}{end}", add.replace(".noftz", "")), "with these operands");
}

#[test]
fn a_reduction_uses_what_a_copy_only_moves() {
    // Half of the words are never written.
    let write = "setp.lt.u32 %p1, %t, 32;\n@%p1 st.shared.u32 [%own], %t;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    let end = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\n";
    let copy = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%data], 256;\n";
    let add = "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%data], 256;\n";
    let (_, outcome) = run(&format!("{write}{copy}{end}"), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    told(&format!("{write}{add}{end}"), "never written");
    let (_, outcome) = run(&format!("{write}{}{end}", add.replace("256", "128")), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
}

#[test]
fn a_sum_of_singles_keeps_subnormal_numbers() {
    let write = "mov.b32 %r0, 3;\nst.shared.b32 [%own], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
    let end = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\n";
    let add = "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%out], [%data], 256;\n";
    let (words, outcome) = run(&format!("{write}{add}{end}"), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    // The ones in memory are the smallest numbers; an atomic would flush them.
    assert_eq!(words, [4; 64]);
}

#[test]
fn a_small_copy_fills_with_zeros_what_its_size_leaves_out() {
    // Each thread copies its own word: so many bytes of it, or none.
    let write = "mad.lo.u32 %r0, %t, 0x01010101, 0x84838281;\nst.global.u32 [%mine], %r0;\nmov.u32 %r1, 0xffffffff;\nst.shared.u32 [%own], %r1;\n\
                 rem.u32 %r2, %t, 5;\nsetp.lt.u32 %p1, %r2, 2;\n";
    let end = "cp.async.wait_all;\nld.shared.u32 %r3, [%own];\nst.global.u32 [%mine], %r3;\n";
    let word = |thread: u32| 0x8483_8281_u32.wrapping_add(thread * 0x0101_0101);
    let copied = |operand: &str| {
        let (words, outcome) =
            run(&format!("{write}cp.async.ca.shared.global [%own], [%mine], 4, {operand};\n{end}"), 0);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        words
    };
    let part = |thread: u32| (u64::from(word(thread)) & ((1 << (8 * (thread % 5))) - 1)) as u32;
    assert_eq!(copied("%r2"), (0..64).map(part).collect::<Vec<u32>>());
    let ignored = |thread: u32| if thread % 5 < 2 { 0 } else { word(thread) };
    assert_eq!(copied("%p1"), (0..64).map(ignored).collect::<Vec<u32>>());
}

#[test]
fn a_copy_is_done_by_its_own_thread_and_object() {
    // The thread of another warp commits and waits; the copy is still that of the first.
    let write =
        "st.shared.u32 [%own], %t;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.eq.u32 %p1, %t, 32;\n";
    let copy = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%data], 256;\n@%first cp.async.bulk.commit_group;\nbar.sync 0;\n";
    let other = "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n";
    told(&format!("{write}{copy}{other}"), "end with cp.async.bulk.wait_group.read 0");
    let own = other.replace("%p1", "%first");
    let (_, outcome) = run(&format!("{write}{copy}{other}{own}"), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    // A phase of another object is complete; the copy completes bytes of the first one.
    let objects = ".shared .align 8 .b8 more[8];\n.reg .b32 %more;\nmov.u32 %more, more;\n@%first mbarrier.init.shared::cta.b64 [%more], 1;\n";
    let copy = format!("{EXPECT}{COPY}@%first mbarrier.arrive.shared::cta.b64 _, [%more];\n");
    let wait = |object: &str| format!("@!%first bra over;\n{}over:\n", WAIT.replace("[%bar]", object));
    let read = "@%first ld.shared.u32 %r0, [%own];\n";
    told(&format!("{objects}{copy}{}{read}", wait("[%more]")), "pending copy");
    let (_, outcome) = run(&format!("{objects}{copy}{}{read}", wait("[%bar]")), 0);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
}

#[test]
fn bounds_alignment_and_contents_are_checked() {
    let with = |old: &str, new: &str| format!("{EXPECT}{}", COPY.replace(old, new));
    told(&with("[%data]", "[%data+8]"), "the destination of a bulk copy");
    told(&with("[%in]", "[%in+4]"), "the source of a bulk copy");
    told(&with("256, [%bar]", "20, [%bar]"), "the size of a bulk copy, 0x14, is no multiple of 16");
    told(&with("[%data]", "[%data+128]"), "out of bounds");
    told(&with("[%in]", "[%in+16]"), "out of bounds");
    let copy = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%data], 16;\n@%first ld.global.u32 %r0, [%out];\nsetp.eq.u32 %p1, %r0, 3;\n@%p1 trap;\n";
    told(&format!("mov.u32 %r0, 0;\n{copy}"), "never written");
    for wrong in [
        COPY.replace("bytes [%data]", "bytes.multicast::cluster [%data]"),
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.exch.b32 [%out], [%data], 16;\n".to_owned(),
    ] {
        told(&wrong, "with these operands");
    }
}
