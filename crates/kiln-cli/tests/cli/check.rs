//! `kiln check`: every planted mistake is found and described, and its twin is not.

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::kernels::{faulty, line, right};
use crate::outcome::{Outcome, run, without_driver};

/// A kernel, the threads of its block, the arguments of the right and of the wrong launch, and what must be found where.
struct Planted {
    kernel: &'static str,
    threads: &'static str,
    right: &'static [&'static str],
    wrong: &'static [&'static str],
    kind: &'static str,
    marker: &'static str,
}

const PLANTED: &[Planted] = &[
    Planted {
        kernel: "fill",
        threads: "64",
        right: &["OUT:40", "i32:40", "i32:1"],
        wrong: &["OUT:40", "i32:40", "i32:0"],
        kind: "out-of-bounds",
        marker: "fill",
    },
    Planted {
        kernel: "read_at",
        threads: "32",
        right: &["IN", "PART:64", "i64:3"],
        wrong: &["IN", "PART:64", "i64:-1"],
        kind: "out-of-bounds",
        marker: "read_at",
    },
    Planted {
        kernel: "write_shared",
        threads: "32",
        right: &["PART:64", "i32:0"],
        wrong: &["PART:64", "i32:9"],
        kind: "out-of-bounds",
        marker: "write_shared",
    },
    Planted {
        kernel: "store_at",
        threads: "32",
        right: &["PART:64", "i32:8"],
        wrong: &["PART:64", "i32:6"],
        kind: "misaligned",
        marker: "store_at",
    },
    Planted {
        kernel: "heap",
        threads: "1",
        right: &["PART:64", "i32:0", "i32:3", "i32:0"],
        wrong: &["PART:64", "i32:1", "i32:2", "i32:0"],
        kind: "use-after-free",
        marker: "heap_late",
    },
    Planted {
        kernel: "read_shared",
        threads: "64",
        right: &["PART:64", "i32:1"],
        wrong: &["PART:64", "i32:0"],
        kind: "uninitialised",
        marker: "read_shared",
    },
    Planted {
        kernel: "neighbour",
        threads: "128",
        right: &["IN", "OUT:128", "i32:1"],
        wrong: &["IN", "OUT:128", "i32:0"],
        kind: "race",
        marker: "neighbour_write",
    },
    Planted {
        kernel: "foreign_mask",
        threads: "32",
        right: &["PART:64", "u32:0xffffffff"],
        wrong: &["PART:64", "u32:0x0000ffff"],
        kind: "mask",
        marker: "foreign_mask",
    },
    Planted {
        kernel: "stop",
        threads: "32",
        right: &["PART:64", "i32:0"],
        wrong: &["PART:64", "i32:1"],
        kind: "trap",
        marker: "stop",
    },
    Planted {
        kernel: "claim",
        threads: "32",
        right: &["IN", "PART:64"],
        wrong: &["LARGE", "PART:64"],
        kind: "assertion",
        marker: "claim",
    },
    Planted {
        kernel: "spin",
        threads: "1",
        right: &["LARGE", "OUT:1"],
        wrong: &["ZEROS", "OUT:1"],
        kind: "endless",
        marker: "spin",
    },
];

fn check(folder: &Folder, kernel: &str, threads: &str, arguments: &[&str], more: &[&str]) -> Outcome {
    let specs: Vec<String> = arguments
        .iter()
        .enumerate()
        .map(|(at, argument)| match *argument {
            "IN" => {
                format!("in:{}", folder.integers("in.npy", &(0..128).map(|i| i % 64).collect::<Vec<_>>()))
            }
            "ZEROS" => format!("in:{}", folder.integers("zeros.npy", &[0; 128])),
            "LARGE" => format!("in:{}", folder.integers("large.npy", &[200; 128])),
            other => match other.split_once(':') {
                Some(("OUT", len)) => format!("out:i32:{len}:{}", folder.path(&format!("out{at}.npy"))),
                // Not all elements are written.
                Some(("PART", len)) => format!("uninit:i32:{len}:{}", folder.path(&format!("out{at}.npy"))),
                _ => other.to_owned(),
            },
        })
        .collect();
    let mut words = vec!["check", "FILE", "--kernel", kernel, "--grid", "1", "--block", threads];
    let file = faulty();
    words[1] = &file;
    words.extend(specs.iter().flat_map(|spec| ["--arg", spec]));
    words.extend(["--step-limit", "20000"]);
    words.extend(more);
    run(without_driver(&words))
}

/// The line of a finding, which must name everything there is to name.
fn placed(finding: &Value, kernel: &str) -> u64 {
    assert_eq!(finding["kernel"], kernel, "{finding}");
    assert_eq!(finding["place"]["source"]["file"], "checks.cu", "{finding}");
    for name in ["block", "thread"] {
        assert_eq!(finding["place"][name].as_array().unwrap().len(), 3, "{finding}");
    }
    assert!(finding["place"]["ptx_line"].as_u64().unwrap() > 0);
    finding["place"]["source"]["line"].as_u64().unwrap()
}

#[test]
fn every_planted_mistake_is_found_and_its_twin_is_clean() {
    let folder = Folder::new();
    for Planted { kernel, threads, right, wrong, kind, marker } in PLANTED {
        let twin = check(&folder, kernel, threads, right, &["--json"]);
        assert_eq!(twin.code, Some(0), "{kernel}: {}{}", twin.stdout, twin.stderr);
        assert_eq!((&twin.json()["findings"], &twin.json()["exit"]), (&json!([]), &json!(0)));

        let outcome = check(&folder, kernel, threads, wrong, &["--json"]);
        assert_eq!(outcome.code, Some(5), "{kernel}: {}{}", outcome.stdout, outcome.stderr);
        let report = outcome.json();
        // A kernel that does not end is run once.
        let seeds = if *kind == "endless" { json!([0]) } else { json!([0, 1, 2, 3]) };
        assert_eq!((&report["exit"], &report["seeds"]), (&json!(5), &seeds));
        let findings = report["findings"].as_array().unwrap();
        let alike = findings.iter().filter(|finding| finding["kind"] == *kind);
        let finding = alike.clone().find(|finding| placed(finding, kernel) == line(marker));
        let finding = finding.unwrap_or_else(|| panic!("{kernel}: no {kind} at {marker} in {report:#}"));
        assert!(finding["seeds"].as_array().is_some_and(|seeds| seeds.contains(&json!(0))), "{finding:#}");
        // The text about a mask says it.
        let is_told = finding["next_step"].is_string() || *kind == "mask";
        assert!(is_told, "{kernel} is not told what to do: {finding:#}");

        let text = check(&folder, kernel, threads, wrong, &[]);
        assert_eq!(text.code, Some(5));
        let place = format!("{kernel} at checks.cu:{} (PTX line ", line(marker));
        assert!(text.stdout.contains(&place), "{place} is not in {}", text.stdout);
    }
    let inputs = ["in.npy", "large.npy", "zeros.npy"];
    assert_eq!(folder.names(), inputs, "a check writes no files");
}

#[test]
fn a_stack_that_overflows_is_told_with_what_to_do() {
    let file = faulty();
    let words = ["check", &file, "--kernel", "recurse", "--grid", "1", "--block", "1", "--json"];
    let outcome =
        run(without_driver(&[&words[..], &["--arg", "out:i32:1", "--arg", "i32:1000000"]].concat()));
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let finding = &outcome.json()["findings"][0];
    assert_eq!(finding["kind"], "stack-overflow", "{finding:#}");
    assert!(
        finding["next_step"].as_str().is_some_and(|step| step.contains("a loop instead of deep recursion"))
    );
}

#[test]
fn a_barrier_in_a_diverged_warp_is_found() {
    let folder = Folder::new();
    assert_eq!(check(&folder, "two_barriers", "64", &["PART:64", "i32:0"], &[]).code, Some(0));
    let outcome = check(&folder, "two_barriers", "64", &["PART:64", "i32:1"], &["--json"]);
    assert_eq!(outcome.code, Some(5));
    let finding = &outcome.json()["findings"][0];
    assert_eq!(finding["kind"], "barrier");
    let lines = [line("two_barriers_first"), line("two_barriers_second")];
    assert!(lines.contains(&placed(finding, "two_barriers")), "{finding}");
}

#[test]
fn a_thread_that_exits_before_a_barrier_is_a_note() {
    let folder = Folder::new();
    let early = ["PART:64", "i32:40"];
    // Whole warps that exit are a note of strict checks only.
    let warps = check(&folder, "leave_early", "64", &["PART:64", "i32:32"], &["--json"]);
    assert_eq!((warps.code, &warps.json()["notes"]), (Some(0), &json!([])), "{}", warps.stdout);
    let noted = check(&folder, "leave_early", "64", &early, &["--json"]).json();
    assert_eq!((&noted["exit"], noted["notes"].as_array().map(Vec::len)), (&json!(0), Some(1)), "{noted}");
    let strict = check(&folder, "leave_early", "64", &early, &["--json", "--strict"]);
    assert_eq!(strict.code, Some(5), "{}", strict.stdout);
    let report = strict.json();
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!((&finding["kind"], placed(finding, "leave_early")), (&json!("barrier"), line("leave_early")));
    assert!(finding["text"].as_str().unwrap().contains("exited before it"), "{finding}");
    assert_eq!(report["notes"], json!([]), "each is told once");
    assert_eq!(check(&folder, "leave_early", "64", &["PART:64", "i32:64"], &["--strict"]).code, Some(0));
}

#[test]
fn a_missed_array_is_named_with_the_distance() {
    let folder = Folder::new();
    let behind = check(&folder, "fill", "64", &["OUT:40", "i32:40", "i32:0"], &["--json"]).json();
    let finding = &behind["findings"][0];
    assert_eq!(finding["allocation"], json!({"argument": 0, "bytes": 160, "offset": 160}));
    assert_eq!((&finding["access"]["kind"], &finding["access"]["bytes"]), (&json!("write"), &json!(4)));
    assert!(finding["access"]["address"].as_str().unwrap().starts_with("0x"));
    assert_eq!(finding["place"]["thread"], json!([40, 0, 0]));
    assert!(
        finding["text"].as_str().unwrap().ends_with("just past the end of argument 0, an array of 160 bytes")
    );
    let before = check(&folder, "read_at", "32", &["IN", "PART:64", "i64:-1"], &[]);
    assert!(before.stdout.contains("4 bytes before argument 0, an array of 512 bytes"), "{}", before.stdout);
    let between = check(&folder, "read_at", "32", &["IN", "PART:64", "i64:128"], &[]);
    assert!(between.stdout.contains("just past the end of argument 0"), "no array begins where one ends");
}

#[test]
fn both_sides_of_a_race_are_named() {
    let folder = Folder::new();
    let report = check(&folder, "neighbour", "128", &["IN", "OUT:128", "i32:0"], &["--json"]).json();
    let mut races = report["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "race");
    let finding = races.next().unwrap();
    assert_eq!(finding["access"]["memory"], "shared");
    let lines =
        [&finding["place"], &finding["earlier"]].map(|place| place["source"]["line"].as_u64().unwrap());
    assert!(
        lines.contains(&line("neighbour_read")) && lines.contains(&line("neighbour_write")),
        "{finding:#}"
    );
    assert_ne!(finding["place"]["thread"], finding["earlier"]["thread"]);
}

#[test]
fn the_same_seeds_say_the_same_and_seeds_can_be_chosen() {
    let folder = Folder::new();
    let words = ["--json", "--seed", "7", "--seeds", "3"];
    let one = check(&folder, "neighbour", "128", &["IN", "OUT:128", "i32:0"], &words);
    let two = check(&folder, "neighbour", "128", &["IN", "OUT:128", "i32:0"], &words);
    assert_eq!(one.stdout, two.stdout);
    assert_eq!(one.json()["seeds"], json!([7, 8, 9]));
}

#[test]
fn results_that_depend_on_the_order_are_noted() {
    // Blocks take places in the order they come.
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry arrive(.param .u64 next, .param .u64 places) {
            .reg .b32 %r<4>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd0, [next];
            ld.param.u64 %rd1, [places];
            mov.u32 %r0, %ctaid.x;
            atom.global.add.u32 %r1, [%rd0], 1;
            mul.wide.u32 %rd2, %r0, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r1;
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("arrive.ptx", PTX);
    let (next, places) = (folder.path("next.npy"), folder.path("places.npy"));
    let (next, places) = (format!("zeros:u32:1:{next}"), format!("out:u32:64:{places}"));
    let words = [
        "check", &file, "--kernel", "arrive", "--grid", "64", "--block", "1", "--arg", &next, "--arg",
        &places, "--json",
    ];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(0), "it is no mistake by itself: {}", outcome.stdout);
    let report = outcome.json();
    let notes = report["notes"].as_array().unwrap();
    assert!(
        matches!(&notes[..], [only] if only.as_str().unwrap().starts_with("argument 1 depends on the order")),
        "{report:#}"
    );
}

#[test]
fn a_check_is_refused_as_a_run_is() {
    let folder = Folder::new();
    assert_eq!(check(&folder, "fill", "64", &["IN", "i32:40", "i32:1"], &[]).code, Some(3));
    assert_eq!(check(&folder, "fill", "64", &["OUT:40", "i32:40"], &[]).code, Some(3));
    let gpu = check(&folder, "fill", "64", &["OUT:40", "i32:40", "i32:1"], &["--device", "cuda"]);
    assert_eq!(gpu.code, Some(3));
    assert!(gpu.stderr.contains("--device sim"), "{}", gpu.stderr);
    assert_eq!(check(&folder, "fill", "64", &["OUT:x", "i32:40"], &[]).code, Some(2));
    assert_eq!(check(&folder, "fill", "64", &["OUT:40", "i32:40", "i32:1"], &["--seeds", "0"]).code, Some(2));
}

#[test]
fn right_kernels_pass() {
    let folder = Folder::new();
    let x = format!("in:{}", folder.floats("x.npy", &[1.0; 1000]));
    let y = format!("inout:{}:{}", folder.floats("y.npy", &[1.0; 1000]), folder.path("z.npy"));
    let file = right("elementwise");
    let words =
        ["check", &file, "--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "f32:2", "--arg", &x];
    let outcome = run(without_driver(&[&words[..], &["--arg", &y, "--arg", "i32:1000"]].concat()));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.ends_with("no findings\n"), "{}", outcome.stdout);
}

/// Adds the first argument to the second, where a flag says so.
const ADD: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry add(.param .u64 x, .param .u64 y, .param .u32 twice) {
        .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r4, [twice];
        mov.u32 %r0, %tid.x;
        mul.wide.u32 %rd2, %r0, 4;
        add.s64 %rd3, %rd0, %rd2; add.s64 %rd4, %rd1, %rd2;
        ld.global.u32 %r1, [%rd3];
        ld.global.u32 %r2, [%rd4];
        setp.eq.u32 %p1, %r4, 0; @%p1 bra ONCE;
        add.u32 %r1, %r1, %r1;
        add.u32 %r1, %r1, 1;
        ONCE:
        add.u32 %r3, %r1, %r2; st.global.u32 [%rd4], %r3;
        ret;
    }
    .visible .entry other(.param .u64 x) { ret; }";

fn add(folder: &Folder, y: &str, more: &[&str]) -> Outcome {
    let file = folder.write("add.ptx", ADD);
    let x = format!("in:{}", folder.integers("x.npy", &[1; 32]));
    let y = format!("{y}:{}", folder.path("y.npy"));
    let words = ["check", &file, "--kernel", "add", "--grid", "1", "--block", "32", "--arg", &x, "--arg", &y];
    run(without_driver(&[&words[..], &["--arg", "u32:0"], more].concat()))
}

#[test]
fn an_output_is_not_read_before_it_is_written() {
    let folder = Folder::new();
    for start in ["out", "uninit"] {
        let outcome = add(&folder, &format!("{start}:u32:32"), &["--json"]);
        assert_eq!(outcome.code, Some(5), "{start}: {}", outcome.stdout);
        let found = outcome.json()["findings"][0]["text"].as_str().unwrap().to_owned();
        assert!(found.contains("never written"), "{start}: {found}");
    }
    let zeros = add(&folder, "zeros:u32:32", &["--json"]);
    assert_eq!(zeros.code, Some(0), "{}", zeros.stdout);
    assert_eq!(folder.names(), ["add.ptx", "x.npy"], "a check writes no files");
}

#[test]
fn the_report_ends_with_what_was_not_checked() {
    let folder = Folder::new();
    let report = add(&folder, "zeros:u32:32", &["--json"]).json();
    let unchecked = &report["not_checked"];
    assert_eq!(
        unchecked["lines_not_executed"],
        json!([{"file": null, "first": 14, "last": 15}]),
        "{report:#}"
    );
    assert_eq!(unchecked["kernels_not_launched"], json!(["other"]));
    assert_eq!(unchecked["unsupported_instructions"], json!([]));
    let text = add(&folder, "zeros:u32:32", &["--seeds", "2"]).stdout;
    let (_, not_checked) = text.split_once("\nnot checked:\n").unwrap_or_else(|| panic!("{text}"));
    for part in ["2 seeds", "2 of ", "PTX line 14-15", "not launched: other", "weak memory"] {
        assert!(not_checked.contains(part), "{part}: {text}");
    }
    assert!(text.ends_with("no findings\n"), "{text}");
}

#[test]
fn a_race_is_told_once_with_both_sides() {
    let folder = Folder::new();
    let outcome = check(&folder, "neighbour", "128", &["IN", "OUT:128", "i32:0"], &[]);
    let text = &outcome.stdout;
    let place = |marker: &str| format!("neighbour at checks.cu:{} (PTX line ", line(marker));
    for side in [
        format!("\n     write  {}", place("neighbour_write")),
        format!("\n     read   {}", place("neighbour_read")),
    ] {
        assert!(text.contains(&side), "{side} is not in {text}");
    }
    let races = check(&folder, "neighbour", "128", &["IN", "OUT:128", "i32:0"], &["--json"]).json();
    let races = races["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "race");
    let places = |finding: &Value| {
        let mut lines =
            [&finding["place"], &finding["earlier"]].map(|place| place["source"]["line"].as_u64().unwrap());
        lines.sort_unstable();
        lines
    };
    let mut pairs: Vec<[u64; 2]> = races.map(places).collect();
    let count = pairs.len();
    pairs.dedup();
    assert_eq!(pairs.len(), count, "each pair of lines is told once");
}

#[test]
fn notes_are_findings_if_the_check_is_strict() {
    let folder = Folder::new();
    const PTX: &str = "
        .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry arrive(.param .u64 next, .param .u64 places) {
            .reg .b32 %r<4>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd0, [next];
            ld.param.u64 %rd1, [places];
            mov.u32 %r0, %ctaid.x;
            atom.global.add.u32 %r1, [%rd0], 1;
            mul.wide.u32 %rd2, %r0, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r1;
            ret;
        }";
    let file = folder.write("arrive.ptx", PTX);
    let (next, places) = (folder.path("next.npy"), folder.path("places.npy"));
    let (next, places) = (format!("zeros:u32:1:{next}"), format!("out:u32:64:{places}"));
    let words = ["check", &file, "--grid", "64", "--block", "1", "--arg", &next, "--arg", &places];
    assert_eq!(run(without_driver(&words)).code, Some(0));
    let strict = run(without_driver(&[&words[..], &["--strict"]].concat()));
    assert_eq!(strict.code, Some(5), "{}", strict.stdout);
    assert!(strict.stdout.ends_with("\n1 finding\n"), "{}", strict.stdout);
    let first = "\n  1. argument 1 depends on the order of threads: element ";
    assert!(strict.stdout.contains(first) && !strict.stdout.contains("\nnote: "), "{}", strict.stdout);
    let report = run(without_driver(&[&words[..], &["--strict", "--json"]].concat())).json();
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!((&finding["kind"], &finding["allocation"]["argument"]), (&json!("order"), &json!(1)));
    let early = check(&folder, "leave_early", "64", &["PART:64", "i32:40"], &["--json", "--strict"]).json();
    let help = run(without_driver(&["check", "--help"])).stdout;
    let kinds = [&finding["kind"], &early["findings"][0]["kind"]].map(|kind| kind.as_str().unwrap());
    for kind in kinds.into_iter().chain(["same-value", "mask", "leak", "index"]) {
        assert!(help.contains(&format!("({kind})")), "{kind} is not in {help}");
    }
}
