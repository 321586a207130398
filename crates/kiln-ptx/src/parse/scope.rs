//! Which register or variable a name means. Functions have one flat table in the parser: they never nest.
//!
//! Blocks nest and inner declarations hide outer ones. One table per kind of name holds what is visible now; a log
//! remembers what each block hid, so that leaving it restores the table. A lookup costs the same at any depth.

use std::collections::HashMap;

use crate::register::RegisterId;
use crate::variable::VariableId;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding {
    Register(RegisterId),
    Variable(VariableId),
}

/// A range of registers `name<count>`.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: RegisterId,
    count: u32,
}

/// A value and the depth of the block that declares it.
#[derive(Clone, Copy, Debug)]
struct Bound<T> {
    depth: u32,
    value: T,
}

/// What to restore when a block ends.
enum Hidden<'a> {
    Single(&'a str, Option<Bound<Binding>>),
    Range(&'a str, Option<Bound<Range>>),
}

/// The names visible now.
#[derive(Default)]
pub(super) struct Scope<'a> {
    singles: HashMap<&'a str, Bound<Binding>>,
    ranges: HashMap<&'a str, Bound<Range>>,
    hidden: Vec<Hidden<'a>>,
    blocks: Vec<usize>,
    /// Whether any single declaration looks like a member of a range (`%r1`); until then a name with a percent
    /// sign and trailing digits needs one lookup instead of two.
    has_numbered_single: bool,
}

impl<'a> Scope<'a> {
    /// How many blocks are open; 0 is the module.
    pub(super) fn depth(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(super) fn open(&mut self) {
        self.blocks.push(self.hidden.len());
    }

    pub(super) fn close(&mut self) {
        let Some(mark) = self.blocks.pop() else { return };
        while self.hidden.len() > mark {
            match self.hidden.pop() {
                Some(Hidden::Single(name, old)) => restore(&mut self.singles, name, old),
                Some(Hidden::Range(name, old)) => restore(&mut self.ranges, name, old),
                None => {}
            }
        }
    }

    /// Declares a name in the innermost block. False when that block already declares it.
    pub(super) fn declare(&mut self, name: &'a str, value: Binding) -> bool {
        let depth = self.depth();
        let old = self.singles.insert(name, Bound { depth, value });
        self.has_numbered_single |= name.starts_with('%') && name.ends_with(|c: char| c.is_ascii_digit());
        if depth > 0 {
            self.hidden.push(Hidden::Single(name, old));
        }
        old.is_none_or(|bound| bound.depth != depth)
    }

    /// Declares a range of registers in the innermost block. False when that block already declares it.
    pub(super) fn declare_range(&mut self, name: &'a str, first: RegisterId, count: u32) -> bool {
        let depth = self.depth();
        let old = self.ranges.insert(name, Bound { depth, value: Range { first, count } });
        if depth > 0 {
            self.hidden.push(Hidden::Range(name, old));
        }
        old.is_none_or(|bound| bound.depth != depth)
    }

    /// Whether the module itself, not a block, declares `name`.
    pub(super) fn declares_in_module(&self, name: &str) -> bool {
        self.singles.get(name).is_some_and(|bound| bound.depth == 0)
    }

    /// The innermost declaration of `name`, alone or as a member of a range.
    pub(super) fn find(&self, name: &str) -> Option<Binding> {
        if name.starts_with('%') && !self.has_numbered_single {
            if let Some((_, member)) = self.find_member(name) {
                return Some(Binding::Register(member));
            }
            return self.singles.get(name).map(|bound| bound.value);
        }
        let single = self.singles.get(name);
        let member = self.find_member(name);
        match (single, member) {
            (Some(single), Some((depth, _))) if single.depth >= depth => Some(single.value),
            (_, Some((_, member))) => Some(Binding::Register(member)),
            (single, None) => single.map(|bound| bound.value),
        }
    }

    /// Tries every way to read `name` as a range's name and a number: `%r12` is `%r` and 12, or `%r1` and 2.
    fn find_member(&self, name: &str) -> Option<(u32, RegisterId)> {
        /// A register number has at most this many digits.
        const MAX_DIGITS: usize = 9;
        let bytes = name.as_bytes();
        let digits = bytes.iter().rev().take(MAX_DIGITS).take_while(|b| b.is_ascii_digit()).count();
        for split in bytes.len() - digits..bytes.len() {
            let (prefix, number) = (name.get(..split)?, name.get(split..)?);
            if number.len() > 1 && number.starts_with('0') {
                continue;
            }
            if let Some(bound) = self.ranges.get(prefix) {
                let number: u32 = number.parse().ok()?;
                if number < bound.value.count {
                    return Some((bound.depth, RegisterId(bound.value.first.0 + number)));
                }
            }
        }
        None
    }
}

fn restore<'a, T>(table: &mut HashMap<&'a str, Bound<T>>, name: &'a str, old: Option<Bound<T>>) {
    match old {
        Some(old) => table.insert(name, old),
        None => table.remove(name),
    };
}
