//! `kiln check`: the orders in which a kernel is run, and what does not change them.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::kernels::faulty;
use crate::outcome::{Outcome, run, without_driver};

/// Checks a kernel that writes 64 numbers and is right.
fn fill(folder: &Folder, more: &[&str]) -> Outcome {
    let (file, out) = (faulty(), format!("out:i32:64:{}", folder.path("o.npy")));
    let words = ["check", &file, "--kernel", "fill", "--grid", "1", "--block", "64", "--arg", &out];
    run(without_driver(&[&words[..], &["--arg", "i32:64", "--arg", "i32:1"], more].concat()))
}

/// Sums 64 numbers in one warp through volatile shared memory, without `__syncwarp`: since sm_70 a lane may read the old value.
const VOLATILE_SUM: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry sum(.param .u64 out, .param .u64 x) {
        .shared .align 4 .b8 tile[256];
        .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .f32 %f<4>;
        ld.param.u64 %d0, [out]; ld.param.u64 %d1, [x];
        mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d2, %d1, %d2;
        mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 4, %r1;
        ld.global.f32 %f0, [%d2]; st.volatile.shared.f32 [%r1], %f0;
        ld.global.f32 %f0, [%d2+128]; st.volatile.shared.f32 [%r1+128], %f0;
        mov.u32 %r2, 32;
        LOOP: setp.ge.u32 %p0, %r0, %r2; @%p0 bra NEXT;
        mad.lo.u32 %r3, %r2, 4, %r1;
        ld.volatile.shared.f32 %f1, [%r1]; ld.volatile.shared.f32 %f2, [%r3];
        add.f32 %f1, %f1, %f2; st.volatile.shared.f32 [%r1], %f1;
        NEXT: shr.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra LOOP;
        setp.ne.u32 %p0, %r0, 0; @%p0 ret;
        ld.volatile.shared.f32 %f3, [%r1]; st.global.f32 [%d0], %f3;
        ret;
    }";

#[test]
fn a_result_that_few_orders_change_is_noted_without_more_seeds() {
    let folder = Folder::new();
    let file = folder.write("sum.ptx", VOLATILE_SUM);
    let x = format!("in:{}", folder.floats("x.npy", &(0..64).map(|i| i as f32).collect::<Vec<_>>()));
    let words = ["check", &file, "--grid", "1", "--block", "32", "--arg", "out:f32:1", "--arg", &x, "--json"];
    let sum = |more: &[&str]| run(without_driver(&[&words[..], more].concat()));
    let is_noted = |report: &Value| {
        let notes = report["notes"].as_array().unwrap();
        notes
            .iter()
            .any(|note| note.as_str().unwrap().starts_with("argument 0 depends on the order of threads"))
    };
    // Four orders that all give one sum: what a caller asks for is all that runs.
    let quiet = (10..100).map(|first| (5 * first).to_string()).find(|first| {
        let report = sum(&["--seed", first, "--seeds", "4"]).json();
        assert_eq!(report["exit"], 0, "{report:#}");
        !is_noted(&report)
    });
    let first = quiet.unwrap();
    let report = sum(&["--seed", &first]).json();
    assert_eq!(
        (&report["exit"], report["seeds"].as_array().map(Vec::len)),
        (&json!(0), Some(4)),
        "{report:#}"
    );
    assert!(is_noted(&report), "seed {first}: {report:#}");
    // The orders that ran without checks are named, up to the one that differs.
    let next = first.parse::<u64>().unwrap() + 4;
    assert_eq!(report["compared_seeds"][0], json!(next), "{report:#}");
    let strict = sum(&["--seed", &first, "--strict"]);
    assert_eq!((strict.code, &strict.json()["findings"][0]["kind"]), (Some(5), &json!("order")));
}

#[test]
fn seeds_end_where_numbers_do() {
    let folder = Folder::new();
    let last = "18446744073709551615";
    let only = fill(&folder, &["--seed", last, "--seeds", "1", "--json"]);
    assert_eq!((only.code, &only.json()["seeds"]), (Some(0), &json!([u64::MAX])), "{}", only.stderr);
    let over = fill(&folder, &["--seed", last]);
    assert_eq!((over.code, over.stdout.as_str()), (Some(2), ""), "{}", over.stdout);
    assert!(over.stderr.contains("give --seeds 1 at most, or a smaller --seed"), "{}", over.stderr);
}

#[test]
fn the_policy_of_the_environment_makes_no_difference_to_a_check() {
    let folder = Folder::new();
    let file = faulty();
    let out = format!("out:i32:64:{}", folder.path("o.npy"));
    let words = ["check", &file, "--kernel", "fill", "--grid", "1", "--block", "64", "--arg", &out];
    let words = [&words[..], &["--arg", "i32:64", "--arg", "i32:1"]].concat();
    for (policy, code) in [("off", 0), ("auto", 0), ("required", 0), ("simulate", 0), ("nonsense", 2)] {
        let mut command = without_driver(&words);
        command.env("KILN_POLICY", policy);
        let outcome = run(command);
        assert_eq!(outcome.code, Some(code), "{policy}: {}{}", outcome.stdout, outcome.stderr);
    }
    let help = run(without_driver(&["check", "--help"])).stdout;
    for said in ["KILN_POLICY", "refuses --device cuda"] {
        assert!(help.contains(said), "{said}: {help}");
    }
}

#[test]
fn a_kernel_whose_results_are_compared_may_hold_instructions_that_no_thread_reaches() {
    const PTX: &str = "
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry count(.param .u64 out, .param .u32 fence) {
            .reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %d<1>;
            ld.param.u64 %d0, [out]; ld.param.u32 %r0, [fence];
            atom.global.add.u32 %r1, [%d0], 1;
            setp.eq.u32 %p0, %r0, 0; @%p0 ret;
            tcgen05.wait::ld.sync.aligned;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("count.ptx", PTX);
    let words = ["check", &file, "--grid", "2", "--block", "32", "--arg", "zeros:u32:1", "--arg"];
    for (fence, code) in [("u32:0", 0), ("u32:1", 3)] {
        let outcome = run(without_driver(&[&words[..], &[fence]].concat()));
        assert_eq!(outcome.code, Some(code), "{fence}: {}{}", outcome.stdout, outcome.stderr);
    }
}
