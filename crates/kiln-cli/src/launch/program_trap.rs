//! Where a program executed a trap.
//!
//! The device reports the code, the block and the thread. The line follows from the code: it is that of the only statement that traps with it. Where
//! several do, all of them are named.

use kiln::program::ProgramError;
use kiln_driver::Dim3;
use kiln_ir::{Block, Operand, Program, STEP_TRAP, SourceLocation, Statement, StatementKind, trap_text};

use super::finding::{KernelFinding, PlaceSheet, SourceSheet};
use super::program_arguments::Shape;

/// A trap that a thread of a program executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProgramTrap {
    code: u32,
    /// The number of the thread in its block.
    thread: u64,
    /// The number of the block in the grid.
    block: u64,
}

impl ProgramTrap {
    /// The trap that an error tells of.
    pub(super) fn of(error: &ProgramError) -> Option<Self> {
        match error {
            ProgramError::Trap { code, thread, block, .. } => {
                Some(Self { code: *code, thread: u64::from(*thread), block: *block })
            }
            _ => None,
        }
    }

    /// The finding, with its place in the file.
    pub(super) fn finding(self, file: &str, program: &Program, shape: Shape) -> KernelFinding {
        let (block, thread) = (coordinates(self.block, shape.grid), coordinates(self.thread, shape.block));
        let what = trap_text(self.code);
        let lines = lines(program, self.code);
        let [line] = lines[..] else {
            let places: Vec<String> = lines.iter().map(|line| format!("{file}:{line}")).collect();
            let places = match places.is_empty() {
                true => String::new(),
                false => format!(", at one of {}", places.join(", ")),
            };
            let ([bx, by, bz], [x, y, z]) = (block, thread);
            let name = &program.name;
            let text = format!(
                "trap: `{name}` executed a trap with {what}{places} in thread ({x},{y},{z}) of block ({bx},{by},{bz})"
            );
            return KernelFinding::in_words("trap", text);
        };
        let place = PlaceSheet {
            function: program.name.clone(),
            instruction: "trap".to_owned(),
            source: Some(SourceSheet { file: file.to_owned(), line }),
            inlined_at: None,
            ptx_line: None,
            block,
            thread,
        };
        KernelFinding {
            kernel: Some(program.name.clone()),
            place: Some(place),
            ..KernelFinding::in_words("trap", format!("trap: the program executed a trap with {what}"))
        }
    }
}

/// The lines of the statements that trap with a code, or with one that is computed; each line once.
fn lines(program: &Program, code: u32) -> Vec<u32> {
    // The loops among them trap with this code alone.
    let loops = if code == STEP_TRAP { program.traps() } else { Vec::new() };
    let loops: Vec<u32> = loops.iter().filter_map(line).collect();
    let mut lines = Vec::new();
    add_lines(&program.body, code, &loops, &mut lines);
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn add_lines(block: &Block, code: u32, loops: &[u32], lines: &mut Vec<u32>) {
    for Statement { kind, location } in block {
        match kind {
            StatementKind::Trap(Operand::Value(_)) => lines.extend(line(location)),
            StatementKind::Trap(Operand::Literal(given)) if given.bits() == u64::from(code) => {
                lines.extend(line(location));
            }
            StatementKind::If { then, otherwise, .. } => {
                add_lines(then, code, loops, lines);
                add_lines(otherwise, code, loops, lines);
            }
            StatementKind::For { body, .. } => {
                lines.extend(line(location).filter(|line| loops.contains(line)));
                add_lines(body, code, loops, lines);
            }
            StatementKind::While { condition, body, .. } => {
                add_lines(condition, code, loops, lines);
                add_lines(body, code, loops, lines);
            }
            _ => {}
        }
    }
}

fn line(location: &SourceLocation) -> Option<u32> {
    match location {
        SourceLocation::Text { line, .. } => Some(*line),
        _ => None,
    }
}

/// The coordinates of a block or thread that is counted along x first.
fn coordinates(number: u64, Dim3 { x, y, .. }: Dim3) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [number % x, number / x % y, number / (x * y)].map(|at| u32::try_from(at).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(body: &str) -> Program {
        let text =
            format!("kernel guard(in x: u32[], out y: u32[like x], n: u32) block(32) over(y) {{\n{body}\n}}");
        Program::parse(&text).unwrap()
    }

    #[test]
    fn the_line_follows_from_the_code_where_one_statement_has_it() {
        let two = program("if n > 5u32 {\ntrap(3u32);\n}\nif n > 9u32 {\ntrap(4u32);\n}\ny[global.x] = n;");
        assert_eq!((lines(&two, 3), lines(&two, 4)), (vec![3], vec![6]));
        let same = program("if n > 5u32 {\ntrap(3u32);\n} else {\ntrap(3u32);\n}\ny[global.x] = n;");
        assert_eq!(lines(&same, 3), [3, 5]);
        let computed = program("if n > 5u32 {\ntrap(n);\n}\ny[global.x] = n;");
        assert_eq!(lines(&computed, 6), [3]);
        let steps = program(
            "if n > 5u32 {\ntrap(3u32);\n}\nfor i in 0u32..10u32 step n {\ny[i] = n;\n}\ny[global.x] = n;",
        );
        assert_eq!((lines(&steps, STEP_TRAP), lines(&steps, 3)), (vec![5], vec![3]));
    }

    #[test]
    fn numbers_are_coordinates_with_x_first() {
        assert_eq!(coordinates(0, Dim3::new(4, 2, 2)), [0, 0, 0]);
        assert_eq!(coordinates(13, Dim3::new(4, 2, 2)), [1, 1, 1]);
    }
}
