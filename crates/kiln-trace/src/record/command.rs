//! The command that runs the program again, word by word.

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
    /// Whether nothing was left out, as what looks like a secret is.
    pub is_whole: bool,
}

impl<'a> CommandRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.byte(u8::from(self.part == CommandPart::Variable) | u8::from(self.is_whole) << 1);
        to.name(self.name);
        to.name(self.text);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let flags = from.byte()?;
        let part = match flags {
            0 | 2 => CommandPart::Argument,
            1 | 3 => CommandPart::Variable,
            _ => return Err(Malformed("an unknown part of a command")),
        };
        Ok(Self { part, name: from.name()?, text: from.name()?, is_whole: flags & 2 != 0 })
    }
}
