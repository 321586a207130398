//! What the `run:` lines of programs in text files say.
//!
//! A line has assignments, an arrow, and what is left: `// run: x = 1 2 3; a = 2; grid = 1 => y = 2 4 6; out_of_range = 5`, or
//! `=> trap 7 by 3`. A buffer is a list of elements, `zero 4` for four zeros or `count 4` for 0 1 2 3.

use kiln_ir::{BufferId, Extent, Literal, Program, Type};

use super::compare::{same_elements, words};
use super::{Launch, Left};

/// The lines of a text.
pub(crate) fn run_lines(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.trim().strip_prefix("// run:")).collect()
}

/// What a `run:` line asks for.
pub(crate) struct Run {
    pub(crate) launch: Launch,
    expected: Vec<(BufferId, Vec<u8>)>,
    trap: Option<(u32, u32)>,
    pub(crate) out_of_range: Option<u64>,
}

impl Run {
    /// Reads what follows `run:`.
    pub(crate) fn read(program: &Program, line: &str) -> Self {
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
            out_of_range: None,
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
                None => run.out_of_range = Some(value.trim().parse().unwrap()),
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

    /// What is not as expected.
    pub(crate) fn check(&self, program: &Program, left: &Left) -> Option<String> {
        match (left, self.trap) {
            (Left::Trap { code, thread, .. }, Some(expected)) if (*code, *thread) == expected => None,
            (Left::Trap { .. }, _) | (Left::Buffers(_), Some(_)) => Some(format!("{left:?}")),
            (Left::Buffers(buffers), None) => self.expected.iter().find_map(|(id, expected)| {
                let buffer = &program.buffers[id.0 as usize];
                let (ty, found) = (buffer.element, &buffers[id.0 as usize]);
                let wrong = !same_elements(ty, found, expected);
                wrong.then(|| {
                    format!("{} is {}\n  not {}", buffer.name, words(ty, found), words(ty, expected))
                })
            }),
        }
    }
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
