//! Every check finds the mistake planted for it, describes it rightly, and is silent about the twin without it.

use crate::kernels::{Bench, line};
use kiln_ptx::exec::{
    AccessKind, BadAccess, Checks, DeadlockPlace, DeviceHeap, ExecFault, ExecFindingKind, ExecOutcome,
    LaunchShape, Options, SimpleMemory,
};

const ONE_WARP: LaunchShape = threads(32);

const fn threads(count: u32) -> LaunchShape {
    LaunchShape::new([1; 3], [count, 1, 1])
}

/// The one finding of an outcome, which must stand at the line with this marker.
fn only(outcome: &ExecOutcome, marker: &str) -> ExecFindingKind {
    let [finding] = &outcome.findings[..] else { panic!("not one finding: {:#?}", outcome.findings) };
    let text = finding.to_string();
    assert_eq!(finding.site.source, Some(("checks.cu".to_owned(), line(marker))), "{text}");
    assert!(finding.site.ptx_line > 0 && text.contains("checks.cu:"), "{text}");
    assert_eq!(finding.kind.fault(), outcome.fault);
    finding.kind.clone()
}

#[test]
fn a_write_behind_the_end_of_a_block_is_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(40 * 4);
    let shape = LaunchShape::linear(2, 32);
    let good = bench.run("fill", &shape, &[out, 40, 1]);
    assert!(good.is_clean(), "{:#?}", good.findings);

    let bad = bench.run("fill", &shape, &[out, 40, 0]);
    let ExecFindingKind::OutOfBounds(access) = only(&bad, "fill") else { panic!("{:#?}", bad.findings) };
    assert_eq!((access.access, access.memory, access.bytes), (AccessKind::Write, "global", 4));
    assert_eq!(access.address, out + 160);
    assert_eq!(access.near, "just past the end of a block of 160 bytes");
    let site = &bad.findings[0].site;
    assert_eq!((site.kernel.as_str(), site.block, site.thread), ("fill", [1, 0, 0], [8, 0, 0]));
    assert_eq!(bad.fault, Some(ExecFault::IllegalAddress));
    let text = bad.findings[0].to_string();
    let expected = format!(
        "out of bounds: write of 4 bytes at global address {:#x}, which is just past the end of a block of 160 \
         bytes\n  fill at checks.cu:{} (PTX line {}), block (1,0,0) thread (8,0,0)",
        out + 160,
        line("fill"),
        site.ptx_line
    );
    assert_eq!(text, expected);
}

#[test]
fn null_and_wild_pointers_are_found() {
    let mut bench = Bench::new();
    let (block, out) = (bench.memory.allocate(64), bench.memory.allocate(128));
    assert!(bench.run("read_at", &ONE_WARP, &[block, out, 15]).is_clean());
    for (base, at) in [(0, 0i64), (block, 1 << 30), (block, -1)] {
        let bad = bench.run("read_at", &ONE_WARP, &[base, out, at as u64]);
        let ExecFindingKind::OutOfBounds(access) = only(&bad, "read_at") else {
            panic!("{:#?}", bad.findings)
        };
        assert_eq!(access.access, AccessKind::Read);
        assert_eq!(access.address, base.wrapping_add_signed(at * 4));
    }
}

#[test]
fn freed_memory_is_found() {
    let mut bench = Bench::new();
    let (block, out) = (bench.memory.allocate(128), bench.memory.allocate(128));
    assert!(bench.run("read_at", &ONE_WARP, &[block, out, 3]).is_clean());
    bench.memory.free(block);
    let bad = bench.run("read_at", &ONE_WARP, &[block, out, 3]);
    let ExecFindingKind::UseAfterFree(access) = only(&bad, "read_at") else { panic!("{:#?}", bad.findings) };
    assert_eq!(access.near, "12 bytes into a block of 128 bytes that was freed");
    assert!(bad.findings[0].is_use_after_free());
}

#[test]
fn memory_that_may_only_be_read_is_not_written() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(128);
    assert!(bench.run("fill", &ONE_WARP, &[out, 32, 1]).is_clean());
    bench.memory.protect(out);
    let bad = bench.run("fill", &ONE_WARP, &[out, 32, 1]);
    assert!(matches!(only(&bad, "fill"), ExecFindingKind::ReadOnly(_)));
}

#[test]
fn a_misaligned_address_is_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(64);
    assert!(bench.run("store_at", &ONE_WARP, &[out, 8]).is_clean());
    let bad = bench.run("store_at", &ONE_WARP, &[out, 6]);
    let ExecFindingKind::Misaligned(access) = only(&bad, "store_at") else { panic!("{:#?}", bad.findings) };
    assert_eq!((access.address, access.near.as_str()), (out + 6, "no multiple of 4"));
    assert_eq!(bad.fault.map(ExecFault::code), Some(716));
}

#[test]
fn shared_and_local_memory_have_ends() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(64);
    assert!(bench.run("write_shared", &ONE_WARP, &[out, 7]).is_clean());
    let bad = bench.run("write_shared", &ONE_WARP, &[out, 9]);
    let ExecFindingKind::OutOfBounds(access) = only(&bad, "write_shared") else {
        panic!("{:#?}", bad.findings)
    };
    assert_eq!((access.memory, access.address), ("shared", 36));
    assert_eq!(access.near, "4 bytes past the end of `s`, 32 bytes of shared memory");

    assert!(bench.run("write_local", &ONE_WARP, &[out, 1, 4]).is_clean());
    let bad = bench.run("write_local", &ONE_WARP, &[out, 7, 4]);
    let ExecFindingKind::OutOfBounds(access) = only(&bad, "write_local") else {
        panic!("{:#?}", bad.findings)
    };
    assert_eq!(access.memory, "local");

    let bad = bench.run("write_local", &ONE_WARP, &[out, u64::from(-1_i32 as u32), 4]);
    let ExecFindingKind::OutOfBounds(access) = only(&bad, "write_local") else {
        panic!("{:#?}", bad.findings)
    };
    assert_eq!(access.near, "4 bytes before the start of the 16 bytes of the stack of the thread");
}

#[test]
fn the_heap_is_watched() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(64);
    let heap = DeviceHeap::default();
    let options = Options { heap: Some(&heap), ..Options::default() };
    let shape = threads(1);
    assert!(bench.run_with("heap", &shape, &[out, 0, 3, 0], &options).is_clean());
    assert_eq!(heap.used_bytes(), 0);

    let bad = bench.run_with("heap", &shape, &[out, 0, 4, 0], &options);
    let ExecFindingKind::OutOfBounds(access) = only(&bad, "heap_over") else { panic!("{:#?}", bad.findings) };
    let own = "a block of 16 bytes in the device heap, allocated at checks.cu:32 (PTX line ";
    assert!(access.near.starts_with(&format!("just past the end of {own}")), "{}", access.near);
    let bad = bench.run_with("heap", &shape, &[out, 1, 2, 0], &options);
    let ExecFindingKind::UseAfterFree(access) = only(&bad, "heap_late") else {
        panic!("{:#?}", bad.findings)
    };
    assert_eq!(access.near, "8 bytes into a block of 16 bytes that was freed in the device heap");
    let bad = bench.run_with("heap", &shape, &[out, 0, 2, 1], &options);
    assert!(matches!(only(&bad, "heap_twice"), ExecFindingKind::BadFree(_)));
    let empty = bench.run("heap", &shape, &[out, 0, 0, 0]);
    assert_eq!(empty.fault, Some(ExecFault::IllegalAddress), "without a heap malloc answers null");
}

#[test]
fn an_access_between_two_blocks_of_the_heap_is_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(64);
    let run = |bench: &mut Bench, size: u64, at: i32| {
        let heap = DeviceHeap::default();
        heap.allocate(size).unwrap();
        let options = Options { heap: Some(&heap), ..Options::default() };
        bench.run_with("heap", &threads(1), &[out, 0, u64::from(at as u32), 0], &options)
    };
    for size in [16, 32, 64, 4096] {
        assert!(run(&mut bench, size, 3).is_clean());
        let past = format!("just past the end of a block of {size} bytes in the device heap");
        for (at, place) in [(-1, "4 bytes before the start of a block of 16 bytes"), (-4, &past)] {
            let bad = run(&mut bench, size, at);
            let ExecFindingKind::OutOfBounds(access) = only(&bad, "heap_over") else {
                panic!("{:#?}", bad.findings)
            };
            assert!(access.near.starts_with(place), "{size}: {}", access.near);
        }
    }
}

/// The read of bytes that were never written, of the first value that is copied to an array at a marked line.
fn copied(outcome: &ExecOutcome, memory: &SimpleMemory, out: u64, marker: &str) -> BadAccess {
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    let stores = memory.undefined_stores(out);
    let Some((_, store)) = stores.first() else { panic!("no copy to {marker}") };
    let finding = &store.finding;
    let ExecFindingKind::Uninitialised { access, read_site } = &finding.kind else { panic!("{finding}") };
    assert_eq!([&finding.site, read_site].map(|site| site.source.clone().unwrap().1), [line(marker); 2]);
    assert!(!store.may_be_padding);
    access.clone()
}

#[test]
fn copies_of_bytes_that_were_never_written_are_kept_on_request() {
    let mut bench = Bench::new();
    let (fresh, out) = (bench.memory.allocate_uninitialised(256), bench.memory.allocate(256));
    let all = Options { checks: Checks::ALL, ..Options::default() };
    let quiet = Options::default();

    assert!(bench.memory.write(fresh, &[1; 128]));
    assert!(bench.run_with("read_global", &ONE_WARP, &[fresh, out], &all).is_clean());
    let bad = bench.run_with("read_global", &threads(64), &[fresh, out], &all);
    let access = copied(&bad, &bench.memory, out, "read_global");
    assert_eq!(access.address, fresh + 128);
    assert!(bench.run_with("read_global", &threads(64), &[fresh, out], &quiet).is_clean());
    assert!(bench.memory.undefined_stores(out).is_empty());

    assert!(bench.run_with("read_shared", &threads(64), &[out, 1], &all).is_clean());
    let bad = bench.run_with("read_shared", &threads(64), &[out, 0], &all);
    let access = copied(&bad, &bench.memory, out, "read_shared");
    assert_eq!((access.memory, access.address), ("shared", 63 * 4));

    assert!(bench.run_with("read_local", &ONE_WARP, &[out, 8], &all).is_clean());
    let bad = bench.run_with("read_local", &ONE_WARP, &[out, 5], &all);
    let access = copied(&bad, &bench.memory, out, "read_local");
    assert_eq!(access.memory, "local");
    assert_eq!(bench.memory.undefined_stores(out)[0].1.finding.site.thread, [2, 0, 0]);
}

/// The race between two marked lines, and which thread was there first.
fn race(outcome: &ExecOutcome, later: &str, earlier: &str) -> (AccessKind, AccessKind, [u32; 3]) {
    match only(outcome, later) {
        ExecFindingKind::Race { access, earlier: kind, earlier_site, .. } => {
            assert_eq!(earlier_site.source.as_ref().map(|(_, line)| *line), Some(line(earlier)));
            (access.access, kind, earlier_site.thread)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn races_between_warps_are_found() {
    let mut bench = Bench::new();
    let (from, to) = (bench.memory.allocate(512), bench.memory.allocate(512));
    assert!(bench.run("neighbour", &threads(128), &[from, to, 1]).is_clean());
    // The first warp reads what the third one writes afterwards.
    let bad = bench.run("neighbour", &threads(128), &[from, to, 0]);
    let seen = race(&bad, "neighbour_write", "neighbour_read");
    assert_eq!(seen, (AccessKind::Write, AccessKind::Read, [0, 0, 0]));
    let text = bad.findings[0].to_string();
    assert!(text.starts_with(
        "race: write of 4 bytes at shared address 0x100 (byte 256 of `s`) and the read by block (0,0,0) thread (0,0,0) at checks.cu:"
    ));
    assert!(text.contains(", with nothing to order them\n  neighbour at checks.cu:"), "{text}");
    assert!(text.contains("block (0,0,0) thread (64,0,0)"), "{text}");

    assert!(bench.run("overwrite", &threads(64), &[to, 1]).is_clean());
    let bad = bench.run("overwrite", &threads(64), &[to, 0]);
    let seen = race(&bad, "overwrite_read", "overwrite_write");
    assert_eq!(seen, (AccessKind::Read, AccessKind::Write, [31, 0, 0]));
}

#[test]
fn races_within_a_warp_are_found() {
    let mut bench = Bench::new();
    let (from, to) = (bench.memory.allocate(512), bench.memory.allocate(512));
    assert!(bench.run("warp_exchange", &ONE_WARP, &[from, to, 1]).is_clean());
    let bad = bench.run("warp_exchange", &ONE_WARP, &[from, to, 0]);
    assert!(matches!(only(&bad, "warp_exchange"), ExecFindingKind::Race { .. }));

    assert!(bench.run("one_place", &ONE_WARP, &[to, 1]).is_clean(), "equal values do no harm");
    let bad = bench.run("one_place", &ONE_WARP, &[to, 0]);
    let (later, earlier, _) = race(&bad, "one_place", "one_place");
    assert_eq!((later, earlier), (AccessKind::Write, AccessKind::Write));

    assert!(
        bench.run("bytes", &ONE_WARP, &[from, to, 0]).is_clean(),
        "neighbouring bytes are different places"
    );
    let bad = bench.run("bytes", &ONE_WARP, &[from, to, 1]);
    race(&bad, "bytes_read", "bytes_write");
}

#[test]
fn atomics_race_with_plain_reads_only() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(64);
    assert!(bench.run("counted", &threads(128), &[out, 1]).is_clean());
    let bad = bench.run("counted", &threads(128), &[out, 0]);
    let seen = race(&bad, "counted", "counted_add");
    assert_eq!((seen.0, seen.1), (AccessKind::Read, AccessKind::Atomic));
}

#[test]
fn a_flag_orders_what_fences_enclose() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(128);
    for seed in 0..4 {
        let options = Options { seed, ..Options::default() };
        let good = bench.run_with("hand_over", &threads(64), &[out, 1], &options);
        assert!(good.is_clean(), "{:#?}", good.findings);
        let bad = bench.run_with("hand_over", &threads(64), &[out, 0], &options);
        assert!(matches!(only(&bad, "hand_over"), ExecFindingKind::Race { .. }));
    }
}

#[test]
fn checks_that_are_off_stay_silent() {
    let mut bench = Bench::new();
    let (from, to) = (bench.memory.allocate(512), bench.memory.allocate(512));
    let none = Options { checks: Checks::NONE, ..Options::default() };
    assert!(bench.run_with("neighbour", &threads(128), &[from, to, 0], &none).is_clean());
    assert!(bench.run_with("leave_early", &threads(64), &[to, 40], &none).is_clean());
}

#[test]
fn a_barrier_reached_by_a_diverged_warp_is_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(256);
    assert!(bench.run("two_barriers", &threads(64), &[out, 0]).is_clean());
    let bad = bench.run("two_barriers", &threads(64), &[out, 1]);
    let finding = &bad.findings[0];
    let ExecFindingKind::Barrier(text) = &finding.kind else { panic!("{:#?}", bad.findings) };
    let lines = [line("two_barriers_first"), line("two_barriers_second")];
    let here = finding.site.source.as_ref().map(|(_, line)| *line).unwrap();
    let other = if here == lines[0] { lines[1] } else { lines[0] };
    assert!(lines.contains(&here));
    let start =
        "barrier 0 is reached by a diverged warp: other threads of it are at the barrier at checks.cu:";
    assert!(text.starts_with(&format!("{start}{other} ")), "{text}");
    assert_eq!(bad.fault, None, "hardware goes on, and so does the launch");
}

#[test]
fn part_of_a_warp_that_exits_before_a_barrier_is_a_note_and_whole_warps_are_when_checks_are_strict() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(256);
    let strict = Options { checks: Checks { strict: true, ..Checks::ALL }, ..Options::default() };
    let all = bench.run_with("leave_early", &threads(64), &[out, 64], &strict);
    assert!(all.is_clean() && all.notes.is_empty());
    let usual = bench.run("leave_early", &threads(64), &[out, 32]);
    assert!(usual.is_clean() && usual.notes.is_empty(), "exited threads count as arrived");
    let warps = bench.run_with("leave_early", &threads(64), &[out, 32], &strict);
    assert!(warps.is_clean() && warps.notes.len() == 1, "{:#?}", warps.notes);
    let told = bench.run("leave_early", &threads(64), &[out, 40]);
    assert!(told.is_clean(), "{:#?}", told.findings);
    let [note] = &told.notes[..] else { panic!("{:#?}", told.notes) };
    assert_eq!(note.site.source, Some(("checks.cu".to_owned(), line("leave_early"))));
    let ExecFindingKind::Barrier(text) = &note.kind else { panic!("{note}") };
    let expected = "barrier 0 is not reached by all threads of the block: 24 exited before it, thread (40,0,0) the first";
    assert_eq!(text, expected);
}

#[test]
fn barriers_with_different_counts_are_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(256);
    assert!(bench.run("wrong_count", &threads(64), &[out, 64]).is_clean());
    let bad = bench.run("wrong_count", &threads(64), &[out, 96]);
    let texts: Vec<String> = bad.findings.iter().map(ToString::to_string).collect();
    let starts = |start: &str| texts.iter().any(|text| text.starts_with(start));
    assert!(starts("barrier 1 is used with different counts at once: for 96 threads and for 64 threads"));
    assert!(starts("barrier 1 waits for 96 threads, and the block has 64"), "{texts:?}");
}

#[test]
fn threads_that_wait_for_each_other_are_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(256);
    assert!(bench.run("never_met", &threads(64), &[out, 2]).is_clean());
    let bad = bench.run("never_met", &threads(64), &[out, 3]);
    let ExecFindingKind::Deadlock { text, place: DeadlockPlace::CountedBarrier } =
        only(&bad, "never_met_first")
    else {
        panic!("{:#?}", bad.findings)
    };
    assert!(text.contains("32 threads wait at barrier 2 at checks.cu:"), "{text}");
    assert!(text.contains("32 threads wait at barrier 3 at checks.cu:"), "{text}");
    assert_eq!(bad.fault, Some(ExecFault::LaunchTimeout));

    assert!(bench.run("crossed_votes", &ONE_WARP, &[out, 0]).is_clean());
    let bad = bench.run("crossed_votes", &ONE_WARP, &[out, 1]);
    let finding = &bad.findings[0];
    assert!(
        matches!(finding.kind, ExecFindingKind::Deadlock { place: DeadlockPlace::Mask, .. }),
        "{finding}"
    );
    assert!(
        finding.is_barrier() && finding.to_string().contains("16 threads wait at `vote.sync.ballot.b32`")
    );
}

#[test]
fn a_mask_without_the_thread_that_uses_it_is_found() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(256);
    assert!(bench.run("foreign_mask", &ONE_WARP, &[out, 0xffff_ffff]).is_clean());
    let bad = bench.run("foreign_mask", &ONE_WARP, &[out, 0x0000_ffff]);
    let ExecFindingKind::Mask(text) = only(&bad, "foreign_mask") else { panic!("{:#?}", bad.findings) };
    assert_eq!(
        text,
        "the mask 0x0000ffff does not name the thread that uses it; name the lanes that execute the instruction"
    );
    assert_eq!(bad.findings[0].site.thread, [16, 0, 0]);
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let mut bench = Bench::new();
    let (flag, out) = (bench.memory.allocate(4), bench.memory.allocate(4));
    let options = Options { step_limit: 100_000, ..Options::default() };
    let bad = bench.run_with("spin", &threads(1), &[flag, out], &options);
    assert!(matches!(only(&bad, "spin"), ExecFindingKind::StepLimit(100_000)));
    assert_eq!(bad.fault.map(ExecFault::code), Some(702));
    assert!(bench.memory.write(flag, &[1]));
    assert!(bench.run_with("spin", &threads(1), &[flag, out], &options).is_clean());
}

#[test]
fn endless_recursion_ends_at_the_limit() {
    let mut bench = Bench::new();
    let out = bench.memory.allocate(4);
    assert!(bench.run("recurse", &threads(1), &[out, 1000]).is_clean());
    let expected = (1..=1000).fold(2i32, |below, n| below / 2 + n);
    assert_eq!(bench.memory.read(out, 4), Some(expected.to_le_bytes().to_vec()));
    let bad = bench.run("recurse", &threads(1), &[out, u64::from(u32::MAX)]);
    let finding = &bad.findings[0];
    assert!(matches!(finding.kind, ExecFindingKind::StackOverflow(_)), "{finding}");
    assert_eq!(finding.site.source, Some(("checks.cu".to_owned(), line("deeper"))));
    assert!(finding.to_string().contains("recurse in _Z6deeperi at"), "{finding}");
}

#[test]
fn traps_and_assertions_end_a_launch() {
    let mut bench = Bench::new();
    let (from, out) = (bench.memory.allocate(128), bench.memory.allocate(128));
    assert!(bench.run("stop", &ONE_WARP, &[out, 0]).is_clean());
    let bad = bench.run("stop", &ONE_WARP, &[out, 1]);
    assert_eq!(only(&bad, "stop"), ExecFindingKind::Trap);
    assert_eq!((bad.findings[0].site.thread, bad.fault.map(ExecFault::code)), ([5, 0, 0], Some(719)));

    assert!(bench.run("claim", &ONE_WARP, &[from, out]).is_clean());
    assert!(bench.memory.write(from + 4 * 9, &[200]));
    let bad = bench.run("claim", &ONE_WARP, &[from, out]);
    let expected = ExecFindingKind::Assertion {
        message: "in[threadIdx.x] < 100".to_owned(),
        file: "checks.cu".to_owned(),
        line: line("claim"),
        function: "void claim(const int *, int *)".to_owned(),
    };
    assert_eq!(only(&bad, "claim"), expected);
    assert_eq!((bad.findings[0].site.thread, bad.fault.map(ExecFault::code)), ([9, 0, 0], Some(710)));
}

#[test]
fn a_call_to_no_function_is_found() {
    let mut bench = Bench::new();
    let (step, out) = (bench.memory.allocate(8), bench.memory.allocate(8));
    assert!(bench.memory.write(step, &64u64.to_le_bytes()));
    let bad = bench.run("call_pointer", &threads(1), &[step, out]);
    assert_eq!(only(&bad, "call_pointer"), ExecFindingKind::BadCall(64));
}
