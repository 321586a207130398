//! Findings of the simulated device, in the terms of the command line.

use std::fmt;
use std::path::Path;

use kiln_ptx::exec::{BadAccess, CodeSite, ExecFinding, ExecFindingKind, RaceCause};
use serde::Serialize;

use super::array_addresses::{Allocation, ArrayMap};
use super::finding_prefix::has_no_kind;
use crate::demangled_name::{readable, with_readable_names};
use crate::plural::counted;

/// A finding with its place.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct KernelFinding {
    /// A word that stays the same in every version: `out-of-bounds`, `race`, ...
    pub(crate) kind: &'static str,
    /// What happened, in a sentence.
    pub(crate) text: String,
    pub(crate) kernel: Option<String>,
    /// Where it was seen first, and in which thread.
    pub(crate) place: Option<PlaceSheet>,
    pub(crate) access: Option<AccessSheet>,
    /// The array nearest to the access.
    pub(crate) allocation: Option<Allocation>,
    /// The other side of a race: where, and what it did.
    pub(crate) earlier: Option<PlaceSheet>,
    pub(crate) earlier_access: Option<&'static str>,
    /// What the instruction at `place` did, where the kind does not say it.
    #[serde(skip)]
    pub(crate) verb: Option<&'static str>,
    /// Whether the launch ended at this access: what comes after it was not executed.
    pub(crate) ended_launch: bool,
    /// What to change in the kernel or the command, where that is known.
    pub(crate) next_step: Option<String>,
    /// How often it happened at this instruction.
    pub(crate) times: u64,
    /// The seeds it was seen with.
    pub(crate) seeds: Vec<u64>,
}

/// A thread at an instruction.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct PlaceSheet {
    pub(crate) function: String,
    pub(crate) instruction: String,
    /// File and line of the source, if the code has line information.
    pub(crate) source: Option<SourceSheet>,
    /// Where that line was inlined.
    pub(crate) inlined_at: Option<SourceSheet>,
    /// None for a statement of a program that the device reports by its code alone.
    pub(crate) ptx_line: Option<u32>,
    pub(crate) block: [u32; 3],
    pub(crate) thread: [u32; 3],
}

/// A line of the source.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct SourceSheet {
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// The access that a finding is about.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct AccessSheet {
    pub(crate) kind: String,
    pub(crate) memory: &'static str,
    pub(crate) address: String,
    pub(crate) bytes: u32,
}

/// The findings of one run. Where the executor of the kernel has findings, what the machine adds about the same accesses is left out.
pub(super) fn collect(findings: &[kiln_sim::Finding], map: &ArrayMap) -> Vec<KernelFinding> {
    let in_code: Vec<KernelFinding> = findings
        .iter()
        .filter_map(|finding| finding.code.as_deref())
        .map(|code| KernelFinding::of_code(code, map))
        .collect();
    if !in_code.is_empty() {
        return in_code;
    }
    findings.iter().map(KernelFinding::of_machine).collect()
}

impl KernelFinding {
    pub(crate) fn of_code(finding: &ExecFinding, map: &ArrayMap) -> Self {
        let access = bad_access(&finding.kind);
        let global = access.filter(|access| access.memory == "global");
        let allocation = global.and_then(|access| map.nearest(access.address));
        let text = with_readable_names(&text_of_code(&finding.kind, access, allocation.as_ref()));
        let text = match has_no_kind(&finding.kind) {
            true => format!("{}: {text}", finding.kind.word().replace('-', " ")),
            false => text,
        };
        let (earlier, earlier_access) = earlier_side(finding);
        let is_wrapped = global.is_some_and(|access| map.is_wrapped_below(access.address, access.bytes));
        let wrapped = if is_wrapped { "an unsigned index may have wrapped below zero; " } else { "" };
        let next_step =
            kiln_sim::FindingKind::advice_in_kernel(&finding.kind).map(|advice| format!("{wrapped}{advice}"));
        Self {
            kind: finding.kind.word(),
            text,
            kernel: Some(finding.site.kernel.clone()),
            place: Some(PlaceSheet::of(&finding.site)),
            access: access.map(|access| AccessSheet {
                kind: access.access.to_string(),
                memory: access.memory,
                address: format!("{:#x}", access.address),
                bytes: access.bytes,
            }),
            allocation,
            earlier,
            earlier_access,
            verb: matches!(finding.kind, ExecFindingKind::Uninitialised { .. }).then_some("use"),
            ended_launch: false,
            next_step,
            times: finding.times,
            seeds: Vec::new(),
        }
    }

    /// Elements of an array that are undefined after the launch: `what` names them.
    pub(super) fn of_undefined_store(
        store: &ExecFinding,
        map: &ArrayMap,
        what: &str,
        array: Allocation,
        elements: u64,
    ) -> Self {
        let mut finding = Self::of_code(store, map);
        let from = match bad_access(&store.kind) {
            Some(access) => {
                let near = finding.allocation.as_ref();
                format!("the value comes from {}", unwritten_text(access, near))
            }
            None => match &store.kind {
                ExecFindingKind::Unassigned { register } => {
                    format!("the value comes from a variable that was never assigned (register {register})")
                }
                kind => kind.to_string(),
            },
        };
        finding.text = format!("{}: {what}; {from}", finding.kind);
        finding.next_step = match store.kind {
            ExecFindingKind::Uninitialised { .. } => Some(
                "write the memory that the value comes from before it is read, or give scratch: if no caller reads the array"
                    .to_owned(),
            ),
            _ => finding.next_step,
        };
        (finding.allocation, finding.times, finding.verb) = (Some(array), elements, Some("store"));
        finding
    }

    /// Elements of an output that no thread wrote: `what` names them.
    pub(super) fn of_unwritten(what: &str, array: Allocation) -> Self {
        let next_step = "an out: array is written whole; give uninit: if elements may stay unwritten, zeros: if they \
                         begin as zeros, scratch: if no caller reads the array";
        Self {
            allocation: Some(array),
            next_step: Some(next_step.to_owned()),
            ..Self::in_words("unwritten", format!("unwritten: {what}"))
        }
    }

    fn of_machine(finding: &kiln_sim::Finding) -> Self {
        Self::in_words("device", finding.to_string())
    }

    /// A launch that ended early, with no finding that explains it.
    pub(crate) fn of_fault(fault: &str) -> Self {
        Self::in_words("fault", fault.to_owned())
    }

    /// Gives a source file another name.
    pub(crate) fn rename_source(&mut self, from: &str, to: &str) {
        for place in [&mut self.place, &mut self.earlier].into_iter().flatten() {
            for source in [&mut place.source, &mut place.inlined_at].into_iter().flatten() {
                if source.file == from {
                    to.clone_into(&mut source.file);
                }
            }
        }
        // The text names the other side of a race.
        self.text = self.text.replace(&format!("{from}:"), &format!("{to}:"));
    }

    /// A finding without a place in the code.
    pub(crate) fn in_words(kind: &'static str, text: String) -> Self {
        Self {
            kind,
            text,
            kernel: None,
            place: None,
            access: None,
            allocation: None,
            earlier: None,
            earlier_access: None,
            verb: None,
            ended_launch: false,
            next_step: None,
            times: 1,
            seeds: Vec::new(),
        }
    }

    /// Whether two findings are about the same mistake at the same places of the source; the two sides of a race may come in any order.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.places() == other.places()
            && (self.place.is_some() || without_thread(&self.text) == without_thread(&other.text))
    }

    /// The places it is about, sorted.
    fn places(&self) -> Vec<(&str, u32)> {
        let mut places: Vec<(&str, u32)> = self.sides().map(PlaceSheet::line).collect();
        places.sort_unstable();
        places
    }

    fn sides(&self) -> impl Iterator<Item = &PlaceSheet> {
        self.place.iter().chain(&self.earlier)
    }

    /// Takes another finding of the same mistake in.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.times += other.times;
        for seed in &other.seeds {
            if !self.seeds.contains(seed) {
                self.seeds.push(*seed);
            }
        }
    }

    /// Says how a launch gives dynamic shared memory, if this is an access outside of a block's shared memory.
    pub(super) fn hint_dynamic_shared(&mut self, given_bytes: u32) {
        let shared = self.access.as_ref().is_some_and(|access| access.memory == "shared");
        if self.kind == ExecFindingKind::OUT_OF_BOUNDS && shared {
            let given = match given_bytes {
                0 => "none".to_owned(),
                bytes => counted(u64::from(bytes), "byte"),
            };
            self.next_step = Some(format!(
                "the kernel uses dynamic shared memory, and the launch has {given}: give --shared BYTES (in a program `.shared(bytes)`)"
            ));
        }
    }

    /// Notes that the launch ended early, if it did so here: a device is lost at the first access where no memory is mapped.
    pub(super) fn note_end_of_launch(&mut self) {
        let global = self.access.as_ref().is_some_and(|access| access.memory == "global");
        self.ended_launch = self.kind == ExecFindingKind::OUT_OF_BOUNDS && global;
    }

    /// Whether the kernel does not end: running it again would take as long.
    pub(crate) fn is_endless(&self) -> bool {
        [ExecFindingKind::ENDLESS, ExecFindingKind::STEP_LIMIT].contains(&self.kind)
    }

    /// Whether it only says that the simulated device cannot run the kernel.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.kind == ExecFindingKind::UNSUPPORTED
    }
}

/// The bytes of an access, and the array they are in.
fn bytes_text(access: &BadAccess, near: Option<&Allocation>) -> String {
    let BadAccess { memory, address, bytes, within, .. } = access;
    let near = match near {
        Some(near) => format!(" ({near})"),
        None if within.is_empty() => String::new(),
        None => format!(" ({within})"),
    };
    format!("{} at {memory} address {address:#x}{near}", counted(u64::from(*bytes), "byte"))
}

/// The bytes of a read, and which of them were never written.
fn unwritten_text(access: &BadAccess, near: Option<&Allocation>) -> String {
    let bytes = bytes_text(access, near);
    match &*access.near {
        "" if access.bytes == 1 => format!("{bytes}, which was never written"),
        "" => format!("{bytes}, which were never written"),
        part => format!("{bytes}, of which {part}"),
    }
}

/// What a finding says, with the array that it is about.
fn text_of_code(kind: &ExecFindingKind, access: Option<&BadAccess>, near: Option<&Allocation>) -> String {
    match (kind, access, near) {
        (ExecFindingKind::OutOfBounds(_), Some(access), Some(near)) => {
            format!("out of bounds: {access}, {near}")
        }
        (ExecFindingKind::Misaligned(_), Some(access), Some(near)) => {
            format!("misaligned: {access}, which is {}; {near}", access.near)
        }
        (ExecFindingKind::Race { cause, .. }, Some(access), near) => {
            let why = match cause {
                RaceCause::Unordered => "nothing orders these accesses",
                RaceCause::NarrowScope => {
                    "the scope of these accesses does not include both threads: accesses"
                }
                RaceCause::DifferentSizes => "these accesses are strong and of different sizes: accesses",
                RaceCause::NoFence => {
                    "a flag tells of this value, with no fence between the two writes, so the old value may be read: accesses"
                }
                _ => "these accesses race: accesses",
            };
            format!("race: {why} to {}", bytes_text(access, near))
        }
        (ExecFindingKind::SameValue { .. }, Some(access), near) => {
            format!("same value: nothing orders these writes to {}", bytes_text(access, near))
        }
        (ExecFindingKind::PendingCopy { .. }, Some(access), near) if access.memory == "global" => {
            let bytes = bytes_text(access, near);
            format!(
                "pending copy: write to {bytes}, from where an asynchronous copy still reads that no thread has waited for"
            )
        }
        (ExecFindingKind::NonCoherent { .. }, Some(access), near) => {
            let bytes = bytes_text(access, near);
            format!(
                "non-coherent read: {bytes} are read as a constant (ld.global.nc, __ldg) and written in the same launch; use a plain load"
            )
        }
        (ExecFindingKind::NoProxyFence { .. }, Some(access), near) => {
            let bytes = bytes_text(access, near);
            format!(
                "no proxy fence: {bytes} were written by a thread and are read by an asynchronous copy or product, with no fence.proxy.async in between"
            )
        }
        (ExecFindingKind::PendingCopy { .. }, Some(access), near) => {
            let bytes = bytes_text(access, near);
            format!("pending copy: no thread has waited for the asynchronous copy to {bytes}")
        }
        (ExecFindingKind::Uninitialised { .. }, Some(access), near) => {
            format!("uninitialised: a value is used that comes from {}", unwritten_text(access, near))
        }
        (ExecFindingKind::StepLimit(_) | ExecFindingKind::Stalled(_), ..) => {
            format!("{kind} (--step-limit)")
        }
        (kind, ..) => kind.to_string(),
    }
}

/// The other side of a finding: where, and what it did.
fn earlier_side(finding: &ExecFinding) -> (Option<PlaceSheet>, Option<&'static str>) {
    let read = |site: &CodeSite| (Some(PlaceSheet::of(site)), Some("read"));
    match &finding.kind {
        ExecFindingKind::Race { earlier_site, earlier, .. }
        | ExecFindingKind::NonCoherent { earlier_site, earlier, .. } => {
            (Some(PlaceSheet::of(earlier_site)), Some(earlier.noun()))
        }
        ExecFindingKind::SameValue { earlier_site, .. }
        | ExecFindingKind::NoProxyFence { write_site: earlier_site, .. } => {
            (Some(PlaceSheet::of(earlier_site)), Some("write"))
        }
        ExecFindingKind::PendingCopy { copy_site, .. } => (Some(PlaceSheet::of(copy_site)), Some("copy")),
        ExecFindingKind::Uninitialised { read_site, .. } if **read_site != finding.site => read(read_site),
        _ => (None, None),
    }
}

/// The text without the thread and the seed, which depend on the order.
fn without_thread(text: &str) -> &str {
    let text = text.split_once(". Repeat with ").map_or(text, |(what, _)| what);
    text.split_once(" in thread ").map_or(text, |(what, _)| what)
}

impl fmt::Display for KernelFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text)?;
        if let Some(place) = &self.place {
            self.write_places(f, place)?;
        }
        if self.ended_launch {
            f.write_str("\n     the launch ended at this access; later accesses and lines were not reached")?;
        }
        match &self.next_step {
            Some(step) => write!(f, "\n     {step}"),
            None => Ok(()),
        }
    }
}

impl KernelFinding {
    /// A line for each side, and how often it happened.
    fn write_places(&self, f: &mut fmt::Formatter<'_>, place: &PlaceSheet) -> fmt::Result {
        let kernel = self.kernel.as_deref().unwrap_or_default();
        match (&self.earlier, &self.access, self.earlier_access) {
            (Some(earlier), Some(access), Some(earlier_access)) => {
                let later = self.verb.unwrap_or(&access.kind);
                let width = later.len().max(earlier_access.len());
                write!(f, "\n     {later:width$}  ")?;
                place.write(f, kernel)?;
                write!(f, "\n     {earlier_access:width$}  ")?;
                earlier.write(f, kernel)?;
            }
            _ => {
                f.write_str("\n     ")?;
                place.write(f, kernel)?;
            }
        }
        match (self.times, self.seeds.len()) {
            (0 | 1, _) => Ok(()),
            (times, 0 | 1) => write!(f, "\n     {times} times"),
            (times, seeds) => write!(f, "\n     {times} times with {seeds} seeds"),
        }
    }
}

impl PlaceSheet {
    /// The line of the source, or of the PTX where there is none.
    fn line(&self) -> (&str, u32) {
        match &self.source {
            Some(source) => (&source.file, source.line),
            None => ("", self.ptx_line.unwrap_or_default()),
        }
    }

    /// `kernel in function at file:line (PTX line 12), block (0,0,0) thread (1,0,0)`, and where the line was inlined.
    fn write(&self, f: &mut fmt::Formatter<'_>, kernel: &str) -> fmt::Result {
        f.write_str(&readable(kernel))?;
        if self.function != kernel {
            write!(f, " in {}", readable(&self.function))?;
        }
        match (&self.source, self.ptx_line) {
            (Some(source), Some(line)) => write!(f, " at {}:{} (PTX line {line})", source.file, source.line)?,
            (Some(source), None) => write!(f, " at {}:{}", source.file, source.line)?,
            (None, Some(line)) => write!(f, " at PTX line {line}")?,
            (None, None) => {}
        }
        if let Some(call) = &self.inlined_at {
            write!(f, ", called at {}:{}", call.file, call.line)?;
        }
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, ", block ({bx},{by},{bz}) thread ({x},{y},{z})")
    }

    fn of(site: &CodeSite) -> Self {
        Self {
            function: site.function.clone(),
            instruction: site.instruction.clone(),
            source: site.source.as_ref().map(SourceSheet::of),
            inlined_at: site.inlined_at.as_ref().map(SourceSheet::of),
            ptx_line: Some(site.ptx_line),
            block: site.block,
            thread: site.thread,
        }
    }
}

impl SourceSheet {
    /// Files below the current folder are named from there; NVRTC writes whole paths.
    fn of((file, line): &(String, u32)) -> Self {
        let here = std::env::current_dir().ok();
        let below = here.and_then(|here| Path::new(file).strip_prefix(here).ok().map(Path::to_owned));
        let file = below.map_or_else(|| file.clone(), |below| below.display().to_string());
        Self { file, line: *line }
    }
}

fn bad_access(kind: &ExecFindingKind) -> Option<&BadAccess> {
    match kind {
        ExecFindingKind::OutOfBounds(access)
        | ExecFindingKind::Undeclared(access)
        | ExecFindingKind::UseAfterFree(access)
        | ExecFindingKind::ReadOnly(access)
        | ExecFindingKind::Misaligned(access)
        | ExecFindingKind::Uninitialised { access, .. }
        | ExecFindingKind::Race { access, .. }
        | ExecFindingKind::SameValue { access, .. }
        | ExecFindingKind::NonCoherent { access, .. }
        | ExecFindingKind::NoProxyFence { access, .. }
        | ExecFindingKind::PendingCopy { access, .. } => Some(access),
        _ => None,
    }
}
