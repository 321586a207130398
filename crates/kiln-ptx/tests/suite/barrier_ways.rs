//! Threads of a block come to a `__syncthreads()` on the same way, or it is told; what CUDA and PTX allow is not.

use std::path::Path;

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecFinding, ExecProgram, LaunchShape, Options, SimpleMemory};

/// What a block of 128 threads leads to.
struct Told {
    findings: Vec<String>,
    notes: Vec<String>,
}

/// Runs a body. `%t` is the thread, `%w` its warp, `%l` its lane, `[%d]` its word of global memory, which is zero. A line with a number begins a line of the source.
fn run(body: &str, seed: u64, strict: bool) -> Told {
    let body: String = body
        .lines()
        .map(|line| match line.trim().split_once('|') {
            Some((number, rest)) => format!(".loc 1 {number} 5\n{rest}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .func meet() {{
            .loc 1 90 5
            bar.sync 0;
            ret;
        }}
        .func perhaps(.param .b32 yes) {{
            .reg .pred %p; .reg .b32 %v;
            ld.param.b32 %v, [yes];
            setp.eq.u32 %p, %v, 0;
            @%p bra OVER;
            .loc 1 95 5
            bar.sync 0;
            OVER: ret;
        }}
        .visible .entry k(.param .u64 out) {{
            .reg .pred %p<8>; .reg .b32 %r<16>, %t, %w, %l, %k; .reg .b64 %d, %e;
            .loc 1 1 0
            mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31;
            ld.param.u64 %d, [out]; mul.wide.u32 %e, %t, 4; add.u64 %d, %d, %e;
            mov.u32 %k, 0;
            {body}
            ret;
        }}
        .file 1 \"k.cu\""
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let out = memory.allocate_with(&[0; 512]);
    let options = Options { checks: Checks { strict, ..Checks::ALL }, seed, ..Options::default() };
    let shape = LaunchShape::linear(1, 128);
    let outcome =
        program.entry("k").unwrap().launch(&shape, &out.to_le_bytes(), &[], &memory, &options).unwrap();
    let texts = |all: &[ExecFinding]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
    Told { findings: texts(&outcome.findings), notes: texts(&outcome.notes) }
}

/// A body is told as one finding about a barrier, under every seed; the text of the first.
fn is_found(body: &str, what: &str) {
    for seed in 0..6 {
        let told = run(body, seed, false).findings;
        let [text] = &told[..] else { panic!("seed {seed}: {told:#?}\n{body}") };
        assert!(text.contains(what), "seed {seed}: {text}\n{body}");
    }
}

/// Nothing is told of a body, and under strict checks nothing or notes.
fn is_clean(body: &str) {
    for seed in 0..6 {
        let told = run(body, seed, false);
        assert!(
            told.findings.is_empty() && told.notes.is_empty(),
            "seed {seed}: {:#?} {:#?}\n{body}",
            told.findings,
            told.notes
        );
        let strict = run(body, seed, true);
        assert!(strict.findings.is_empty(), "seed {seed}: {:#?}\n{body}", strict.findings);
    }
}

/// Five passes of a loop with a barrier behind a guard: the barrier is skipped where `%p0` holds.
fn guarded_loop(guard: &str) -> String {
    format!(
        "LOOP: {guard}
        10|@%p0 bra SKIP;
        11|bar.sync 0;
        12|SKIP: ld.global.u32 %r9, [%d];
        add.u32 %k, %k, 1;
        setp.lt.u32 %p1, %k, 5;
        @%p1 bra LOOP;
        13|st.global.u32 [%d], %r9;"
    )
}

#[test]
fn warps_that_skip_a_barrier_in_one_pass_are_found_whichever_pass_it_is() {
    for pass in 0..5 {
        let one = format!("setp.eq.u32 %p2, %k, {pass}; setp.eq.and.u32 %p0, %w, 1, %p2;");
        is_found(&guarded_loop(&one), "barrier 0 is");
        let all_but_one = format!("setp.eq.u32 %p2, %k, {pass}; setp.ne.and.u32 %p0, %w, 1, %p2;");
        is_found(&guarded_loop(&all_but_one), "barrier 0 is");
        is_clean(&guarded_loop(&format!("setp.eq.u32 %p0, %k, {pass};")));
    }
    is_found(
        &guarded_loop("setp.eq.u32 %p0, %k, 4; setp.lt.and.u32 %p0, %w, 2, %p0;"),
        "took another path around it",
    );
    let told =
        &run(&guarded_loop("setp.eq.u32 %p2, %k, 2; setp.eq.and.u32 %p0, %w, 1, %p2;"), 0, false).findings[0];
    assert!(told.contains("in another pass of a loop"), "{told}");
    assert!(told.contains("they part at k.cu:10"), "{told}");
}

#[test]
fn warps_that_skip_different_passes_equally_often_are_found() {
    is_found(
        &guarded_loop("add.u32 %r1, %k, %w; and.b32 %r1, %r1, 1; setp.eq.u32 %p0, %r1, 0;"),
        "in another pass of a loop",
    );
    is_found(&guarded_loop("add.u32 %r1, %w, 1; setp.eq.u32 %p0, %k, %r1;"), "in another pass of a loop");
    is_clean(&guarded_loop("and.b32 %r1, %k, 1; setp.eq.u32 %p0, %r1, 0;"));
}

#[test]
fn lanes_that_skip_a_barrier_in_one_pass_are_found_whichever_pass_it_is() {
    for pass in 0..5 {
        let lanes = format!("setp.eq.u32 %p2, %k, {pass}; setp.gt.and.u32 %p0, %l, 20, %p2;");
        let found = run(&guarded_loop(&lanes), 0, false).findings;
        assert!(found.iter().any(|text| text.contains("barrier 0 is")), "pass {pass}: {found:#?}");
    }
    let last = "setp.eq.u32 %p2, %k, 4; setp.gt.and.u32 %p0, %l, 20, %p2;";
    is_found(&guarded_loop(last), "44 took another path around it");
}

#[test]
fn a_barrier_in_both_sides_of_a_branch_on_one_line_is_found() {
    let sides = |decides: &str| {
        format!(
            "20|{decides}
            @%p0 bra ELSE;
            bar.sync 0; bra JOIN;
            ELSE: bar.sync 0;
            21|JOIN: st.global.u32 [%d], %t;"
        )
    };
    is_found(&sides("setp.eq.u32 %p0, %w, 1;"), "is reached by some warps here and by others at k.cu:20");
    is_clean(&sides("setp.eq.u32 %p0, %k, 1;"));
    let assembly = "\n// begin inline asm\nbar.sync 0;\n// end inline asm\n";
    let assembly = sides("setp.eq.u32 %p0, %w, 1;").replace("bar.sync 0;", assembly);
    is_clean(&assembly);
    assert_eq!(run(&assembly, 0, true).notes.len(), 1, "under strict checks");
}

#[test]
fn warps_that_leave_a_loop_with_a_barrier_after_different_passes_are_found() {
    let trips = |count: &str| {
        format!(
            "{count}
            30|LOOP: bar.sync 0;
            add.u32 %k, %k, 1;
            31|setp.lt.u32 %p1, %k, %r1;
            @%p1 bra LOOP;"
        )
    };
    is_found(&trips("add.u32 %r1, %w, 1;"), "took another path around it");
    is_found(&trips("setp.eq.u32 %p0, %w, 3; selp.u32 %r1, 4, 3, %p0;"), "took another path around it");
    is_clean(&trips("mov.u32 %r1, 3;"));
    // Threads without work that return before the loop are usual.
    is_clean(&trips("mov.u32 %r1, 3; setp.gt.u32 %p0, %w, 1; @%p0 ret;"));
    // In each pass of the outer loop, the inner one has as many passes for all threads.
    let nested = "
        OUTER: mov.u32 %r2, 0;
        40|INNER: bar.sync 0;
        add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, #; @%p1 bra INNER;
        41|add.u32 %k, %k, 1; setp.lt.u32 %p2, %k, 3; @%p2 bra OUTER;";
    is_clean(&nested.replace('#', "%k"));
    is_found(&nested.replace('#', "%w"), "in another pass of a loop");
}

#[test]
fn a_return_in_the_middle_of_a_loop_with_a_barrier_is_no_finding() {
    let body = "
        50|LOOP: add.u32 %r1, %k, %w; setp.gt.u32 %p0, %r1, 5; @%p0 bra END;
        51|bar.sync 0;
        52|add.u32 %k, %k, 1; setp.lt.u32 %p1, %k, 4; @%p1 bra LOOP;
        END:";
    is_clean(body);
}

#[test]
fn decisions_that_do_not_matter_to_a_barrier_may_differ() {
    // A barrier that no thread executes, in a branch that threads decide differently, in a loop that they leave at different times.
    is_clean(
        "add.u32 %r1, %l, %w;
        60|LOOP: setp.lt.u32 %p0, %l, 7; @%p0 bra SKIP;
        61|setp.ne.u32 %p1, %k, 77; @%p1 bra SKIP;
        62|bar.sync 0;
        63|SKIP: add.u32 %k, %k, 1; setp.lt.u32 %p2, %k, %r1; @%p2 bra LOOP;
        64|bar.sync 0; st.global.u32 [%d], %t; bar.sync 0;",
    );
    // A return in a loop that threads leave at different times, before a barrier.
    is_clean(
        "70|LOOP: ld.global.u32 %r2, [%d]; setp.eq.u32 %p0, %r2, 9; @%p0 ret;
        71|add.u32 %k, %k, 1; setp.lt.u32 %p1, %k, %w; @%p1 bra LOOP;
        72|bar.sync 0; st.global.u32 [%d], %t;",
    );
    // A return in one side of a branch that threads decide differently.
    is_clean(
        "setp.eq.u32 %p0, %w, 1; @%p0 bra JOIN;
        75|ld.global.u32 %r2, [%d]; setp.eq.u32 %p1, %r2, 9; @%p1 ret;
        76|JOIN: bar.sync 0; st.global.u32 [%d], %t;",
    );
}

#[test]
fn a_barrier_in_a_function_is_checked_like_one_in_the_kernel() {
    let in_loop = |guard: &str, call: &str| guarded_loop(guard).replace("bar.sync 0;", call);
    let once = "setp.eq.u32 %p2, %k, 2; setp.eq.and.u32 %p0, %w, 1, %p2;";
    is_found(&in_loop(once, "call meet, ();"), "barrier 0 is");
    is_clean(&in_loop("setp.eq.u32 %p0, %k, 2;", "call meet, ();"));
    let perhaps = "{ .param .b32 p; st.param.b32 [p], %r1; call perhaps, (p); }";
    let never = "setp.eq.u32 %p0, %k, 9;";
    let skips =
        format!("setp.eq.u32 %p2, %k, 2; setp.eq.and.u32 %p3, %w, 1, %p2; selp.u32 %r1, 0, 1, %p3; {never}");
    is_found(&in_loop(&skips, perhaps), "barrier 0 is");
    is_clean(&in_loop(&format!("and.b32 %r1, %k, 1; {never}"), perhaps));
    let last =
        format!("setp.eq.u32 %p2, %k, 4; setp.eq.and.u32 %p3, %w, 1, %p2; selp.u32 %r1, 0, 1, %p3; {never}");
    is_found(&in_loop(&last, perhaps), "took another path around it");
}

#[test]
fn a_barrier_behind_many_others_is_checked() {
    let many = |guard: &str| {
        let before = "bar.sync 0;\n".repeat(100);
        format!(
            "80|{before}
            81|{guard} @%p0 bra AROUND;
            82|bar.sync 0;
            83|AROUND: ld.global.u32 %r1, [%d]; setp.eq.u32 %p1, %r1, 9; @%p1 ret;
            84|st.global.u32 [%d], %t;"
        )
    };
    is_found(&many("setp.eq.u32 %p0, %w, 1;"), "32 took another path around it");
    is_clean(&many("setp.eq.u32 %p0, %k, 1;"));
    // Each in a separate branch: one that a warp goes around has many before it and behind it.
    let branches = |around: usize| -> String {
        let guard =
            |at: usize| if at == around { "setp.eq.u32 %p0, %w, 1;" } else { "setp.eq.u32 %p0, %k, 1;" };
        let one = |at: usize| format!("86|{} @%p0 bra OVER{at};\nbar.sync 0;\nOVER{at}:\n", guard(at));
        (0..1000).map(one).collect()
    };
    for around in [0, 500, 999] {
        let found = run(&branches(around), 0, around == 999);
        let told = if around == 999 { &found.notes } else { &found.findings };
        assert!(told.iter().any(|text| text.contains("barrier 0 is")), "{around}: {told:#?}");
    }
    is_clean(&branches(1000));
}

#[test]
fn a_table_decides_as_a_branch_does() {
    let table = |index: &str| {
        format!(
            "TABLE: .branchtargets A, B;
            85|brx.idx {index}, TABLE;
            86|A: bar.sync 0; bra C;
            B: bar.sync 0;
            87|C: st.global.u32 [%d], %t;"
        )
    };
    is_found(&table("%r1").replacen("85|", "85|and.b32 %r1, %w, 1; ", 1), "is reached by some warps here");
    is_clean(&table("%k"));
}

#[test]
fn a_way_that_is_too_long_is_not_told_of() {
    let long = "
        88|LOOP: setp.lt.u32 %p0, %k, 20000; @%p0 bra SKIP;
        89|bar.sync 0;
        91|SKIP: add.u32 %k, %k, 1; add.u32 %r1, %w, 20002; setp.lt.u32 %p1, %k, 20004; @%p1 bra LOOP;";
    is_clean(long);
}

/// The findings of a kernel of a planted pair, with the lines of its source that they are about.
fn pair_findings(name: &str, kernel: &str, seed: u64) -> Vec<(Option<u32>, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln/tests/planted/pairs").join(name);
    let source = std::fs::read_to_string(path.with_extension("cu")).unwrap();
    let ptx = std::fs::read_to_string(path.with_extension("ptx")).unwrap();
    let head =
        |word: &str| source.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(word)).unwrap();
    let threads = head("launch: grid 1 block ").parse().unwrap();
    let mut memory = SimpleMemory::new();
    let mut arguments = Vec::new();
    for argument in head("args: ").split("; ") {
        let words: Vec<&str> = argument.split_whitespace().collect();
        let number: u32 = words[2].parse().unwrap();
        let content: Vec<u8> = (0..number).flat_map(u32::to_le_bytes).collect();
        match words[0] {
            "in" => arguments.extend(memory.allocate_with(&content).to_le_bytes()),
            "value" => arguments.extend(number.to_le_bytes()),
            _ => arguments.extend(memory.allocate_with(&vec![0; content.len()]).to_le_bytes()),
        }
    }
    let program = ExecProgram::new(PtxModule::parse(&ptx).unwrap());
    let options = Options { checks: Checks::ALL, seed, ..Options::default() };
    let entry = program.entry(&format!("{kernel}_{name}")).unwrap();
    let outcome = entry.launch(&LaunchShape::linear(1, threads), &arguments, &[], &memory, &options).unwrap();
    let line = |found: &ExecFinding| found.site.source.as_ref().map(|(_, line)| *line);
    outcome.findings.iter().map(|found| (line(found), found.to_string())).collect()
}

#[test]
fn planted_pairs_of_barriers_are_told_apart() {
    for name in [
        "barrier_in_shrinking_loop",
        "barrier_inline_assembly",
        "barrier_lanes_skip_last_pass",
        "barrier_skipped_once",
        "barrier_tile_guard",
        "barrier_tile_guard_unrolled",
        "barrier_trips_by_warp",
        "barrier_two_on_one_line",
        "barrier_two_places",
        "barrier_warps_alternate",
        "barrier_warps_alternate_unrolled",
        "barrier_warps_go_around",
        "barrier_warps_leave_loop_early",
    ] {
        for seed in 0..4 {
            let fixed = pair_findings(name, "fixed", seed);
            assert!(fixed.is_empty(), "{name}, seed {seed}: {fixed:#?}");
            let bug = pair_findings(name, "bug", seed);
            let is_barrier =
                |(line, text): &(Option<u32>, String)| line.is_some() && text.starts_with("barrier 0 is");
            assert!(bug.iter().any(is_barrier), "{name}, seed {seed}: {bug:#?}");
        }
    }
}
