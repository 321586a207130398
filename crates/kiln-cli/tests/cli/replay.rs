//! `kiln replay`.

use std::path::PathBuf;

use kiln_mem::trace::{TraceAction, TraceRecord, write_trace};
use kiln_mem::{AllocTag, StreamKey};

use crate::outcome::{run, without_driver};

/// A log in a separate file.
fn log(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.csv"));
    std::fs::write(&path, text).unwrap();
    path
}

/// Forty blocks of 1 MiB by two threads on two streams, of which ten are live at once.
fn sliding() -> String {
    let mut text = "Thread,Time,Action,Pointer,Size,Stream\n".to_owned();
    for at in 0..40 {
        text += &format!("{},00:00:00.000000,allocate,{:#x},1048576,{:#x}\n", at % 2, (at + 1) << 20, at % 2);
        if at >= 9 {
            text += &format!(
                "{},00:00:00.000000,free,{:#x},1048576,{:#x}\n",
                at % 2,
                (at - 8) << 20,
                (at - 9) % 2
            );
        }
    }
    text
}

#[test]
fn a_log_is_replayed_and_measured() {
    let path = log("sliding", &sliding());
    let words = ["replay", path.to_str().unwrap(), "--stack", "budget(1GiB, stats(heap))", "--json"];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let json = outcome.json();
    assert_eq!(json["stack"], "budget(1 GiB, stats(heap))");
    assert_eq!((json["threads"].as_u64(), json["streams"].as_u64()), (Some(2), Some(2)));
    assert_eq!(
        (json["allocations"].as_u64(), json["frees"].as_u64(), json["refusals"].as_u64()),
        (Some(40), Some(31), Some(0))
    );
    assert_eq!(json["peak_live_bytes"].as_u64(), Some(10 << 20));
    assert!(json["reserved_over_live"].as_f64().unwrap() >= 1.0);
    assert!(json["time_ns"].as_u64().unwrap() > 0);
    let smallest = json["smallest_memory_bytes"].as_u64().unwrap();
    assert!(smallest >= 10 << 20 && smallest <= json["peak_reserved_bytes"].as_u64().unwrap());
}

#[test]
fn the_text_says_the_same() {
    let path = log("text", &sliding());
    let outcome = run(without_driver(&["replay", path.to_str().unwrap(), "--device", "sim"]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    for part in [
        "heap on kiln simulated device",
        "40 allocations, 31 frees, 9 blocks live at the end",
        "refused    0 requests",
        "serve every request",
    ] {
        assert!(outcome.stdout.contains(part), "`{part}` is missing in {}", outcome.stdout);
    }
}

#[test]
fn a_stack_that_refuses_says_so() {
    let path = log("refusing", &sliding());
    let words =
        ["replay", path.to_str().unwrap(), "--stack", "limit(4MiB, heap)", "--json", "--device", "sim"];
    let json = run(without_driver(&words)).json();
    assert!(json["refusals"].as_u64().unwrap() > 0 && json["smallest_memory_bytes"].is_null());
}

#[test]
fn wrong_input_ends_with_2_and_names_the_place() {
    let broken = log("broken", "Thread,Time,Action,Pointer,Size,Stream\n1,t,free,0x1,1,0x0\n");
    let fine = log("fine", &sliding());
    let (broken, fine) = (broken.to_str().unwrap(), fine.to_str().unwrap());
    for (words, part) in [
        (&["replay", broken][..], "broken.csv:2: 0x1 is freed and was not live"),
        (&["replay", broken], "give --partial"),
        (&["replay", "/nonexistent/log.csv"], "log.csv"),
        (&["replay", fine, "--stack", "stats(heep)"], "at byte 6: `heep`"),
        (&["replay", fine, "--device", "tpu"], "tpu"),
        (&["replay"], "LOG"),
    ] {
        let outcome = run(without_driver(words));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(outcome.stderr.contains(part), "{words:?}: {}", outcome.stderr);
    }
    assert_eq!(run(without_driver(&["replay", broken, "--partial", "--device", "sim"])).code, Some(0));
}

/// A log may say anything; what no device has is refused like any other request.
#[test]
fn requests_that_no_device_could_meet_are_refused_and_counted() {
    for bytes in [u64::MAX, 1 << 60, 1 << 43] {
        let lines = format!("1,t,allocate,0x1,{bytes},0x0\n1,t,allocate,0x2,64,0x0\n1,t,free,0x2,64,0x0\n");
        let lines = if bytes == u64::MAX { lines.lines().take(1).collect() } else { lines };
        let path = log("absurd", &format!("Thread,Time,Action,Pointer,Size,Stream\n{lines}"));
        for stack in ["heap", "direct", "pages", "host", "guard(budget(8GiB, chunks))"] {
            let words = ["replay", path.to_str().unwrap(), "--device", "sim", "--json", "--stack", stack];
            let outcome = run(without_driver(&words));
            assert_eq!(outcome.code, Some(0), "{bytes} on {stack}: {}", outcome.stderr);
            let json = outcome.json();
            assert_eq!(json["refusals"].as_u64(), Some(1), "{bytes} on {stack}");
            assert!(json["smallest_memory_bytes"].is_null(), "{bytes} on {stack}");
        }
    }
}

#[test]
fn a_gpu_that_is_not_there_ends_with_3() {
    let path = log("absent", &sliding());
    let outcome = run(without_driver(&["replay", path.to_str().unwrap(), "--device", "cuda"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{}", outcome.stderr);
    let refused =
        run(without_driver(&["replay", path.to_str().unwrap(), "--stack", "guard(host)", "--device", "sim"]));
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
}

/// The same calls as in [`sliding`], in a trace file of kiln's own, of which some older ones were dropped.
fn sliding_trace() -> Vec<u8> {
    let record = |action, at: u64, call: u64| TraceRecord {
        nanoseconds: call,
        address: kiln_driver::DeviceAddress((at + 1) << 20),
        bytes: 1 << 20,
        stream: StreamKey::new((at % 2) as usize).unwrap(),
        thread: (call % 2) as u32,
        tag: AllocTag::default(),
        action,
    };
    let mut records = vec![record(TraceAction::Free, 999, 0)];
    for at in 0..40 {
        records.push(record(TraceAction::Allocate, at, 2 * at + 1));
        if at >= 9 {
            records.push(record(TraceAction::Free, at - 9, 2 * at + 2));
        }
    }
    let mut file = Vec::new();
    write_trace(&records, 17, &mut file).unwrap();
    file
}

#[test]
fn a_trace_of_kiln_is_replayed_and_a_cut_one_is_refused_where_it_ends() {
    let whole = sliding_trace();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sliding.trace");
    std::fs::write(&path, &whole).unwrap();
    let words = ["replay", path.to_str().unwrap(), "--device", "sim", "--json"];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let json = outcome.json();
    let number = |name: &str| json[name].as_u64().unwrap();
    assert_eq!((number("allocations"), number("frees"), number("live_at_end")), (40, 31, 9));
    assert_eq!((number("threads"), number("streams"), number("orphan_frees")), (2, 2, 1));
    assert_eq!(number("peak_live_bytes"), 10 << 20);
    for cut in [0, 4, 8, 20, 30, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let outcome = run(without_driver(&words));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(2), ""), "{cut}: {}", outcome.stdout);
        let file = outcome.json()["error"]["place"]["file"].clone();
        assert!(file.as_str().unwrap().ends_with("sliding.trace"), "{cut}: {}", outcome.stdout);
    }
}

#[test]
fn the_smallest_memory_is_that_of_the_host_for_a_heap_of_the_host() {
    // Every other one of 64 small blocks goes; a large one has no room between the others, although no more is live.
    let mut text = "Thread,Time,Action,Pointer,Size,Stream\n".to_owned();
    (1..=64).for_each(|at| text += &format!("1,t,allocate,{:#x},262144,0x0\n", at << 20));
    (1..=32).for_each(|at| text += &format!("1,t,free,{:#x},262144,0x0\n", at << 21));
    text += "1,t,allocate,0x900000000,8388608,0x0\n";
    let path = log("host", &text);
    let smallest = |stack| {
        let words = ["replay", path.to_str().unwrap(), "--stack", stack, "--json", "--device", "sim"];
        run(without_driver(&words)).json()["smallest_memory_bytes"].as_u64().unwrap()
    };
    assert_eq!(smallest("host"), smallest("chunks"), "the same engine needs the same");
    assert!(smallest("host") > 16 << 20, "which is more than what is live");
}

#[test]
fn the_help_knows_every_word_of_a_stack() {
    let help = run(without_driver(&["replay", "--help"])).stdout;
    let bases = kiln_mem::resource_stack::StackBase::ALL.map(kiln_mem::resource_stack::StackBase::name);
    for word in bases.iter().chain(&kiln_mem::resource_stack::StackLayer::NAMES) {
        assert!(help.contains(word), "`{word}` is missing in {help}");
    }
}
