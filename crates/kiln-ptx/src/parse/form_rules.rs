//! What the PTX assembler refuses in the words of an instruction, whatever its operands are.
//!
//! The rules are those of PTX 9.0 up to sm_121, and were found by asking `ptxas` 13.0 about every combination that they name. A word that no rule
//! names is taken. Each distinct form of a module is judged once.

use super::arithmetic_words::broken_arithmetic;
use super::conversion_rules::broken_conversion;
use super::instruction_types::broken_types;
use super::memory_rules::broken_memory_words;
use super::syntax::broken_syntax_words;
use super::warp_rules::broken_warp_words;
use crate::instruction_form::Form;
use crate::module::{PtxVersion, Target};

/// Which PTX a module is written in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) version: PtxVersion,
    /// The number of the architecture, where it has one.
    pub(super) sm: Option<u32>,
}

impl Dialect {
    /// The PTX of a module with these directives.
    pub(super) fn of(version: PtxVersion, target: &Target) -> Self {
        Self { version, sm: target.sm() }
    }

    /// Whether the module is for this architecture or a later one.
    pub(super) fn is_from(self, sm: u32) -> bool {
        self.sm.is_some_and(|own| own >= sm)
    }

    /// Whether the module is in this version or a later one.
    pub(super) fn is_since(self, major: u32, minor: u32) -> bool {
        self.version >= PtxVersion { major, minor }
    }
}

/// Why the assembler would refuse the words of an instruction, if it would: what is wrong, behind the instruction's text.
pub(super) fn broken_form(form: &Form, dialect: Dialect) -> Option<String> {
    let broken = broken_types(form)
        .or_else(|| broken_arithmetic(form, dialect))
        .or_else(|| broken_conversion(form))
        .or_else(|| broken_memory_words(form))
        .or_else(|| broken_syntax_words(form))
        .or_else(|| broken_warp_words(form, dialect))?;
    Some(format!("`{}` {broken}", form.text()))
}

/// Words as they stand in a message: `.rn`, `.rz` or `.rm`.
pub(super) fn any_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`.{word}`")).collect();
    match &words[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
