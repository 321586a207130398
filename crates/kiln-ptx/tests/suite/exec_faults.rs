//! Mistakes in hand-written PTX that end a launch: at the last value that is right, and at the first that is wrong.

use crate::exec_ptx::run;

/// The findings of one warp that runs `body`, with 1 KiB of global memory behind `%o` and the number of the thread in `%t`.
fn findings(before: &str, body: &str) -> Vec<String> {
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
    run(&text, 32).1.findings.iter().map(ToString::to_string).collect()
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
