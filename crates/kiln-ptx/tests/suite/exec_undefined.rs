//! Undefined values: they are told where they are used, and not where they are copied.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecFinding, ExecFindingKind, ExecOutcome, ExecProgram, GlobalMemory, LaunchShape, Options,
    SimpleMemory,
};

/// Runs code of one warp. `%data` is memory in the given space of which the first byte of every eight was written, `%out` is an array.
/// `%r0` is the thread, `%r1` and `%rd1` are free.
fn run(space: &str, code: &str) -> (ExecOutcome, Vec<u64>) {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n
         .func (.param .b64 back) same(.param .b64 value) {{ .reg .b64 %v;
           ld.param.b64 %v, [value]; st.param.b64 [back], %v; ret; }}
         .visible .entry k(.param .u64 global, .param .u64 out) {{
         .shared .align 16 .b8 tile[512]; .local .align 16 .b8 own[512]; .shared .align 16 .b8 other[512];
         .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b16 %h<9>; .reg .pred %p<9>; .reg .b64 %base; .reg .b64 %data; .reg .b64 %out;
         .reg .b64 %copy;
         mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 8;
         ld.param.u64 %out, [out]; add.s64 %out, %out, %rd0;
         {base} add.s64 %data, %base, %rd0; mov.u64 %copy, other; add.s64 %copy, %copy, %rd0;
         st.{space}.u8 [%data], 5;
         bar.warp.sync 0xffffffff;
         {code}
         ret; }}",
        base = match space {
            "shared" => "mov.u64 %base, tile;",
            "local" => "mov.u64 %base, own;",
            _ => "ld.param.u64 %base, [global];",
        }
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let (data, out) = (memory.allocate_uninitialised(512), memory.allocate_uninitialised(512));
    let arguments = [data, out].map(u64::to_le_bytes).concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, 32);
    let outcome = program.entry("k").unwrap().launch(&shape, &arguments, &[], &memory, &options).unwrap();
    let span = memory.span(out).unwrap();
    let undefined = (0..32).map(|lane| span.cells.undefined_bits(8 * lane, 8)).collect();
    (outcome, undefined)
}

const SPACES: [&str; 3] = ["global", "shared", "local"];

/// Nothing is found, and these bits of each element of the output are undefined.
#[track_caller]
fn carries(code: &str, bits: u64) {
    for space in SPACES {
        let (outcome, undefined) = run(space, &code.replace("ld.data", &format!("ld.{space}")));
        assert!(outcome.is_clean(), "{space}: {:#?}", outcome.findings);
        assert_eq!(undefined, vec![bits; 32], "{space}: {:x?}", undefined[0]);
    }
}

/// The use of a value in memory is found at an instruction.
#[track_caller]
fn uses(code: &str, instruction: &str) {
    for space in SPACES {
        let (outcome, _) = run(space, &code.replace("ld.data", &format!("ld.{space}")));
        let [ExecFinding { kind, site, .. }] = &outcome.findings[..] else {
            panic!("{space}: {:#?}", outcome.findings)
        };
        assert_eq!(site.instruction, instruction, "{space}");
        let ExecFindingKind::Uninitialised { access, read_site } = kind else { panic!("{space}: {kind}") };
        assert_eq!((access.memory, access.access), (space, kiln_ptx::exec::AccessKind::Read));
        assert!(read_site.instruction.starts_with(&format!("ld.{space}")), "{}", read_site.instruction);
    }
}

#[test]
fn copies_are_silent_and_the_copy_is_undefined() {
    const REST: u64 = 0xffff_ffff_ffff_ff00;
    carries("ld.data.b64 %rd1, [%data]; st.global.b64 [%out], %rd1;", REST);
    carries("ld.data.b64 %rd1, [%data]; mov.b64 %rd2, %rd1; st.global.b64 [%out], %rd2;", REST);
    carries("ld.data.v2.b32 {%r1, %r2}, [%data]; st.global.v2.b32 [%out], {%r1, %r2};", REST);
    carries(
        "ld.data.b64 %rd1, [%data]; mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd2, {%r2, %r1}; st.global.b64 [%out], %rd2;",
        0xffff_ff00_ffff_ffff,
    );
    carries(
        "ld.data.b64 %rd1, [%data]; st.shared.b64 [%copy], %rd1; ld.shared.b64 %rd2, [%copy]; st.global.b64 [%out], %rd2;",
        REST,
    );
    carries(
        "ld.data.b32 %r1, [%data]; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.global.b32 [%out], %r2; st.global.b32 [%out+4], 0;",
        0xffff_ff00,
    );
    carries(
        "ld.data.b64 %rd1, [%data]; { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd1; call (b), same, (a); ld.param.b64 %rd2, [b]; } st.global.b64 [%out], %rd2;",
        REST,
    );
    carries("ld.data.b64 %rd1, [%data]; atom.global.exch.b64 %rd2, [%out], %rd1;", REST);
}

#[test]
fn asynchronous_copies_carry_too() {
    let code = "cvt.u32.u64 %r1, %copy; cp.async.ca.shared.global [%r1], [%data], 8; cp.async.wait_all; ld.shared.b64 %rd2, [%copy];";
    let (outcome, undefined) = run("global", &format!("{code} st.global.b64 [%out], %rd2;"));
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    assert_eq!(undefined[0], 0xffff_ffff_ffff_ff00);
    let (outcome, _) = run("global", &format!("{code} add.u64 %rd2, %rd2, 1; st.global.b64 [%out], %rd2;"));
    let [ExecFinding { kind: ExecFindingKind::Uninitialised { access, read_site }, .. }] =
        &outcome.findings[..]
    else {
        panic!("{:#?}", outcome.findings)
    };
    assert_eq!((access.memory, &*read_site.instruction), ("global", "cp.async.ca.shared.global"));
}

#[test]
fn bits_that_are_dropped_are_not_used() {
    let defined = |middle: &str| {
        carries(
            &format!(
                "ld.data.b32 %r1, [%data]; {middle} add.u32 %r3, %r2, 1; cvt.u64.u32 %rd3, %r3; st.global.b64 [%out], %rd3;"
            ),
            0,
        );
    };
    defined("and.b32 %r2, %r1, 255;");
    defined("or.b32 %r2, %r1, 0xffffff00;");
    defined("shl.b32 %r2, %r1, 24;");
    defined("bfe.u32 %r2, %r1, 0, 8;");
    defined("bfe.s32 %r2, %r1, 1, 7;");
    defined("prmt.b32 %r2, %r1, 0, 0x4440;");
    defined("bfi.b32 %r2, %r1, 0, 8, 8;");
    defined("bfi.b32 %r2, 7, %r1, 8, 24;");
    defined("cvt.u32.u8 %r2, %r1;");
    defined("cvt.s32.s8 %r2, %r1;");
    defined("lop3.b32 %r2, %r1, 255, 0, 0xc0;");
    defined("shf.l.wrap.b32 %r2, 0, %r1, 24;  shr.u32 %r2, %r2, 24;");
    defined("mov.b32 {%h1, %h2}, %r1; and.b16 %h1, %h1, 255; cvt.u32.u16 %r2, %h1;");
    defined("and.b32 %r2, %r1, 0xffff; and.b32 %r2, %r2, 0xff;");
}

#[test]
fn computing_with_undefined_bits_is_found_where_it_is_done() {
    let used =
        |middle: &str, instruction: &str| uses(&format!("ld.data.b32 %r1, [%data]; {middle}"), instruction);
    used("add.u32 %r2, %r1, 1;", "add.u32");
    used("mul.lo.s32 %r2, %r1, %r1;", "mul.lo.s32");
    used("cvt.rn.f32.u32 %r2, %r1;", "cvt.rn.f32.u32");
    used("setp.eq.u32 %p1, %r1, 0; @%p1 bra L; L: mov.u32 %r2, 1;", "setp.eq.u32");
    used("and.b32 %r2, %r1, 0xffff; setp.eq.u32 %p1, %r2, 0;", "setp.eq.u32");
    used("shl.b32 %r2, 1, %r1;", "shl.b32");
    used("mov.b64 %rd2, {%r1, 0}; ld.shared.u8 %h1, [%rd2];", "ld.shared.u8");
    used("st.global.b32 [%out], 0; atom.global.add.u32 %r2, [%out], %r1;", "atom.global.add.u32");
    used("redux.sync.add.u32 %r2, %r1, -1;", "redux.sync.add.u32");
    used("shfl.sync.idx.b32 %r2, %r0, %r1, 31, -1;", "shfl.sync.idx.b32");
    used("add.cc.u32 %r2, %r1, 1;", "add.cc.u32");
}

#[test]
fn selections_take_the_state_of_the_side_they_pick() {
    let select = |limit: u32| {
        format!(
            "ld.data.b32 %r1, [%data]; setp.lt.u32 %p1, %r0, {limit}; selp.b32 %r2, %r0, %r1, %p1; add.u32 %r3, %r2, 1; \
             cvt.u64.u32 %rd3, %r3; st.global.b64 [%out], %rd3;"
        )
    };
    carries(&select(32), 0);
    uses(&select(31), "add.u32");
    let branch = |limit: u32| {
        format!(
            "ld.data.b32 %r1, [%data]; setp.lt.u32 %p1, %r0, {limit}; @%p1 mov.u32 %r1, 7; add.u32 %r3, %r1, 1; \
             cvt.u64.u32 %rd3, %r3; st.global.b64 [%out], %rd3;"
        )
    };
    carries(&branch(32), 0);
    uses(&branch(9), "add.u32");
}

#[test]
fn a_value_is_told_once_however_often_it_is_used() {
    let (outcome, _) = run(
        "shared",
        "ld.shared.b32 %r1, [%data]; add.u32 %r2, %r1, 1; add.u32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;",
    );
    assert_eq!(outcome.findings.len(), 1, "{:#?}", outcome.findings);
    assert_eq!(outcome.findings[0].times, 1);
}

#[test]
fn a_whole_value_that_is_copied_to_global_memory_is_noted() {
    let (outcome, _) = run("shared", "ld.shared.b32 %r1, [%data+4]; st.global.b32 [%out], %r1;");
    let [note] = &outcome.notes[..] else { panic!("{:#?}", outcome.notes) };
    assert!(matches!(note.kind, ExecFindingKind::UndefinedCopy(_)), "{note}");
    assert_eq!(note.site.instruction, "st.global.b32");
    let (outcome, _) = run("shared", "ld.shared.b32 %r1, [%data]; st.global.b32 [%out], %r1;");
    assert!(outcome.notes.is_empty(), "padding beside something that was written: {:#?}", outcome.notes);
}

#[test]
fn registers_that_were_never_assigned_decide_nothing() {
    let used = |code: &str, register: &str, instruction: &str| {
        let (outcome, _) = run("shared", code);
        let [ExecFinding { kind, site, .. }] = &outcome.findings[..] else {
            panic!("{:#?}", outcome.findings)
        };
        assert!(
            matches!(kind, ExecFindingKind::Unassigned { register: named } if named == register),
            "{kind}"
        );
        assert_eq!(site.instruction, instruction);
    };
    used("setp.eq.u32 %p1, %r7, 0; @%p1 bra L; L: mov.u32 %r2, 1;", "%r7", "bra");
    used("@%p3 mov.u32 %r2, 1;", "%p3", "mov.u32");
    used("ld.shared.u32 %r2, [%rd9];", "%rd9", "ld.shared.u32");
    used(
        "st.global.b32 [%out], 0; add.u32 %r8, %r7, 1; atom.global.add.u32 %r2, [%out], %r8;",
        "%r7",
        "atom.global.add.u32",
    );
    used(
        "setp.lt.u32 %p1, %r0, 31; @%p1 mov.u32 %r7, 1; setp.eq.u32 %p2, %r7, 0; @%p2 bra L; L: mov.u32 %r2, 1;",
        "%r7",
        "bra",
    );
    let clean = |code: &str| {
        let (outcome, undefined) = run("shared", code);
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        undefined
    };
    // Compilers compute with such registers and drop the result.
    clean(
        "add.u32 %r8, %r7, 1; setp.lt.u32 %p1, %r0, 32; selp.b32 %r9, %r0, %r8, %p1; setp.eq.u32 %p2, %r9, 0; @%p2 bra L; L: mov.u32 %r2, 1;",
    );
    clean(
        "setp.lt.u32 %p1, %r0, 9; @%p1 mov.u32 %r7, 1; @!%p1 mov.u32 %r7, 2; setp.eq.u32 %p2, %r7, 0; @%p2 bra L; L: mov.u32 %r2, 1;",
    );
    clean(
        "setp.eq.u32 %p1, %r7, 0; setp.ge.u32 %p2, %r0, 32; and.pred %p3, %p1, %p2; @%p3 bra L; L: mov.u32 %r2, 1;",
    );
    assert_eq!(clean("st.global.b32 [%out], %r7; st.global.b32 [%out+4], 1;")[0], 0xffff_ffff);
}

#[test]
fn fragments_of_matrices_carry_undefined_elements() {
    // Each lane names a row of 16 bytes; of the first row two elements are undefined.
    let load = "mov.u64 %rd1, other; shl.b32 %r1, %r0, 4; cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, %rd2; mov.b32 %r2, 0;
        st.shared.v4.b32 [%rd1], {%r2, %r2, %r2, %r2}; setp.eq.u32 %p1, %r0, 0; @%p1 ld.shared.b32 %r2, [%data+4]; @%p1 st.shared.b32 [%rd1], %r2;
        bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%rd1];";
    let (outcome, undefined) =
        run("shared", &format!("{load} st.global.b32 [%out], %r3; st.global.b32 [%out+4], 0;"));
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    assert_eq!((undefined[0], undefined[1], undefined[31]), (0xffff_ffff, 0, 0));
    let (outcome, _) = run(
        "shared",
        &format!(
            "{load} mov.b32 %r4, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%r5, %r6, %r7, %r8}}, {{%r3, %r4}}, {{%r4}}, {{%r4, %r4, %r4, %r4}};"
        ),
    );
    let [ExecFinding { kind: ExecFindingKind::Uninitialised { .. }, site, .. }] = &outcome.findings[..]
    else {
        panic!("{:#?}", outcome.findings)
    };
    assert!(site.instruction.starts_with("mma"), "{}", site.instruction);
}
