//! What a terminal shows: no line too wide, no control characters from outside.

use crate::folder::Folder;
use crate::kernels::{STORE_BYTE, faulty, right, tensor};
use crate::outcome::{run, without_driver};

const OUTPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-kernels/kernels/output.ptx");

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let folder = Folder::new();
    let long = folder.write(&format!("{}.npy", "long_name_".repeat(12)), "");
    let spec = format!("in:{long}");
    let (tensor, right, faulty) = (tensor(), right("elementwise"), faulty());
    let kernel = ["--kernel", "saxpy", "--grid", "1", "--block", "1"];
    let many = ["--arg", "f32:1.00000000000000000001", "--arg", &spec, "--arg", "null", "--arg", "i32:1"];
    for words in [
        vec!["doctor"],
        vec!["doctor", "--policy", "required"],
        vec!["demo", "--device", "sim"],
        vec!["demo", "--device", "sim", "--isolate"],
        vec!["inspect", &right],
        vec!["inspect", &tensor],
        vec!["inspect", &faulty],
        vec!["inspect", &right, "--kernel", "nonsense"],
        [&["run", &right][..], &kernel, &many].concat(),
        vec!["check", &faulty, "--kernel", "leave_early", "--grid", "1", "--block", "64"],
        vec!["cache", "list", "--at", &long],
        vec!["bench", "m7", "--device", "sim", "--repeats", "1"],
        vec!["--help"],
        vec!["run", "--help"],
        vec!["check", "--help"],
        vec!["inspect", "--help"],
        vec!["doctor", "--help"],
        vec!["demo", "--help"],
        vec!["cache", "--help"],
        vec!["replay", "--help"],
        vec!["bench", "--help"],
        vec!["emit", "--help"],
        vec!["run", &right, "--arg", "wat:f32:5:o"],
        vec!["run", &right, "--arg", "out:wat:5:o"],
        vec!["run", &right, "--no-such-flag-at-all-and-a-long-one-too"],
        vec![],
    ] {
        for columns in [60, 132] {
            let mut command = without_driver(&words);
            command.env("COLUMNS", columns.to_string());
            let outcome = run(command);
            for text in [&outcome.stdout, &outcome.stderr] {
                assert!(widest(text) <= columns, "{words:?} with {columns}:\n{text}");
            }
        }
    }
}

#[test]
fn paragraphs_of_help_are_broken_once() {
    for verb in
        ["bench", "cache", "check", "doctor", "emit", "exec", "explain", "inspect", "launch", "replay", "run"]
            .into_iter()
            .chain(["scale", "top", "trace", "watch"])
    {
        let mut command = without_driver(&[verb, "--help"]);
        command.env("COLUMNS", "60");
        let help = run(command).stdout;
        let behind = help.split("Examples:").nth(1).unwrap_or_else(|| panic!("{help}"));
        for paragraph in behind.split("\n\n").filter(|text| !text.trim_start_matches('\n').starts_with(' ')) {
            let lines: Vec<&str> = paragraph.lines().collect();
            for pair in lines.windows(2).filter(|pair| !pair[1].starts_with(' ')) {
                let next = pair[1].split(' ').next().unwrap_or_default();
                let is_full = pair[0].len() + 1 + next.len() > 60;
                let is_list = verb == "bench" && next.len() == 2 || verb == "replay";
                assert!(is_full || is_list, "{verb}: {pair:?}\n{help}");
            }
        }
    }
}

#[test]
fn lines_in_a_pipe_are_not_broken() {
    let faulty = faulty();
    let piped = |words: &[&str]| {
        let mut command = without_driver(words);
        command.env_remove("COLUMNS");
        run(command)
    };
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    let check =
        piped(&["check", &file, "--grid", "1", "--block", "1", "--arg", "zeros:u8:8", "--arg", "i32:0"]);
    let sentence =
        "values that weak memory may show: here every thread sees a write at once, in program order";
    assert!(check.stdout.lines().any(|line| line.ends_with(sentence)), "{}", check.stdout);
    let refused = piped(&["run", &faulty, "--kernel", "store_at", "--grid", "1", "--block", "1"]);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(piped(&["inspect", &faulty]).stdout.lines().all(|line| !line.ends_with(' ')));
    for words in [&["--help"][..], &["run", "--help"], &["demo", "--device", "sim"]] {
        assert!(widest(&piped(words).stdout) <= 80, "a help text or a drawing has 80 columns: {words:?}");
    }
}

#[test]
fn json_is_not_broken_into_lines() {
    let mut command = without_driver(&["inspect", &tensor(), "--json"]);
    command.env("COLUMNS", "40");
    let narrow = run(command);
    assert_eq!(narrow.stdout, run(without_driver(&["inspect", &tensor(), "--json"])).stdout);
}

#[test]
fn control_characters_from_outside_are_escaped() {
    let folder = Folder::new();
    let escape = "\x1b]0;owned\x07\x1b[2J";
    let named = folder.path(&format!("a{escape}.ptx"));
    let text =
        folder.write("bad.ptx", format!(".version 8.0\n.target sm_80\n.visible .entry k() {{ {escape} }}"));
    let header = format!("{{'descr': '<{escape}', 'fortran_order': False, 'shape': (1,), }}\n");
    let array = folder.write("a.npy", crate::folder::versioned(1, &header, &[0; 4]));
    let array = format!("in:{array}");
    for words in [
        vec!["inspect", &named],
        vec!["inspect", &text],
        vec!["run", OUTPUT, "--kernel", escape, "--grid", "1", "--block", "1"],
        vec!["run", OUTPUT, "--kernel", "print_some", "--grid", "1", "--block", "1", "--arg", &array],
    ] {
        let outcome = run(without_driver(&words));
        assert_ne!(outcome.code, Some(0), "{words:?}");
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!outcome.stderr.contains(is_control), "{words:?}: {:?}", outcome.stderr);
        assert!(outcome.stderr.contains("\\x1b"), "{words:?}: {:?}", outcome.stderr);
    }
}

#[test]
fn bytes_that_are_no_text_are_escaped_where_a_kernel_prints_them() {
    let text = "
        .version 8.0
        .target sm_80
        .address_size 64
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
        .global .align 1 .b8 format[6] = {97, 255, 27, 91, 10, 0};
        .visible .entry say() {
            .reg .b64 %rd<3>;
            mov.u64 %rd1, format;
            cvta.global.u64 %rd1, %rd1;
            mov.u64 %rd2, 0;
            {
                .param .b64 p0;
                .param .b64 p1;
                .param .b32 r0;
                st.param.b64 [p0], %rd1;
                st.param.b64 [p1], %rd2;
                call (r0), vprintf, (p0, p1);
            }
            ret;
        }";
    let folder = Folder::new();
    let file = folder.write("say.ptx", text);
    let outcome = run(without_driver(&["run", &file, "--grid", "1", "--block", "1", "--device", "sim"]));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.starts_with("a\\xff\\x1b[\nsay on "), "{:?}", outcome.stdout);
}

#[test]
fn barriers_are_described_and_not_numbered() {
    let shown = run(without_driver(&["inspect", &faulty(), "--kernel", "neighbour"])).stdout;
    assert!(
        shown.contains("\n  synchronises   the block, with __syncthreads()\n")
            || shown.contains("__syncthreads()"),
        "{shown}"
    );
    assert!(!shown.contains("barriers       0"), "{shown}");
}

#[test]
fn numbers_have_no_more_digits_than_they_need() {
    let digits = |text: &str| {
        let numbers = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        numbers.filter(|number| number.contains('.')).map(|number| number.len()).max().unwrap_or(0)
    };
    let demo = run(without_driver(&["demo", "--device", "sim", "--isolate", "--json"]));
    assert!(digits(&demo.json()["takeover_ms"].to_string()) <= 10, "{}", demo.json()["takeover_ms"]);
    let folder = Folder::new();
    let log = "Thread,Time,Action,Pointer,Size,Stream\n1,t,allocate,0x1000,3000000,0x0\n1,t,allocate,0x900000,700001,0x0\n";
    let log = folder.write("log.csv", log);
    let replayed = run(without_driver(&["replay", &log, "--device", "sim", "--json"])).json();
    assert!(digits(&replayed["reserved_over_live"].to_string()) <= 6, "{replayed}");
}
