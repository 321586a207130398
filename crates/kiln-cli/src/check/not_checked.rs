//! What a check did not look at, so that a report without findings is not taken for more than it is.

use kiln_ptx::exec::CoveredLine;
use kiln_sim::KernelLog;
use serde::Serialize;

use super::report::Report;
use crate::demangled_name::readable;

/// The most ranges of lines, instructions or kernels that a sentence names.
const MOST_NAMED: usize = 6;

/// What was not checked.
#[derive(Default, Serialize)]
pub(super) struct Unchecked {
    /// Lines of the kernel, and of functions it can reach, that no thread executed.
    pub(super) lines_not_executed: Vec<Lines>,
    /// Lines that have instructions.
    pub(super) lines: usize,
    /// Instructions that only a GPU executes; no thread may reach them here.
    pub(super) unsupported_instructions: Vec<String>,
    /// Whether indices out of range, which programs define, were not counted: the interpreter stopped before the program's end.
    pub(super) indices_not_counted: bool,
    /// Kernels of the file that were not launched.
    pub(super) kernels_not_launched: Vec<String>,
    /// The same as sentences, with what no check here looks at.
    pub(super) text: Vec<String>,
}

/// Lines of a file, from the first to the last.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(super) struct Lines {
    /// None for lines of the PTX.
    file: Option<String>,
    first: u32,
    last: u32,
}

impl Unchecked {
    pub(super) fn new(report: &Report, log: &KernelLog) -> Self {
        let mut lines = log.lines(&report.kernel).unwrap_or_default();
        // Where the code has lines of a source, instructions without one are the compiler's.
        if lines.iter().any(|line| line.file.is_some()) {
            lines.retain(|line| line.file.is_some());
        }
        let mut unchecked = Self {
            lines_not_executed: ranges(&lines),
            lines: lines.len(),
            unsupported_instructions: report.unsupported.clone(),
            indices_not_counted: report.indices_not_counted,
            kernels_not_launched: report.other_kernels.iter().map(|name| readable(name)).collect(),
            text: Vec::new(),
        };
        let missed = lines.iter().filter(|line| !line.executed).count();
        unchecked.text = unchecked.sentences(report, missed);
        unchecked
    }

    fn sentences(&self, report: &Report, missed: usize) -> Vec<String> {
        let mut text = Vec::new();
        let (seeds, plural) = match report.seeds.len() {
            1 => ("1 seed".to_owned(), "this input and order"),
            count => (format!("{count} seeds"), "this input and these orders"),
        };
        text.push(format!("other inputs, and orders of threads besides those of {seeds}"));
        text.push("an access that leaves one array of the launch and lands in another one".to_owned());
        if missed > 0 {
            let ranges: Vec<String> = self.lines_not_executed.iter().map(Lines::to_string).collect();
            let total = self.lines;
            let when = match report.findings.iter().any(|finding| finding.ended_launch) {
                true => "before the launch ended".to_owned(),
                false => format!("with {plural}"),
            };
            text.push(format!(
                "{missed} of {total} lines, which no thread executed {when}: {}",
                named(&ranges)
            ));
        }
        if self.indices_not_counted {
            text.push(
                "indices out of range: a load gives 0 and a store does nothing, without a finding".to_owned(),
            );
        }
        if !self.unsupported_instructions.is_empty() {
            let named = named(&self.unsupported_instructions);
            text.push(format!("instructions that only a GPU executes (lines of the PTX): {named}"));
        }
        if !self.kernels_not_launched.is_empty() {
            text.push(format!(
                "kernels of the file that were not launched: {}",
                named(&self.kernels_not_launched)
            ));
        }
        text.push(
            "values that weak memory may show: here every thread sees a write at once, in program order"
                .to_owned(),
        );
        text
    }
}

/// The first names of a list, and how many more there are.
fn named(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The lines that were not executed. Lines between two of them that have no instructions belong to one range.
fn ranges(lines: &[CoveredLine]) -> Vec<Lines> {
    let mut ranges: Vec<Lines> = Vec::new();
    let mut open = false;
    let mut file: Option<&Option<String>> = None;
    for line in lines {
        open &= file == Some(&line.file);
        file = Some(&line.file);
        match (line.executed, open, ranges.last_mut()) {
            (true, ..) => open = false,
            (false, true, Some(last)) => last.last = line.line,
            (false, ..) => {
                ranges.push(Lines { file: line.file.clone(), first: line.line, last: line.line });
                open = true;
            }
        }
    }
    ranges
}

impl std::fmt::Display for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, first, last } = self;
        match file {
            Some(file) => write!(f, "{file}:{first}")?,
            None => write!(f, "PTX line {first}")?,
        }
        if last > first { write!(f, "-{last}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_not_executed_are_ranges() {
        let line = |file: &str, line, executed| CoveredLine { file: Some(file.to_owned()), line, executed };
        let lines = [
            line("a.cu", 3, true),
            line("a.cu", 4, false),
            line("a.cu", 7, false),
            line("a.cu", 8, true),
            line("a.cu", 9, false),
            line("b.h", 10, false),
        ];
        let texts: Vec<String> = ranges(&lines).iter().map(Lines::to_string).collect();
        assert_eq!(texts, ["a.cu:4-7", "a.cu:9", "b.h:10"]);
        assert!(ranges(&lines[..1]).is_empty());
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..9).map(|at| format!("k{at}")).collect();
        assert_eq!(named(&names), "k0, k1, k2, k3, k4, k5 and 3 more");
        assert_eq!(named(&names[..2]), "k0, k1");
    }
}
