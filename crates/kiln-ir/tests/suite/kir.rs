//! Programs in text files: each prints as it parses, emits the PTX beside it, and does what its `run:` lines say on the
//! interpreter and on the executor.
//!
//! `KILN_BLESS=1 cargo test -p kiln-ir --test kir` writes the PTX anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::rig::golden::GOLDEN as PROGRAMS;
use crate::rig::ptxas::{assemble, find_ptxas};
use crate::rig::run_line::{Run, run_lines};
use crate::rig::{interpret, simulate};
use kiln_ir::{BufferId, EntryParameterKind, Program, PtxTarget, ThreadOrder};

/// The architectures whose PTX is kept beside the programs: one that lacks everything, one that has everything.
const GOLDEN: [u32; 2] = [70, 90];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kir")
}

/// All programs, by name.
fn programs() -> Vec<(&'static str, &'static str, Program)> {
    let broken =
        |(name, text): &(&str, &str)| Program::parse(text).err().map(|error| format!("{name}.kir:{error}"));
    let broken: Vec<String> = PROGRAMS.iter().filter_map(broken).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    PROGRAMS.iter().map(|(name, text)| (*name, *text, Program::parse(text).unwrap())).collect()
}

#[test]
fn every_program_of_the_folder_is_in_the_list() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".kir").map(str::to_owned))
        .collect();
    found.sort();
    let listed: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, listed, "tests/rig/golden.rs lists the programs");
}

#[test]
fn every_program_prints_as_it_parses() {
    for (name, _, program) in programs() {
        let printed = program.to_string();
        assert_eq!(Program::parse(&printed).unwrap(), program, "{name}:\n{printed}");
        assert_eq!(Program::parse(&printed).unwrap().to_string(), printed, "{name}");
    }
}

#[test]
fn every_program_emits_the_ptx_beside_it() {
    for (name, _, program) in programs() {
        for number in GOLDEN {
            let text = program.emit(PtxTarget::new(number).unwrap()).text;
            let path = folder().join(format!("{name}.sm_{number}.ptx"));
            if std::env::var_os("KILN_BLESS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(text, golden, "{name} for sm_{number} differs; KILN_BLESS=1 accepts it");
        }
    }
}

#[test]
fn every_run_line_holds_on_interpreter_and_executor() {
    let mut failures = Vec::new();
    for (name, text, program) in programs() {
        let lines = run_lines(text);
        assert!(!lines.is_empty(), "{name} has no run line");
        for line in lines {
            let run = Run::read(&program, line);
            let wrong = failures_of(&run, &program);
            failures.extend(wrong.into_iter().map(|what| format!("{name}:{line}\n  {what}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_ptx_reads_and_writes_what_the_roles_of_the_buffers_say() {
    for (name, _, program) in programs() {
        let emitted = program.emit(PtxTarget::new(90).unwrap());
        let module = kiln_ptx::PtxModule::parse(&emitted.text).unwrap();
        let entry = (0..).zip(module.functions()).find(|(_, function)| *function.name == *program.name);
        let effects = module.effects(kiln_ptx::PtxFunctionId(entry.unwrap().0)).unwrap();
        assert_eq!(effects.doubts, [], "{name}: nothing may be in doubt");
        for (at, buffer) in program.buffers.iter().enumerate() {
            let pointer = EntryParameterKind::Pointer(BufferId(at as u32));
            let parameter = emitted.layout.parameters.iter().position(|p| p.kind == pointer).unwrap();
            let effect = effects.pointer(parameter, 0).unwrap().effect;
            let what = format!("{name}: `{}` is declared `{}`, but {effect:?}", buffer.name, buffer.role);
            assert!(buffer.role.is_readable() || !effect.reads.is_possible(), "{what}");
            assert!(buffer.role.is_writable() || !effect.writes.is_possible(), "{what}");
        }
    }
}

#[test]
fn ptxas_accepts_every_program_for_every_architecture() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    for target in PtxTarget::all() {
        // Starting the assembler takes longer than its work, so programs of one version go in together.
        let mut modules: BTreeMap<String, Vec<(&str, String)>> = BTreeMap::new();
        for (name, _, program) in programs() {
            let text = program.emit(target).text;
            let (header, body) = text.split_once("\n\n").unwrap();
            modules.entry(header.to_owned()).or_default().push((name, body.to_owned()));
        }
        for (header, bodies) in modules {
            let joined: Vec<&str> = bodies.iter().map(|(_, body)| &**body).collect();
            if assemble(&ptxas, "all", &format!("{header}\n\n{}", joined.join("\n")), target).0 {
                continue;
            }
            for (name, body) in &bodies {
                let text = format!("{header}\n\n{body}");
                let (accepted, log) = assemble(&ptxas, name, &text, target);
                assert!(accepted, "{name} for {target}:\n{log}\n{text}");
            }
            panic!("all programs together are refused for {target}, although each is accepted");
        }
    }
}

#[test]
fn lines_add_nothing_but_lines_and_every_one_is_in_the_text() {
    let target = PtxTarget::new(90).unwrap();
    let ptxas = find_ptxas();
    for (name, text, program) in programs() {
        let with_lines = program.emit_with_lines(target).text;
        let is_line = |line: &&str| line.trim_start().starts_with(".loc ") || line.starts_with(".file ");
        let rest: Vec<&str> = with_lines.lines().filter(|line| !is_line(line)).collect();
        let emitted = program.emit(target).text;
        assert_eq!(rest, emitted.lines().collect::<Vec<_>>(), "{name}");
        let told: Vec<&str> =
            with_lines.lines().filter_map(|line| line.trim_start().strip_prefix(".loc 1 ")).collect();
        for place in &told {
            let line: usize = place.split(' ').next().unwrap().parse().unwrap();
            assert!((1..=text.lines().count()).contains(&line), "{name}: line {line}");
        }
        assert!(
            !told.is_empty() && with_lines.contains(&format!(".file 1 \"{}.kir\"", program.name)),
            "{name}"
        );
        if let Some(ptxas) = ptxas.as_ref().filter(|_| ["saxpy", "histogram", "grid_barrier"].contains(&name))
        {
            let (accepted, log) = assemble(ptxas, name, &with_lines, target);
            assert!(accepted, "{name}:\n{log}");
        }
    }
}

/// The versions of PTX there have been since the first that knows an architecture of ours, and the one before.
const VERSIONS: [&str; 26] = [
    "5.0", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7",
    "7.8", "8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0",
];

#[test]
fn the_version_of_ptx_is_the_lowest_that_does_the_job() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    for target in PtxTarget::all() {
        let headers: BTreeMap<String, String> = programs()
            .iter()
            .map(|(_, _, program)| program.emit(target).text)
            .map(|text| (text.lines().next().unwrap().to_owned(), text))
            .collect();
        for (header, text) in headers {
            let version = header.strip_prefix(".version ").unwrap();
            let at = VERSIONS.iter().position(|known| *known == version).unwrap();
            let lower = text.replacen(&header, &format!(".version {}", VERSIONS[at - 1]), 1);
            assert!(assemble(&ptxas, "as_is", &text, target).0, "{target} with {version}");
            assert!(!assemble(&ptxas, "lower", &lower, target).0, "{target} takes {} too", VERSIONS[at - 1]);
        }
    }
}

/// Runs the line everywhere; what does not hold.
fn failures_of(run: &Run, program: &Program) -> Vec<String> {
    let mut failures = Vec::new();
    for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
        let (left, out_of_range) = interpret(program, &run.launch, order);
        failures.extend(run.check(program, &left).map(|what| format!("interpreted {order:?}: {what}")));
        if run.out_of_range.is_some_and(|expected| out_of_range != expected) {
            failures.push(format!("{out_of_range} accesses out_of_range"));
        }
    }
    let (left, _) = interpret(&program.simplified(), &run.launch, ThreadOrder::Ascending);
    failures.extend(run.check(program, &left).map(|what| format!("simplified: {what}")));
    for (number, seed) in [(70, 0), (75, 1), (80, 2), (90, 3), (120, 4)] {
        let left = simulate(program, &run.launch, PtxTarget::new(number).unwrap(), seed);
        let what = left.map_or_else(Some, |left| run.check(program, &left));
        failures.extend(what.map(|what| format!("as sm_{number}: {what}")));
    }
    failures
}
