//! The memory that one launch may touch: what it declared, and the variables of its module.
//!
//! A kernel that touches memory outside of it is reported, and its access is made if memory is mapped there, as hardware would. The ranges
//! are sorted and do not overlap, so a lookup is a binary search; a port and the executor of PTX keep what they found.

use std::ops::Range;

use kiln_driver::{Access, DeclaredSpan, ParameterSpan};
use kiln_ptx::exec::{byte_count, past_end};

use crate::check::undefined_value::ArgumentPlace;
use crate::device::objects::Loaded;

/// An access this far from a buffer was not meant for it.
const MAX_DISTANCE: u64 = 1 << 30;
/// An address below this is a null pointer with an offset.
const NULL_BYTES: u64 = 4096;

/// The memory that one launch may touch.
#[derive(Debug)]
pub(crate) struct LaunchFootprint {
    kernel: Loaded,
    /// As declared, by address.
    spans: Box<[DeclaredSpan]>,
    /// The arguments that are null.
    nulls: Box<[u16]>,
    /// For each span, the one among it and those before it that reaches furthest.
    furthest: Box<[usize]>,
    /// All that may be touched, in order, without overlaps.
    allowed: Box<[Allowed]>,
}

/// Neighbouring bytes that may be touched in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allowed {
    start: u64,
    end: u64,
    writable: bool,
}

/// What a launch declared of a range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Declaration {
    ReadWrite,
    Read,
    Nothing,
}

impl Declaration {
    #[inline]
    pub(crate) fn covers(self, access: Access) -> bool {
        match self {
            Self::ReadWrite => true,
            Self::Read => !access.writes(),
            Self::Nothing => false,
        }
    }
}

impl LaunchFootprint {
    /// Variables may be read and written; constants are protected where they lie.
    pub(crate) fn new(
        kernel: Loaded,
        arguments: &[u8],
        declared: &[DeclaredSpan],
        variables: &[Range<u64>],
    ) -> Self {
        let mut spans: Vec<DeclaredSpan> = declared.iter().filter(|span| span.bytes != 0).copied().collect();
        spans.sort_by_key(|span| (span.address, span.parameter));
        let range = |span: &DeclaredSpan| span.address.0..end_of(span);
        let all = union(spans.iter().map(range).chain(variables.iter().cloned()));
        let written = spans.iter().filter(|span| span.access.writes()).map(range);
        let writable = union(written.chain(variables.iter().cloned()));
        let mut best = 0;
        let furthest = (0..spans.len()).map(|at| {
            if end_of(&spans[at]) > end_of(&spans[best]) {
                best = at;
            }
            best
        });
        let furthest = furthest.collect();
        let nulls = null_arguments(&kernel.spans, arguments);
        Self { kernel, nulls, furthest, spans: spans.into(), allowed: cut(&all, &writable).into() }
    }

    /// What the launch declared, by address.
    pub(crate) fn spans(&self) -> &[DeclaredSpan] {
        &self.spans
    }

    /// The widest range around an address, within limits, of which the launch declared the same.
    pub(crate) fn around(&self, address: u64, within: Range<u64>) -> (Range<u64>, Declaration) {
        let after = self.allowed.partition_point(|allowed| allowed.start <= address);
        let before = after.checked_sub(1).map(|at| self.allowed[at]);
        if let Some(allowed) = before.filter(|allowed| address < allowed.end) {
            let range = allowed.start.max(within.start)..allowed.end.min(within.end);
            return (range, if allowed.writable { Declaration::ReadWrite } else { Declaration::Read });
        }
        let start = before.map_or(within.start, |allowed| allowed.end.max(within.start));
        let end = self.allowed.get(after).map_or(within.end, |allowed| allowed.start.min(within.end));
        (start..end, Declaration::Nothing)
    }

    /// The first address of an access that the launch did not declare.
    pub(crate) fn first_undeclared(&self, range: Range<u64>, access: Access) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let (same, declaration) = self.around(at, 0..u64::MAX);
            if !declaration.covers(access) {
                return Some(at);
            }
            at = same.end;
        }
        None
    }

    /// Why an access was not declared, in words that complete "which is ..."; none if it was.
    pub(crate) fn explain(&self, range: Range<u64>, access: Access) -> Option<String> {
        let at = self.first_undeclared(range.clone(), access)?;
        if let (Some(span), _) = self.neighbours(at)
            && at < end_of(span)
        {
            return Some(format!("inside {}, which the launch declared as read only", self.name(span)));
        }
        Some(self.near(range, at))
    }

    /// Where an address outside of everything lies, in words that complete "which is ...".
    pub(crate) fn near(&self, range: Range<u64>, at: u64) -> String {
        if at < NULL_BYTES {
            let past = if at == 0 { String::new() } else { format!("{} past ", byte_count(at)) };
            return match self.nulls.first() {
                Some(index) => format!("{past}a null pointer, {}", self.parameter(*index)),
                None => format!("{past}a null pointer, and no argument is null"),
            };
        }
        let span = match self.neighbours(at) {
            // At one distance, the end of a buffer is the more likely mistake.
            (Some(before), Some(after)) if after.address.0 - at < at.saturating_sub(end_of(before)) => after,
            (Some(before), _) => before,
            (None, Some(after)) => after,
            (None, None) => {
                return "memory that the launch did not declare: it was given no buffer".to_owned();
            }
        };
        let end = end_of(span);
        if span.address.0.saturating_sub(at).max(at.saturating_sub(end)) > MAX_DISTANCE {
            return "far from every buffer of the launch".to_owned();
        }
        self.beside(span, range, at)
    }

    /// The same for an access whose address was computed from the argument at this offset, if it lies outside of the memory of that argument.
    pub(crate) fn near_argument(&self, range: Range<u64>, offset: u32) -> Option<String> {
        let index = self.kernel.spans.iter().position(|span| span.offset == offset)?;
        let index = u16::try_from(index).ok()?;
        if self.nulls.contains(&index) {
            let past =
                if range.start == 0 { String::new() } else { format!("{} past ", byte_count(range.start)) };
            return Some(format!("{past}a null pointer, {}", self.parameter(index)));
        }
        let mut own = self.spans.iter().filter(|span| span.parameter == Some(index));
        let (Some(span), None) = (own.next(), own.next()) else { return None };
        let is_inside = range.start >= span.address.0 && range.end <= end_of(span);
        (!is_inside).then(|| self.beside(span, range.clone(), range.start))
    }

    /// Where an address lies beside a span that the launch declared.
    fn beside(&self, span: &DeclaredSpan, range: Range<u64>, at: u64) -> String {
        let (name, bytes, end) = (self.name(span), span.bytes, end_of(span));
        let place = if span.address.0 > at {
            format!("{} before the start of {name}", byte_count(span.address.0 - at))
        } else if range.start < end {
            format!("{} across the end of {name}", byte_count(range.end - end))
        } else {
            format!("{} of {name}", past_end(at - end))
        };
        format!("{place}, which has {}, in no buffer of the launch", byte_count(bytes))
    }

    /// Where an address inside of what was declared lies, in words.
    pub(crate) fn place(&self, at: u64) -> Option<String> {
        let span = self.neighbours(at).0.filter(|span| at < end_of(span))?;
        Some(format!("{} into {}", byte_count(at - span.address.0), self.name(span)))
    }

    /// The argument that an address was declared with, and the end of its memory.
    pub(crate) fn argument_at(&self, at: u64) -> Option<(ArgumentPlace, u64)> {
        let span = self.neighbours(at).0.filter(|span| at < end_of(span))?;
        Some((ArgumentPlace { name: self.name(span), address: span.address.0 }, end_of(span)))
    }

    /// Of the spans that begin at or before an address the one that reaches furthest, and the first one behind it.
    fn neighbours(&self, address: u64) -> (Option<&DeclaredSpan>, Option<&DeclaredSpan>) {
        let after = self.spans.partition_point(|span| span.address.0 <= address);
        let before = after.checked_sub(1).map(|at| &self.spans[self.furthest[at]]);
        (before, self.spans.get(after))
    }

    fn name(&self, span: &DeclaredSpan) -> String {
        match span.parameter {
            None => "a buffer declared beside the arguments".to_owned(),
            Some(index) => self.parameter(index),
        }
    }

    fn parameter(&self, index: u16) -> String {
        match self.kernel.kernel.parameter_name(usize::from(index)) {
            // NVIDIA's compilers name parameters by their kernel and number; the kernel is known.
            Some(name) if name.ends_with(&format!("_param_{index}")) => {
                format!("argument {index} (`param_{index}`)")
            }
            Some(name) => format!("argument {index} (`{name}`)"),
            None => format!("argument {index}"),
        }
    }
}

/// The parameters as large as a pointer whose arguments are zero.
fn null_arguments(parameters: &[ParameterSpan], arguments: &[u8]) -> Box<[u16]> {
    let is_null = |span: &ParameterSpan| {
        let start = span.offset as usize;
        let bytes = arguments.get(start..start + span.bytes as usize);
        span.bytes == 8 && bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    };
    (0..).zip(parameters).filter(|(_, span)| is_null(span)).map(|(at, _)| at).collect()
}

fn end_of(span: &DeclaredSpan) -> u64 {
    span.address.0.saturating_add(span.bytes)
}

/// The ranges joined where they overlap or touch.
fn union(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = ranges.filter(|range| !range.is_empty()).collect();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// All ranges, cut where they begin or cease to be writable. Every writable range lies inside one of them.
fn cut(all: &[Range<u64>], writable: &[Range<u64>]) -> Vec<Allowed> {
    let mut parts = Vec::with_capacity(all.len() + writable.len());
    let mut push = |start: u64, end: u64, writable: bool| {
        if start < end {
            parts.push(Allowed { start, end, writable });
        }
    };
    let mut rest = writable.iter().peekable();
    for range in all {
        let mut at = range.start;
        while let Some(part) = rest.next_if(|part| part.start < range.end) {
            push(at, part.start, false);
            push(part.start, part.end, true);
            at = part.end;
        }
        push(at, range.end, false);
    }
    parts
}
