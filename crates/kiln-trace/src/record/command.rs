//! The command that runs the program again, word by word.

use super::CommandGaps;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// What a word of a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CommandPart {
    /// The program, and then its arguments.
    #[default]
    Argument,
    /// A variable of the environment.
    Variable,
}

/// A word of the command that runs the program again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandRecord<'a> {
    /// What it is.
    pub part: CommandPart,
    /// The name of a variable; empty for an argument.
    pub name: &'a str,
    /// The argument, or the value of the variable.
    pub text: &'a str,
    /// Whether the text is what stands between `$'` and `'` in a shell, as for words that are no text or have control characters.
    pub is_escaped: bool,
    /// Whether the program records itself, and not what started it.
    pub records_itself: bool,
    /// What is not in the command, the same for all its words.
    pub lacks: CommandGaps,
}

const IS_VARIABLE: u8 = 1;
const IS_ESCAPED: u8 = 2;
const RECORDS_ITSELF: u8 = 4;

impl<'a> CommandRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let part = flag(self.part == CommandPart::Variable, IS_VARIABLE);
        to.byte(part | flag(self.is_escaped, IS_ESCAPED) | flag(self.records_itself, RECORDS_ITSELF));
        to.byte(self.lacks.bits());
        to.name(self.name);
        to.name(self.text);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let unknown = Malformed("an unknown part of a command");
        let flags = from.byte()?;
        if flags & !(IS_VARIABLE | IS_ESCAPED | RECORDS_ITSELF) != 0 {
            return Err(unknown);
        }
        let lacks = CommandGaps::from_bits(from.byte()?).ok_or(unknown)?;
        let part = if flags & IS_VARIABLE == 0 { CommandPart::Argument } else { CommandPart::Variable };
        let (is_escaped, records_itself) = (flags & IS_ESCAPED != 0, flags & RECORDS_ITSELF != 0);
        Ok(Self { part, name: from.name()?, text: from.name()?, is_escaped, records_itself, lacks })
    }
}
