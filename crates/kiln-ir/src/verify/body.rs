//! One walk over the statements: scopes, types, definite assignment, loops, outputs.

use std::collections::HashSet;

use super::MAX_DEPTH;
use super::error::{VerifyError, VerifyReason};
use super::operation_types::{access, element, expect, integer, result};
use super::tile_types;
use crate::declaration::{Role, ValueId, VariableId};
use crate::operation::{MatrixOperand, MemoryOperand, Op, Operand, TileOp};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::source_location::SourceLocation;
use crate::statement::{Block, Statement, StatementKind};
use crate::text::is_name;

pub(super) fn check(draft: &Draft) -> Result<(), VerifyError> {
    let mut walk = Walk::new(draft);
    walk.block(&draft.body, SourceLocation::Unknown)?;
    let expected = draft.values.len();
    if walk.next_value as usize != expected {
        let reason = VerifyReason::Numbering { expected: walk.next_value, found: expected as u32 };
        return Err(VerifyError::new(SourceLocation::Unknown, reason));
    }
    let silent =
        |(at, buffer): &(usize, &crate::Buffer)| buffer.role == Role::Output && !walk.written.contains(at);
    match draft.buffers.iter().enumerate().find(silent) {
        Some((_, buffer)) => {
            let reason = VerifyReason::MissingOutput { buffer: buffer.name.clone() };
            Err(VerifyError::new(SourceLocation::Unknown, reason))
        }
        None => Ok(()),
    }
}

/// The state of the walk at a statement.
struct Walk<'d> {
    draft: &'d Draft,
    location: SourceLocation,
    next_value: u32,
    /// Values and variables in scope.
    values: Vec<bool>,
    variables: Vec<bool>,
    declared: Vec<bool>,
    /// Variables that every path to the statement has assigned; `None` if it is unreachable.
    assigned: Option<HashSet<u32>>,
    names: HashSet<&'d str>,
    written: HashSet<usize>,
    loops: usize,
    depth: usize,
}

impl<'d> Walk<'d> {
    fn new(draft: &'d Draft) -> Self {
        let buffers = draft.buffers.iter().map(|buffer| &*buffer.name);
        let scalars = draft.scalars.iter().map(|scalar| &*scalar.name);
        let shared = draft.shared.iter().map(|shared| &*shared.name);
        let tiles = draft.tiles.iter().map(|tile| &*tile.name);
        Self {
            draft,
            location: SourceLocation::Unknown,
            next_value: 0,
            values: vec![false; draft.values.len()],
            variables: vec![false; draft.variables.len()],
            declared: vec![false; draft.variables.len()],
            assigned: Some(HashSet::new()),
            names: buffers.chain(scalars).chain(shared).chain(tiles).collect(),
            written: HashSet::new(),
            loops: 0,
            depth: 0,
        }
    }

    fn error(&self, reason: VerifyReason) -> VerifyError {
        VerifyError::new(self.location, reason)
    }

    /// Walks a block and closes its scope.
    fn block(&mut self, block: &'d Block, around: SourceLocation) -> Result<(), VerifyError> {
        let mark = self.enter(around)?;
        block.iter().try_for_each(|statement| self.statement(statement))?;
        self.leave(mark, block);
        Ok(())
    }

    fn enter(&mut self, around: SourceLocation) -> Result<u32, VerifyError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.location = around;
            return Err(self.error(VerifyReason::Depth { limit: MAX_DEPTH }));
        }
        Ok(self.next_value)
    }

    /// Ends the scope of a block: all values since `mark`, and the variables its statements declare.
    fn leave(&mut self, mark: u32, block: &'d Block) {
        self.depth -= 1;
        for id in mark..self.next_value {
            self.values[id as usize] = false;
            if let Some(name) = self.draft.values.get(id as usize).and_then(|value| value.name.as_deref()) {
                self.names.remove(name);
            }
        }
        for statement in block {
            let StatementKind::Declare { variable, .. } = statement.kind else { continue };
            self.variables[variable.index()] = false;
            if let Some(name) = self.draft.variables.get(variable.index()).and_then(|v| v.name.as_deref()) {
                self.names.remove(name);
            }
        }
    }

    fn statement(&mut self, statement: &'d Statement) -> Result<(), VerifyError> {
        let location = statement.location;
        self.location = location;
        match &statement.kind {
            StatementKind::Let { value, op } => self.define(*value, op),
            StatementKind::Declare { variable, initial } => self.declare(*variable, *initial),
            StatementKind::Assign { variable, value } => self.assign(*variable, *value),
            StatementKind::Store { memory, index, value } => self.store(*memory, *index, *value),
            StatementKind::If { condition, then, otherwise } => {
                self.typed("the condition", *condition, Type::Bool)?;
                let before = self.assigned.clone();
                self.block(then, location)?;
                let after_then = std::mem::replace(&mut self.assigned, before);
                self.block(otherwise, location)?;
                self.assigned = meet(after_then, self.assigned.take());
                Ok(())
            }
            StatementKind::For { value, start, end, step, body } => {
                self.count(*value, *start, *end, *step)?;
                self.repeat(body, location)?;
                self.leave_value(*value);
                Ok(())
            }
            StatementKind::While { condition, test, body } => {
                self.repeat_while(condition, *test, body, location)
            }
            StatementKind::Break | StatementKind::Continue => {
                let what = if statement.kind == StatementKind::Break { "break" } else { "continue" };
                if self.loops == 0 {
                    return Err(self.error(VerifyReason::NoLoop { what }));
                }
                self.assigned = None;
                Ok(())
            }
            StatementKind::Return => {
                self.assigned = None;
                Ok(())
            }
            StatementKind::Tile(op) => self.tile(op),
            StatementKind::Trap(code) => {
                self.typed("the code", *code, Type::U32)?;
                self.assigned = None;
                Ok(())
            }
            StatementKind::Barrier(_) | StatementKind::Fence(_) => Ok(()),
        }
    }

    fn define(&mut self, value: ValueId, op: &'d Op) -> Result<(), VerifyError> {
        for operand in op.operands() {
            self.in_scope(operand)?;
        }
        if let Op::Read(variable) = op {
            self.readable(*variable)?;
        }
        let ty = result(self.draft, op).map_err(|reason| self.error(reason))?;
        if let Op::Atomic { memory: MemoryOperand::Buffer(id), .. } = op {
            self.written.insert(id.index());
        }
        self.bring(value, ty)
    }

    /// Brings the next value into scope.
    fn bring(&mut self, value: ValueId, ty: Type) -> Result<(), VerifyError> {
        if value.0 != self.next_value {
            return Err(self.error(VerifyReason::Numbering { expected: self.next_value, found: value.0 }));
        }
        let Some(declared) = self.draft.values.get(value.index()) else {
            return Err(self.error(VerifyReason::Scope { what: format!("value {}", value.0) }));
        };
        if declared.ty != ty {
            let reason = VerifyReason::Type {
                what: self.value_name(value),
                expected: ty.to_string(),
                found: declared.ty,
            };
            return Err(self.error(reason));
        }
        self.next_value += 1;
        self.values[value.index()] = true;
        self.name(declared.name.as_deref())
    }

    fn leave_value(&mut self, value: ValueId) {
        self.values[value.index()] = false;
        if let Some(name) = self.draft.values.get(value.index()).and_then(|value| value.name.as_deref()) {
            self.names.remove(name);
        }
    }

    fn name(&mut self, name: Option<&'d str>) -> Result<(), VerifyError> {
        match name {
            Some(name) if !is_name(name) => Err(self.error(VerifyReason::Name { name: name.to_owned() })),
            Some(name) if !self.names.insert(name) => {
                Err(self.error(VerifyReason::Duplicate { name: name.to_owned() }))
            }
            _ => Ok(()),
        }
    }

    fn declare(&mut self, variable: VariableId, initial: Option<Operand>) -> Result<(), VerifyError> {
        let Some(declared) = self.draft.variables.get(variable.index()) else {
            return Err(self.error(VerifyReason::Scope { what: format!("variable {}", variable.0) }));
        };
        if self.declared[variable.index()] {
            return Err(self.error(VerifyReason::Duplicate { name: self.variable_name(variable) }));
        }
        self.declared[variable.index()] = true;
        if let Some(initial) = initial {
            self.typed("the first value", initial, declared.ty)?;
        }
        self.variables[variable.index()] = true;
        if let Some(assigned) = &mut self.assigned {
            match initial {
                Some(_) => assigned.insert(variable.0),
                None => assigned.remove(&variable.0),
            };
        }
        self.name(declared.name.as_deref())
    }

    fn assign(&mut self, variable: VariableId, value: Operand) -> Result<(), VerifyError> {
        if !self.variables.get(variable.index()).copied().unwrap_or(false) {
            return Err(self.error(VerifyReason::Scope { what: self.variable_name(variable) }));
        }
        let ty = self.draft.variables.get(variable.index()).map_or(Type::Bool, |variable| variable.ty);
        self.typed("the value", value, ty)?;
        if let Some(assigned) = &mut self.assigned {
            assigned.insert(variable.0);
        }
        Ok(())
    }

    fn readable(&self, variable: VariableId) -> Result<(), VerifyError> {
        let what = || self.variable_name(variable);
        if !self.variables.get(variable.index()).copied().unwrap_or(false) {
            return Err(self.error(VerifyReason::Scope { what: what() }));
        }
        match &self.assigned {
            Some(assigned) if !assigned.contains(&variable.0) => {
                Err(self.error(VerifyReason::Unassigned { what: what() }))
            }
            _ => Ok(()),
        }
    }

    fn store(&mut self, memory: MemoryOperand, index: Operand, value: Operand) -> Result<(), VerifyError> {
        self.in_scope(index)?;
        let check = element(self.draft, memory).and_then(|ty| {
            integer(self.draft, "the index", index)?;
            access(self.draft, memory, "written", Role::is_writable)?;
            Ok(ty)
        });
        let ty = check.map_err(|reason| self.error(reason))?;
        if let MemoryOperand::Buffer(id) = memory {
            self.written.insert(id.index());
        }
        self.typed("the value", value, ty)
    }

    fn tile(&mut self, op: &TileOp) -> Result<(), VerifyError> {
        op.operands().into_iter().try_for_each(|operand| self.in_scope(operand))?;
        tile_types::check(self.draft, op).map_err(|reason| self.error(reason))?;
        if let TileOp::Store { to: MatrixOperand { memory: MemoryOperand::Buffer(id), .. }, .. } = op {
            self.written.insert(id.index());
        }
        Ok(())
    }

    fn count(
        &mut self,
        value: ValueId,
        start: Operand,
        end: Operand,
        step: Operand,
    ) -> Result<(), VerifyError> {
        self.in_scope(start)?;
        self.in_scope(end)?;
        let ty = integer(self.draft, "the start", start).map_err(|reason| self.error(reason))?;
        self.typed("the end", end, ty)?;
        self.typed("the step", step, ty)?;
        if let Operand::Literal(literal) = step
            && literal.as_integer() < 1
        {
            return Err(self.error(VerifyReason::Step { step: literal.as_integer() as i64 }));
        }
        self.bring(value, ty)
    }

    /// A body that runs any number of times, including zero.
    fn repeat(&mut self, body: &'d Block, location: SourceLocation) -> Result<(), VerifyError> {
        let before = self.assigned.clone();
        self.loops += 1;
        self.block(body, location)?;
        self.loops -= 1;
        self.assigned = before;
        Ok(())
    }

    fn repeat_while(
        &mut self,
        condition: &'d Block,
        test: Operand,
        body: &'d Block,
        location: SourceLocation,
    ) -> Result<(), VerifyError> {
        let mark = self.enter(location)?;
        // Inside the condition there is no loop to leave.
        let loops = std::mem::take(&mut self.loops);
        condition.iter().try_for_each(|statement| self.statement(statement))?;
        self.loops = loops;
        self.location = location;
        self.typed("the condition", test, Type::Bool)?;
        self.leave(mark, condition);
        self.repeat(body, location)
    }

    fn in_scope(&self, operand: Operand) -> Result<(), VerifyError> {
        let Operand::Value(id) = operand else { return Ok(()) };
        match self.values.get(id.index()) {
            Some(true) => Ok(()),
            _ => Err(self.error(VerifyReason::Scope { what: self.value_name(id) })),
        }
    }

    fn typed(&self, what: &str, operand: Operand, ty: Type) -> Result<(), VerifyError> {
        self.in_scope(operand)?;
        expect(self.draft, what, operand, ty).map_err(|reason| self.error(reason))
    }

    fn value_name(&self, id: ValueId) -> String {
        match self.draft.values.get(id.index()).and_then(|value| value.name.as_ref()) {
            Some(name) => format!("`{name}`"),
            None => format!("the value `%{}`", id.0),
        }
    }

    fn variable_name(&self, id: VariableId) -> String {
        match self.draft.variables.get(id.index()).and_then(|variable| variable.name.as_ref()) {
            Some(name) => format!("`{name}`"),
            None => format!("the variable `${}`", id.0),
        }
    }
}

/// What is assigned where two paths meet.
fn meet(a: Option<HashSet<u32>>, b: Option<HashSet<u32>>) -> Option<HashSet<u32>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
        (None, other) | (other, None) => other,
    }
}
