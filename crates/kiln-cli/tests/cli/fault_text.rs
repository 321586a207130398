//! How findings and faults are told: once, with the kernel's name in the source, what ended the launch, and what to do.

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

/// PTX of a kernel `poke(unsigned*)`, whose pointer is in `%d0`.
fn poke(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n
        .visible .entry _Z4pokePj(.param .u64 o) {{
            .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p<2>;
            .shared .align 4 .b8 cell[4];
            ld.param.u64 %d0, [o];
            mov.u32 %r0, %tid.x;
            {body}
            ret;
        }}"
    )
}

fn launch(verb: &str, file: &str, block: &str, words: &[&str]) -> Outcome {
    let shape = [verb, file, "--grid", "1", "--block", block, "--device", "sim"];
    run(without_driver(&[&shape[..], words].concat()))
}

const PAST_THE_END: &str = "st.global.u32 [%d0+16], %r0;\nst.global.u32 [%d0], %r0;";

#[test]
fn a_launch_that_ends_at_an_access_says_so() {
    let folder = Folder::new();
    let file = folder.write("k.ptx", poke(PAST_THE_END));
    let outcome = launch("check", &file, "1", &["--arg", "zeros:u32:4"]);
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    let text = outcome.stdout.replace("\n     ", " ");
    for part in [
        "just past the end of argument 0, an array of 16 bytes",
        "the launch ended at this access; later accesses and lines were not reached",
        "check indices against the length of the buffer",
        "lines, which no thread executed before the launch ended: PTX line ",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let json = launch("check", &file, "1", &["--arg", "zeros:u32:4", "--json"]).json();
    let finding = &json["findings"][0];
    assert_eq!(finding["ended_launch"], true, "{json:#}");
    assert_eq!(finding["next_step"], "check indices against the length of the buffer");
}

#[test]
fn an_index_that_wrapped_below_zero_is_guessed() {
    let folder = Folder::new();
    // Element 2^32 - 1 of an array of 4-byte elements.
    let file = folder.write("k.ptx", poke("add.u64 %d0, %d0, 17179869180; st.global.u32 [%d0], %r0;"));
    let json = launch("check", &file, "1", &["--arg", "zeros:u32:4", "--json"]).json();
    let step = json["findings"][0]["next_step"].as_str().unwrap();
    assert!(step.starts_with("an unsigned index may have wrapped below zero; "), "{json:#}");
}

#[test]
fn a_fault_that_a_finding_explains_is_told_once() {
    let folder = Folder::new();
    let file = folder.write("k.ptx", poke(PAST_THE_END));
    let text = launch("run", &file, "1", &["--arg", "zeros:u32:4"]).stdout;
    assert_eq!(text.matches("out of bounds").count(), 1, "{text}");
    assert!(!text.contains("fault:") && !text.contains("_Z4poke"), "{text}");
    let json = launch("run", &file, "1", &["--arg", "zeros:u32:4", "--json"]).json();
    assert!(json["fault"].as_str().unwrap().starts_with("the device is lost"), "{json:#}");
}

#[test]
fn refusals_name_the_kernel_as_its_source_does() {
    let folder = Folder::new();
    let file = folder.write("k.ptx", poke(""));
    for (block, more) in [("1025", &[][..]), ("0", &[]), ("1", &["--shared", "1000000"])] {
        let outcome = launch("run", &file, block, &[&["--arg", "zeros:u32:4"][..], more].concat());
        assert_eq!(outcome.code, Some(3), "{}", outcome.stdout);
        let text = outcome.stderr;
        assert!(!text.contains("_Z4poke") && !text.contains("submit: "), "{text}");
    }
}

#[test]
fn findings_begin_with_their_kind_and_races_have_advice() {
    let folder = Folder::new();
    for (body, begin, advice) in [
        ("trap;", "1. trap: ", ""),
        (
            "setp.eq.u32 %p0, %r0, 0; @%p0 bra LAST; barrier.sync 0; ret; LAST: barrier.sync 1;",
            "1. deadlock: ",
            "let all threads of the block reach the same barrier",
        ),
        (
            "st.shared.u32 [cell], %r0;",
            "1. race: ",
            "let one thread access these bytes, give each thread its own, or use an atomic",
        ),
        (
            "setp.eq.u32 %p0, %r0, 40; @%p0 st.shared.u32 [cell], %r0; setp.eq.u32 %p0, %r0, 2; @%p0 ld.shared.u32 %r1, [cell];",
            "1. race: ",
            "order them: put `__syncthreads()` between the two accesses",
        ),
    ] {
        let file = folder.write("k.ptx", poke(body));
        let text = launch("check", &file, "64", &["--arg", "zeros:u32:4"]).stdout;
        assert!(text.contains(begin) && text.contains(advice), "{body}: {text}");
        assert!(!text.contains("deadlock: deadlock"), "{text}");
    }
}

#[test]
fn a_narrow_scope_a_mask_that_waits_and_a_missing_fence_have_separate_advice() {
    let folder = Folder::new();
    let narrow = "red.relaxed.cta.global.add.u32 [%d0], 1;";
    let waiting = "setp.lt.u32 %p0, %r0, 16; @%p0 bra LAST; redux.sync.max.s32 %r1, %r0, 0xffffffff;
        st.global.u32 [%d0], %r1; LAST: barrier.sync 0;";
    let unfenced = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 0; @%p0 bra WAIT;
        st.volatile.global.u32 [%d0], 7; st.volatile.global.u32 [%d0+4], 1; bra LAST;
        WAIT: ld.volatile.global.u32 %r1, [%d0+4]; setp.eq.u32 %p0, %r1, 0; @%p0 bra WAIT;
        ld.volatile.global.u32 %r1, [%d0]; LAST:";
    for (body, grid, advice) in [
        (unfenced, "2", "put `__threadfence()` between the write of the value and the write of the flag"),
        (narrow, "4", "use a wider scope, device instead of block"),
        (waiting, "1", "let all lanes that the mask names execute the instruction"),
    ] {
        let file = folder.write("k.ptx", poke(body));
        let words = ["check", &file, "--grid", grid, "--block", "32", "--arg", "zeros:u32:4", "--json"];
        let json = run(without_driver(&words)).json();
        let steps = json["findings"].as_array().into_iter().flatten();
        let mut steps = steps.filter_map(|finding| finding["next_step"].as_str());
        assert!(steps.any(|step| step.starts_with(advice)), "{body}: {json:#}");
        assert!(!json.to_string().contains("reach the same barrier"), "{json:#}");
        let text = launch("check", &file, grid, &["--arg", "zeros:u32:4"]).stdout;
        assert!(!text.contains("these accesses race: accesses"), "{text}");
    }
}

#[test]
fn advice_fits_the_mistake() {
    let folder = Folder::new();
    let wait =
        "{ .shared .align 8 .b8 bar[8]; .reg .b32 %b; .reg .b64 %s; mov.u32 %b, bar; setp.eq.u32 %p0, %r0, 0;
        @%p0 mbarrier.init.shared::cta.b64 [%b], 65; bar.sync 0; mbarrier.arrive.shared::cta.b64 %s, [%b];
        WAIT: mbarrier.try_wait.shared::cta.b64 %p1, [%b], %s; @!%p1 bra WAIT; }";
    let counted = "setp.lt.u32 %p0, %r0, 32; @%p0 bar.sync 1, 64;";
    let blocks = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 ret; setp.eq.u32 %p0, %r1, 0; @%p0 st.global.u32 [%d0], %r0;
        setp.eq.u32 %p0, %r1, 1; @%p0 ld.global.u32 %r1, [%d0];";
    let lock = "setp.ne.u32 %p0, %r0, 0; @%p0 ret; TAKE: atom.global.cas.b32 %r1, [%d0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKE;
        ld.global.u32 %r1, [%d0+4]; add.u32 %r1, %r1, 1; st.global.u32 [%d0+4], %r1; atom.global.exch.b32 %r1, [%d0], 0;";
    let exited = "setp.gt.u32 %p0, %r0, 15; @%p0 ret; shfl.sync.down.b32 %r1, %r0, 8, 31, 0xffffffff; setp.eq.u32 %p1, %r1, 77; @%p1 trap;";
    let rows =
        "{ .shared .align 16 .b8 tile[1024]; .reg .b32 %b; mov.u32 %b, tile; mad.lo.u32 %b, %r0, 12, %b;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%b]; }";
    for (body, grid, advice) in [
        (wait, "1", "initialise the object with the number of arrivals of one phase"),
        (counted, "1", "let as many threads reach the barrier as its count says"),
        (blocks, "2", "the threads are in different blocks, which no barrier of a block orders"),
        (
            lock,
            "4",
            "the lock orders nothing without fences: put `__threadfence()` after it is taken and before it is released",
        ),
        (exited, "1", "let the other lane reach the shuffle instead of returning before it"),
        (rows, "1", "make the stride (leading dimension) of the matrix a multiple of 16 bytes"),
    ] {
        let file = folder.write("k.ptx", poke(body));
        let words = ["check", &file, "--grid", grid, "--block", "64", "--arg", "zeros:u32:4", "--json"];
        let json = run(without_driver(&words)).json();
        let findings = json["findings"].as_array().into_iter().flatten();
        let steps: Vec<&str> = findings.filter_map(|finding| finding["next_step"].as_str()).collect();
        assert!(steps.iter().any(|step| step.starts_with(advice)), "{body}: {json:#}");
    }
}

#[test]
fn a_pointer_to_a_local_variable_that_is_gone_has_its_own_advice() {
    let folder = Folder::new();
    let text = ".version 8.0\n.target sm_90\n.address_size 64
        .func (.param .b64 result) leak() {
            .local .align 4 .b8 own[16]; .reg .b64 %d<2>;
            mov.u64 %d0, own; cvta.local.u64 %d1, %d0; st.u32 [%d1], 7; st.param.b64 [result], %d1; ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b64 %d<2>; .reg .b32 %r0;
            { .param .b64 got; call.uni (got), leak, (); ld.param.b64 %d0, [got]; }
            ld.u32 %r0, [%d0]; ld.param.u64 %d1, [out]; st.global.u32 [%d1], %r0; ret;
        }";
    let file = folder.write("k.ptx", text);
    let json = launch("check", &file, "1", &["--arg", "zeros:u32:4", "--json"]).json();
    let step = json["findings"][0]["next_step"].as_str().unwrap_or_default();
    assert!(step.starts_with("return the value instead of a pointer to it"), "{json:#}");
}

#[test]
fn an_output_does_not_replace_a_file_that_another_argument_is_read_from() {
    let folder = Folder::new();
    let file = folder.write("two.ptx", poke("").replace("(.param .u64 o)", "(.param .u64 o, .param .u64 x)"));
    let read = folder.integers("x.npy", &[1, 2, 3, 4]);
    let before = std::fs::read(&read).unwrap();
    let (output, input) = (format!("zeros:i32:4:{read}"), format!("in:{read}"));
    let outcome = launch("run", &file, "1", &["--arg", &output, "--arg", &input]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
    let said = "argument 1 is read from it, and argument 0 would replace it";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert_eq!(std::fs::read(&read).unwrap(), before);
}
