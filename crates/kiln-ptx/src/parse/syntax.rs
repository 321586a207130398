//! The words and operands of the instructions in the [table](super::syntax_table).

use super::form_rules::any_of;
use super::memory_operands::broken_address as broken_base;
use super::operand_rules::{Code, register_type};
use super::syntax_table::{Syntax, TABLE};
use crate::instruction_form::Form;
use crate::modifier::Modifier;
use crate::opcode::Opcode;
use crate::operand::{Address, AddressBase, Immediate, PtxOperand};
use crate::scalar::{ScalarKind, ScalarType};

/// What an operand must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `r`: a register of 32 bits.
    Word,
    /// `n`: the same, or an integer.
    Number,
    /// `i`: an integer.
    Constant,
    /// `q`: a register of 64 bits, or an integer.
    Long,
    /// `s`: a register of 64 bits, or `_`.
    State,
    /// `p`: a predicate.
    Predicate,
    /// `m`: an address in brackets.
    Address,
    /// `v` and `w`: a register of 32 and of 64 bits, a number, or a variable.
    WordAddress,
    LongAddress,
    /// `l`: the number of bytes of a line of the cache.
    Line,
    /// `e`: a register or `_`, and a predicate behind `|`.
    Elected,
    /// `a`: what other code looks at.
    Any,
}

/// Bytes of a line of the cache.
const LINE_BYTES: u64 = 128;

impl Kind {
    fn of(letter: &str) -> Self {
        match letter {
            "r" => Self::Word,
            "n" => Self::Number,
            "i" => Self::Constant,
            "q" => Self::Long,
            "s" => Self::State,
            "p" => Self::Predicate,
            "m" => Self::Address,
            "v" => Self::WordAddress,
            "w" => Self::LongAddress,
            "l" => Self::Line,
            "e" => Self::Elected,
            _ => Self::Any,
        }
    }

    /// What is wrong with an operand.
    fn broken(self, form: &Form, operand: &PtxOperand, code: &Code<'_>) -> Option<String> {
        match (self, operand) {
            (Self::Any, _) => None,
            (Self::Line, PtxOperand::Immediate(number)) if number.bits() == LINE_BYTES => None,
            (Self::Line, _) => Some(format!("is not {LINE_BYTES}, the bytes of a line of the cache")),
            (Self::Elected, PtxOperand::Pair(_, Some(_))) => None,
            (Self::Elected, _) => {
                Some("names no predicate; write one behind `|`, such as `%r|%p`".to_owned())
            }
            (Self::Address, PtxOperand::Address(_)) => broken_address(form, operand, code),
            (Self::Address, _) => Some("is no address; write it in brackets".to_owned()),
            (_, PtxOperand::Address(_)) => Some("is an address, where a value is wanted".to_owned()),
            (Self::State, PtxOperand::Sink) => None,
            (_, PtxOperand::Immediate(number)) => self.broken_number(*number),
            (Self::Constant, _) => Some("is no number; write an integer".to_owned()),
            (Self::WordAddress | Self::LongAddress, PtxOperand::Variable(..)) => None,
            (_, PtxOperand::Variable(..) | PtxOperand::Function(_)) => {
                Some("is an address; move it to a register first".to_owned())
            }
            (_, PtxOperand::Special(_)) => {
                Some("is a special register; move it to a register first".to_owned())
            }
            _ => {
                let register = register_type(operand, code.registers)?;
                let wanted = self.register()?;
                (!fits(register, wanted))
                    .then(|| format!("is a register of type .{register}, where .{wanted} is wanted"))
            }
        }
    }

    fn broken_number(self, number: Immediate) -> Option<String> {
        if !matches!(number, Immediate::Signed(_) | Immediate::Unsigned(_)) {
            return Some("is no integer".to_owned());
        }
        match self {
            Self::Word | Self::State => Some("is a number, where a register takes the result".to_owned()),
            _ => None,
        }
    }

    /// The type of its register.
    fn register(self) -> Option<ScalarType> {
        match self {
            Self::Word | Self::Number | Self::WordAddress => Some(ScalarType::B32),
            Self::Long | Self::State | Self::LongAddress => Some(ScalarType::B64),
            Self::Predicate => Some(ScalarType::Pred),
            Self::Constant | Self::Address | Self::Line | Self::Elected | Self::Any => None,
        }
    }
}

/// Why the assembler would refuse the words of an instruction in the table, if it would; behind the instruction's text.
pub(super) fn broken_syntax_words(form: &Form) -> Option<String> {
    let mut lines = lines(form.opcode()).peekable();
    lines.peek()?;
    let Some(syntax) = best_line(form) else {
        let mut heads: Vec<&str> = Vec::new();
        lines.map(|line| line.head).filter(|head| !head.is_empty()).for_each(|head| {
            if !heads.contains(&head) {
                heads.push(head);
            }
        });
        let heads: Vec<String> = heads.into_iter().map(|head| head.replace(' ', ".")).collect();
        let heads = any_of(heads.iter().map(String::as_str));
        return Some(format!("begins like no form of this instruction; it goes on with {heads}"));
    };
    if syntax.taken == "*" {
        return None;
    }
    if let Some(word) = syntax.missing(form) {
        return Some(format!("needs {}", any_of(word.split('|'))));
    }
    if let Some(word) = syntax.rest(form).find(|word| !syntax.takes(word)) {
        return Some(format!("has `.{word}`, which it does not take; leave it out"));
    }
    broken_count(form).or_else(|| broken_pair(form))
}

/// What is wrong with words of which there is one at most.
fn broken_count(form: &Form) -> Option<String> {
    let mut words = form.modifiers().iter().enumerate();
    // The assembler takes `.sync` twice.
    let twice = words.find(|(at, word)| {
        word.keyword() != "sync" && form.modifiers().iter().take(*at).any(|before| before == *word)
    });
    if let Some((_, word)) = twice {
        return Some(format!("has `.{}` twice; keep one", word.keyword()));
    }
    let several = |is: fn(&Modifier) -> bool| form.modifiers().iter().filter(|word| is(word)).count() > 1;
    let kinds = [
        ("memory orders", several(|word| matches!(word, Modifier::Order(_)))),
        ("scopes", several(|word| matches!(word, Modifier::Scope(_)))),
        ("types", several(|word| matches!(word, Modifier::Type(_)))),
    ];
    if let Some((kind, _)) = kinds.into_iter().find(|(_, several)| *several) {
        return Some(format!("has several {kind}; keep one"));
    }
    let has_spaces = form.opcode() != Opcode::Cp && several(|word| matches!(word, Modifier::Space(_)));
    has_spaces.then(|| "has several state spaces; keep one".to_owned())
}

/// What is wrong with an order without a scope, or a scope without an order.
fn broken_pair(form: &Form) -> Option<String> {
    if form.opcode() != Opcode::Mbarrier {
        return None;
    }
    match (form.order(), form.scope()) {
        (Some(order), None) => Some(format!("has `.{order}` and no scope; write one, such as `.cta`")),
        (None, Some(scope)) => {
            Some(format!("has `.{scope}` and no memory order; write one, such as `.relaxed`"))
        }
        _ => None,
    }
}

/// The same for its operands; with the instruction's text.
pub(super) fn broken_syntax_operands(
    form: &Form,
    operands: &[PtxOperand],
    code: &Code<'_>,
) -> Option<String> {
    let syntax = best_line(form).filter(|syntax| syntax.operands != "*")?;
    let kinds = |list: &'static str| list.split_whitespace().map(Kind::of);
    let mut lists = syntax.operands.split('/');
    let Some(list) = lists.find(|list| kinds(list).count() == operands.len()) else {
        let counts: Vec<String> =
            syntax.operands.split('/').map(|list| kinds(list).count().to_string()).collect();
        let counts = counts.join(" or ");
        return Some(format!("`{}` takes {counts} operands, not {}", form.text(), operands.len()));
    };
    for (number, (kind, operand)) in (1..).zip(kinds(list).zip(operands)) {
        if let Some(broken) = kind.broken(form, operand, code) {
            return Some(format!("operand {number} of `{}` {broken}", form.text()));
        }
    }
    None
}

/// The lines of an instruction.
fn lines(opcode: Opcode) -> impl Iterator<Item = &'static Syntax> {
    TABLE.iter().filter(move |line| line.opcode == opcode)
}

/// The line with the longest head that an instruction begins with, and with all words that it needs if there is one.
fn best_line(form: &Form) -> Option<&'static Syntax> {
    lines(form.opcode()).filter(|line| line.begins(form)).max_by_key(|line| {
        (
            line.head.split_whitespace().count(),
            line.missing(form).is_none(),
            line.rest(form).all(|word| line.takes(word)),
        )
    })
}

impl Syntax {
    fn takes(&self, word: &str) -> bool {
        self.taken == "*" || self.taken.split_whitespace().any(|taken| taken == word)
    }

    /// Whether the first words are those of an instruction. Barriers and fences may have others before them.
    fn begins(&self, form: &Form) -> bool {
        let mut head = self.head.split_whitespace().peekable();
        let is_free = matches!(form.opcode(), Opcode::Barrier | Opcode::Fence);
        for word in form.modifiers().iter().map(Modifier::keyword) {
            let Some(next) = head.peek() else { return true };
            if *next == word {
                head.next();
            } else if !is_free || !self.takes(word) {
                return false;
            }
        }
        head.peek().is_none()
    }

    /// The words besides the first ones.
    fn rest<'f>(&self, form: &'f Form) -> impl Iterator<Item = &'f str> {
        let words = form.modifiers().iter().map(Modifier::keyword);
        words.filter(|word| !self.head.split_whitespace().any(|head| head == *word))
    }

    /// Words of which one is needed and none is there.
    fn missing(&self, form: &Form) -> Option<&'static str> {
        self.needed.split_whitespace().find(|needed| !needed.split('|').any(|word| form.has_word(word)))
    }
}

/// What is wrong with an address.
fn broken_address(form: &Form, operand: &PtxOperand, code: &Code<'_>) -> Option<String> {
    match operand {
        PtxOperand::Address(Address { base: AddressBase::Absolute, .. }) => {
            Some("is a fixed address, which only local memory has".to_owned())
        }
        // Each of the two addresses of a copy has a space.
        PtxOperand::Address(Address { base: AddressBase::Variable(_), .. })
            if form.opcode() == Opcode::Cp =>
        {
            None
        }
        _ => broken_base(form, operand, code),
    }
}

/// Whether a register has the width of a type and is no float where it must not be.
fn fits(register: ScalarType, wanted: ScalarType) -> bool {
    use ScalarKind::{Float, Predicate};
    let is_predicate = |ty: ScalarType| ty.kind() == Predicate;
    is_predicate(register) == is_predicate(wanted)
        && (is_predicate(wanted) || register.size_bytes() == wanted.size_bytes() && register.kind() != Float)
}
