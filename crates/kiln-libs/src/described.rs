//! An operation with its arguments, and whether they fit.

use std::panic::Location;

use kiln_operation::{Matmul, Operation, OperationError, OperationOperand};
use kiln_runtime::internal::{BufferBytes, CallScope, in_call};
use kiln_runtime::{DeviceRuntime, Element, GpuRef};

use crate::Result;
use crate::call_arguments::{Argument, Arguments};
use crate::called::Called;
use crate::error::{LibraryError, method_name};
use crate::loaded_operations::LoadedOperations;
use crate::operand_fit::{OperandFit, is_exact};
use crate::operands::{EXACT_HINT, Operands};
use crate::scaling::Scaling;

/// An operation with its arguments.
#[derive(Debug)]
pub(crate) struct Described<'a> {
    pub(crate) operation: Operation,
    pub(crate) arguments: Arguments<'a>,
    /// What the result is multiplied with, by another launch.
    pub(crate) scaling: Option<Scaling>,
    /// How messages name the operands.
    pub(crate) names: OperandNames,
    /// Whether the result has no elements, so that there is nothing to do.
    pub(crate) is_empty: bool,
}

/// How messages name the operands of a call: as the caller did. BLAS stores matrices column after column, so that a product of matrices that are stored row
/// after row takes the factors in exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OperandNames {
    /// Whether the first factor of the operation is the caller's second.
    pub(crate) is_exchanged: bool,
    /// What was called, if it is not the method of the operation.
    pub(crate) called: Option<&'static Called>,
}

impl OperandNames {
    /// The method that was called.
    pub(crate) fn call(self, operation: &Operation) -> &'static str {
        self.called.map_or_else(|| method_name(operation.name()), |called| called.call)
    }

    /// What is wrong with an operation, said of what was called.
    pub(crate) fn renamed(self, error: OperationError) -> LibraryError {
        let error = match error {
            OperationError::Operand { operation, operand, what, hint } => {
                let name = self.name(operation, operand);
                LibraryError::argument(operation, format!("`{name}` {what}"), hint)
            }
            error => error.into(),
        };
        match self.called {
            Some(called) => called.renamed(error),
            None => error,
        }
    }

    pub(crate) fn name(self, operation: &'static str, name: &'static str) -> &'static str {
        if let Some(called) = self.called {
            return called.name(name);
        }
        if operation != Matmul::NAME {
            return name;
        }
        match (name, self.is_exchanged) {
            ("a", true) => "b",
            ("b", true) => "a",
            ("a_scale", true) => "b_scale",
            ("b_scale", true) => "a_scale",
            ("d", _) => "c",
            _ => name,
        }
    }
}

impl<'a> Described<'a> {
    pub(crate) fn new(
        operation: impl Into<Operation>,
        arguments: impl IntoIterator<Item = Result<Argument<'a>>>,
    ) -> Result<Self> {
        let mut described = Self::of(operation);
        for argument in arguments {
            described.arguments.push(argument?);
        }
        Ok(described)
    }

    /// An operation without arguments yet.
    #[inline]
    pub(crate) fn of(operation: impl Into<Operation>) -> Self {
        let (arguments, names) = (Arguments::default(), OperandNames::default());
        Self { operation: operation.into(), arguments, scaling: None, names, is_empty: false }
    }

    /// A call whose result has no elements: it does nothing. Its buffers must still be those of the runtime.
    pub(crate) fn nothing(
        loaded: &LoadedOperations,
        operation: impl Into<Operation>,
        operands: &Operands<'_>,
    ) -> Result<Self> {
        operands.check(loaded.gpu())?;
        Ok(Self { is_empty: true, ..Self::of(operation) })
    }

    /// The same, of which messages speak as of another call.
    pub(crate) fn called(mut self, called: &'static Called) -> Self {
        self.names.called = Some(called);
        self
    }

    /// Adds a buffer.
    #[inline]
    pub(crate) fn push_memory<T: Element>(&mut self, buffer: &'a GpuRef<T>) {
        self.arguments.push(Argument::borrowed(buffer));
    }

    /// Adds a scalar.
    #[inline]
    pub(crate) fn push_scalar(&mut self, value: f64) {
        self.arguments.push(Argument::Scalar(value));
    }

    /// The same with another argument.
    pub(crate) fn with(mut self, argument: Argument<'a>) -> Self {
        self.arguments.push(argument);
        self
    }

    /// The same with another argument in a place.
    pub(crate) fn replaced(mut self, place: usize, argument: Argument<'a>) -> Self {
        if let Some(there) = self.arguments.get_mut(place) {
            *there = argument;
        }
        self
    }

    /// The same with a factor for the result.
    pub(crate) fn scaled(self, scaling: Option<Scaling>) -> Self {
        Self { scaling, ..self }
    }

    /// The same, holding its buffers.
    pub(crate) fn into_held(self) -> Described<'static> {
        let Self { operation, arguments, scaling, names, is_empty } = self;
        Described { operation, arguments: arguments.into_held(), scaling, names, is_empty }
    }

    /// The method that was called.
    pub(crate) fn call(&self) -> &'static str {
        self.names.call(&self.operation)
    }

    /// Refuses buffers that work of the runtime cannot use, and names the first of them as the caller gave them.
    pub(crate) fn check_usable(&self, gpu: &DeviceRuntime) -> Result<()> {
        self.given().check(gpu)
    }

    /// What is queued until the answer is dropped is work of this call, for what a device finds in it.
    #[inline]
    pub(crate) fn enter(&self, gpu: &DeviceRuntime, line: &'static Location<'static>) -> CallScope {
        in_call(gpu, self.call(), line, || self.given().addresses())
    }

    /// The buffers under the names and in the order of the caller.
    pub(crate) fn given(&self) -> Operands<'_> {
        let operands = self.operation.operands();
        let pairs = operands.iter().zip(self.arguments.iter());
        let named = pairs.filter_map(|(operand, argument)| {
            Some((self.names.name(self.operation.name(), operand.name), argument.bytes()?))
        });
        let named: Vec<_> = named.collect();
        let place_of = |name| operands.iter().position(|operand| operand.name == name);
        // An operand that the operation has under the same name keeps its place, and the others take those that are left.
        let mut left =
            (0..operands.len()).filter(|place| named.iter().all(|(name, _)| place_of(*name) != Some(*place)));
        let places = named.iter().map(|(name, _)| place_of(*name).or_else(|| left.next()));
        let mut placed: Vec<_> = places.zip(&named).collect();
        placed.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
        placed
            .into_iter()
            .fold(Operands::of(self.call()), |all, (_, (name, bytes))| all.with_bytes(name, *bytes))
    }

    /// The operation, checked.
    pub(crate) fn operation(&self) -> Result<Operation> {
        if !self.is_empty {
            self.checked_operands()?;
        }
        Ok(self.operation)
    }

    /// Whether the operation and its buffers fit, without loading anything.
    pub(crate) fn check(&self) -> Result<Vec<OperationOperand>> {
        let operands = self.checked_operands()?;
        fit_all(&self.operation, self.names, &operands, &self.arguments)?;
        Ok(operands)
    }

    /// As [`check`](Self::check); a call whose result has no elements passed its checks before.
    pub(crate) fn check_unless_empty(&self) -> Result<()> {
        if self.is_empty { Ok(()) } else { self.check().map(drop) }
    }

    /// The operands of the operation, if its sizes fit each other.
    pub(crate) fn checked_operands(&self) -> Result<Vec<OperationOperand>> {
        self.operation.checked_operands().map_err(|error| self.names.renamed(error))
    }

    /// Whether the buffers fit an operation that passed its checks before. Where this says no, [`check`](Self::check) says why.
    #[inline]
    pub(crate) fn fits(&self, operands: &[OperandFit]) -> bool {
        let Some(arguments) = self.arguments.as_slice() else { return false };
        let shares_memory = |at: usize, operand: &OperandFit, bytes: &BufferBytes<'_>| {
            let bytes = bytes.first(operand.bytes);
            let mut others = operands.iter().zip(arguments).enumerate();
            others.any(|(other_at, (other, argument))| {
                other_at != at && argument.bytes().is_some_and(|it| it.first(other.bytes).overlaps(&bytes))
            })
        };
        operands.iter().zip(arguments).enumerate().all(|(at, (operand, argument))| match argument.bytes() {
            None => true,
            Some(bytes) => {
                operand.takes(bytes.len())
                    && bytes.address().0 & operand.alignment_mask == 0
                    && !(operand.effect.changes() && shares_memory(at, operand, &bytes))
            }
        })
    }
}

/// Whether an operation fits those of its buffers that are there; `None` stands for one that is allocated later.
pub(crate) fn check_given<'a>(
    operation: impl Into<Operation>,
    called: &'static Called,
    given: impl IntoIterator<Item = Option<Argument<'a>>>,
) -> Result<()> {
    check_named(operation, OperandNames { called: Some(called), ..OperandNames::default() }, given)
}

/// As [`check_given`], with names of another kind.
pub(crate) fn check_named<'a>(
    operation: impl Into<Operation>,
    names: OperandNames,
    given: impl IntoIterator<Item = Option<Argument<'a>>>,
) -> Result<()> {
    let operation = operation.into();
    let all = operation.checked_operands().map_err(|error| names.renamed(error))?;
    let (mut operands, mut arguments) = (Vec::new(), Arguments::default());
    for (operand, argument) in all.into_iter().zip(given) {
        if let Some(argument) = argument {
            operands.push(operand);
            arguments.push(argument);
        }
    }
    fit_all(&operation, names, &operands, &arguments)
}

/// Refuses buffers that do not fit, in words.
fn fit_all(
    operation: &Operation,
    names: OperandNames,
    operands: &[OperationOperand],
    arguments: &Arguments<'_>,
) -> Result<()> {
    let named = |name| names.name(operation.name(), name);
    let refuse = |what, hint| Err(LibraryError::argument(names.call(operation), what, hint));
    let pairs =
        || operands.iter().zip(arguments.iter()).filter_map(|(operand, it)| Some((operand, it.bytes()?)));
    for (operand, bytes) in pairs() {
        let name = named(operand.name);
        if is_exact(operand.name) && bytes.len() != operand.bytes {
            let [given, wanted] = [bytes.len(), operand.bytes].map(|bytes| bytes / operand.alignment.max(1));
            let what = format!("`{name}` has {given} elements and must have {wanted}");
            return refuse(what, EXACT_HINT);
        }
        if bytes.len() < operand.bytes {
            let what = format!("`{name}` has {} bytes and must have {}", bytes.len(), operand.bytes);
            return refuse(what, "use a longer buffer, or smaller sizes");
        }
        if !bytes.address().0.is_multiple_of(operand.alignment) {
            let (offset, address) = (bytes.offset(), bytes.address().0);
            let what = format!(
                "`{name}` does not begin at a multiple of {} bytes: it begins at byte {offset} of its buffer, at the address {address:#x}",
                operand.alignment
            );
            return refuse(what, "begin the view at such a byte, or copy it to the start of another buffer");
        }
    }
    // Libraries read and write in any order.
    for (at, (first, one)) in pairs().enumerate() {
        for (second, other) in pairs().skip(at + 1) {
            let is_written = first.effect.changes() || second.effect.changes();
            if is_written && one.first(first.bytes).overlaps(&other.first(second.bytes)) {
                let (first, second) = (named(first.name), named(second.name));
                let what = format!("`{first}` and `{second}` share memory, and one is written");
                return refuse(what, "use buffers or views that do not overlap");
            }
        }
    }
    Ok(())
}
