//! Mistakes in hand-written PTX that end a launch: at the last value that is right, and at the first that is wrong.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, LaunchShape, Options, SimpleMemory};

use crate::exec_ptx::run;

/// The findings of so many threads that run `body`, with 1 KiB of global memory behind `%o` and the number of the thread in `%t`.
fn findings_of(threads: u32, before: &str, body: &str) -> Vec<String> {
    let text = format!(
        "{before}
        .visible .entry k(.param .u64 out) {{
            .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .b32 %t; .reg .b64 %o;
            .local .align 16 .b8 own[16]; .shared .align 16 .b8 tile[256];
            ld.param.u64 %o, [out];
            mov.u32 %t, %tid.x;
            {body}
            ret;
        }}"
    );
    run(&text, threads).1.findings.iter().map(ToString::to_string).collect()
}

/// The same for one warp.
fn findings(before: &str, body: &str) -> Vec<String> {
    findings_of(32, before, body)
}

#[track_caller]
fn told(before: &str, body: &str, words: &str) {
    let found = findings(before, body);
    assert!(found.iter().any(|text| text.contains(words)), "{body}: `{words}` is not in {found:?}");
}

#[test]
fn an_index_outside_of_a_branch_table_ends_the_launch() {
    let branch = |index: u32| {
        format!(
            "mov.u32 %r0, {index}; setp.ne.u32 %p0, %t, 9; @%p0 mov.u32 %r0, 0; brx.idx %r0, table; table: .branchtargets one, two; one: two: st.global.u32 [%o], 1;"
        )
    };
    for index in [0, 1] {
        assert_eq!(findings("", &branch(index)), Vec::<String>::new());
    }
    for index in [2, 3, u32::MAX] {
        let words = format!("the index {index} of the branch is outside of its table, which has 2 targets");
        told("", &branch(index), &words);
        told("", &branch(index), "thread (9,0,0)");
    }
}

#[test]
fn vectors_are_aligned_as_a_whole() {
    for (space, base) in [("global", "%o"), ("shared", "%d0"), ("local", "%d0")] {
        let name = if space == "local" { "own" } else { "tile" };
        let with = |code: &str| format!("mov.u64 %d0, {name}; mov.b32 %r0, 1; mov.b64 %d1, 1; {code}");
        for (offset, fits_two, fits_four) in [(0, true, true), (4, false, false), (8, true, false)] {
            for (values, bytes, fits) in
                [("v2.b32", 8, fits_two), ("v4.b32", 16, fits_four), ("v2.b64", 16, fits_four)]
            {
                let list = match values {
                    "v2.b32" => "{%r0, %r0}",
                    "v4.b32" => "{%r0, %r0, %r0, %r0}",
                    _ => "{%d1, %d1}",
                };
                // Only as much as the memory has room for.
                if fits && offset + bytes > 16 {
                    continue;
                }
                let store = with(&format!("@!%p0 st.{space}.{values} [{base}+{offset}], {list};"));
                let store = format!("setp.ne.u32 %p0, %t, 0; {store}");
                let load = store
                    .replace("st.", "ld.")
                    .replace(&format!("[{base}+{offset}], {list}"), &format!("{list}, [{base}+{offset}]"));
                let load = load
                    .replace("{%r0, %r0, %r0, %r0}", "{%r1, %r2, %r3, %r4}")
                    .replace("{%r0, %r0}", "{%r1, %r2}")
                    .replace("{%d1, %d1}", "{%d2, %d3}");
                for code in [store, load] {
                    match fits {
                        true => assert_eq!(findings("", &code), Vec::<String>::new(), "{code}"),
                        false => told("", &code, &format!("no multiple of {bytes}")),
                    }
                }
            }
        }
    }
}

#[test]
fn the_first_byte_behind_parameters_and_the_stack_is_outside() {
    let local = |offset: u32| format!("mov.u64 %d0, own; mov.u16 %h0, 1; st.local.u8 [%d0+{offset}], %h0;");
    assert_eq!(findings("", &local(15)), Vec::<String>::new());
    told("", &local(16), "just past the end of the 16 bytes of the stack of the thread");
    let param = |offset: u32| {
        format!(
            "mov.b64 %d0, out; cvta.param.u64 %d0, %d0; add.u64 %d0, %d0, {offset}; ld.u8 %h0, [%d0]; st.global.u8 [%o], %h0;"
        )
    };
    assert_eq!(findings("", &param(7)), Vec::<String>::new());
    told("", &param(8), "just past the end of the 8 bytes of the arguments of the kernel");
}

#[test]
fn parameters_of_a_kernel_are_not_written() {
    let store = "mov.b64 %d0, out; cvta.param.u64 %d0, %d0; st.u32 [%d0], %t;";
    told("", store, "which may only be read");
}

#[test]
fn calls_that_need_no_memory_have_a_deepest_level() {
    let function = "
        .func deeper(.reg .b32 left) {
            .reg .pred %p; .reg .b32 %n;
            setp.eq.u32 %p, left, 0;
            @%p ret;
            sub.u32 %n, left, 1;
            call deeper, (%n);
            ret;
        }";
    // The kernel is the first level.
    let call = |levels: u32| format!("call deeper, ({});", levels - 1);
    assert_eq!(findings(function, &call(4096)), Vec::<String>::new());
    told(function, &call(4097), "calls are nested deeper than 4096");
}

#[test]
fn the_first_byte_behind_a_block_of_memory_is_outside() {
    for access in ["st.global.u8 [%o+OFFSET], %h0;", "ld.global.u8 %h0, [%o+OFFSET];"] {
        let at = |offset: u32| {
            format!(
                "mov.u16 %h0, 1; setp.ne.u32 %p0, %t, 0; @!%p0 {}",
                access.replace("OFFSET", &offset.to_string())
            )
        };
        assert_eq!(findings("", &at(1023)), Vec::<String>::new());
        told("", &at(1024), "just past the end");
    }
}

#[test]
fn constants_are_not_updated_by_atomics() {
    let update = "mov.u64 %d0, limit; cvta.const.u64 %d0, %d0; red.global.add.u32 [%d0], 1;";
    told(".const .align 4 .u32 limit = 5;", update, "which may only be read");
}

#[test]
fn barriers_are_used_in_one_way_and_once() {
    let by_warp = |first: &str, second: &str| {
        format!("setp.lt.u32 %p0, %t, 32; @!%p0 bra second; {first} bra over; second: {second} over:")
    };
    let told = |threads: u32, body: &str, words: &str| {
        let found = findings_of(threads, "", body);
        assert!(found.iter().any(|text| text.contains(words)), "{body}: `{words}` is not in {found:?}");
    };
    let both = by_warp("bar.arrive 1, 64;", "bar.sync 1, 64;");
    assert_eq!(findings_of(64, "", &both), Vec::<String>::new());
    let again = by_warp("bar.arrive 1, 96; bar.arrive 1, 96;", "");
    told(96, &again, "is arrived at twice by the same threads before it completes");
    let ways = by_warp("bar.sync 1, 64;", "bar.red.popc.u32 %r1, 1, 64, %p0;");
    told(64, &ways, "is used in two ways at once");
    let counts = "setp.lt.u32 %p0, %t, 16; selp.u32 %r1, 32, 64, %p0; barrier.sync 1, %r1;";
    told(64, counts, "is used with different counts at once: for 32 threads and for 64 threads");
    // Half of a warp waits at each of two barriers, for a whole warp.
    let numbers = "setp.lt.u32 %p0, %t, 16; selp.u32 %r1, 1, 2, %p0; barrier.sync %r1, 32;";
    told(32, numbers, "deadlock");
    // The last warp counts whole, also where the block does not fill it.
    assert_eq!(findings_of(48, "", "bar.sync 1, 64;"), Vec::<String>::new());
}

#[test]
fn an_access_over_the_end_of_one_of_many_shared_variables_is_told() {
    let names = ["a", "b", "c", "d"];
    let declared: String = names.iter().map(|name| format!(".shared .align 16 .b8 {name}[4]; ")).collect();
    let used: String =
        names.iter().map(|name| format!("mov.u32 %r1, {name}; @!%p0 st.shared.u32 [%r1], 1; ")).collect();
    let body = format!("{declared}setp.ne.u32 %p0, %t, 0; mov.b64 %d1, 1; {used}");
    assert_eq!(findings("", &body), Vec::<String>::new());
    for name in names {
        let over = format!("{body}mov.u32 %r1, {name}; @!%p0 st.shared.b64 [%r1], %d1;");
        told("", &over, &format!("4 bytes over the end of `{name}`"));
    }
}

#[test]
fn what_ends_a_launch_is_kept_where_there_is_no_room() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) { .reg .b32 %t; .reg .b64 %o; ld.param.u64 %o, [out];
        mov.u32 %t, %tid.x; st.global.u32 [%o], %t; st.global.u32 [%o+4096], %t; ret; }";
    let program = ExecProgram::new(PtxModule::parse(text).unwrap());
    let mut memory = SimpleMemory::new();
    let out = memory.allocate(8);
    let kinds = |max_findings: usize| -> Vec<&'static str> {
        let options = Options { max_findings, ..Options::default() };
        let shape = LaunchShape::linear(1, 32);
        let outcome =
            program.entry("k").unwrap().launch(&shape, &out.to_le_bytes(), &[], &memory, &options).unwrap();
        assert!(outcome.fault.is_some());
        outcome.findings.iter().map(|finding| finding.kind.word()).collect()
    };
    assert_eq!(kinds(10), ["race", "out-of-bounds"]);
    assert_eq!(kinds(1), ["out-of-bounds"]);
}
