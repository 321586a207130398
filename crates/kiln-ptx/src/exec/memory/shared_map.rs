//! Which bytes of shared memory belong to which variable.

use std::ops::Range;

use crate::exec::out_of_bounds_text::{below_zero, byte_count, past_end};

/// A shared variable.
#[derive(Debug)]
struct SharedVariable {
    name: String,
    bytes: Range<u64>,
}

/// The shared variables of an entry, with gaps between them, and dynamic shared memory behind.
#[derive(Debug, Default)]
pub(crate) struct SharedMap {
    /// By rising address.
    variables: Vec<SharedVariable>,
    /// Where dynamic shared memory starts.
    dynamic: u64,
}

impl SharedMap {
    /// Adds a variable behind those that are there.
    pub(crate) fn add(&mut self, name: &str, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        self.variables.push(SharedVariable { name: plain_name(name).to_owned(), bytes: start..end });
        self.dynamic = end;
    }

    /// Says where dynamic shared memory starts.
    pub(crate) fn start_dynamic(&mut self, start: u64) {
        self.dynamic = start;
    }

    /// The end of the last variable.
    pub(crate) fn end(&self) -> u64 {
        self.variables.last().map_or(0, |variable| variable.bytes.end)
    }

    /// Where dynamic shared memory starts.
    pub(crate) fn dynamic(&self) -> u64 {
        self.dynamic
    }

    /// The bytes between variables.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = self.variables.iter().skip(1).map(|variable| variable.bytes.start);
        let ends = self.variables.iter().map(|variable| variable.bytes.end);
        ends.zip(starts.chain([self.dynamic])).map(|(end, start)| end..start)
    }

    /// Whether bytes belong to one variable, or to dynamic shared memory. Their end was compared with that of the memory.
    #[inline]
    pub(crate) fn is_one(&self, start: u64, end: u64) -> bool {
        if start >= self.dynamic {
            return true;
        }
        // Few variables are looked at in turn: most kernels have no more.
        if let [first, rest @ ..] = &*self.variables
            && rest.len() < 2
        {
            let holds = |one: &SharedVariable| one.bytes.start <= start && end <= one.bytes.end;
            return holds(first) || rest.iter().any(holds);
        }
        let at = self.variables.partition_point(|variable| variable.bytes.end <= start);
        self.variables
            .get(at)
            .is_some_and(|variable| variable.bytes.start <= start && end <= variable.bytes.end)
    }

    /// Where in dynamic shared memory an address lies, in words, if it is not below it.
    pub(crate) fn dynamic_place(&self, address: u64) -> Option<String> {
        let byte = address.checked_sub(self.dynamic)?;
        Some(format!("byte {byte} of dynamic shared memory"))
    }

    /// The variable at an address, and where in it, in words.
    pub(crate) fn variable_place(&self, address: u64) -> Option<String> {
        let variable = self.variables.iter().find(|variable| variable.bytes.contains(&address))?;
        Some(format!("byte {} of `{}`", address - variable.bytes.start, variable.name))
    }

    /// Words for an access that belongs to no variable, in a block with so many bytes of dynamic shared memory.
    pub(crate) fn near(&self, start: u64, bytes: u64, dynamic_bytes: u64) -> String {
        let end = start.saturating_add(bytes);
        if let Some(before) = below_zero(start) {
            let Some(first) = self.variables.first() else {
                return format!("{} before the start of dynamic shared memory", byte_count(before));
            };
            let before = byte_count(before.saturating_add(first.bytes.start));
            return format!("{before} before the start of {first}");
        }
        let next = self.variables.iter().find(|variable| variable.bytes.start > start);
        let before = self.variables.iter().rfind(|variable| variable.bytes.start <= start);
        let to_next = next.map(|next| (next.bytes.start - start, next));
        let dynamic_end = self.dynamic.saturating_add(dynamic_bytes);
        if start >= self.dynamic && dynamic_bytes > 0 {
            return match start.checked_sub(dynamic_end) {
                Some(past) => {
                    format!("{} of the {dynamic_bytes} bytes of dynamic shared memory", past_end(past))
                }
                None => format!(
                    "{} over the end of the {dynamic_bytes} bytes of dynamic shared memory",
                    byte_count(end - dynamic_end)
                ),
            };
        }
        if next.is_none()
            && dynamic_bytes > 0
            && before.is_none_or(|one| self.dynamic - start < start - one.bytes.end.min(start))
        {
            return format!("{} before the start of dynamic shared memory", byte_count(self.dynamic - start));
        }
        match (before, to_next) {
            (Some(one), _) if start < one.bytes.end => {
                format!("{} over the end of {one}", byte_count(end.saturating_sub(one.bytes.end)))
            }
            (Some(one), next) if next.as_ref().is_none_or(|(far, _)| start - one.bytes.end < *far) => {
                format!("{} of {one}", past_end(start - one.bytes.end))
            }
            (_, Some((far, next))) => format!("{} before the start of {next}", byte_count(far)),
            _ => "in a block that has no shared memory".to_owned(),
        }
    }
}

impl std::fmt::Display for SharedVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`, {} bytes of shared memory", self.name, self.bytes.end - self.bytes.start)
    }
}

/// The name in the source of a variable in a function: C++ compilers write `_ZZ`, the function, `E`, and the name behind its length.
fn plain_name(name: &str) -> &str {
    let Some(mangled) = name.strip_prefix("_ZZ") else { return name };
    let behind = |(at, _): (usize, char)| {
        let rest = &mangled[at + 1..];
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let len: usize = rest[..digits].parse().ok()?;
        let end = digits.checked_add(len)?;
        let is_last = matches!(rest.as_bytes().get(end), None | Some(b'_'));
        rest.get(digits..end).filter(|_| is_last)
    };
    mangled.char_indices().filter(|(_, c)| *c == 'E').find_map(behind).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> SharedMap {
        let mut map = SharedMap::default();
        map.add("_ZZ6kernelE4tile", 0, 16);
        map.add("sums", 80, 8);
        map.start_dynamic(160);
        map
    }

    #[test]
    fn bytes_of_a_gap_belong_to_nothing() {
        let map = map();
        assert!(map.is_one(0, 16) && map.is_one(80, 88) && map.is_one(160, 164));
        assert!(!map.is_one(12, 20) && !map.is_one(16, 20) && !map.is_one(76, 80) && !map.is_one(88, 92));
        assert_eq!(map.gaps().collect::<Vec<_>>(), [16..80, 88..160]);
    }

    #[test]
    fn a_place_is_in_a_variable_or_in_dynamic_memory() {
        let map = map();
        assert_eq!(map.variable_place(84).as_deref(), Some("byte 4 of `sums`"));
        assert_eq!((map.variable_place(88), map.variable_place(160)), (None, None));
        assert_eq!(map.dynamic_place(164).as_deref(), Some("byte 4 of dynamic shared memory"));
        assert_eq!(map.dynamic_place(84), None);
    }

    #[test]
    fn what_lies_near_is_named_with_the_distance() {
        let map = map();
        assert_eq!(map.near(20, 4, 0), "4 bytes past the end of `tile`, 16 bytes of shared memory");
        assert_eq!(map.near(12, 8, 0), "4 bytes over the end of `tile`, 16 bytes of shared memory");
        assert_eq!(map.near(76, 4, 0), "4 bytes before the start of `sums`, 8 bytes of shared memory");
        assert_eq!(map.near(156, 4, 64), "4 bytes before the start of dynamic shared memory");
        assert_eq!(map.near(88, 4, 64), "just past the end of `sums`, 8 bytes of shared memory");
        assert_eq!(map.near(224, 4, 64), "just past the end of the 64 bytes of dynamic shared memory");
        assert_eq!(
            map.near(0xffff_fff8, 4, 0),
            "8 bytes before the start of `tile`, 16 bytes of shared memory"
        );
        assert_eq!(SharedMap::default().near(0, 4, 0), "in a block that has no shared memory");
    }

    #[test]
    fn names_in_functions_are_taken_out_of_mangled_ones() {
        assert_eq!(plain_name("_ZZ6kernelE4tile"), "tile");
        assert_eq!(plain_name("_ZZ6kernelE4tile_0"), "tile");
        assert_eq!(plain_name("_ZZN1E1fIfEEvPT_E5cache"), "cache");
        assert_eq!(plain_name("tile"), "tile");
        assert_eq!(plain_name("_ZZ"), "_ZZ");
    }
}
