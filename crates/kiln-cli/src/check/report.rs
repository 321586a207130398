//! The report of a check, collected seed by seed.

use kiln_ir::OutOfRange;
use serde::Serialize;

use super::unchecked::Unchecked;
use crate::launch::{ArgumentSheet, KernelFinding, LeftOut, Outcome, ResultArray};
use crate::plural::{counted, was};

/// The report of a check.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) seeds: Vec<u64>,
    /// Whether notes count as findings.
    pub(super) strict: bool,
    pub(super) arguments: Vec<ArgumentSheet>,
    pub(super) warnings: Vec<String>,
    /// With the first seed.
    pub(super) printed: String,
    pub(super) findings: Vec<KernelFinding>,
    /// What was found or printed beyond the limits, with the seed that had most of it.
    pub(super) left_out: LeftOut,
    /// What is worth knowing and may be right.
    pub(super) notes: Vec<String>,
    pub(super) not_checked: Unchecked,
    pub(super) exit: u8,
    #[serde(skip)]
    pub(super) unsupported: Vec<String>,
    #[serde(skip)]
    pub(super) indices_not_counted: bool,
    #[serde(skip)]
    pub(super) other_kernels: Vec<String>,
    /// The arrays of the first seed.
    #[serde(skip)]
    results: Vec<ResultArray>,
}

impl Report {
    pub(super) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Leaves findings out beyond a number: each run keeps so many, and seeds may show different ones.
    pub(super) fn keep(&mut self, most: usize) {
        let more = self.findings.len().saturating_sub(most.max(1));
        if more > 0 {
            self.findings.truncate(self.findings.len() - more);
            self.left_out.findings += more as u64;
        }
    }

    /// Adds a note, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a note about indices that were out of range.
    pub(super) fn note_indices(&mut self, counts: OutOfRange) {
        let OutOfRange { loads, stores, atomics } = counts;
        let kinds = [(loads, "load"), (stores, "store"), (atomics, "atomic")];
        let kinds: Vec<String> =
            kinds.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(*count, noun)).collect();
        let list = match &kinds[..] {
            [] => return,
            [only] => only.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let was = was(counts.total());
        self.note(format!("{list} {was} out of range: loads gave 0, and stores and atomics did nothing"));
    }

    /// Adds what a seed showed. Findings at the same places are one finding.
    pub(super) fn add(&mut self, outcome: Outcome, seed: u64) {
        let first = self.seeds.first().copied();
        self.seeds.push(seed);
        self.left_out = self.left_out.max(outcome.left_out);
        for finding in stamped(&outcome, seed) {
            match self.findings.iter_mut().find(|known| known.is_like(&finding)) {
                Some(known) => known.merge(&finding),
                None => self.findings.push(finding),
            }
        }
        let Some(first) = first else {
            self.kernel = outcome.kernel;
            self.arguments = outcome.arguments;
            self.warnings = outcome.warnings;
            self.printed = outcome.printed;
            self.unsupported = outcome.unsupported;
            self.other_kernels = outcome.other_kernels;
            self.results = outcome.results;
            return;
        };
        let begin = |argument: usize| format!("argument {argument} depends on the order of threads");
        let mut notes = Vec::new();
        for (one, other) in self.results.iter().zip(&outcome.results) {
            let begin = begin(one.argument);
            let (one, other) = (&one.array, &other.array);
            if one.bytes != other.bytes && !self.notes.iter().any(|note| note.starts_with(&begin)) {
                let size = one.element.bytes().max(1) as usize;
                let differs = one.bytes.iter().zip(&other.bytes).position(|(one, other)| one != other);
                let element = differs.unwrap_or(0) / size;
                notes.push(format!("{begin}: element {element} differs between seeds {first} and {seed}"));
            }
        }
        self.notes.extend(notes);
    }
}

/// The findings of a run, with its seed and the same places taken together. A fault that no finding explains is a finding itself.
fn stamped(outcome: &Outcome, seed: u64) -> Vec<KernelFinding> {
    let mut findings: Vec<KernelFinding> = Vec::new();
    for finding in &outcome.findings {
        let finding = KernelFinding { seeds: vec![seed], ..finding.clone() };
        match findings.iter_mut().find(|known| known.is_like(&finding)) {
            Some(known) => known.merge(&finding),
            None => findings.push(finding),
        }
    }
    if let (Some(fault), true) = (&outcome.fault, findings.is_empty()) {
        findings.push(KernelFinding { seeds: vec![seed], ..KernelFinding::of_fault(fault) });
    }
    findings
}
