//! Faults that are planned, and checks that are chosen: programs in C.

use std::path::Path;

use super::{compiled, kiln, text};

#[test]
fn a_program_is_told_of_the_faults_that_were_planned() {
    let Some(program) = compiled("injected") else { return };
    let cases = [
        ("oom@2", "memory"),
        ("load@1", "image"),
        ("fault@2", "700"),
        ("fault@2=CUDA_ERROR_LAUNCH_FAILED", "719"),
        ("oom@100,fault@2=716", "716"),
    ];
    for (plan, case) in cases {
        let output = kiln(&["--fault", plan], &program, &[case]);
        // What was planned is no mistake of the program.
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(0) && !told.contains("finding"), "{plan}: {told}");
        // What did not come is named.
        let left =
            told.lines().find_map(|line| line.strip_prefix("kiln exec: note: planned, and did not come: "));
        assert_eq!(left, plan.starts_with("oom@100").then_some("0:oom@100"), "{plan}: {told}");
        // Without the plan the program sees none.
        let output = kiln(&[], &program, &[case]);
        assert_eq!(output.status.code(), Some(1), "{plan}");
    }
    // It is counted by device.
    let output = kiln(&["--devices", "2", "--fault", "1:oom@2"], &program, &["memory"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("planned, and did not come: 1:oom@2"), "{told}");
}

#[test]
fn a_plan_that_is_none_is_told_before_the_program_starts() {
    let wrong = [
        (&["--fault", "oom"][..], "`oom` is no fault"),
        (&["--fault", "flood@1"], "slow-copies@FACTOR"),
        (&["--fault", "1:oom@1"], "the program sees 1"),
        (&["--devices", "2", "--fault", "9:cut-0@1"], "the plan is about device 9, and the program sees 2"),
        (&["--devices", "2", "--fault", "0:cut-9@1"], "the plan is about device 9, and the program sees 2"),
        (&["--fault", "0:slow-1@3"], "the plan is about device 1, and the program sees 1"),
        (&["--fault", "oom@1", "--isolate"], "in the program's own process"),
        (&["--fault", "oom@1", "--device", "cuda"], "in the program's own process"),
        (&["--check", "races", "--isolate"], "in the program's own process"),
    ];
    for (flags, why) in wrong {
        let output = kiln(flags, Path::new("echo"), &["ran"]);
        let told = text(&output.stderr);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(2), String::new()),
            "{flags:?}: {told}"
        );
        assert!(told.contains(why), "{flags:?}: {told}");
    }
}

#[test]
fn checks_that_are_not_chosen_find_nothing() {
    let Some(program) = compiled("mistakes") else { return };
    let found = [("race", "races"), ("unwritten", "uninit")];
    for (case, check) in found {
        for (checks, is_found) in
            [(check, true), ("lifetimes", false), ("races,uninit", true), ("none", false)]
        {
            let output = kiln(&["--check", checks], &program, &[case]);
            let expected = if is_found { Some(5) } else { Some(0) };
            assert_eq!(output.status.code(), expected, "{case} {checks}: {}", text(&output.stderr));
        }
    }
    // Accesses outside of memory are found in any case.
    let output = kiln(&["--check", "none"], &program, &["bounds"]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let Some(program) = compiled("leaks") else { return };
    for (checks, code) in [("leaks", 5), ("races", 0)] {
        let output = kiln(&["--check", checks], &program, &["library"]);
        assert_eq!(output.status.code(), Some(code), "{checks}: {}", text(&output.stderr));
    }
}

#[test]
fn unknown_checks_are_told_with_the_list() {
    for (checks, words) in [
        ("races,tides", &["tides", "races", "lifetimes", "uninit", "leaks", "none"][..]),
        ("none,races", &["leave `none` out"]),
    ] {
        let output = kiln(&["--check", checks], Path::new("echo"), &["ran"]);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{told}");
        assert!(words.iter().all(|words| told.contains(words)), "{told}");
    }
}
