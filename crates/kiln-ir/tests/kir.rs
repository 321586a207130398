//! Programs in text files: each prints as it parses, emits the PTX beside it, and does what its `run:` lines say on the
//! interpreter and on the executor.
//!
//! `KILN_BLESS=1 cargo test -p kiln-ir --test kir` writes the PTX anew. A `run:` line has assignments, an arrow, and what
//! is left: `// run: x = 1 2 3; a = 2; grid = 1 => y = 2 4 6; absorbed = 5`, or `=> trap 7 by 3`. A buffer is a list of
//! elements, `zero 4` for four zeros or `count 4` for 0 1 2 3.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_ir::{BufferId, Extent, Literal, ParameterKind, Program, Target, ThreadOrder, Type};
use rig::ptxas::{assemble, find_ptxas};
use rig::{Launch, Left, interpret, simulate};

/// The architectures whose PTX is kept beside the programs: one that lacks everything, one that has everything.
const GOLDEN: [u32; 2] = [70, 90];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kir")
}

/// All programs, by name.
fn programs() -> Vec<(String, String, Program)> {
    let mut programs: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "kir"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, text)
        })
        .collect();
    let broken =
        |(name, text): &(String, String)| Program::parse(text).err().map(|e| format!("{name}.kir:{e}"));
    let broken: Vec<String> = programs.iter().filter_map(broken).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    programs.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(programs.len() >= 25, "only {} programs found", programs.len());
    programs.into_iter().map(|(name, text)| (name, text.clone(), Program::parse(&text).unwrap())).collect()
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
            let text = program.emit(Target::new(number).unwrap()).text;
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
        let lines: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("// run:")).collect();
        assert!(!lines.is_empty(), "{name} has no run line");
        for line in lines {
            let run = Run::read(&program, line);
            failures
                .extend(run.failures(&program).into_iter().map(|what| format!("{name}:{line}\n  {what}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_ptx_reads_and_writes_what_the_roles_of_the_buffers_say() {
    for (name, _, program) in programs() {
        let emitted = program.emit(Target::new(90).unwrap());
        let module = kiln_ptx::Module::parse(&emitted.text).unwrap();
        let entry = (0..).zip(module.functions()).find(|(_, function)| *function.name == *program.name);
        let effects = module.effects(kiln_ptx::FunctionId(entry.unwrap().0)).unwrap();
        assert_eq!(effects.doubts, [], "{name}: nothing may be in doubt");
        for (at, buffer) in program.buffers.iter().enumerate() {
            let pointer = ParameterKind::Pointer(BufferId(at as u32));
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
    for target in Target::all() {
        // Starting the assembler takes longer than its work, so programs of one version go in together.
        let mut modules: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
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

/// What a `run:` line asks for.
struct Run {
    launch: Launch,
    expected: Vec<(BufferId, Vec<u8>)>,
    trap: Option<(u32, u32)>,
    absorbed: Option<u64>,
}

impl Run {
    fn read(program: &Program, line: &str) -> Self {
        let (given, left) = line.split_once("=>").unwrap();
        let mut run = Self {
            launch: Launch {
                grid: [1, 1, 1],
                dynamic_shared_bytes: 0,
                scalars: program.scalars.iter().map(|scalar| Literal::zero(scalar.ty)).collect(),
                buffers: vec![Vec::new(); program.buffers.len()],
            },
            expected: Vec::new(),
            trap: None,
            absorbed: None,
        };
        for part in given.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap();
            run.give(program, name.trim(), value.trim());
        }
        run.size_like(program);
        for part in left.split(';').map(str::trim) {
            if let Some(words) = part.strip_prefix("trap ") {
                let (code, thread) = words.split_once(" by ").unwrap();
                run.trap = Some((code.parse().unwrap(), thread.parse().unwrap()));
                continue;
            }
            let (name, value) = part.split_once('=').unwrap();
            match program.buffer_named(name.trim()) {
                Some(id) => run.expected.push((id, elements(program.buffers[id.0 as usize].element, value))),
                None => run.absorbed = Some(value.trim().parse().unwrap()),
            }
        }
        run
    }

    fn give(&mut self, program: &Program, name: &str, value: &str) {
        if let Some(id) = program.buffer_named(name) {
            self.launch.buffers[id.0 as usize] = elements(program.buffers[id.0 as usize].element, value);
        } else if let Some(at) = program.scalars.iter().position(|scalar| scalar.name == name) {
            self.launch.scalars[at] = element(program.scalars[at].ty, value);
        } else if name == "grid" {
            let mut counts = value.split_whitespace().map(|count| count.parse().unwrap());
            self.launch.grid = [(); 3].map(|()| counts.next().unwrap_or(1));
        } else {
            assert_eq!(name, "dynamic", "what is `{name}`?");
            self.launch.dynamic_shared_bytes = value.parse().unwrap();
        }
    }

    /// Buffers whose size the program says are zero if the line does not give them.
    fn size_like(&mut self, program: &Program) {
        for (at, buffer) in program.buffers.iter().enumerate() {
            let count = match buffer.extent {
                Extent::Dynamic => continue,
                Extent::Static(count) => count,
                Extent::Like(other) => {
                    let bytes = self.launch.buffers[other.0 as usize].len() as u64;
                    bytes / program.buffers[other.0 as usize].element.bytes()
                }
            };
            self.launch.buffers[at].resize((count * buffer.element.bytes()) as usize, 0);
        }
    }

    /// Runs the line everywhere; what does not hold.
    fn failures(&self, program: &Program) -> Vec<String> {
        let mut failures = Vec::new();
        for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
            let (left, absorbed) = interpret(program, &self.launch, order);
            failures.extend(self.check(program, &left).map(|what| format!("interpreted {order:?}: {what}")));
            if self.absorbed.is_some_and(|expected| absorbed != expected) {
                failures.push(format!("{absorbed} accesses absorbed"));
            }
        }
        let (left, _) = interpret(&program.simplified(), &self.launch, ThreadOrder::Ascending);
        failures.extend(self.check(program, &left).map(|what| format!("simplified: {what}")));
        for (number, seed) in [(70, 0), (75, 1), (80, 2), (90, 3), (120, 4)] {
            let left = simulate(program, &self.launch, Target::new(number).unwrap(), seed);
            let what = left.map_or_else(Some, |left| self.check(program, &left));
            failures.extend(what.map(|what| format!("as sm_{number}: {what}")));
        }
        failures
    }

    /// What is not as expected.
    fn check(&self, program: &Program, left: &Left) -> Option<String> {
        match (left, self.trap) {
            (Left::Trap { code, thread, .. }, Some(expected)) if (*code, *thread) == expected => None,
            (Left::Trap { .. }, _) | (Left::Buffers(_), Some(_)) => Some(format!("{left:?}")),
            (Left::Buffers(buffers), None) => self.expected.iter().find_map(|(id, expected)| {
                let buffer = &program.buffers[id.0 as usize];
                let found = &buffers[id.0 as usize];
                let words = |bytes: &[u8]| literals(buffer.element, bytes).join(" ");
                let wrong = !same(buffer.element, found, expected);
                wrong.then(|| format!("{} is {}\n  not {}", buffer.name, words(found), words(expected)))
            }),
        }
    }
}

fn literals(ty: Type, bytes: &[u8]) -> Vec<String> {
    let literal = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Literal::new(ty, u64::from_le_bytes(word)).to_string()
    };
    bytes.chunks(ty.bytes() as usize).map(literal).collect()
}

/// Equal to the bit, except that one NaN is as good as another.
fn same(ty: Type, a: &[u8], b: &[u8]) -> bool {
    let nan = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        ty.is_float() && Literal::new(ty, u64::from_le_bytes(word)).as_float().is_nan()
    };
    let size = ty.bytes() as usize;
    a.len() == b.len() && a.chunks(size).zip(b.chunks(size)).all(|(a, b)| a == b || (nan(a) && nan(b)))
}

/// A list of elements, `zero n` or `count n`.
fn elements(ty: Type, text: &str) -> Vec<u8> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let values: Vec<Literal> = match words[..] {
        ["zero", n] => vec![Literal::zero(ty); n.parse().unwrap()],
        ["count", n] => (0..n.parse::<u64>().unwrap()).map(|i| element(ty, &i.to_string())).collect(),
        _ => words.iter().map(|word| element(ty, word)).collect(),
    };
    values.iter().flat_map(|value| value.bits().to_le_bytes()[..ty.bytes() as usize].to_vec()).collect()
}

fn element(ty: Type, text: &str) -> Literal {
    match (ty, text.strip_prefix("0x")) {
        (_, Some(hex)) => Literal::new(ty, u64::from_str_radix(hex, 16).unwrap()),
        (Type::Bool, None) => Literal::from(text == "true" || text == "1"),
        _ if ty.is_float() => Literal::float(ty, text.parse().unwrap()),
        _ => Literal::integer(ty, text.parse().unwrap()).unwrap_or_else(|| panic!("{text} is no {ty}")),
    }
}
