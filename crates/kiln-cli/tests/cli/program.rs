//! Programs: `kiln run`, `kiln check` and `kiln inspect` of `.kir` files.

use serde_json::json;

use crate::folder::Folder;
use crate::outcome::{Outcome, run, without_driver};

const SAXPY: &str = "kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(32) over(y) {
    let i: u64 = global.x;
    y[i] = fma(a, x[i], y[i]);
}
";

/// Threads of a block exchange elements, with a barrier between or without one.
fn reversed(barrier: &str) -> String {
    format!(
        "kernel reversed(in x: u32[64], out y: u32[64]) block(64) {{
    shared tile: u32[64];
    tile[thread.x] = x[thread.x];
    {barrier}
    y[thread.x] = tile[63 - thread.x];
}}
"
    )
}

const TRAPS: &str = "kernel traps(in x: u32[], out y: u32[like x]) block(4) over(x) {
    let v = x[global.x];
    if v > 100 {
        trap(v + 1);
    }
    y[global.x] = v * 2;
}
";

fn program(command: &str, file: &str, arguments: &[&str], more: &[&str]) -> Outcome {
    let mut words = vec![command, file, "--device", "sim"];
    words.extend(arguments.iter().flat_map(|argument| ["--arg", *argument]));
    words.extend(more);
    run(without_driver(&words))
}

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn a_program_runs_over_its_buffer_with_no_more_than_its_arguments() {
    let folder = Folder::new();
    let file = folder.write("saxpy.kir", SAXPY);
    let x: Vec<f32> = (0..1000).map(|at| at as f32 * 0.25).collect();
    let from = format!("in:{}", folder.floats("x.npy", &x));
    let to = format!("inout:{}:{}", folder.floats("y.npy", &[3.0; 1000]), folder.path("z.npy"));
    let outcome = program("run", &file, &[&from, &to, "f32:2.5"], &["--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let expected: Vec<u8> = x.iter().flat_map(|x| 2.5_f32.mul_add(*x, 3.0).to_le_bytes()).collect();
    assert_eq!(folder.read("z.npy").1, expected);
    let report = outcome.json();
    assert_eq!((&report["kernel"], &report["exit"]), (&json!("saxpy"), &json!(0)));
    assert_eq!((&report["grid"], &report["block"]), (&json!([32, 1, 1]), &json!([32, 1, 1])));
    let column = |name: &str| {
        report["arguments"].as_array().unwrap().iter().map(|each| each[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(column("name"), ["x", "y", "a"]);
    assert_eq!(column("effect"), [json!("reads"), json!("both"), json!(null)]);

    let again = program("run", &file, &[&from, &to, "f32:2.5"], &["--block", "64", "--grid", "20"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(folder.read("z.npy").1, expected, "another shape, the same result");
    assert!(again.stdout.contains("grid 20 x 1 x 1, block 64 x 1 x 1"), "{}", again.stdout);
    assert!(again.stdout.contains("the program") && again.stdout.contains("1000 x f32"), "{}", again.stdout);
    let named = program("run", &file, &[&from, &to, "f32:2.5"], &["--kernel", "saxpy"]);
    assert_eq!(named.code, Some(0));
}

#[test]
fn every_element_type_goes_in_and_comes_out() {
    let folder = Folder::new();
    for (ty, descr, bytes) in [
        ("bool", "|b1", 1),
        ("u8", "|u1", 1),
        ("i8", "|i1", 1),
        ("u16", "<u2", 2),
        ("i16", "<i2", 2),
        ("f16", "<f2", 2),
        ("bf16", "<u2", 2),
        ("u32", "<u4", 4),
        ("i32", "<i4", 4),
        ("f32", "<f4", 4),
        ("u64", "<u8", 8),
        ("i64", "<i8", 8),
        ("f64", "<f8", 8),
    ] {
        let text = format!(
            "kernel pick(in x: {ty}[], inout y: {ty}[], s: {ty}) block(8) over(x) {{\n    let i = global.x;\n    y[i] = x[i];\n    if i == 0 {{ y[8] = s; }}\n}}\n"
        );
        let file = folder.write("pick.kir", text);
        let data: Vec<u8> =
            (0..8 * bytes).map(|at| if ty == "bool" { at as u8 % 2 } else { 1 + at as u8 % 60 }).collect();
        let from = format!("in:{}", folder.array("x.npy", descr, 8, &data));
        let to = format!("out:{ty}:9:{}", folder.path("y.npy"));
        let value = if ty == "bool" { "bool:true".to_owned() } else { format!("{ty}:1") };
        let outcome = program("run", &file, &[&from, &to, &value], &[]);
        assert_eq!(outcome.code, Some(0), "{ty}: {}{}", outcome.stdout, outcome.stderr);
        let (header, back) = folder.read("y.npy");
        assert!(header.contains(descr), "{ty}: {header}");
        assert_eq!(back[..8 * bytes], data, "{ty}");
        let one: &[u8] = match ty {
            "f16" => &[0x00, 0x3c],
            "bf16" => &[0x80, 0x3f],
            "f32" => &[0, 0, 0x80, 0x3f],
            "f64" => &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            _ => &1_u64.to_le_bytes()[..bytes],
        };
        assert_eq!(&back[8 * bytes..], one, "{ty}");
    }
}

#[test]
fn what_does_not_fit_the_program_is_refused_with_3() {
    let folder = Folder::new();
    let file = folder.write("saxpy.kir", SAXPY);
    let x = format!("in:{}", folder.floats("x.npy", &[1.0; 4]));
    let short = format!("inout:{}:{}", folder.floats("s.npy", &[1.0; 3]), folder.path("z.npy"));
    let y = format!("inout:{}:{}", folder.floats("y.npy", &[1.0; 4]), folder.path("z.npy"));
    let wrong = format!("in:{}", folder.integers("i.npy", &[1; 4]));
    let read_y = format!("in:{}", folder.path("y.npy"));
    let write_x = format!("inout:{}:{}", folder.path("x.npy"), folder.path("z.npy"));
    for (arguments, more, word) in [
        (&[&x[..], &y][..], &[][..], "takes 3 arguments, and 2 were given"),
        (&[&x, &y, "f32:2", "f32:2"], &[], "takes 3 arguments, and 4 were given"),
        (&[&x, &y, "f64:2"], &[], "`a`, f64:2: it is f32, and f64 was given"),
        (&[&x, &y, &x], &[], "it is a scalar"),
        (&["f32:2", &y, "f32:2"], &[], "it is a buffer"),
        (&[&wrong, &y, "f32:2"], &[], "its elements are int32, and the program takes f32"),
        (&[&x, &read_y, "f32:2"], &[], "the program writes it; declare it with inout: or out:"),
        (&[&write_x, &read_y, "f32:2"], &[], "the program only reads it; declare it with in:"),
        (&[&x, &short, "f32:2"], &[], "`y` has 3 elements, but must have 4 (it is like `x`)"),
        (&[&x, &y, "f32:2"], &["--kernel", "axpy"], "no program `axpy` in the file; it has `saxpy`"),
        (&[&x, &y, "f32:2"], &["--block", "2000"], "2000"),
        (&[&x, &y, "f32:2"], &["--grid", "0"], "no blocks"),
        (&[&x, &y, "f32:2"], &["--shared", "64"], "64 bytes of dynamic shared memory"),
    ] {
        for command in ["run", "check"] {
            let outcome = program(command, &file, arguments, more);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""), "{arguments:?} {more:?}");
            assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
        }
    }
    let free = folder.write("free.kir", SAXPY.replace(" over(y)", ""));
    let outcome = program("run", &free, &[&x, &y, "f32:2"], &[]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("--grid"), "{}", outcome.stderr);
    assert!(!folder.names().contains(&"z.npy".to_owned()));
}

#[test]
fn a_text_that_is_no_program_ends_with_4_and_its_place() {
    let folder = Folder::new();
    for (text, place) in [
        (SAXPY.replace("fma(a,", "fma(a"), "3:"),
        (SAXPY.replace("fma(a, x[i], y[i])", "i"), "3:"),
        (SAXPY.replace("y[i] =", "x[i] ="), "3:"),
        (SAXPY.replace("block(32)", "block(99999)"), "1:1:"),
        (SAXPY.trim_end().trim_end_matches('}').to_owned(), "4:1:"),
        (String::new(), "1:1:"),
    ] {
        let file = folder.write("bad.kir", &text);
        for command in ["run", "check", "inspect", "emit"] {
            let outcome = run(without_driver(&[command, &file]));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(4), ""), "{command}: {text}");
            let told = format!("bad.kir:{place}");
            assert!(outcome.stderr.contains(&told), "{told} is not in {}", outcome.stderr);
        }
    }
    for command in ["run", "check", "inspect", "emit"] {
        assert_eq!(run(without_driver(&[command, "/nonexistent/k.kir"])).code, Some(2));
        let binary = folder.write("binary.kir", [0xff, 0xfe]);
        assert_eq!(run(without_driver(&[command, &binary])).code, Some(2));
    }
}

#[test]
fn a_trap_ends_with_5_its_code_and_its_thread_and_writes_nothing() {
    let folder = Folder::new();
    let file = folder.write("traps.kir", TRAPS);
    let out = format!("out:u32:6:{}", folder.path("y.npy"));
    let good = format!("in:{}", folder.array("x.npy", "<u4", 6, &words(&[1, 2, 3, 4, 5, 6])));
    assert_eq!(program("run", &file, &[&good, &out], &[]).code, Some(0));
    assert_eq!(folder.read("y.npy").1, words(&[2, 4, 6, 8, 10, 12]));
    std::fs::remove_file(folder.path("y.npy")).unwrap();
    let bad = format!("in:{}", folder.array("x.npy", "<u4", 6, &words(&[1, 2, 3, 4, 5, 300])));
    for command in ["run", "check"] {
        let outcome = program(command, &file, &[&bad, &out], &["--json"]);
        assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
        let finding = &outcome.json()["findings"][0];
        assert_eq!(finding["kind"], "trap");
        assert_eq!(finding["text"], "trap: the program executed a trap with code 301");
        let place = &finding["place"];
        assert_eq!(place["source"], json!({"file": file, "line": 4}));
        assert_eq!((&place["block"], &place["thread"]), (&json!([1, 0, 0]), &json!([1, 0, 0])));
        assert_eq!(outcome.json()["findings"].as_array().unwrap().len(), 1, "the same with every seed");
    }
    let told = program("run", &file, &[&bad, &out], &[]).stdout;
    assert!(told.contains("traps.kir:4, block (1,0,0) thread (1,0,0)"), "{told}");
    assert!(told.contains("a trap with code 301") && told.contains("no file was written"), "{told}");
    assert!(!folder.names().contains(&"y.npy".to_owned()));
}

#[test]
fn a_missing_barrier_is_found_with_the_line_of_the_program_and_its_twin_is_clean() {
    let folder = Folder::new();
    let from = format!("in:{}", folder.array("x.npy", "<u4", 64, &words(&(0..64).collect::<Vec<_>>())));
    let out = format!("out:u32:64:{}", folder.path("y.npy"));
    let right = folder.write("right.kir", reversed("barrier block;"));
    let outcome = program("check", &right, &[&from, &out], &["--grid", "1", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.json()["findings"], json!([]));
    let wrong = folder.write("wrong.kir", reversed(""));
    let outcome = program("check", &wrong, &[&from, &out], &["--grid", "1", "--json"]);
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let report = outcome.json();
    let race = report["findings"].as_array().unwrap().iter().find(|each| each["kind"] == "race").unwrap();
    let lines: Vec<&serde_json::Value> =
        ["place", "earlier"].iter().map(|side| &race[*side]["source"]["line"]).collect();
    assert!(lines.contains(&&json!(3)) && lines.contains(&&json!(5)), "{race}");
    assert_eq!(race["place"]["source"]["file"], wrong);
    let told = program("check", &wrong, &[&from, &out], &["--grid", "1"]).stdout;
    assert!(told.contains("wrong.kir:3") && told.contains("wrong.kir:5"), "{told}");
    assert!(!told.contains("reversed.kir"), "{told}");
}

#[test]
fn unchecked_accesses_are_checked_by_the_simulated_device() {
    let folder = Folder::new();
    let text = "kernel shift(in x: u32[], out y: u32[] unchecked) block(8) over(x) {\n    y[global.x + 1] = x[global.x];\n}\n";
    let file = folder.write("shift.kir", text);
    let from = format!("in:{}", folder.array("x.npy", "<u4", 8, &words(&[1; 8])));
    let enough = format!("out:u32:9:{}", folder.path("y.npy"));
    assert_eq!(program("run", &file, &[&from, &enough], &[]).code, Some(0));
    let short = format!("out:u32:8:{}", folder.path("y.npy"));
    let outcome = program("run", &file, &[&from, &short], &["--json"]);
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    let finding = &outcome.json()["findings"][0];
    assert_eq!((&finding["kind"], &finding["place"]["source"]["line"]), (&json!("out-of-bounds"), &json!(2)));
    assert_eq!(finding["allocation"]["argument"], 1);
}

#[test]
fn dynamic_shared_memory_is_given_in_bytes() {
    let folder = Folder::new();
    let text = "kernel sum(in x: u64[], out y: u64[1]) block(4) {
    shared tile: u64[];
    tile[thread.x] = x[thread.x];
    barrier block;
    if thread.x == 0 { y[0] = tile[0] + tile[1] + tile[2] + tile[3]; }
}
";
    let file = folder.write("sum.kir", text);
    let data: Vec<u8> = [1_u64, 2, 3, 4].iter().flat_map(|number| number.to_le_bytes()).collect();
    let from = format!("in:{}", folder.array("x.npy", "<u8", 4, &data));
    let out = format!("out:u64:1:{}", folder.path("y.npy"));
    let sum = |shared: &str| program("run", &file, &[&from, &out], &["--grid", "1", "--shared", shared]);
    assert_eq!(sum("32").code, Some(0));
    assert_eq!(folder.read("y.npy").1, 10_u64.to_le_bytes());
    for (shared, word) in
        [("0", "give --shared BYTES"), ("12", "not a whole number of u64"), ("4000000", "shared memory")]
    {
        let outcome = sum(shared);
        assert_eq!(outcome.code, Some(3), "{shared}");
        assert!(outcome.stderr.contains(word), "{word} is not in {}", outcome.stderr);
    }
}

#[test]
fn blocks_that_wait_for_each_other_run_and_state_is_kept() {
    let folder = Folder::new();
    let text = "kernel rounds(persistent x: u32[], n: u32) block(2) {
    let i = global.x;
    let next = (i + 1) % len(x);
    for turn in 0..n {
        let sum = x[i] + x[next];
        barrier grid;
        x[i] = sum;
        barrier grid;
    }
}
";
    let file = folder.write("rounds.kir", text);
    let from = folder.array("x.npy", "<u4", 6, &words(&[1, 2, 3, 4, 5, 6]));
    let spec = format!("inout:{from}:{from}");
    let outcome = program("run", &file, &[&spec, "u32:3"], &["--grid", "3"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(folder.read("x.npy").1, words(&[20, 28, 36, 38, 28, 18]));
}

#[test]
fn a_gpu_that_is_not_there_and_a_check_on_one_are_refused_with_3() {
    let folder = Folder::new();
    let file = folder.write("saxpy.kir", SAXPY);
    let x = format!("in:{}", folder.floats("x.npy", &[1.0; 4]));
    let y = format!("inout:{}:{}", folder.floats("y.npy", &[1.0; 4]), folder.path("z.npy"));
    for (command, word) in [("run", "KILN_LIBCUDA names"), ("check", "--device sim")] {
        let words = [command, &file, "--arg", &x, "--arg", &y, "--arg", "f32:1", "--device", "cuda"];
        let outcome = run(without_driver(&words));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
}

#[test]
fn a_program_is_inspected_with_all_it_declares_and_does() {
    let folder = Folder::new();
    let text = "kernel all(in x: f32[], in unused: u8[4], inout y: f32[like x], persistent state: u32[1], n: u32, s: bf16) block(16, 2) over(x) flush {
    shared tile: f32[40];
    shared more: u16[];
    if n == 0 {
        trap(7);
    }
    tile[thread.x] = x[global.x];
    barrier block;
    y[global.x] = tile[0];
    atomic_add(state[0], 1);
    barrier grid;
}
";
    let file = folder.write("all.kir", text);
    let outcome = run(without_driver(&["inspect", &file, "--json"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let sheet = outcome.json();
    let column = |list: &str, name: &str| {
        sheet[list].as_array().unwrap().iter().map(|each| each[name].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sheet["program"], "all");
    assert_eq!(column("buffers", "index"), [0, 1, 2, 3]);
    assert_eq!(column("buffers", "name"), ["x", "unused", "y", "state"]);
    assert_eq!(column("buffers", "role"), ["in", "in", "inout", "persistent"]);
    assert_eq!(column("buffers", "access"), ["reads", "neither", "writes", "both"]);
    assert_eq!(column("buffers", "element"), ["f32", "u8", "f32", "u32"]);
    assert_eq!(column("buffers", "count"), [json!(null), json!(4), json!(null), json!(1)]);
    assert_eq!(column("buffers", "like"), [json!(null), json!(null), json!("x"), json!(null)]);
    assert_eq!(
        (column("scalars", "index"), column("scalars", "bytes")),
        (vec![json!(4), json!(5)], vec![json!(4), json!(2)])
    );
    assert_eq!(column("shared", "count"), [json!(40), json!(null)]);
    assert_eq!((&sheet["shared_bytes"], &sheet["traps"]), (&json!(160), &json!([5])));
    assert_eq!(
        (&sheet["grid_barrier"], &sheet["flush"], &sheet["checked"]),
        (&json!(true), &json!(true), &json!(true))
    );
    assert_eq!((&sheet["block"], &sheet["over"]), (&json!([16, 2, 1]), &json!("x")));

    let shown = run(without_driver(&["inspect", &file])).stdout;
    for line in [
        "all.kir: program all",
        "  2  y       inout       f32   like x    writes",
        "  5  s       scalar      bf16",
        "  block          16 x 2 x 1 threads",
        "  grid           a thread for each element of x",
        "  shared memory  tile: 40 x f32",
        "  shared memory  more: u16, size given by the launch (--shared)",
        "  needs          a cooperative launch",
        "  traps          in line 5",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}
