//! What an architecture does not have is told before a launch, for each architecture as `ptxas` tells it.
//!
//! `tests/data/required_lines.txt` holds lines of PTX with what `ptxas` 13.0 says of each for thirteen architectures. Without `ptxas` the executor is
//! compared with these marks; with one, some of the marks are compared with what it says.

use std::path::Path;
use std::process::Command;

use kiln_ptx::PtxModule;
use kiln_ptx::exec::ExecProgram;

const LINES: &str = include_str!("../data/required_lines.txt");

const DECLARATIONS: &str = ".global .align 16 .b8 g[256]; .shared .align 16 .b8 sh[256];\n\
    .visible .entry k(.param .u64 o, .param .align 16 .b8 pa[64]) {\n\
    .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<33>; .reg .b64 %d<9>; .reg .f32 %f<33>; .reg .f64 %e<9>; .reg .pred %p<9>;\n";

fn text(version: &str, target: &str, line: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n{DECLARATIONS}{line}\nret;\n}}\n")
}

/// The architectures, and each line with its marks.
fn required() -> (Vec<&'static str>, Vec<(&'static str, &'static str)>) {
    let mut lines = LINES.lines().filter(|line| !line.starts_with('#'));
    let targets = lines.next().unwrap().strip_prefix("= ").unwrap().split(' ').collect();
    (targets, lines.map(|line| line.split_once(' ').unwrap()).collect())
}

/// Why a module does not have a line, if so.
fn missing(text: &str) -> Option<String> {
    let module = match PtxModule::parse(text) {
        Ok(module) => module,
        Err(error) => return Some(error.to_string()),
    };
    let program = ExecProgram::new(module);
    let entry = program.entry("k").unwrap();
    entry.unsupported().first().map(|found| found.what.clone())
}

#[test]
fn each_architecture_has_what_the_assembler_says() {
    let (targets, lines) = required();
    assert!(targets.len() == 13 && lines.len() >= 80, "{} and {}", targets.len(), lines.len());
    let mut wrong = Vec::new();
    for (marks, line) in lines {
        let said: String = targets
            .iter()
            .map(|target| if missing(&text("9.0", target, line)).is_none() { '+' } else { '-' })
            .collect();
        if said != marks {
            wrong.push(format!("{marks} {line}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_first_version_and_architecture_are_named() {
    for (version, target, line, wanted) in [
        (
            "8.0",
            "sm_75",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};",
            "PTX 7.0 and sm_80 or newer",
        ),
        (
            "7.0",
            "sm_80",
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%r1,%r2},{%r3},{%r4},{%r1,%r2};",
            "PTX 7.1 and sm_80 or newer",
        ),
        ("8.7", "sm_100", "ld.global.v4.b64 {%d1,%d2,%d3,%d4},[%d5];", "PTX 8.8 and sm_100 or newer"),
        ("8.0", "sm_90", "setmaxnreg.inc.sync.aligned.u32 64;", "PTX 8.0 and sm_90a to sm_121a"),
        ("7.3", "sm_80", "ld.global.L2::cache_hint.b32 %r1,[%d1],%d2;", "PTX 7.4 and sm_80 or newer"),
        ("8.0", "sm_80", "mov.u32 %r1,%cluster_ctarank;", "PTX 7.8 and sm_90 or newer"),
        (
            "9.0",
            "sm_89",
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%d0],{%r0};",
            "PTX 7.8 and sm_90 or newer",
        ),
        ("7.7", "sm_80", "movmatrix.sync.aligned.m8n8.trans.b16 %r0,%r1;", "PTX 7.8 and sm_75 or newer"),
        ("9.0", "sm_62", "match.any.sync.b32 %r0,%r1,0xffffffff;", "PTX 6.0 and sm_70 or newer"),
        // The later version and the later architecture of two rules.
        (
            "7.4",
            "sm_86",
            "atom.relaxed.cluster.global.add.L2::cache_hint.u32 %r1,[%d1],%r2,%d3;",
            "PTX 7.8 and sm_90 or newer",
        ),
    ] {
        let said = missing(&text(version, target, line)).unwrap_or_default();
        assert!(said.contains("requires") && said.contains(wanted), "{line}: {said}");
    }
}

#[test]
fn the_marks_of_architectures_are_what_ptxas_says() {
    let Some(ptxas) = std::env::var_os("KILN_PTXAS") else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path");
        return;
    };
    let (targets, lines) = required();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("required-{}.ptx", std::process::id()));
    for (number, (marks, line)) in lines.iter().enumerate().step_by(4) {
        let at = number % targets.len();
        std::fs::write(&file, text("9.0", targets[at], line)).unwrap();
        let arguments = ["--compile-only", "--gpu-name", targets[at], "--output-file", "/dev/null"];
        let run = Command::new(&ptxas).args(arguments).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.success(), marks.as_bytes()[at] == b'+', "{} {line}: {said}", targets[at]);
    }
    let _ = std::fs::remove_file(&file);
}
