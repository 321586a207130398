//! Elements of an output that are undefined after a launch, and those that no thread wrote.
//!
//! A struct is copied with its padding, which stays undefined. So bits of an integer array are left out that may be padding: bits that were only copied, together
//! with something defined. Other types have no padding: there every undefined bit counts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kiln_sim::UndefinedRange;

use super::array_addresses::{Allocation, ArrayMap};
use super::finding::KernelFinding;
use super::struct_padding::StructPadding;
use crate::element_type::ElementType;

/// An array that the caller reads after the launch.
pub(super) struct OutputArray {
    pub(super) argument: usize,
    pub(super) element: ElementType,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The widest access of the kernel to it, where that is known.
    pub(super) widest_access: Option<u64>,
}

/// The undefined elements of an array that one store wrote, with values of one read.
struct Group<'r> {
    range: &'r UndefinedRange,
    /// The first element, and how many there are.
    first: u64,
    count: u64,
    /// The last one that was counted.
    last: u64,
}

impl OutputArray {
    /// A finding for each instruction that left elements undefined.
    pub(super) fn findings(&self, ranges: &[UndefinedRange], map: &ArrayMap) -> Vec<KernelFinding> {
        let element_bytes = self.element.bytes().max(1);
        let mut groups: BTreeMap<usize, Group<'_>> = BTreeMap::new();
        let is_told = |range: &&UndefinedRange| !(range.store.may_be_padding && self.may_have_padding());
        for range in ranges.iter().filter(is_told) {
            let offset = range.address.saturating_sub(self.address);
            let elements = offset / element_bytes..=(offset + range.bytes.max(1) - 1) / element_bytes;
            let (start, end) = (*elements.start(), *elements.end());
            let group = groups.entry(Arc::as_ptr(&range.store) as usize).or_insert(Group {
                range,
                first: start,
                count: 0,
                last: u64::MAX,
            });
            // Ranges come in order, and two may lie in one element.
            let is_counted = group.last == start;
            group.count += end - start + u64::from(!is_counted);
            group.last = end;
        }
        let mut groups: Vec<Group<'_>> = groups.into_values().collect();
        groups.sort_by_key(|group| group.first);
        groups.iter().map(|group| self.finding(group, map)).collect()
    }

    /// A finding for the elements that no thread wrote, given the addresses of the array that were not written.
    pub(super) fn unwritten(&self, addresses: &[Range<u64>]) -> Option<KernelFinding> {
        let element_bytes = self.element.bytes().max(1);
        let is_bytes = matches!(self.element, ElementType::I8 | ElementType::U8);
        let (mut first, mut count, mut counted_to) = (None, 0, 0);
        let gaps: Vec<Range<u64>> =
            addresses.iter().map(|range| range.start - self.address..range.end - self.address).collect();
        let structs = StructPadding::new(self.widest_access, &gaps, self.bytes);
        for gap in &gaps {
            if is_bytes && structs.is_padding(gap) {
                continue;
            }
            // Two gaps may lie in one element.
            let start = (gap.start / element_bytes).max(counted_to);
            counted_to = gap.end.div_ceil(element_bytes).max(start);
            count += counted_to - start;
            first = first.or(Some(start));
        }
        let Self { argument, element, bytes, .. } = *self;
        let first = first?;
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let what =
            format!("no thread wrote element {first}{others} of argument {argument}, an array of {element}");
        let offset = (first * element_bytes).cast_signed();
        Some(KernelFinding::of_unwritten(&what, Allocation { argument, bytes, offset }))
    }

    fn finding(&self, group: &Group<'_>, map: &ArrayMap) -> KernelFinding {
        let Self { argument, element, bytes, .. } = *self;
        let (others, verb) = match group.count.saturating_sub(1) {
            0 => (String::new(), "is"),
            count => (format!(" and {count} more"), "are"),
        };
        let first = group.first;
        let what = format!(
            "element {first}{others} of argument {argument}, an array of {element}, {verb} undefined after the launch"
        );
        let offset = (group.first * element.bytes()).cast_signed();
        let array = Allocation { argument, bytes, offset };
        KernelFinding::of_undefined_store(&group.range.store.finding, map, &what, array, group.count)
    }

    /// Whether the elements may be parts of structs.
    fn may_have_padding(&self) -> bool {
        use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
        matches!(self.element, I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64)
    }
}
