//! What is allowed and may be a mistake is noted, and what is usual is not.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// The notes of a block of so many threads; there must be no finding.
fn notes(threads: u32, strict: bool, body: &str) -> Vec<String> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .visible .entry k() {{
            .reg .pred %p<4>; .reg .b32 %r<8>, %t;
            mov.u32 %t, %tid.x;
            {body}
            ret;
        }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let options = Options { checks: Checks { strict, ..Checks::ALL }, ..Options::default() };
    let shape = LaunchShape::linear(1, threads);
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &[], &[], &SimpleMemory::new(), &options).unwrap();
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    outcome.notes.iter().map(|note| note.kind.to_string()).collect()
}

#[test]
fn a_mask_that_names_lanes_that_have_exited_is_noted() {
    let body = "setp.ge.u32 %p0, %t, 16; @%p0 exit; vote.sync.ballot.b32 %r1, 1, #;";
    let [note] = &notes(32, false, &body.replace('#', "0xffffffff"))[..] else { panic!("one note") };
    assert!(note.starts_with("the mask 0xffffffff names 16 lanes that have exited"), "{note}");
    assert!(notes(32, false, &body.replace('#', "0xffff")).is_empty());
    let [note] = &notes(32, false, &body.replace('#', "0x1ffff"))[..] else { panic!("one note") };
    assert!(
        note.starts_with("the mask 0x0001ffff names 1 lane that has exited or never existed, lane 16: "),
        "{note}"
    );
    let whole = "vote.sync.ballot.b32 %r1, 1, 0xffffffff; bar.warp.sync 0xffffffff;";
    assert!(notes(16, false, whole).is_empty(), "lanes that a block never had");
    assert_eq!(notes(16, true, whole).len(), 2, "under strict checks");
}

#[test]
fn a_width_that_is_no_power_of_two_is_noted() {
    let body = "shfl.sync.idx.b32 %r1, %t, 0, #, 0xffffffff;";
    // `(32 - width) << 8 | 31`.
    let [note] = &notes(32, false, &body.replace('#', "0x1b1f"))[..] else { panic!("one note") };
    assert!(note.starts_with("the shuffle has a width of 5 lanes"), "{note}");
    for width in [1, 2, 4, 8, 16, 32] {
        let packed = ((32 - width) << 8 | 31_u32).to_string();
        assert!(notes(32, false, &body.replace('#', &packed)).is_empty(), "{width}");
    }
}

#[test]
fn a_barrier_that_is_left_incomplete_is_noted() {
    let [note] = &notes(64, false, "setp.ge.u32 %p0, %t, 32; @%p0 exit; bar.arrive 1, 64;")[..] else {
        panic!("one note")
    };
    assert!(note.starts_with("barrier 1 is left incomplete: 32 of 64 threads arrived"), "{note}");
    let met = "setp.lt.u32 %p0, %t, 32; @%p0 bra A; bar.sync 1, 64; bra B; A: bar.arrive 1, 64; B:";
    assert!(notes(64, false, met).is_empty());
}

#[test]
fn a_barrier_at_two_places_is_noted_by_strict_checks() {
    let body = "setp.lt.u32 %p0, %t, 32; @%p0 bra A; bar.sync 0; bra B; A: bar.sync 0; B:";
    let [note] = &notes(64, true, body)[..] else { panic!("one note") };
    assert!(note.starts_with("barrier 0 is reached by some warps here and by others at PTX line"), "{note}");
    assert!(notes(64, false, body).is_empty());
    assert!(notes(64, true, "bar.sync 0; bar.sync 0;").is_empty());
}

/// The findings of a block of 64 threads.
fn findings(body: &str, seed: u64) -> Vec<String> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .func meet() {{ .reg .b32 %v; bar.sync 0; ret; }}
        .func count() {{ .reg .b32 %v; vote.sync.ballot.b32 %v, 1, 0xffffffff; ret; }}
        .func count_deep() {{ call count, (); ret; }}
        .visible .entry k(.param .u64 out) {{
            .shared .align 4 .b8 s[256];
            .reg .pred %p<4>; .reg .b32 %r<8>, %t, %so; .reg .b64 %d<4>;
            mov.u32 %t, %tid.x; mov.u32 %so, s; mad.lo.u32 %so, %t, 4, %so;
            ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2;
            {body}
            ret;
        }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let out = memory.allocate(256);
    let options = Options { checks: Checks::ALL, seed, ..Options::default() };
    let shape = LaunchShape::linear(1, 64);
    let outcome = program.entry("k").unwrap().launch(&shape, &out.to_le_bytes(), &[], &memory, &options);
    outcome.unwrap().findings.iter().map(|finding| finding.kind.to_string()).collect()
}

#[test]
fn a_barrier_in_a_branch_that_others_go_around_is_a_finding() {
    let around = "setp.ge.u32 %p0, %t, 50; @%p0 bra AROUND; #1 0; AROUND: st.global.u32 [%d1], %t;";
    for seed in 0..4 {
        let found = findings(&around.replace("#1", "bar.sync"), seed);
        let [text] = &found[..] else { panic!("{found:?}") };
        let begin = "barrier 0 is not reached by all threads of the block: 14 took another path around it and have ended, thread (50,0,0) among them";
        assert!(text.starts_with(begin), "{text}");
    }
    assert!(findings(&around.replace("#1", "barrier.sync"), 1).is_empty(), "that one may be reached apart");
    // An early end, also one that does something first, is no such branch.
    for body in [
        "setp.ge.u32 %p0, %t, 50; @%p0 bra END; bar.sync 0; st.global.u32 [%d1], %t; END:",
        "setp.ge.u32 %p0, %t, 50; @%p0 bra EARLY; bar.sync 0; st.global.u32 [%d1], %t; ret; EARLY: st.global.u32 [%d1], %t;",
        "setp.ge.u32 %p0, %t, 32; @%p0 bra AROUND; bar.sync 0; AROUND: st.global.u32 [%d1], %t;",
    ] {
        assert!(findings(body, 1).is_empty(), "{body}: {:?}", findings(body, 1));
    }
}

#[test]
fn a_function_that_other_threads_go_around_is_a_finding() {
    let around = "setp.ge.u32 %p0, %t, 50; @%p0 bra AROUND; call #, (); AROUND: st.global.u32 [%d1], %t;";
    for function in ["meet", "count", "count_deep"] {
        let found = findings(&around.replace('#', function), 1);
        let [text] = &found[..] else { panic!("{function}: {found:?}") };
        assert!(text.contains("took another path around"), "{function}: {text}");
        let early = "setp.ge.u32 %p0, %t, 50; @%p0 bra END; call #, (); st.global.u32 [%d1], %t; END:";
        let early = early.replace('#', function);
        assert!(findings(&early, 1).is_empty(), "{function}: {:?}", findings(&early, 1));
        let early = "setp.ge.u32 %p0, %t, 50; @%p0 ret; call #, (); st.global.u32 [%d1], %t;";
        let early = early.replace('#', function);
        assert!(findings(&early, 1).is_empty(), "{function}: {:?}", findings(&early, 1));
    }
    let both = "setp.ge.u32 %p0, %t, 50; @%p0 bra ELSE; call count, (); bra JOIN; ELSE: call count, (); JOIN: st.global.u32 [%d1], %t;";
    assert!(findings(both, 1).is_empty(), "{:?}", findings(both, 1));
}

#[test]
fn different_masks_of_lanes_that_name_each_other_are_a_finding() {
    let vote = "setp.lt.u32 %p1, %t, 32; @%p1 ret; setp.lt.u32 %p0, %t, 48; selp.u32 %r1, #, %p0; #2 st.global.u32 [%d1], %r2;";
    let with = |masks: &str, operation: &str| vote.replace("#2", operation).replace('#', masks);
    for operation in ["vote.sync.ballot.b32 %r2, 1, %r1;", "shfl.sync.bfly.b32 %r2, %t, 1, 31, %r1;"] {
        let different: usize = (0..4)
            .map(|seed| findings(&with("0xffff, 0xffffffff", operation), seed))
            .map(|found| {
                let is_meant = |text: &&String| {
                    text.contains("lanes that execute this instruction with another mask, lane 0 the first")
                };
                assert!(found.iter().all(|text| is_meant(&text)), "{found:?}");
                found.len()
            })
            .sum();
        assert!(different > 0, "{operation}");
    }
    // Each half of the second warp names itself.
    let halves = "setp.lt.u32 %p1, %t, 32; @%p1 ret; setp.lt.u32 %p0, %t, 48; selp.u32 %r1, 0xffff, 0xffff0000, %p0; vote.sync.ballot.b32 %r2, 1, %r1; st.global.u32 [%d1], %r2;";
    assert!(findings(halves, 1).is_empty(), "{:?}", findings(halves, 1));
}

#[test]
fn threads_that_arrive_again_are_told_as_that_whatever_their_lanes_do() {
    let body = "setp.ge.u32 %p0, %t, 32; @%p0 bra WAIT;
        st.shared.u32 [%so], %t; bar.arrive 1, 64; st.shared.u32 [%so], %t; bar.arrive 1, 64; bra DONE;
        WAIT: bar.sync 1, 64; bar.sync 1, 64; DONE:";
    let mut again = 0;
    for seed in 0..32 {
        let found = findings(body, seed);
        assert!(!found.iter().any(|text| text.contains("diverged")), "seed {seed}: {found:?}");
        again += usize::from(found.iter().any(|text| text.contains("arrived at twice by the same threads")));
    }
    assert!(again > 8, "{again} of 32");
}
