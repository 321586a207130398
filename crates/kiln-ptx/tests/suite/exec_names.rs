//! Findings name the array, the variable or the argument that an access belongs to.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    AddressBase, Checks, ExecFinding, ExecFindingKind, ExecProgram, LaunchShape, Options, SimpleMemory,
};

/// The first finding of a block of 32 threads whose arguments are two buffers of 128 bytes and a number of eight bytes.
fn found(body: &str) -> ExecFinding {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .visible .global .align 4 .b8 table[64];
        .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 n) {{
            .shared .align 4 .b8 first[64]; .shared .align 4 .b8 tile[128];
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
    let shape = LaunchShape::linear(1, 32);
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
    assert!(matches!(found.kind, ExecFindingKind::Deadlock { at_mask: true, .. }), "{found}");
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
