//! The report of a check, collected seed by seed.

use kiln_ir::OutOfRange;
use serde::Serialize;

use super::array_difference::ArrayDifference;
use super::expected_result::ExpectedResult;
use super::given_tolerance::GivenTolerance;
use super::not_checked::Unchecked;
use crate::launch::{ArgumentSheet, ConstantSheet, KernelFinding, LeftOut, Outcome, ResultArray};
use crate::note_kind::NoteKind;
use crate::plural::{counted, was};

/// The report of a check.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) seeds: Vec<u64>,
    /// Seeds of further orders, run without checks, whose results were compared with those of the first seed.
    pub(super) compared_seeds: Vec<u64>,
    /// Whether notes are findings.
    pub(super) strict: bool,
    pub(super) arguments: Vec<ArgumentSheet>,
    /// Variables that were given a value.
    pub(super) constants: Vec<ConstantSheet>,
    pub(super) warnings: Vec<String>,
    /// With the first seed.
    pub(super) printed: String,
    pub(super) findings: Vec<KernelFinding>,
    /// The instructions that this device does not execute and that a thread reached: why the kernel did not run to its end. They are no mistakes.
    pub(super) refused: Vec<KernelFinding>,
    /// What was found or printed beyond the limits, with the seed that had most of it.
    pub(super) left_out: LeftOut,
    /// What is worth knowing and may be right.
    pub(super) notes: Vec<String>,
    /// What is to become a note or, under `--strict`, a finding.
    #[serde(skip)]
    noted: Vec<KernelFinding>,
    pub(super) not_checked: Unchecked,
    pub(super) exit: u8,
    #[serde(skip)]
    pub(super) unsupported: Vec<String>,
    #[serde(skip)]
    pub(super) indices_not_counted: bool,
    #[serde(skip)]
    pub(super) other_kernels: Vec<String>,
    /// Whether the results may depend on the order of threads without a race.
    #[serde(skip)]
    follows_order: bool,
    #[serde(skip)]
    threads: u64,
    /// The arrays of the first seed.
    #[serde(skip)]
    results: Vec<ResultArray>,
    /// What arrays are to hold.
    #[serde(skip)]
    pub(super) expected: Vec<ExpectedResult>,
    /// How far floats may be off.
    #[serde(skip)]
    tolerance: GivenTolerance,
}

/// Two results that both are within the tolerance of what is expected differ by so many times it.
const APART: f64 = 2.0;

impl Report {
    pub(super) fn new(strict: bool, tolerance: GivenTolerance) -> Self {
        Self { strict, tolerance, ..Self::default() }
    }

    /// Leaves findings out beyond a number: each run keeps so many, and seeds may show different ones.
    pub(super) fn keep(&mut self, most: usize) {
        let more = self.findings.len().saturating_sub(most.max(1));
        if more > 0 {
            self.findings.truncate(self.findings.len() - more);
            self.left_out.findings += more as u64;
        }
    }

    /// Takes the instructions that this device does not execute out of the findings.
    pub(super) fn separate_refused(&mut self) {
        let found = std::mem::take(&mut self.findings);
        (self.refused, self.findings) = found.into_iter().partition(KernelFinding::is_unsupported);
    }

    /// Adds what is worth knowing of the check itself, which is no mistake.
    pub(super) fn remark(&mut self, remark: String) {
        self.notes.push(remark);
    }

    /// Puts what was noted where it belongs: among the findings if the check is strict, else among the notes.
    pub(super) fn place_notes(&mut self) {
        let noted = std::mem::take(&mut self.noted);
        match self.strict {
            true => self.findings.extend(noted),
            false => self.notes.extend(noted.iter().map(|note| note.to_string().replace("\n     ", "; "))),
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
        let text = format!("{list} {was} out of range: loads gave 0, and stores and atomics did nothing");
        let seeds = self.seeds.clone();
        self.noted.push(KernelFinding { seeds, ..KernelFinding::in_words(NoteKind::Index.word(), text) });
    }

    /// Adds what a seed showed. Findings at the same places are one finding.
    pub(super) fn add(&mut self, outcome: Outcome, seed: u64) {
        let first = self.seeds.first().copied();
        self.seeds.push(seed);
        self.left_out = self.left_out.max(outcome.left_out);
        stamped(&outcome, seed).into_iter().for_each(|finding| join(&mut self.findings, finding));
        self.judge(&outcome, seed);
        for note in &outcome.notes {
            join(&mut self.noted, KernelFinding { seeds: vec![seed], ..note.clone() });
        }
        if first.is_none() {
            self.kernel = outcome.kernel;
            self.arguments = outcome.arguments;
            self.constants = outcome.constants;
            self.warnings = outcome.warnings;
            self.printed = outcome.printed;
            self.unsupported = outcome.unsupported;
            self.other_kernels = outcome.other_kernels;
            self.results = outcome.results;
            self.follows_order = outcome.follows_order;
            let extents = [outcome.grid, outcome.block].map(|extent| [extent.x, extent.y, extent.z]);
            self.threads =
                extents.as_flattened().iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul);
            return;
        }
        self.compare(&outcome, seed);
    }

    /// Adds what is not as it is expected. Arguments are told once.
    pub(super) fn judge(&mut self, outcome: &Outcome, seed: u64) {
        for expected in &self.expected {
            let Some(finding) = expected.judge(&outcome.results, self.tolerance) else { continue };
            let finding = KernelFinding { seeds: vec![seed], ..finding };
            match self.findings.iter_mut().find(|known| known.is_of_same_result(&finding)) {
                Some(known) => known.merge(&finding),
                None => self.findings.push(finding),
            }
        }
    }

    /// Whether the kernel should run in further orders: it has atomics or volatile accesses and at most `max_threads` threads, nothing was
    /// found, and no order has shown other results yet.
    pub(super) fn may_differ(&self, max_threads: u64) -> bool {
        let is_known = self.noted.iter().any(|note| note.kind == NoteKind::Order.word());
        self.follows_order && self.threads <= max_threads && self.findings.is_empty() && !is_known
    }

    /// The first element in which the results of two seeds differ: in its bits, or by more than the tolerance where one is given.
    fn first_difference(&self, one: &ResultArray, other: &ResultArray) -> Option<u64> {
        let (one, other) = (&one.array, &other.array);
        if self.tolerance == GivenTolerance::default() {
            let offset = one.bytes.iter().zip(&other.bytes).position(|(one, other)| one != other)?;
            return Some(offset as u64 / one.element.bytes().max(1));
        }
        Some(ArrayDifference::between(other, one, self.tolerance, APART)?.element)
    }

    /// Notes the arrays of a run that differ from those of the first; whether one does.
    pub(super) fn compare(&mut self, outcome: &Outcome, seed: u64) -> bool {
        let Some(first) = self.seeds.first().copied() else { return false };
        let mut differs = false;
        for (one, other) in self.results.iter().zip(&outcome.results) {
            let Some(element) = self.first_difference(one, other) else { continue };
            let note = KernelFinding::of_order(one.argument, &one.array, element, [first, seed]);
            match self.noted.iter_mut().find(|known| known.is_of_same_result(&note)) {
                Some(known) => known.merge(&note),
                None => self.noted.push(note),
            }
            differs = true;
        }
        differs
    }
}

/// Adds a finding, or takes it into one about the same places.
fn join(findings: &mut Vec<KernelFinding>, finding: KernelFinding) {
    match findings.iter_mut().find(|known| known.is_like(&finding)) {
        Some(known) => known.merge(&finding),
        None => findings.push(finding),
    }
}

/// The findings of a run, with its seed and the same places taken together. A fault that no finding explains is a finding itself.
fn stamped(outcome: &Outcome, seed: u64) -> Vec<KernelFinding> {
    let mut findings: Vec<KernelFinding> = Vec::new();
    for finding in &outcome.findings {
        join(&mut findings, KernelFinding { seeds: vec![seed], ..finding.clone() });
    }
    if let (Some(fault), true) = (&outcome.fault, findings.is_empty()) {
        findings.push(KernelFinding { seeds: vec![seed], ..KernelFinding::of_fault(fault) });
    }
    findings
}
