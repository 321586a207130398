//! Declarations of registers, variables and formals.

use super::Parser;
use super::cursor::{declared_twice, invalid, limit};
use super::lexer::{Token, TokenKind};
use super::scope::Binding;
use crate::call::Formal;
use crate::error::ParseError;
use crate::function::PtxFunctionId;
use crate::linkage::Linkage;
use crate::name::Name;
use crate::position::Origin;
use crate::register::Registers;
use crate::scalar::ScalarType;
use crate::state_space::Space;
use crate::variable::{PointerMark, PtxVariable, VariableId, VariableShape};

/// The most dimensions of an array.
const MAX_DIMENSIONS: usize = 16;

/// What is wrong with the space and type of a variable.
fn broken_variable(space: Space, qualifiers: &Qualifiers, owner: Option<PtxFunctionId>) -> Option<String> {
    let bytes = qualifiers.ty.size_bytes() * u32::from(qualifiers.vector);
    match (space, owner) {
        (Space::Param, None) => Some("a module has no variables in `.param`; functions have".to_owned()),
        _ if qualifiers.ty == ScalarType::Pred => {
            Some("a predicate is a register and no variable; use `.u8` for a truth value".to_owned())
        }
        _ if qualifiers.vector > 1 && bytes > MAX_VECTOR_BYTES => {
            Some(format!("a vector has at most {MAX_VECTOR_BYTES} bytes, not {bytes}; use an array"))
        }
        _ => None,
    }
}

/// Why a variable has no first value, if it has none.
fn without_value(space: Space, linkage: Option<Linkage>) -> Option<String> {
    if linkage == Some(Linkage::Extern) {
        return Some("a variable of another module has its first value there; leave it out".to_owned());
    }
    let has_value = matches!(space, Space::Global | Space::Const);
    (!has_value).then(|| {
        format!("a variable in `.{space}` has no first value; store it at the start of the kernel instead")
    })
}

/// The longest vector that a variable has.
const MAX_VECTOR_BYTES: u32 = 16;

/// What stands between the space and the name of a declaration.
pub(super) struct Qualifiers {
    align: Option<u32>,
    ty: ScalarType,
    vector: u8,
    pointer: Option<PointerMark>,
    attributes: Vec<Name>,
}

impl<'a> Parser<'a> {
    /// A variable statement from its space on, with the semicolon; returns what it declares.
    pub(super) fn variables(
        &mut self,
        linkage: Option<Linkage>,
        owner: Option<PtxFunctionId>,
    ) -> Result<Vec<VariableId>, ParseError> {
        let Some(space) = self.directive().and_then(Space::from_keyword) else {
            return Err(self.unexpected("a state space"));
        };
        self.bump()?;
        let position = self.position();
        let qualifiers = self.qualifiers()?;
        if self.dialect.is_some()
            && let Some(why) = broken_variable(space, &qualifiers, owner)
        {
            return Err(invalid(position, why));
        }
        let mut declared = Vec::new();
        loop {
            let name = self.expect_word("the name of a variable")?;
            let mut shape = self.shape(&qualifiers)?;
            let id = VariableId(self.variables.len() as u32);
            // The name is visible inside its own initializer.
            self.declare(&name, Binding::Variable(id))?;
            let origin = Origin::new(name.position);
            let (pointer, attributes) = (qualifiers.pointer, qualifiers.attributes.clone());
            let name = self.name(name.text);
            let variable = PtxVariable {
                name,
                space,
                linkage,
                shape: shape.clone(),
                pointer,
                initializer: None,
                attributes,
                owner,
                origin,
            };
            declared.push(self.add_variable(variable));
            let is_open = shape.is_open() && linkage != Some(Linkage::Extern) && space != Space::Param;
            if is_open && !self.is_punct(b'=') {
                return Err(invalid(
                    origin.position(),
                    "the length of the array is open; write it, or `.extern` before the variable",
                ));
            }
            let position = self.position();
            if self.accept(b'=')? {
                if let Some(why) = without_value(space, linkage) {
                    return Err(invalid(position, why));
                }
                let initializer = self.initializer(&mut shape)?;
                if let Some(variable) = self.variables.get_mut(id.index()) {
                    variable.shape = shape;
                    variable.initializer = Some(initializer);
                }
            }
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(declared)
    }

    /// A `.reg` statement behind the word `.reg`, with the semicolon; returns the indices of the groups.
    pub(super) fn register_statement(
        &mut self,
        registers: &mut Registers,
    ) -> Result<std::ops::Range<u32>, ParseError> {
        let first = registers.groups().len() as u32;
        let qualifiers = self.qualifiers()?;
        loop {
            let name = self.expect_word("the name of a register")?;
            self.declare_registers(registers, &name, &qualifiers)?;
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(first..registers.groups().len() as u32)
    }

    fn declare_registers(
        &mut self,
        registers: &mut Registers,
        name: &Token<'a>,
        qualifiers: &Qualifiers,
    ) -> Result<Formal, ParseError> {
        let mut range = None;
        if self.accept(b'<')? {
            let position = self.position();
            let count = self.plain_number("the number of registers")?;
            let too_many = limit(position, "the number of registers", u64::from(Registers::MAX_COUNT));
            range = Some(u32::try_from(count).map_err(|_| too_many)?);
            self.expect(b'>')?;
        }
        let shared = self.name(name.text);
        let Some(first) = registers.declare(shared, qualifiers.ty, qualifiers.vector, range) else {
            return Err(limit(name.position, "the number of registers", u64::from(Registers::MAX_COUNT)));
        };
        match range {
            None => self.declare(name, Binding::Register(first))?,
            Some(count) => {
                if !self.scope.declare_range(name.text, first, count) {
                    return Err(declared_twice(name));
                }
            }
        }
        Ok(Formal::Register(first))
    }

    pub(super) fn declare(&mut self, name: &Token<'a>, binding: Binding) -> Result<(), ParseError> {
        let taken = self.scope.depth() == 0 && self.function_ids.contains_key(name.text);
        if self.scope.declare(name.text, binding) && !taken { Ok(()) } else { Err(declared_twice(name)) }
    }

    /// Formals in parentheses: parameters or results of a function header.
    pub(super) fn formals(
        &mut self,
        owner: PtxFunctionId,
        registers: &mut Registers,
    ) -> Result<Vec<Formal>, ParseError> {
        self.expect(b'(')?;
        let mut formals = Vec::new();
        while !self.is_punct(b')') {
            formals.push(self.formal(owner, registers)?);
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b')')?;
        Ok(formals)
    }

    fn formal(&mut self, owner: PtxFunctionId, registers: &mut Registers) -> Result<Formal, ParseError> {
        let in_register = self.is_directive("reg");
        if !in_register && !self.is_directive("param") {
            return Err(self.unexpected("`.param` or `.reg`"));
        }
        self.bump()?;
        let qualifiers = self.qualifiers()?;
        let name = self.expect_word("the name of a parameter")?;
        if in_register {
            return self.declare_registers(registers, &name, &qualifiers);
        }
        let shape = self.shape(&qualifiers)?;
        let id = VariableId(self.variables.len() as u32);
        // A header may leave all its formals unnamed.
        if name.text != "_" {
            self.declare(&name, Binding::Variable(id))?;
        }
        let variable = PtxVariable {
            name: self.name(name.text),
            space: Space::Param,
            linkage: None,
            shape,
            pointer: qualifiers.pointer,
            initializer: None,
            attributes: qualifiers.attributes,
            owner: Some(owner),
            origin: Origin::new(name.position),
        };
        Ok(Formal::Param(self.add_variable(variable)))
    }

    /// Alignment, type, vector and pointer words in any order.
    pub(super) fn qualifiers(&mut self) -> Result<Qualifiers, ParseError> {
        let (mut align, mut ty, mut vector) = (None, None, 1);
        let (mut pointer, mut attributes): (Option<PointerMark>, _) = (None, Vec::new());
        while let Some(word) = self.directive() {
            match word {
                "align" => {
                    self.bump()?;
                    let value = Some(self.alignment()?);
                    match &mut pointer {
                        Some(mark) => mark.align = value,
                        None => align = value,
                    }
                    continue;
                }
                "ptr" => pointer = Some(PointerMark { space: None, align: None }),
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                "attribute" => {
                    self.bump()?;
                    attributes.push(self.attribute()?);
                    continue;
                }
                _ => match (ScalarType::from_keyword(word), Space::from_keyword(word), &mut pointer) {
                    (Some(word), _, _) if ty.is_none() => ty = Some(word),
                    (None, Some(space), Some(mark)) => mark.space = Some(space),
                    _ => return Err(self.unexpected("a type, an alignment or a name")),
                },
            }
            self.bump()?;
        }
        let Some(ty) = ty else { return Err(self.unexpected("a type")) };
        Ok(Qualifiers { align, ty, vector, pointer, attributes })
    }

    fn alignment(&mut self) -> Result<u32, ParseError> {
        let position = self.position();
        let value = self.small("the alignment")?;
        if !value.is_power_of_two() {
            return Err(invalid(position, format!("an alignment is a power of two, not {value}")));
        }
        if value > VariableShape::MAX_ALIGN_BYTES {
            return Err(limit(position, "the alignment", u64::from(VariableShape::MAX_ALIGN_BYTES)));
        }
        Ok(value)
    }

    /// The content of `.attribute(...)`, without blanks.
    pub(super) fn attribute(&mut self) -> Result<Name, ParseError> {
        self.expect(b'(')?;
        let (mut text, mut open) = (String::new(), 0u32);
        loop {
            match self.token.kind {
                TokenKind::Punct(b')') if open == 0 => break,
                TokenKind::Punct(b')') => open -= 1,
                TokenKind::Punct(b'(') => open += 1,
                TokenKind::DotWord | TokenKind::Word | TokenKind::Number | TokenKind::Punct(b',') => {}
                _ => return Err(self.unexpected("`)`")),
            }
            text.push_str(self.bump()?.text);
        }
        self.expect(b')')?;
        Ok(Name::from(text))
    }

    /// The dimensions behind a name, checked to fit.
    pub(super) fn shape(&mut self, qualifiers: &Qualifiers) -> Result<VariableShape, ParseError> {
        /// Sizes stay within `i64`, so that offsets do too.
        const MAX_SIZE_BYTES: u64 = i64::MAX as u64;
        let mut dimensions = Vec::new();
        let position = self.position();
        while self.accept(b'[')? {
            if dimensions.len() == MAX_DIMENSIONS {
                return Err(limit(self.position(), "the number of dimensions", MAX_DIMENSIONS as u64));
            }
            let length = if self.is_punct(b']') { 0 } else { self.integer()? };
            let length =
                u64::try_from(length).map_err(|_| invalid(position, "an array length is not negative"))?;
            dimensions.push(length);
            self.expect(b']')?;
        }
        let Qualifiers { ty, vector, align, .. } = *qualifiers;
        let shape = VariableShape { ty, vector, dimensions, align };
        let mut closed = shape.dimensions.iter().filter(|d| **d != 0);
        let size = closed.try_fold(shape.element_bytes(), |n, d| n.checked_mul(*d));
        match size.filter(|n| *n <= MAX_SIZE_BYTES) {
            Some(_) => Ok(shape),
            None => Err(limit(position, "the size of a variable in bytes", MAX_SIZE_BYTES)),
        }
    }
}
