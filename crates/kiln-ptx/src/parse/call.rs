//! The operands of `call`.

use super::Parser;
use super::cursor::{invalid, unknown_name};
use super::lexer::Token;
use super::scope::Binding;
use super::statement::Builder;
use crate::call::{Call, CallId, Callee};
use crate::error::ParseError;
use crate::opcode::Opcode;
use crate::operand::PtxOperand;

impl<'a> Parser<'a> {
    /// `(returns), callee, (arguments), prototype`, of which only the callee must be there.
    pub(super) fn call(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        let mut returns = Vec::new();
        if self.is_punct(b'(') {
            returns = self.actuals(builder)?;
            self.expect(b',')?;
        }
        let name = self.expect_word("the name of a function")?;
        let callee = self.callee(&name)?;
        let mut arguments = Vec::new();
        let mut prototype = None;
        let mut more = self.accept(b',')?;
        if more && self.is_punct(b'(') {
            arguments = self.actuals(builder)?;
            more = self.accept(b',')?;
        }
        if more {
            prototype = Some(self.expect_word("the label of a call prototype")?);
        }
        if let Callee::Function(id) = callee
            && id != builder.owner
            && let Some(function) = self.functions.get(id.index()).filter(|function| function.alias.is_none())
        {
            check_count(&name, "arguments", function.parameters.len(), arguments.len())?;
            check_count(&name, "results", function.returns.len(), returns.len())?;
        }
        let index = builder.body.calls.len();
        if let Some(prototype) = prototype {
            builder.use_prototype(prototype, index);
        }
        builder.body.calls.push(Call { returns, callee, arguments, indirect: None });
        builder.body.operands.push(PtxOperand::Call(CallId(index as u32)));
        Ok(())
    }

    fn callee(&self, name: &Token<'a>) -> Result<Callee, ParseError> {
        match self.scope.find(name.text) {
            Some(Binding::Register(register)) => Ok(Callee::Register(register)),
            _ => match self.function_ids.get(name.text) {
                Some(function) => Ok(Callee::Function(*function)),
                None => Err(unknown_name(name, "function")),
            },
        }
    }

    /// Operands in parentheses.
    fn actuals(&mut self, builder: &mut Builder<'a, '_>) -> Result<Vec<PtxOperand>, ParseError> {
        self.expect(b'(')?;
        let mut actuals = Vec::new();
        while !self.is_punct(b')') {
            actuals.push(self.operand(builder, Opcode::Call, 0)?);
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b')')?;
        Ok(actuals)
    }
}

/// Refuses a call with another number of operands than the function was declared with.
fn check_count(name: &Token<'_>, what: &str, declared: usize, given: usize) -> Result<(), ParseError> {
    if declared == given {
        return Ok(());
    }
    let text = format!(
        "the call of `{}` has another number of {what} ({given}) than its declaration ({declared})",
        name.text
    );
    Err(invalid(name.position, text))
}
