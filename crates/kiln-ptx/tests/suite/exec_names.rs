//! Findings name the array, the variable or the argument that an access belongs to.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    AddressBase, AddressMistake, Checks, DeadlockPlace, ExecFinding, ExecFindingKind, ExecProgram,
    LaunchShape, Options, SimpleMemory,
};

/// The first finding of a block of 32 threads whose arguments are two buffers of 128 bytes and a number of eight bytes.
fn found(body: &str) -> ExecFinding {
    found_in(body, 32)
}

/// The same of a block of so many threads.
fn found_in(body: &str, threads: u32) -> ExecFinding {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .visible .global .align 4 .b8 table[64];
        .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 n) {{
            .shared .align 4 .b8 first[64]; .shared .align 16 .b8 tile[128];
            .reg .pred %p<4>; .reg .b32 %r<8>, %t; .reg .b64 %d<8>;
            mov.u32 %t, %tid.x; mul.wide.u32 %d0, %t, 4;
            {body}
            ret;
        }}"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let table = memory.allocate(64);
    let arguments = [memory.allocate(128), memory.allocate(128), 1 << 40].map(u64::to_le_bytes).concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, threads);
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &arguments, &[table], &memory, &options).unwrap();
    outcome.findings.into_iter().next().expect("a finding")
}

fn base(body: &str) -> Option<AddressBase> {
    match found(body).kind {
        ExecFindingKind::OutOfBounds(access) => access.base,
        other => panic!("{other}"),
    }
}

#[test]
fn an_access_that_leaves_a_variable_names_it() {
    let found = found("mov.u64 %d1, table; add.s64 %d1, %d1, %d0; st.global.u32 [%d1], %t;").to_string();
    let expected = "which is just past the end of the variable `table`, which has 64 bytes";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn an_access_near_a_variable_names_it_where_the_code_does_not_tell() {
    // The pointer comes out of memory.
    let stored = "mov.u64 %d1, table; ld.param.u64 %d2, [a]; st.global.u64 [%d2], %d1; ld.global.u64 %d3, [%d2]; st.global.u32 [%d3+76], %t;";
    let text = found(&format!("setp.ne.u32 %p0, %t, 0; @%p0 ret; {stored}")).to_string();
    assert!(text.contains("12 bytes past the end of the variable `table`, which has 64 bytes"), "{text}");
    let before = stored.replace("%d3+76", "%d3+-8");
    let text = found(&format!("setp.ne.u32 %p0, %t, 0; @%p0 ret; {before}")).to_string();
    assert!(text.contains("8 bytes before the start of the variable `table`, which has 64 bytes"), "{text}");
}

#[test]
fn a_barrier_with_a_count_says_how_many_threads_came() {
    let body = "setp.ge.u32 %p0, %t, 32; @%p0 bra B; bar.sync 1, 64; ret; B: bar.sync 2, 64;";
    let found = found_in(body, 64);
    let ExecFindingKind::Deadlock { text, place: DeadlockPlace::CountedBarrier } = &found.kind else {
        panic!("{found}")
    };
    assert!(
        text.contains("32 threads wait at barrier 1 at PTX line ")
            && text.contains(", where 32 of 64 threads came"),
        "{text}"
    );
}

#[test]
fn rows_of_a_matrix_that_lie_badly_apart_are_told_as_that() {
    let load = |bytes: u32| {
        format!(
            "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, {bytes}, %r1; setp.gt.u32 %p0, %t, 7; @%p0 mov.u32 %r1, tile;
             ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r2}}, [%r1];"
        )
    };
    let text = found(&load(12)).to_string();
    let bad = "which is no multiple of 16, as each row of this matrix must be: its rows lie 12 bytes apart";
    assert!(text.contains(bad), "{text}");
    let kind = found(&load(12)).kind;
    let ExecFindingKind::Misaligned(access) = kind else { panic!("{kind}") };
    assert_eq!(access.mistake, Some(AddressMistake::RowDistance(12)));
    // The pointer itself.
    let shifted = load(16).replace("mov.u32 %r1, tile; mad", "mov.u32 %r1, tile; add.u32 %r1, %r1, 8; mad");
    let kind = found(&shifted).kind;
    let ExecFindingKind::Misaligned(access) = kind else { panic!("{kind}") };
    assert_eq!(access.mistake, None);
}

#[test]
fn a_lane_that_has_exited_is_told_apart_from_one_that_is_not_named() {
    let exited = "setp.gt.u32 %p0, %t, 15; @%p0 ret; shfl.sync.down.b32 %r1, %t, 8, 31, 0xffffffff; setp.eq.u32 %p1, %r1, 7; @%p1 trap;";
    let kind = found(exited).kind;
    let ExecFindingKind::InactiveLane { text, has_exited: true } = &kind else { panic!("{kind}") };
    assert!(text.contains("from lane 16, which"), "{text}");
    let unnamed = exited
        .replace("@%p0 ret;", "@%p0 bra END;")
        .replace("0xffffffff", "0x0000ffff")
        .replace("@%p1 trap;", "@%p1 trap; END: bar.sync 0;");
    let kind = found(&unnamed).kind;
    assert!(matches!(kind, ExecFindingKind::InactiveLane { has_exited: false, .. }), "{kind}");
}

#[test]
fn a_pointer_to_a_local_variable_of_a_function_that_returned_is_told_as_that() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64
        .func (.param .b64 result) leak() {
            .local .align 4 .b8 own[16]; .reg .b64 %d<4>; .reg .b32 %r<2>;
            mov.u64 %d0, own; cvta.local.u64 %d1, %d0; mov.u32 %r0, 7; st.u32 [%d1], %r0; st.param.b64 [result], %d1; ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b64 %d<4>; .reg .b32 %r<2>;
            { .param .b64 got; call.uni (got), leak, (); ld.param.b64 %d0, [got]; }
            ld.u32 %r0, [%d0]; ld.param.u64 %d1, [out]; st.global.u32 [%d1], %r0; ret;
        }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let mut memory = SimpleMemory::new();
    let arguments = memory.allocate(128).to_le_bytes();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&LaunchShape::linear(1, 1), &arguments, &[], &memory, &options).unwrap();
    let ExecFindingKind::OutOfBounds(access) = &outcome.findings[0].kind else {
        panic!("{:#?}", outcome.findings)
    };
    assert!(access.near.starts_with("in the local memory of a function that has returned"), "{access:?}");
    assert_eq!(access.mistake, Some(AddressMistake::ReturnedFunction));
}

#[test]
fn a_variable_that_was_never_assigned_has_the_name_of_its_register() {
    let found = found("setp.eq.u32 %p0, %t, 40; @%p0 mov.u32 %r5, 1; setp.eq.u32 %p1, %r5, 1; @%p1 trap;");
    assert_eq!(found.kind, ExecFindingKind::Unassigned { register: "%r5".to_owned() });
    let text = found.to_string();
    assert!(text.starts_with("unassigned: a variable that was never assigned (register %r5)"), "{text}");
}

#[test]
fn the_argument_that_an_address_was_computed_from_is_known() {
    let first = Some(AddressBase::Argument { offset: 0 });
    let far = "ld.param.u64 %d1, [a]; cvta.to.global.u64 %d2, %d1; add.s64 %d3, %d2, %d0;";
    assert_eq!(base(&format!("{far} st.global.u32 [%d3+1048576], %t;")), first);
    // A number of eight bytes is no pointer.
    let by_number = "ld.param.u64 %d4, [n]; mul.lo.s64 %d4, %d4, 4; add.s64 %d3, %d3, %d4;";
    assert_eq!(base(&format!("{far} {by_number} st.global.u32 [%d3], %t;")), first);
    // One of two buffers, as the thread says.
    let either = "ld.param.u64 %d4, [b]; setp.eq.u32 %p0, %t, 40; selp.b64 %d1, %d4, %d1, %p0;";
    assert_eq!(
        base(&format!("ld.param.u64 %d1, [a]; {either} st.global.u32 [%d1+1048576], %t;")),
        None,
        "the code does not tell"
    );
    let from_memory = "ld.param.u64 %d1, [a]; ld.global.u64 %d2, [%d1]; add.s64 %d2, %d2, 1073741824;";
    assert_eq!(base(&format!("{from_memory} st.global.u32 [%d2], %t;")), None);
}

#[test]
fn a_deadlock_at_a_mask_stands_at_the_instruction_with_the_mask() {
    let found = found(
        "setp.ge.u32 %p0, %t, 18; @%p0 bra B; redux.sync.max.s32 %r1, %t, 0xffffffff;
         B: bar.sync 0; st.shared.u32 [tile], %r1;",
    );
    assert!(matches!(found.kind, ExecFindingKind::Deadlock { place: DeadlockPlace::Mask, .. }), "{found}");
    assert_eq!(found.site.instruction, "redux.sync.max.s32", "{found}");
}

#[test]
fn findings_in_shared_memory_name_the_array() {
    let race = found("mov.u32 %r1, tile; st.shared.u32 [%r1+8], %t;").to_string();
    assert!(race.contains("(byte 8 of `tile`)"), "{race}");
    let undefined =
        found("mov.u32 %r1, tile; ld.shared.u32 %r2, [%r1+4]; setp.eq.u32 %p0, %r2, 7; @%p0 trap;")
            .to_string();
    assert!(undefined.contains("(byte 4 of `tile`)"), "{undefined}");
}
