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
