//! Limits: what is too much is counted or refused, with what to do, and never ends in an abort.

use std::process::Command;

use crate::folder::Folder;
use crate::kernels::STORE_BYTE;
use crate::outcome::{Outcome, command, run, without_driver};

/// PTX of an entry `k(.param .u64 o)` with `%d` as the pointer.
fn ptx(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
        .global .align 1 .b8 format[11] = {{48, 49, 50, 51, 52, 53, 54, 55, 56, 10, 0}};
        .visible .entry k(.param .u64 o) {{
            .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
            ld.param.u64 %d0, [o];
            {body}
            ret;
        }}"
    )
}

fn launch(verb: &str, file: &str, words: &[&str]) -> Outcome {
    let shape = [verb, file, "--kernel", "k", "--grid", "1", "--block", "1", "--device", "sim"];
    run(without_driver(&[&shape[..], words].concat()))
}

/// The command under a limit of the shell.
fn limited(limit: &str, words: &[&str]) -> Command {
    let plain = command(words);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(plain.get_program());
    shell.args(plain.get_args()).env("KILN_LIBCUDA", "/nonexistent/libcuda.so.1").env("COLUMNS", "400");
    shell
}

/// A use of what was read, which depends on it.
const USE: &str = "setp.eq.u32 %p0, %r1, 7; @%p0 mov.u32 %r1, 1;";

#[test]
fn findings_beyond_the_limit_are_counted_with_the_option_that_shows_them() {
    let folder = Folder::new();
    let reads: String = (0..300).map(|at| format!("ld.global.u32 %r1, [%d0+{}];\n{USE}\n", 4 * at)).collect();
    let file = folder.write("many.ptx", ptx(&reads));
    let array = format!("uninit:u32:300:{}", folder.path("a.npy"));
    for verb in ["check", "run"] {
        let outcome = launch(verb, &file, &["--arg", &array]);
        assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
        assert!(
            outcome.stdout.contains("\n     200 more findings were left out; --max-findings N keeps more\n"),
            "{verb}: {}",
            outcome.stdout
        );
        let json = launch(verb, &file, &["--arg", &array, "--json"]).json();
        assert_eq!(json["left_out"]["findings"], 200, "{verb}");
        let all = launch(verb, &file, &["--arg", &array, "--max-findings", "300"]);
        assert!(all.stdout.contains("\n300. uninitialised") && !all.stdout.contains("left out"));
    }
}

#[test]
fn no_more_findings_are_printed_than_were_asked_for_and_the_end_of_the_launch_is_among_them() {
    let folder = Folder::new();
    let body = format!(
        "ld.global.u32 %r1, [%d0]; {USE} ld.global.u32 %r1, [%d0+4]; {USE} mov.u32 %r2, 5; st.global.u32 [%d0+8192], %r2;"
    );
    let file = folder.write("two.ptx", ptx(&body));
    for verb in ["check", "run"] {
        let outcome = launch(verb, &file, &["--arg", "uninit:u32:2", "--max-findings", "1", "--json"]);
        let json = outcome.json();
        let findings = json["findings"].as_array().unwrap();
        assert_eq!((findings.len(), findings[0]["kind"].as_str()), (1, Some("out-of-bounds")), "{json}");
        assert_eq!(json["left_out"]["findings"], 2, "{verb}");
    }
}

#[test]
fn a_loop_that_counts_in_memory_for_ever_is_told_soon() {
    let folder = Folder::new();
    let body = "AGAIN: atom.global.add.u32 %r1, [%d0], 1; setp.ne.u32 %p0, %r1, 0xffffffff; @%p0 bra AGAIN;";
    let file = folder.write("count.ptx", ptx(body));
    let words =
        ["check", &file, "--grid", "1", "--block", "32", "--arg", "zeros:u32:1", "--device", "sim", "--json"];
    let json = run(without_driver(&words)).json();
    assert_eq!(json["findings"][0]["kind"], "step-limit", "{json}");
    // An update takes as long as an instruction, and a warp makes 32 of them at once.
    assert!(json["findings"][0]["text"].as_str().unwrap().contains("67108864"), "{json}");
}

/// One thread runs as many instructions alone as 32 threads run together, and has to end within ten seconds.
#[test]
fn a_loop_of_one_thread_that_counts_for_ever_is_told_soon() {
    let folder = Folder::new();
    let body = "mov.u64 %d1, 0; AGAIN: add.u64 %d1, %d1, 1; setp.ne.u64 %p0, %d1, 0; @%p0 bra AGAIN; st.global.u64 [%d0], %d1;";
    let file = folder.write("count.ptx", ptx(body));
    let outcome = launch("check", &file, &["--arg", "zeros:u64:1", "--json"]);
    let json = outcome.json();
    assert_eq!((outcome.code, &json["findings"][0]["kind"]), (Some(5), &"step-limit".into()), "{json}");
    // Some six seconds where tests are built, and no second seed repeats them.
    assert!(json["findings"][0]["text"].as_str().unwrap().contains("67108864"), "{json}");
    assert_eq!(json["seeds"], serde_json::json!([0]));
}

#[test]
fn memory_of_malloc_that_is_not_freed_is_a_note_and_a_finding_if_asked_for() {
    let folder = Folder::new();
    let text = ".version 8.0\n.target sm_90\n.address_size 64
        .extern .func (.param .b64 r) malloc(.param .b64 n);
        .extern .func free(.param .b64 p);
        .visible .entry k(.param .u32 frees) {
            .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p;
            ld.param.u32 %r0, [frees];
            mov.u64 %d0, 24;
            { .param .b64 p0; .param .b64 r0; st.param.b64 [p0], %d0; call (r0), malloc, (p0); ld.param.b64 %d1, [r0]; }
            setp.eq.u32 %p, %r0, 0;
            @%p bra DONE;
            { .param .b64 p0; st.param.b64 [p0], %d1; call free, (p0); }
            DONE: ret;
        }";
    let file = folder.write("leak.ptx", text);
    let check = |frees: &str, more: &[&str]| {
        let words =
            ["check", &file, "--grid", "1", "--block", "3", "--arg", frees, "--device", "sim", "--json"];
        run(without_driver(&[&words[..], more].concat()))
    };
    let leaks = check("u32:0", &[]);
    assert_eq!(leaks.code, Some(0), "{}", leaks.stdout);
    let note = leaks.json()["notes"][0].as_str().unwrap().to_owned();
    assert!(note.starts_with("leak: 3 blocks of malloc with 72 bytes were not freed"), "{note}");
    assert!(note.contains("k at PTX line 10"), "{note}");
    assert_eq!(check("u32:0", &["--strict"]).code, Some(5));
    let freed = check("u32:1", &[]);
    assert_eq!(freed.json()["notes"].as_array().unwrap().len(), 0, "{}", freed.stdout);
}

#[test]
fn text_beyond_the_limit_is_counted_with_the_option_that_shows_it() {
    let folder = Folder::new();
    let print = "mov.u64 %d1, format; cvta.global.u64 %d1, %d1; mov.u64 %d2, 0; mov.u32 %r1, 0;
        AGAIN: { .param .b64 p0; .param .b64 p1; .param .b32 r0;
            st.param.b64 [p0], %d1; st.param.b64 [p1], %d2; call (r0), vprintf, (p0, p1); }
        add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 100; @%p0 bra AGAIN;";
    let file = folder.write("print.ptx", ptx(print));
    for verb in ["check", "run"] {
        let outcome = launch(verb, &file, &["--arg", "null", "--max-printed", "995"]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        let told = "\n     5 more bytes of printed text were left out; --max-printed BYTES keeps more";
        assert!(outcome.stdout.contains(told), "{verb}: {}", outcome.stdout);
        assert_eq!(outcome.stdout.matches("012345678\n").count(), 99);
        assert!(!launch(verb, &file, &["--arg", "null"]).stdout.contains("left out"));
    }
}

#[test]
fn devices_that_never_end_are_not_read_to_their_end() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    let outcome =
        run(without_driver(&["run", &file, "--grid", "1", "--block", "1", "--arg", "in:/dev/zero"]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is not a regular file"), "{}", outcome.stderr);
    for name in ["zero.ptx", "zero.kir"] {
        let link = folder.path(name);
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let outcome = run(without_driver(&["inspect", &link]));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("it is not a regular file"), "{}", outcome.stderr);
    }
}

#[test]
fn memory_that_this_machine_does_not_have_is_refused() {
    let folder = Folder::new();
    let file = folder.write("local.ptx", ptx(".local .b8 l[524288]; st.local.u8 [l], 1;"));
    let words = ["check", &file, "--grid", "1", "--block", "1024", "--arg", "null", "--device", "sim"];
    let outcome = run(limited("-v 400000", &words));
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("bytes of this machine's memory"), "{}", outcome.stderr);
    assert_eq!(run(without_driver(&words)).code, Some(0));
    let demo = run(limited("-v 100000", &["demo", "--device", "sim"]));
    assert!(matches!(demo.code, Some(0 | 3 | 5)), "{}", demo.stderr);
}

#[test]
fn files_larger_than_the_process_may_write_leave_nothing_behind() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    let array = format!("zeros:u8:100000:{}", folder.path("b.npy"));
    let words = ["run", &file, "--grid", "1", "--block", "1", "--arg", &array, "--arg", "i32:0"];
    let outcome = run(limited("-f 8", &words));
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("b.npy") && outcome.stderr.contains("ulimit -f"), "{}", outcome.stderr);
    let told = "the kernel ran to its end, and its results were not written: ";
    assert!(
        outcome.stderr.contains(told) && outcome.stderr.contains("no output file was changed"),
        "{}",
        outcome.stderr
    );
    assert_eq!(folder.names(), ["store.ptx"]);
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_is_told_before_the_launch() {
    let folder = Folder::new();
    // The kernel would fault, which ends with 5.
    let file = folder.write("lost.ptx", ptx("mov.u32 %r1, 1; st.global.u32 [%d0+65536], %r1;"));
    let outcome = launch("run", &file, &["--arg", "zeros:u32:4:/proc/a.npy"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/proc/a.npy: it cannot be written: "), "{}", outcome.stderr);
    let json = launch("run", &file, &["--arg", "zeros:u32:4:/proc/a.npy", "--json"]).json();
    assert_eq!((&json["error"]["kind"], &json["exit"]), (&"file".into(), &2.into()), "{json}");
}

#[test]
fn an_array_does_not_replace_the_file_of_the_kernel() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    for verb in ["run", "check"] {
        let array = format!("out:u8:8:{}", folder.path("./store.ptx"));
        let words = [verb, &file, "--grid", "1", "--block", "1", "--arg", &array, "--arg", "i32:0"];
        let outcome = run(without_driver(&words));
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("it is the file of the kernel"), "{}", outcome.stderr);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), STORE_BYTE);
}

#[test]
fn the_variable_says_what_findings_do_to_a_run() {
    let folder = Folder::new();
    let file = folder.write("read.ptx", ptx("ld.global.u32 %r1, [%d0]; st.global.u32 [%d0+4], %r1;"));
    let array = format!("uninit:u32:2:{}", folder.path("a.npy"));
    let words = ["run", &file, "--grid", "1", "--block", "1", "--device", "sim", "--arg", &array];
    for (setting, code, told) in [("fail", 5, true), ("report", 0, true), ("ignore", 0, false)] {
        let mut command = without_driver(&words);
        command.env("KILN_FINDINGS", setting);
        let outcome = run(command);
        assert_eq!(outcome.code, Some(code), "{setting}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.stdout.contains("uninitialised"), told, "{setting}: {}", outcome.stdout);
        assert_eq!(folder.names().contains(&"a.npy".to_owned()), code == 0, "{setting}");
    }
    // A kernel that faults loses the device, and no setting brings its memory back.
    let lost = folder.write("lost.ptx", ptx("mov.u32 %r1, 1; st.global.u32 [%d0+65536], %r1;"));
    for setting in ["fail", "report", "ignore"] {
        let mut command = without_driver(&[&words[..1], &[&lost], &words[2..]].concat());
        command.env("KILN_FINDINGS", setting);
        let outcome = run(command);
        assert_eq!(outcome.code, Some(5), "{setting}: {}{}", outcome.stdout, outcome.stderr);
        let said = "no file was written: the kernel did not run to its end";
        assert!(outcome.stdout.contains(said), "{setting}: {}", outcome.stdout);
        assert!(outcome.stdout.contains("KILN_FINDINGS does not change that"), "{setting}");
    }
    let mut check = without_driver(&[&["check"], &words[1..]].concat());
    check.env("KILN_FINDINGS", "ignore");
    assert_eq!(run(check).code, Some(5), "finding mistakes is what `kiln check` is for");
}

#[test]
fn what_cannot_be_launched_is_refused_with_its_place() {
    let folder = Folder::new();
    for (body, code, told) in [
        ("bar.sync 16;", 4, "`bar.sync` at PTX line 10 uses barrier 16, and a block has barriers 0 to 15"),
        ("bar.sync 1, 48;", 4, "waits for 48 threads, which is no multiple of 32"),
        ("mov.u32 %r1, 16; bar.sync %r1;", 5, "uses barrier 16, and a block has barriers 0 to 15"),
        (
            "mov.u32 %r1, 2; T: .branchtargets A, B; brx.idx %r1, T; A: mov.u32 %r2, 1; B:",
            5,
            "index 2 of the branch",
        ),
    ] {
        let file = folder.write("k.ptx", ptx(body));
        let outcome = launch("check", &file, &["--arg", "null"]);
        assert_eq!(outcome.code, Some(code), "{body}: {}{}", outcome.stdout, outcome.stderr);
        let text = format!("{}{}", outcome.stdout, outcome.stderr).replace('\n', " ");
        assert!(text.contains(told), "{body}: {text}");
    }
    // The other kernels of the file can be used.
    let good = ".visible .entry good(.param .u64 o) { .reg .b64 %d; ld.param.u64 %d, [o]; st.global.u32 [%d], 1; ret; }";
    let file = folder.write("two.ptx", ptx("bar.sync 16;") + good);
    for verb in ["check", "run"] {
        let named = |kernel: &str, argument: &str| {
            let shape = ["--grid", "1", "--block", "1", "--device", "sim", "--json"];
            run(without_driver(&[&[verb, &file, "--kernel", kernel, "--arg", argument], &shape[..]].concat()))
        };
        let beside = named("good", "out:u32:1");
        assert_eq!(beside.code, Some(0), "{verb}: {}{}", beside.stdout, beside.stderr);
        let warnings = beside.json()["warnings"].to_string();
        assert!(
            warnings
                .contains("a GPU does not load this file because of another kernel: kernel k: `bar.sync`"),
            "{verb}: {warnings}"
        );
        let refused = named("k", "null");
        assert_eq!(refused.code, Some(4), "{verb}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stdout.contains("uses barrier 16"), "{verb}: {}", refused.stdout);
    }
    let sized = STORE_BYTE.replace(".param .u32 at) {", ".param .u32 at) .reqntid 64 {");
    let file = folder.write("sized.ptx", sized);
    let array = format!("out:u8:8:{}", folder.path("b.npy"));
    let words = ["run", &file, "--grid", "1", "--block", "32", "--arg", &array, "--arg", "i32:0"];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(3), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("64 x 1 x 1 threads"), "{}", outcome.stderr);
}

#[test]
fn output_that_is_closed_ends_with_2() {
    let folder = Folder::new();
    let program =
        folder.write("one.kir", "kernel one(out y: f32[]) block(32) over(y) { y[global.x] = 1.0; }");
    let kiln = command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(kiln.get_program()).args(["emit", &program]);
    let outcome = run(shell);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the standard output is closed"), "{}", outcome.stderr);
    let mut null = command(&["emit", &program]);
    null.stdout(std::process::Stdio::null());
    assert_eq!(run(null).code, Some(0));
}

#[test]
fn a_name_that_is_reserved_is_told_at_its_place() {
    let folder = Folder::new();
    let program = folder.write("a.kir", "kernel step(out y: f32[]) block(32) over(y) { y[global.x] = 1.0; }");
    let outcome = run(without_driver(&["inspect", &program]));
    assert_eq!(outcome.code, Some(4));
    assert!(outcome.stderr.contains("a.kir:1:8: `step` is not a name"), "{}", outcome.stderr);
}

#[test]
fn a_grid_beyond_the_numbers_is_told_the_limit() {
    let folder = Folder::new();
    let file = folder.write("k.ptx", ptx(""));
    let shaped = |flag: &str, size: &str| {
        let (grid, block) = if flag == "--grid" { (size, "1") } else { ("1", size) };
        run(without_driver(&["check", &file, "--grid", grid, "--block", block, "--arg", "null"]))
    };
    for (flag, size, code, said) in [
        (
            "--grid",
            "4294967296",
            3,
            "--grid 4294967296: a grid has at most 2147483647 x 65535 x 65535 blocks",
        ),
        ("--grid", "1,99999999999999999999", 3, "--grid 1,99999999999999999999: a grid has at most"),
        ("--block", "4294967296", 3, "--block 4294967296: a block has at most 1024 threads"),
        (
            "--grid",
            "-4",
            2,
            "invalid value '-4' for '--grid <X[,Y[,Z]]>': write one to three numbers that are not negative",
        ),
        ("--block", "-1,2", 2, "invalid value '-1,2'"),
        ("--grid", "2147483648", 3, "2147483647"),
        ("--grid", "1,65536", 3, "65535"),
        ("--block", "1025", 3, "1024"),
        ("--grid", "1,2,3,4", 2, "one to three numbers"),
    ] {
        let outcome = shaped(flag, size);
        let text = outcome.stderr.replace('\n', " ");
        assert_eq!(outcome.code, Some(code), "{flag} {size}: {text}");
        assert!(text.contains(said), "{flag} {size}: {text}");
    }
}

#[test]
#[cfg(unix)]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let (file, pipe) = (folder.write("store.ptx", STORE_BYTE), folder.path("pipe.npy"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let code = folder.path("pipe.ptx");
    assert!(Command::new("mkfifo").arg(&code).status().unwrap().success());
    for verb in ["run", "check"] {
        for (file, argument) in [(&file, format!("inout:{pipe}")), (&code, "zeros:u8:8".to_owned())] {
            let words =
                [verb, file, "--grid", "1", "--block", "1", "--arg", &argument, "--arg", "i32:0", "--json"];
            let outcome = run(without_driver(&words));
            assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
            let error = outcome.json()["error"].clone();
            assert_eq!(error["kind"], "file", "{error}");
            assert!(error["message"].as_str().unwrap().contains("not a regular file"), "{error}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn arrays_larger_than_the_memory_of_this_machine_are_refused_at_once() {
    let folder = Folder::new();
    let file = folder.write("store.ptx", STORE_BYTE);
    // More than any machine has, and less than an address space.
    let array = format!("out:u8:{}", 1_u64 << 46);
    for verb in ["run", "check"] {
        let words = [
            verb, &file, "--grid", "1", "--block", "1", "--device", "sim", "--arg", &array, "--arg", "i32:0",
        ];
        let outcome = run(without_driver(&words));
        assert!(matches!(outcome.code, Some(2 | 3)), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("memory"), "{}", outcome.stderr);
    }
    // What no thread uses takes no memory.
    let scratch = format!("scratch:u8:{}", 1_u64 << 33);
    let words = ["check", &file, "--grid", "1", "--block", "1", "--arg", &scratch, "--arg", "i32:0"];
    let outcome = run(without_driver(&words));
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let unwritten =
        ["check", &file, "--grid", "1", "--block", "1", "--arg", "out:u8:100000000", "--arg", "i32:0"];
    let outcome = run(without_driver(&unwritten));
    assert_eq!(outcome.code, Some(5), "{}{}", outcome.stdout, outcome.stderr);
    assert!(
        !outcome.stdout.contains("left out"),
        "what the copy back reads is no finding: {}",
        outcome.stdout
    );
}
