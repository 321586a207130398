//! Undefined values: they are told where they are used, and not where they are copied.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, ExecFinding, ExecFindingKind, ExecOutcome, ExecProgram, GlobalMemory, LaunchShape, Options,
    SimpleMemory, UndefinedStore,
};

/// Runs code of one warp. `%data` is memory in the given space of which the first byte of every eight was written, `%out` is an array.
/// `%r0` is the thread, `%r1` and `%rd1` are free.
fn run(space: &str, code: &str) -> (ExecOutcome, Vec<u64>) {
    let (outcome, memory, out) = launch(space, code);
    let span = memory.span(out).unwrap();
    let undefined = (0..32).map(|lane| span.cells.undefined_bits(8 * lane, 8)).collect();
    (outcome, undefined)
}

/// The same in shared memory; the undefined values that are left in the array.
fn run_stores(code: &str) -> (ExecOutcome, Vec<(u64, UndefinedStore)>) {
    let (outcome, memory, out) = launch("shared", code);
    (outcome, memory.undefined_stores(out))
}

fn launch(space: &str, code: &str) -> (ExecOutcome, SimpleMemory, u64) {
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
    (outcome, memory, out)
}

const SPACES: [&str; 3] = ["global", "shared", "local"];

/// Nothing is found, and these bits of each element of the output are undefined.
#[track_caller]
pub(crate) fn carries(code: &str, bits: u64) {
    for space in SPACES {
        let (outcome, undefined) = run(space, &code.replace("ld.data", &format!("ld.{space}")));
        assert!(outcome.is_clean(), "{space}: {:#?}", outcome.findings);
        assert_eq!(undefined, vec![bits; 32], "{space}: {:x?}", undefined[0]);
    }
}

/// The use of a value in memory is found at an instruction.
#[track_caller]
pub(crate) fn uses(code: &str, instruction: &str) {
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
    let (outcome, _) =
        run("global", &format!("{code} setp.gt.u64 %p1, %rd2, 99; @%p1 st.global.b64 [%out], %rd2;"));
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
fn arithmetic_hands_undefined_bits_on() {
    // Of `%r1` all bits but the lowest eight are undefined, of `%rd1` as well.
    let result = |middle: &str, bits: u64| {
        carries(
            &format!(
                "ld.data.b32 %r1, [%data]; ld.data.b64 %rd1, [%data]; {middle} cvt.u64.u32 %rd3, %r2; st.global.b64 [%out], %rd3;"
            ),
            bits,
        );
    };
    const ALL: u64 = 0xffff_ffff;
    result("add.u32 %r2, %r1, 1;", 0xffff_ff00);
    result("sub.s32 %r2, 7, %r1;", 0xffff_ff00);
    result("neg.s32 %r2, %r1;", 0xffff_ff00);
    result("mul.lo.s32 %r2, %r1, 3;", 0xffff_ff00);
    result("mad.lo.s32 %r2, %r0, 3, %r1;", 0xffff_ff00);
    result("shl.b32 %r3, %r1, 4; add.u32 %r2, %r3, 1;", 0xffff_f000);
    result("add.cc.u32 %r2, %r1, 1;", 0xffff_ff00);
    result("mad.lo.cc.u32 %r2, %r0, 3, %r1;", 0xffff_ff00);
    result("add.cc.u32 %r3, %r1, 1; addc.u32 %r2, %r0, 0;", ALL);
    result("add.cc.u32 %r3, %r1, 1; add.cc.u32 %r3, %r0, 1; addc.u32 %r2, %r0, 0;", 0);
    result("madc.hi.u32 %r2, %r1, 3, 1;", ALL);
    result("add.sat.s32 %r2, %r1, 1;", ALL);
    result("mul.hi.u32 %r2, %r1, 3;", ALL);
    result("div.u32 %r2, %r1, 3;", ALL);
    result("min.u32 %r2, %r1, 3;", 0);
    result("max.u32 %r2, %r1, 3;", 0xffff_ff00);
    result("min.u32 %r2, %r1, 9;", 0xffff_ff0c);
    result("max.s32 %r2, %r1, 3;", 0xffff_ff06);
    result("mul.lo.s32 %r2, %r1, 0;", 0);
    result("mul.lo.s32 %r2, %r1, 6;", 0xffff_fe00);
    result("mul.hi.u32 %r2, %r1, 0;", 0);
    result("mul24.lo.u32 %r2, %r1, 3;", 0xffff_ff00);
    result("shl.b32 %r3, %r1, 16; mul24.lo.u32 %r2, %r3, 3;", 0);
    result("and.b32 %r3, %r1, 0x7f7f; add.u32 %r2, %r3, 0x0101;", 0xff00);
    result("popc.b32 %r2, %r1;", ALL);
    result("cvt.rn.f32.u32 %r2, %r1;", ALL);
    result("fma.rn.f32 %r2, %r0, %r0, %r1;", ALL);
    result("shl.b32 %r2, 1, %r1;", ALL);
    result("add.u64 %rd2, %rd1, 1; cvt.u32.u64 %r2, %rd2;", 0xffff_ff00);
    result("setp.eq.u32 %p1, %r1, 5; selp.u32 %r2, 6, 5, %p1;", 3);
    result("set.eq.u32.u32 %r2, %r1, 5;", ALL);
    result("setp.gt.u32 %p1, %r1, 3; selp.u32 %r2, 7, 7, %p1;", 0);
    result("slct.u32.s32 %r2, %r0, %r1, %r0;", 0);
    result("slct.u32.s32 %r2, %r1, %r0, %r0;", 0xffff_ff00);
    result("slct.u32.s32 %r2, %r0, %r0, %r1;", ALL);
}

#[test]
fn comparisons_that_defined_bits_decide_are_defined() {
    let branch = |compare: &str| {
        format!("ld.data.b32 %r1, [%data]; {compare} @%p1 bra L; L: st.global.b64 [%out], %rd0;")
    };
    // The lowest byte is 5.
    for decided in [
        "setp.eq.u32 %p1, %r1, 7;",
        "setp.ne.s32 %p1, %r1, 0x104;",
        "setp.lt.u32 %p1, %r1, 5;",
        "setp.ge.u32 %p1, %r1, 5;",
        "setp.le.s32 %p1, %r1, 0x7fffffff;",
        "and.b32 %r2, %r1, 0xffff; setp.lt.s32 %p1, %r2, 0x10000;",
        "setp.lt.u32 %p2, %r0, 32; setp.gt.u32.or %p1, %r1, 9, %p2;",
        "setp.ge.u32 %p2, %r0, 32; setp.gt.u32.and %p1, %r1, 9, %p2;",
        "setp.ge.u32 %p2, %r0, 32; setp.gt.u32 %p3, %r1, 9; and.pred %p1, %p2, %p3;",
    ] {
        carries(&branch(decided), 0);
    }
    for undecided in [
        "setp.eq.u32 %p1, %r1, 5;",
        "setp.eq.u32 %p1, %r1, 0x105;",
        "setp.lt.u32 %p1, %r1, 6;",
        "setp.lt.s32 %p1, %r1, 5;",
        "and.b32 %r2, %r1, 0xffff; setp.lt.s32 %p1, %r2, 0xff00;",
        "setp.gt.f32 %p1, %r1, %r0;",
        "setp.lt.u32 %p2, %r0, 32; setp.gt.u32.and %p1, %r1, 9, %p2;",
        "setp.lt.u32 %p2, %r0, 32; setp.gt.u32 %p3, %r1, 9; and.pred %p1, %p2, %p3;",
    ] {
        uses(&branch(undecided), "bra");
    }
}

#[test]
fn what_decides_is_a_use() {
    let used =
        |middle: &str, instruction: &str| uses(&format!("ld.data.b32 %r1, [%data]; {middle}"), instruction);
    used("setp.eq.u32 %p1, %r1, 5; @%p1 bra L; L: mov.u32 %r2, 1;", "bra");
    used("add.u32 %r2, %r1, 1; setp.gt.u32 %p1, %r2, 9; @%p1 mov.u32 %r3, 1;", "mov.u32");
    used("mov.b64 %rd2, {%r1, 0}; ld.shared.u8 %h1, [%rd2];", "ld.shared.u8");
    used(
        "and.b32 %r2, %r1, 256; cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd2, %out; st.global.u32 [%rd2], 1;",
        "st.global.u32",
    );
    used(
        "st.global.b32 [%out], 0; add.u32 %r2, %r1, 1; atom.global.add.u32 %r2, [%out], %r2;",
        "atom.global.add.u32",
    );
    used("redux.sync.add.u32 %r2, %r1, -1;", "redux.sync.add.u32");
    used("shfl.sync.idx.b32 %r2, %r0, %r1, 31, -1;", "shfl.sync.idx.b32");
    used("setp.eq.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r2, %p1, -1;", "vote.sync.ballot.b32");
    used("not.b32 %r2, %r1; or.b32 %r2, %r2, 255; bar.warp.sync %r2;", "bar.warp.sync");
}

#[test]
fn selections_take_the_state_of_the_side_they_pick() {
    let use_it =
        "setp.gt.u32 %p2, %r3, 99; @%p2 bra L; L: cvt.u64.u32 %rd3, %r3; st.global.b64 [%out], %rd3;";
    let select = |limit: u32| {
        format!(
            "ld.data.b32 %r1, [%data]; setp.lt.u32 %p1, %r0, {limit}; mad.lo.u32 %r2, %r1, 3, %r1; selp.b32 %r3, %r0, %r2, %p1; {use_it}"
        )
    };
    carries(&select(32), 0);
    uses(&select(31), "bra");
    let branch = |limit: u32| {
        format!("ld.data.b32 %r3, [%data]; setp.lt.u32 %p1, %r0, {limit}; @%p1 mov.u32 %r3, 7; {use_it}")
    };
    carries(&branch(32), 0);
    uses(&branch(9), "bra");
}

#[test]
fn a_value_is_told_once_however_often_it_is_used() {
    let (outcome, _) = run(
        "shared",
        "ld.shared.b32 %r1, [%data]; add.u32 %r2, %r1, 1; setp.gt.u32 %p1, %r1, 9; setp.gt.u32 %p2, %r2, 9; \
         @%p1 bra L; L: @%p1 bra M; M: @%p2 bra N; N: setp.gt.u32 %p3, %r2, 99; @%p3 bra O; O: mov.u32 %r4, 1;",
    );
    assert_eq!(outcome.findings.len(), 1, "{:#?}", outcome.findings);
    assert_eq!(outcome.findings[0].times, 1);
}

#[test]
fn a_finding_names_the_bytes_that_were_never_written() {
    let text = |code: &str| {
        let (outcome, _) = run("shared", &format!("{code} @%p1 bra L; L: mov.u32 %r4, 1;"));
        let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
        finding.to_string()
    };
    let part = text("ld.shared.b32 %r1, [%data]; setp.eq.u32 %p1, %r1, 5;");
    assert!(part.contains("of which bytes 1 to 3 were never written"), "{part}");
    let whole = text("ld.shared.b32 %r1, [%data+4]; setp.eq.u32 %p1, %r1, 5;");
    assert!(whole.contains("which was never written"), "{whole}");
}

#[test]
fn a_store_of_an_undefined_value_says_whether_it_may_be_padding() {
    let stored = |code: &str| {
        let (outcome, stores) = run_stores(code);
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        let (_, store) = stores.into_iter().next().unwrap_or_else(|| panic!("nothing undefined: {code}"));
        assert!(store.finding.site.instruction.contains(".global"), "{}", store.finding);
        store.may_be_padding
    };
    for padding in [
        "ld.shared.b32 %r1, [%data]; st.global.b32 [%out], %r1;",
        "ld.shared.b64 %rd1, [%data]; st.global.b64 [%out], %rd1;",
        "ld.shared.v2.b32 {%r1, %r2}, [%data]; st.global.v2.b32 [%out], {%r1, %r2};",
        // As memcpy does it: one byte at a time.
        "ld.shared.b8 %h1, [%data+1]; st.global.b8 [%out+1], %h1;",
        "ld.shared.b16 %h1, [%data+2]; st.global.b16 [%out+2], %h1;",
    ] {
        assert!(stored(padding), "{padding}");
    }
    for value in [
        "ld.shared.b32 %r1, [%data+4]; st.global.b32 [%out], %r1;",
        "ld.shared.b32 %r1, [%data+4]; or.b32 %r2, %r1, 1; st.global.b32 [%out], %r2;",
        "ld.shared.b32 %r1, [%data+4]; cvt.u64.u32 %rd2, %r1; st.global.b64 [%out], %rd2;",
        "ld.shared.b32 %r1, [%data+4]; st.global.v2.b32 [%out], {%r0, %r1};",
        "ld.shared.b32 %r1, [%data]; add.u32 %r2, %r1, 1; st.global.b32 [%out], %r2;",
        "ld.shared.b32 %r1, [%data]; setp.eq.u32 %p1, %r1, 5; selp.u32 %r2, 1, 0, %p1; st.global.b8 [%out], %r2;",
        "ld.shared.v2.b32 {%r1, %r2}, [%data]; st.global.b32 [%out], %r2;",
        "ld.shared.b8 %h1, [%copy]; st.global.b8 [%out+1], %h1;",
        "ld.shared.b32 %r1, [%data+4]; atom.global.exch.b32 %r2, [%out], %r1;",
        "st.global.b32 [%out], 0; ld.shared.b32 %r1, [%data+4]; atom.global.cas.b32 %r2, [%out], 0, %r1;",
        "st.global.b32 [%out], %r7;",
    ] {
        assert!(!stored(value), "{value}");
    }
    let (_, stores) =
        run_stores("ld.shared.b32 %r1, [%data+4]; st.global.b32 [%out], %r1; st.global.b32 [%out], 0;");
    assert!(stores.is_empty(), "what is written over is gone: {stores:#?}");
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
    let (outcome, undefined) = run(
        "shared",
        &format!(
            "{load} mov.b32 %r4, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%r5, %r6, %r7, %r8}}, {{%r3, %r4}}, {{%r4}}, {{%r4, %r4, %r4, %r4}}; \
             st.global.b32 [%out], %r6; st.global.b32 [%out+4], %r7;"
        ),
    );
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    // Row 0 of the result: the first two elements of lanes 0 to 3. Their others are of row 8.
    assert!(
        undefined.iter().enumerate().all(|(lane, bits)| (*bits == 0xffff_ffff) == (lane < 4)),
        "{undefined:x?}"
    );
}

#[test]
fn undefined_metadata_of_a_sparse_matrix_is_told_at_the_product() {
    // Where the bits of the constant are set they are defined: each index is valid, and the other one of its two is not known.
    let load = "mov.b32 %r2, 0; setp.eq.u32 %p1, %r0, 8; @%p1 ld.shared.b32 %r2, [%data+4]; or.b32 %r2, %r2, 0x44444444; mov.b32 %r4, 0x3c003c00; mov.b32 %r9, 0;";
    let product = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r5, %r6, %r7, %r8}, {%r4, %r4}, {%r4, %r4}, {%r9, %r9, %r9, %r9}, %r2, 0x0;";
    let store = "st.global.b32 [%out], %r5; st.global.b32 [%out+4], 0;";
    let (outcome, _) = run("shared", &format!("{load}{product}{store}"));
    let [finding] = &outcome.findings[..] else { panic!("{:#?}", outcome.findings) };
    assert!(finding.site.instruction.starts_with("mma.sp"), "{finding}");
    assert_eq!((finding.site.thread, finding.times), ([8, 0, 0], 1));
    let (outcome, _) =
        run("shared", &format!("{}{product}{store}", load.replace("@%p1 ld.shared.b32 %r2, [%data+4];", "")));
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
}

#[test]
fn local_variables_of_a_call_begin_undefined() {
    let function = |body: &str| {
        format!(
            ".func (.reg .b32 got) f(.reg .b32 first) {{ .reg .pred %p; .reg .b64 %a; .local .align 8 .b8 own[8]; mov.u64 %a, own; setp.eq.u32 %p, first, 0; {body} }}"
        )
    };
    // What the first call wrote is not there in the second.
    let body = "@%p ld.local.u32 got, [%a]; @!%p st.local.u32 [%a], 5; @!%p mov.u32 got, 5; ret;";
    let found = |body: &str| -> Vec<String> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n{}\n.visible .entry k(.param .u64 out) {{ .reg .b32 %r<4>; .reg .pred %q; .reg .b64 %o; ld.param.u64 %o, [out];
             call (%r0), f, (1); call (%r1), f, (0); setp.eq.u32 %q, %r1, 5; @%q st.global.u32 [%o], %r0; ret; }}",
            function(body)
        );
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}")));
        let mut memory = SimpleMemory::new();
        let out = memory.allocate(8);
        let options = Options { checks: Checks::ALL, ..Options::default() };
        let entry = program.entry("k").unwrap();
        let outcome =
            entry.launch(&LaunchShape::linear(1, 32), &out.to_le_bytes(), &[], &memory, &options).unwrap();
        outcome.findings.iter().map(ToString::to_string).collect()
    };
    let told = found(body);
    assert!(told.iter().any(|text| text.contains("never written")), "{told:?}");
    let written = found(&body.replace("@%p ld", "@%p st.local.u32 [%a], 6; @%p ld"));
    assert_eq!(written.iter().filter(|text| text.contains("never written")).count(), 0, "{written:?}");
}
