//! The reader refuses what `ptxas` refuses, and takes what it takes.
//!
//! `tests/data/judged_lines.txt` holds lines of PTX with what `ptxas` 13.0 says of each. Without `ptxas` the reader is compared with
//! these marks; with one, the marks are compared with what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_ptx::PtxModule;

const LINES: &str = include_str!("../data/judged_lines.txt");

/// The registers that the lines use.
const REGISTERS: &str = ".reg .pred p1, p2; .reg .b16 h, h2; .reg .b32 a, b, c, d; .reg .u32 u; .reg .s32 s; \
    .reg .u16 uh; .reg .b64 q, r; .reg .u64 uq; .reg .b128 w; .reg .f32 f, g; .reg .f64 x, y; .reg .f16 hf; \
    .reg .b8 o; .reg .f16x2 hh;";

/// The variables that the lines use.
const VARIABLES: &str = ".global .u32 gv; .shared .b32 sv[4]; .const .u32 cv;";

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place<'a> {
    /// In a kernel of a module of this version and architecture.
    Kernel(&'a str, &'a str),
    /// Among the variables of a module.
    Module,
    /// It is a version and an architecture.
    Target,
}

/// One line with its mark.
struct Judged<'a> {
    place: Place<'a>,
    line: &'a str,
    is_taken: bool,
}

impl Judged<'_> {
    /// The line in a module.
    fn text(&self) -> String {
        match self.place {
            Place::Kernel(version, target) => module(version, target, VARIABLES, &[self.line]),
            Place::Module => module("9.0", "sm_90", &format!(".global .u32 g1;\n{}", self.line), &[]),
            Place::Target => {
                let (version, target) = self.line.split_once(' ').unwrap();
                format!(
                    ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"
                )
            }
        }
    }
}

fn module(version: &str, target: &str, variables: &str, lines: &[&str]) -> String {
    let (registers, lines) = (if lines.is_empty() { "" } else { REGISTERS }, lines.join("\n"));
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n{variables}\n.visible .entry k(.param .u64 p) {{\n\
         {registers} .local .b32 lv[4];\n{lines}\nret;\n}}\n"
    )
}

fn judged() -> Vec<Judged<'static>> {
    let mut place = Place::Target;
    let mut judged = Vec::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        let (mark, rest) = line.split_once(' ').unwrap();
        if mark == "=" {
            place = match rest.split_once(' ') {
                Some(("module", _)) => Place::Module,
                Some((version, target)) => Place::Kernel(version, target),
                None => Place::Target,
            };
            continue;
        }
        assert!(matches!(mark, "+" | "-"), "{line}");
        judged.push(Judged { place, line: rest, is_taken: mark == "+" });
    }
    judged
}

#[test]
fn the_reader_judges_as_the_assembler_does() {
    let judged = judged();
    let (taken, refused) = judged.iter().partition::<Vec<_>, _>(|line| line.is_taken);
    assert!(taken.len() >= 500 && refused.len() >= 500, "{} and {}", taken.len(), refused.len());
    let mut wrong = Vec::new();
    for line in &judged {
        match (PtxModule::parse(&line.text()), line.is_taken) {
            (Err(error), true) => wrong.push(format!("+ {}   {error}", line.line)),
            (Ok(_), false) => wrong.push(format!("- {}", line.line)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), judged.len(), wrong.join("\n"));
}

#[test]
fn refusals_name_the_line_and_a_next_step() {
    for (line, said) in [
        ("cvt.f32.s32 f, a;", "`cvt.f32.s32` needs a rounding: `.rn`, `.rz`, `.rm` or `.rp`"),
        (
            "cvt.rn.s32.f32 a, f;",
            "`cvt.rn.s32.f32` has `.rn`; to an integer it is `.rni`, `.rzi`, `.rmi` or `.rpi`",
        ),
        (
            "cvt.rn.f64.f32 x, f;",
            "`cvt.rn.f64.f32` has `.rn`; this conversion is exact and takes no rounding",
        ),
        (
            "ld.global.u64 a, [q];",
            "operand 1 of `ld.global.u64` is a register of type .b32, which does not hold a .u64",
        ),
        (
            "st.const.u32 [cv], a;",
            "`st.const.u32` names the state space `.const`; it takes `.global`, `.shared`, \
          `.shared::cta`, `.shared::cluster`, `.local`, `.param` or `.param::func`",
        ),
        (
            "ld.shared.u32 a, [gv];",
            "operand 2 of `ld.shared.u32` is `gv`, which lies in the space `.global`; name that space",
        ),
        ("ld.global.ca.cg.u32 a, [q];", "`ld.global.ca.cg.u32` has several cache operations; keep one"),
        (
            "shfl.idx.b32 a, b, c, 31;",
            "`shfl.idx.b32` needs `.sync` and a mask of the lanes that take part: architectures \
          from sm_70 on have no other form",
        ),
        ("and.u32 a, b, c;", "`and.u32` has the type `.u32`; it takes `.b16`, `.b32`, `.b64` or `.pred`"),
        ("add.f32 f, f, 1;", "operand 3 of `add.f32` is a number of another kind than .f32"),
    ] {
        let text = module("9.0", "sm_90a", VARIABLES, &[line]);
        assert_eq!(PtxModule::parse(&text).unwrap_err().to_string(), format!("7:1: {said}"), "{line}");
    }
    let unknown = PtxModule::parse(".version 9.0\n.target sm_999\n").unwrap_err().to_string();
    let named = "PTX 9.0 has no architecture of this name; name one that it has, such as sm_80 or sm_90a";
    assert_eq!(unknown, format!("2:9: {named}"));
    let early = PtxModule::parse(".version 7.0\n.target sm_90\n").unwrap_err().to_string();
    assert_eq!(early, "2:9: this architecture came with PTX 7.8, after 7.0; raise `.version`");
    let valued =
        PtxModule::parse(".version 9.0\n.target sm_90\n.shared .u32 s = 5;\n").unwrap_err().to_string();
    let store = "a variable in `.shared` has no first value; store it at the start of the kernel instead";
    assert_eq!(valued, format!("3:16: {store}"));
    // A later version may have what these do not.
    assert!(PtxModule::parse(".version 9.9\n.target sm_999\n").is_ok());
}

#[test]
fn the_marks_are_what_ptxas_says() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    let judged = judged();
    // All lines that are taken make one module; of those that are refused a part is asked about, each alone.
    let taken: Vec<&str> = judged
        .iter()
        .filter(|line| line.is_taken && line.place == Place::Kernel("9.0", "sm_90a"))
        .map(|line| line.line)
        .collect();
    // It may end without code for so odd a kernel, but names no line.
    let (_, said) = assemble(&ptxas, &module("9.0", "sm_90a", VARIABLES, &taken), "sm_90a");
    assert!(!said.contains("error") && !said.contains("fatal"), "{said}");
    for line in judged.iter().filter(|line| !line.is_taken).step_by(10) {
        let text = line.text();
        let target = text.split_whitespace().nth(3).unwrap_or("sm_90a");
        let makes_code_for = matches!(target, "sm_90" | "sm_90a");
        if !makes_code_for {
            continue;
        }
        let (is_taken, said) = assemble(&ptxas, &text, target);
        assert!(!is_taken, "{}: {said}", line.line);
    }
}

#[test]
fn the_ptx_of_the_workspace_is_taken() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    let refused: Vec<String> = files
        .iter()
        .filter_map(|file| {
            // Some are parts that the program puts together.
            let text = std::fs::read_to_string(file).ok().filter(|text| text.contains(".version"))?;
            let error = PtxModule::parse(&text).err()?;
            Some(format!("{}:{error}", file.display()))
        })
        .collect();
    assert!(refused.is_empty(), "{} of {}:\n{}", refused.len(), files.len(), refused.join("\n"));
}

/// The PTX files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            files.push(path);
        }
    }
}

fn find_ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KILN_PTXAS") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

fn assemble(ptxas: &Path, text: &str, target: &str) -> (bool, String) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judged-{}.ptx", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = file.with_extension("cubin");
    let run = Command::new(ptxas)
        .args(["--compile-only", "--opt-level", "0", "--gpu-name", target, "--output-file"])
        .args([&output, &file])
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&output);
    (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
}
