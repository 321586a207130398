//! Expressions, split into operations while they are parsed.

use super::error::TextError;
use super::lexer::{Kind, Token};
use super::number_literal::{self, Untyped};
use super::parser::{Name, Parser};
use crate::literal::Literal;
use crate::operation::{
    AtomicOp, BinaryOp, BlockVote, Builtin, CompareOp, MathFunction, MemoryOperand, MemoryOrder, MemoryScope,
    Op, Operand, UnaryOp, WarpOp,
};
use crate::scalar_type::Type;
use crate::statement::StatementKind;

/// A parsed expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expression {
    Typed(Operand, Type),
    /// A number whose type depends on its context.
    Untyped(Untyped),
}

/// Operators between two operands, those that bind least first; comparisons do not chain.
const LEVELS: [&[&str]; 7] = [
    &["==", "!=", "<", "<=", ">", ">="],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'t> Parser<'t> {
    pub(super) fn expression(&mut self) -> Result<Expression, TextError> {
        self.level(0)
    }

    /// An expression of a type.
    pub(super) fn typed(&mut self, ty: Type) -> Result<Operand, TextError> {
        self.maybe_typed(Some(ty)).map(|(operand, _)| operand)
    }

    /// An expression, of a type if one is given.
    pub(super) fn maybe_typed(&mut self, ty: Option<Type>) -> Result<(Operand, Type), TextError> {
        let token = self.token();
        match (self.expression()?, ty) {
            (Expression::Typed(_, found), Some(ty)) if found != ty => {
                Err(token.error(format!("expected {ty}, but this is {found}")))
            }
            (Expression::Typed(operand, found), _) => Ok((operand, found)),
            (Expression::Untyped(number), Some(ty)) => self.literal(token, number, ty).map(|o| (o, ty)),
            (Expression::Untyped(_), None) => {
                Err(token.error("this number needs a type, as in 1u32 or 0.5f32"))
            }
        }
    }

    /// An index behind its bracket; a number without a type is a `u64`.
    pub(super) fn index(&mut self) -> Result<Operand, TextError> {
        let token = self.token();
        let operand = match self.expression()? {
            Expression::Typed(operand, _) => operand,
            Expression::Untyped(number) => self.literal(token, number, Type::U64)?,
        };
        self.sign("]")?;
        Ok(operand)
    }

    pub(super) fn element(&self, memory: MemoryOperand) -> Type {
        let mut ty = Type::Bool;
        self.kernel.edit(|draft| ty = draft.element(memory).unwrap_or(ty));
        ty
    }

    pub(super) fn literal(&self, token: Token<'t>, number: Untyped, ty: Type) -> Result<Operand, TextError> {
        let literal = number.to(ty).filter(|_| ty != Type::Bool);
        literal.map(Operand::Literal).ok_or_else(|| token.error(format!("this number is no {ty}")))
    }

    /// Two expressions of one type; an error names the place of `token`.
    fn unify(
        &mut self,
        a: Expression,
        b: Expression,
        token: Token<'t>,
    ) -> Result<(Operand, Operand, Type), TextError> {
        match (a, b) {
            (Expression::Typed(a, ty), Expression::Typed(b, other)) if ty == other => Ok((a, b, ty)),
            (Expression::Typed(_, ty), Expression::Typed(_, other)) => {
                Err(token.error(format!("the operands are {ty} and {other}; convert one, as in {ty}(x)")))
            }
            (Expression::Typed(a, ty), Expression::Untyped(number)) => {
                Ok((a, self.literal(token, number, ty)?, ty))
            }
            (Expression::Untyped(number), Expression::Typed(b, ty)) => {
                Ok((self.literal(token, number, ty)?, b, ty))
            }
            (Expression::Untyped(_), Expression::Untyped(_)) => {
                Err(token.error("neither operand has a type; give one a type, as in 1u32"))
            }
        }
    }

    /// `start..end step by`, three integers of one type; without a step it is 1.
    pub(super) fn bounds(&mut self) -> Result<([Operand; 3], Type), TextError> {
        let token = self.token();
        let start = self.expression()?;
        self.sign("..")?;
        let end = self.expression()?;
        let step_token = self.token();
        let step = self.take_word("step").then(|| self.expression()).transpose()?;
        let (start, end, ty) = match (start, end, step) {
            (Expression::Untyped(start), Expression::Untyped(end), Some(Expression::Typed(_, ty))) => {
                (self.literal(token, start, ty)?, self.literal(token, end, ty)?, ty)
            }
            _ => self.unify(start, end, token)?,
        };
        let step = match step {
            Some(Expression::Typed(step, found)) if found == ty => step,
            Some(Expression::Typed(_, found)) => {
                return Err(step_token.error(format!("expected a step of {ty}, but this is {found}")));
            }
            Some(Expression::Untyped(number)) => self.literal(step_token, number, ty)?,
            None => Literal::new(ty, 1).into(),
        };
        Ok(([start, end, step], ty))
    }

    /// Adds an operation.
    fn emit(&mut self, op: Op, ty: Type, token: Token<'t>) -> Expression {
        let value = self.kernel.add_value(ty);
        self.kernel.push_at(StatementKind::Let { value, op }, token.location());
        Expression::Typed(Operand::Value(value), ty)
    }

    fn level(&mut self, level: usize) -> Result<Expression, TextError> {
        let Some(signs) = LEVELS.get(level) else { return self.prefix() };
        let mut left = self.level(level + 1)?;
        loop {
            let token = self.token();
            if token.kind != Kind::Sign || !signs.contains(&token.text) {
                return Ok(left);
            }
            self.advance();
            let right_token = self.token();
            let right = self.level(level + 1)?;
            left = match (CompareOp::from_word(token.text), BinaryOp::from_word(token.text)) {
                (Some(op), _) => {
                    let (a, b, ty) = self.unify(left, right, token)?;
                    return Ok(self.emit(Op::Compare { op, ty, a, b }, Type::Bool, token));
                }
                (None, Some(op)) => self.binary(op, left, (right, right_token), token)?,
                (None, None) => return Err(token.error("no operator")),
            };
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: Expression,
        (right, right_token): (Expression, Token<'t>),
        token: Token<'t>,
    ) -> Result<Expression, TextError> {
        let shifts = op.second(Type::U64) != Type::U64;
        let (a, b, ty) = match (left, right) {
            (Expression::Typed(a, ty), Expression::Untyped(number)) if shifts => {
                (a, self.literal(right_token, number, Type::U32)?, ty)
            }
            (Expression::Typed(a, ty), Expression::Typed(b, _)) if shifts => (a, b, ty),
            _ => self.unify(left, right, token)?,
        };
        Ok(self.emit(Op::Binary { op, ty, a, b }, ty, token))
    }

    fn prefix(&mut self) -> Result<Expression, TextError> {
        let token = self.token();
        let op = match (token.kind, token.text) {
            (Kind::Sign, "-") => UnaryOp::Neg,
            (Kind::Sign, "!") => UnaryOp::Not,
            _ => return self.primary(),
        };
        self.advance();
        // A minus right before a number belongs to it, so that the smallest numbers can be written.
        if op == UnaryOp::Neg && self.token().kind == Kind::Number {
            let digits = self.advance();
            return self.number(digits, true);
        }
        self.deeper()?;
        let operand = self.prefix()?;
        self.depth -= 1;
        match operand {
            Expression::Typed(a, ty) => Ok(self.emit(Op::Unary { op, ty, a }, op.result(ty), token)),
            Expression::Untyped(_) => Err(token.error("this number needs a type, as in 1u32 or 0.5f32")),
        }
    }

    fn number(&mut self, token: Token<'t>, negative: bool) -> Result<Expression, TextError> {
        let (number, ty) = number_literal::read(token.text).map_err(|what| token.error(what))?;
        let number = if negative { number.negated() } else { number };
        match ty {
            Some(ty) => Ok(Expression::Typed(self.literal(token, number, ty)?, ty)),
            None => Ok(Expression::Untyped(number)),
        }
    }

    fn primary(&mut self) -> Result<Expression, TextError> {
        let token = self.advance();
        match (token.kind, token.text) {
            (Kind::Number, _) => self.number(token, false),
            (Kind::Bits, text) => {
                let literal = number_literal::read_bits(text).map_err(|what| token.error(what))?;
                Ok(Expression::Typed(literal.into(), literal.ty()))
            }
            (Kind::Sign, "(") => {
                self.deeper()?;
                let inner = self.expression()?;
                self.depth -= 1;
                self.sign(")")?;
                Ok(inner)
            }
            (Kind::Word, "true" | "false") => {
                Ok(Expression::Typed(Literal::from(token.text == "true").into(), Type::Bool))
            }
            (Kind::Word | Kind::Nameless, text) => match self.names.get(text).copied() {
                Some(name) => self.named(name, token),
                None => self.call(token),
            },
            _ => {
                self.at -= 1;
                Err(self.unexpected("an expression"))
            }
        }
    }

    fn named(&mut self, name: Name, token: Token<'t>) -> Result<Expression, TextError> {
        match name {
            Name::Operand(operand, ty) => Ok(Expression::Typed(operand, ty)),
            Name::Variable(id, ty) => Ok(self.emit(Op::Read(id), ty, token)),
            Name::Scalar(id, ty) => Ok(self.emit(Op::Parameter(id), ty, token)),
            Name::Tile(..) => {
                Err(token.error(format!("`{}` is a tile, which only tile statements use", token.text)))
            }
            Name::MemoryOperand(memory) => {
                self.sign("[")?;
                self.deeper()?;
                let index = self.index()?;
                self.depth -= 1;
                Ok(self.emit(Op::Load { memory, index }, self.element(memory), token))
            }
        }
    }

    /// A builtin, a conversion, or an operation that is written like a function.
    fn call(&mut self, token: Token<'t>) -> Result<Expression, TextError> {
        let word = token.text;
        if token.kind == Kind::Nameless {
            return Err(token.error(format!("there is no `{word}` here")));
        }
        if let Some(builtin) = Builtin::from_words(word, None) {
            return Ok(self.emit(Op::Builtin(builtin), builtin.ty(), token));
        }
        if Builtin::from_words(word, Some("x")).is_some() {
            self.sign(".")?;
            let axis = self.any_word("x, y or z")?;
            let builtin =
                Builtin::from_words(word, Some(axis.text)).ok_or_else(|| axis.error("expected x, y or z"))?;
            return Ok(self.emit(Op::Builtin(builtin), builtin.ty(), token));
        }
        self.deeper()?;
        let result = if let Some(to) = Type::from_word(word) {
            self.conversion(to, token)
        } else if let Some(op) = AtomicOp::from_word(word) {
            self.atomic(op, token)
        } else {
            self.function(token)
        };
        self.depth -= 1;
        result
    }

    /// `f32(x)` or `f32.from_bits(x)`.
    fn conversion(&mut self, to: Type, token: Token<'t>) -> Result<Expression, TextError> {
        let bits = self.take_sign(".");
        if bits {
            self.word("from_bits")?;
        }
        self.sign("(")?;
        let inner = self.token();
        let operand = self.expression()?;
        self.sign(")")?;
        match operand {
            Expression::Typed(a, from) if bits => Ok(self.emit(Op::Bitcast { from, to, a }, to, token)),
            Expression::Typed(a, from) => Ok(self.emit(Op::Convert { from, to, a }, to, token)),
            Expression::Untyped(number) if !bits => {
                Ok(Expression::Typed(self.literal(inner, number, to)?, to))
            }
            Expression::Untyped(_) => Err(inner.error("this number needs a type, as in 1u32 or 0.5f32")),
        }
    }

    /// `atomic_add.relaxed.device(x[i], value)`; order and scope may be left out.
    fn atomic(&mut self, op: AtomicOp, token: Token<'t>) -> Result<Expression, TextError> {
        let (mut order, mut scope) = (MemoryOrder::Relaxed, None);
        while self.take_sign(".") {
            let word = self.any_word("an order or a scope")?;
            match (MemoryOrder::from_word(word.text), MemoryScope::from_word(word.text)) {
                (Some(found), _) => order = found,
                (None, Some(found)) => scope = Some(found),
                (None, None) => return Err(word.error("expected an order or a scope")),
            }
        }
        self.sign("(")?;
        let name = self.any_word("the name of memory")?;
        let Some(Name::MemoryOperand(memory)) = self.names.get(name.text).copied() else {
            return Err(name.error(format!("there is no memory `{}`", name.text)));
        };
        self.sign("[")?;
        let index = self.index()?;
        let ty = self.element(memory);
        self.sign(",")?;
        let mut expected = None;
        if op == AtomicOp::CompareExchange {
            expected = Some(self.typed(ty)?);
            self.sign(",")?;
        }
        let value = self.typed(ty)?;
        self.sign(")")?;
        let usual =
            if matches!(memory, MemoryOperand::Shared(_)) { MemoryScope::Block } else { MemoryScope::Device };
        let scope = scope.unwrap_or(usual);
        Ok(self.emit(Op::Atomic { op, memory, index, value, expected, order, scope }, ty, token))
    }

    /// Operations written like functions.
    fn function(&mut self, token: Token<'t>) -> Result<Expression, TextError> {
        let word = token.text;
        if word == "len" {
            self.sign("(")?;
            let name = self.any_word("the name of memory")?;
            let Some(Name::MemoryOperand(memory)) = self.names.get(name.text).copied() else {
                return Err(name.error(format!("there is no memory `{}`", name.text)));
            };
            self.sign(")")?;
            return Ok(self.emit(Op::Length(memory), Type::U64, token));
        }
        if self.token().text != "(" {
            return Err(token.error(format!("unknown name `{word}`")));
        }
        self.sign("(")?;
        let first = self.token();
        let a = self.expression()?;
        let done = if let Some(op) = UnaryOp::from_word(word) {
            let (a, ty) = self.known(a, first)?;
            self.emit(Op::Unary { op, ty, a }, op.result(ty), token)
        } else if let Some(function) = MathFunction::from_word(word) {
            let (a, ty) = self.known(a, first)?;
            self.emit(Op::Function { function, ty, a }, ty, token)
        } else if let Some(vote) = BlockVote::from_word(word) {
            let (a, _) = self.known(a, first)?;
            self.emit(Op::BlockVote { vote, a }, vote.result(), token)
        } else if let Some(op) = WarpOp::from_word(word) {
            let (a, ty) = self.known(a, first)?;
            let by =
                op.is_shuffle().then(|| self.sign(",").and_then(|()| self.typed(Type::U32))).transpose()?;
            self.emit(Op::Warp { op, ty, a, by }, op.result(ty), token)
        } else if let Some(op) = BinaryOp::from_word(word) {
            self.sign(",")?;
            let right_token = self.token();
            let b = self.expression()?;
            self.binary(op, a, (b, right_token), token)?
        } else {
            self.of_three(a, token)?
        };
        self.sign(")")?;
        Ok(done)
    }

    /// `select` and `fma`.
    fn of_three(&mut self, a: Expression, token: Token<'t>) -> Result<Expression, TextError> {
        if !matches!(token.text, "select" | "fma") {
            return Err(token.error(format!("there is no `{}`", token.text)));
        }
        self.sign(",")?;
        let b = self.expression()?;
        self.sign(",")?;
        let c = self.expression()?;
        if token.text == "select" {
            let (condition, _) = self.known(a, token)?;
            let (a, b, ty) = self.unify(b, c, token)?;
            return Ok(self.emit(Op::Select { ty, condition, a, b }, ty, token));
        }
        let (first, second, third) = (a, b, c);
        let known = [first, second, third].into_iter().find(|e| matches!(e, Expression::Typed(..)));
        let Some(Expression::Typed(_, ty)) = known else {
            return Err(token.error("these numbers need a type, as in 0.5f32"));
        };
        let mut operands = [Operand::Literal(Literal::zero(ty)); 3];
        for (slot, expression) in operands.iter_mut().zip([first, second, third]) {
            *slot = match expression {
                Expression::Typed(operand, _) => operand,
                Expression::Untyped(number) => self.literal(token, number, ty)?,
            };
        }
        let [a, b, c] = operands;
        Ok(self.emit(Op::Fma { ty, a, b, c }, ty, token))
    }

    fn known(&self, expression: Expression, token: Token<'t>) -> Result<(Operand, Type), TextError> {
        match expression {
            Expression::Typed(operand, ty) => Ok((operand, ty)),
            Expression::Untyped(_) => Err(token.error("this number needs a type, as in 1u32 or 0.5f32")),
        }
    }
}
