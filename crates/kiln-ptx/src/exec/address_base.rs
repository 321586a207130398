//! What an address was computed from: an argument of the kernel, or a variable of its module.

use super::block::Cta;
use super::lowered_code::{Base, Code, Constant, Op, OperandUse, Source};
use super::memory::generic_address::Place;
use super::out_of_bounds_text::{byte_count, past_end};
use super::variables::ModuleVariable;

/// The longest way from a variable to an access that missed it, if nothing else tells what the access meant; that of a large variable is its size.
const NEAR_BYTES: u64 = 256;

/// What an address was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressBase {
    /// A pointer among the arguments of the kernel.
    Argument {
        /// Its first byte among the bytes of all arguments.
        offset: u32,
    },
    /// A variable of the module.
    Variable {
        /// Its name.
        name: String,
        /// Its address.
        address: u64,
        /// Its size.
        bytes: u64,
    },
}

/// A pointer that an address may have been computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointer {
    Argument(u32),
    /// By its place among the variables.
    Variable(u32),
}

impl AddressBase {
    /// Where an access lies that leaves the variable, in words that complete "which is ...".
    pub(crate) fn near(&self, start: u64, access_bytes: u32) -> Option<String> {
        let Self::Variable { name, address, bytes } = self else { return None };
        let (end, last) = (address.saturating_add(*bytes), start.saturating_add(u64::from(access_bytes)));
        let place = match start {
            _ if start < *address => format!("{} before the start", byte_count(address - start)),
            _ if start >= end => past_end(start - end),
            _ if last > end => format!("{} across the end", byte_count(last - end)),
            _ => return None,
        };
        Some(format!("{place} of the variable `{name}`, which has {bytes} bytes"))
    }
}

impl Cta<'_> {
    /// What the address of a step was computed from, if the code tells.
    pub(crate) fn address_base(&self, pc: u32) -> Option<AddressBase> {
        let pointers = self.launch.code.pointers(pc)?;
        let mut likely = pointers.iter().filter(|pointer| pointers.len() == 1 || self.is_pointer(**pointer));
        let (only, None) = (*likely.next()?, likely.next()) else { return None };
        match only {
            Pointer::Argument(offset) => Some(AddressBase::Argument { offset }),
            Pointer::Variable(at) => {
                let (variable, address) = self.launch.variable(at)?;
                Some(AddressBase::Variable { name: variable.name.clone(), address, bytes: variable.bytes })
            }
        }
    }

    /// The variable of the module that lies nearest to an address, if one is near.
    pub(crate) fn variable_near(&self, address: u64) -> Option<AddressBase> {
        let distance = |(variable, start): (&ModuleVariable, u64)| {
            let last = start.saturating_add(variable.bytes.saturating_sub(1));
            start.saturating_sub(address).max(address.saturating_sub(last))
        };
        // Those that only the compiler knows have names with a dollar sign.
        let all = (0..).map_while(|at| self.launch.variable(at)).filter(|(one, _)| !one.name.contains('$'));
        let (variable, start) = all.min_by_key(|place| distance(*place))?;
        let is_near = distance((variable, start)) <= NEAR_BYTES.max(variable.bytes);
        let (name, bytes) = (variable.name.clone(), variable.bytes);
        is_near.then_some(AddressBase::Variable { name, address: start, bytes })
    }

    /// Whether an argument of eight bytes is a pointer, and no number.
    fn is_pointer(&self, pointer: Pointer) -> bool {
        let Pointer::Argument(offset) = pointer else { return true };
        let bytes = self.launch.arguments.get(offset as usize..).and_then(|rest| rest.first_chunk());
        let value = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.spans.owner(value).mapped(value).is_some()
    }
}

impl Code {
    /// The pointers that the address of a step is computed from; `None` if one of them was read from memory.
    fn pointers(&self, pc: u32) -> Option<Vec<Pointer>> {
        let function =
            self.functions.iter().filter(|function| function.start <= pc).max_by_key(|f| f.start)?;
        let is_entry = self.functions.first().is_some_and(|first| first.start == function.start);
        let starts = self.functions.iter().map(|f| f.start).filter(|start| *start > function.start);
        let end = starts.min().map_or(self.steps.len(), |start| start as usize);
        let steps = self.steps.get(function.start as usize..end)?;
        let mut open = vec![self.steps.get(pc as usize)?.op.address_source()?];
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        while let Some(source) = open.pop() {
            let column = match source.split() {
                Ok(constant) => {
                    if let Some(Constant::Variable(at, _)) = self.constants.get(constant as usize) {
                        found.push(Pointer::Variable(*at));
                    }
                    continue;
                }
                Err(column) => column,
            };
            let is_wide = function.widths.get(column as usize).is_none_or(|bits| *bits == 64);
            if !is_wide || seen.contains(&column) {
                continue;
            }
            seen.push(column);
            for step in steps {
                step.op.add_pointers(column, is_entry, &mut open, &mut found)?;
            }
        }
        found.dedup();
        Some(found)
    }
}

impl Op {
    /// The value that the address of an access is computed from.
    fn address_source(&self) -> Option<Source> {
        let address = match self {
            Self::Load(load) => load.address,
            Self::Store(store) => store.address,
            Self::Atomic(atomic) => atomic.address,
            Self::CopyAsync(copy) => copy.from,
            _ => return None,
        };
        if let Base::Value(source) = address.base { Some(source) } else { None }
    }

    /// Adds what a column is computed from, if the step writes it; `None` if that was read from memory.
    fn add_pointers(
        &self,
        column: u32,
        is_entry: bool,
        open: &mut Vec<Source>,
        found: &mut Vec<Pointer>,
    ) -> Option<()> {
        let (mut writes, mut sources) = (false, Vec::new());
        self.operands(&mut |operand| match operand {
            OperandUse::Writes(to) => writes |= to.0 == column,
            OperandUse::Uses(source) | OperandUse::Carries(source) => sources.push(source),
            _ => {}
        });
        match self {
            _ if !writes => {}
            Self::Load(load)
                if is_entry && load.place == Place::Param && matches!(load.address.base, Base::Zero) =>
            {
                let part = load.to.iter().position(|to| to.0 == column).unwrap_or(0) as u32;
                if load.bytes == 8 {
                    found.push(Pointer::Argument(load.address.offset as u32 + part * load.bytes));
                }
            }
            Self::Load(_) | Self::Atomic(_) | Self::Call(_) | Self::Builtin(_) | Self::Collective(_) => {
                return None;
            }
            _ => open.append(&mut sources),
        }
        Some(())
    }
}
