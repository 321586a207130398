//! A parameter as a launch compares with it: where its bytes go, and what may be given for it.
//!
//! Between two launches the driver has had the cache to itself, and every line that is looked at is fetched again. A [`Signature`] has
//! names and is read by people; what a launch asks of it is kept apart, twelve bytes a parameter, with the rest of the kernel.
//!
//! [`Signature`]: super::signature::Signature

use kiln_driver::Access;

use super::mismatch::{Given, fits};
use super::number::Number;
use super::signature::Parameter;

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    offset: u32,
    bytes: u32,
    /// One bit for each kind of thing that fits.
    accepts: u8,
}

impl Slot {
    /// What the rules say of a parameter, asked once.
    pub(super) fn of(parameter: &Parameter) -> Self {
        let value = |number| Given::Value { bytes: parameter.bytes as usize, number };
        let kinds = [
            Given::Buffer(Access::Read),
            Given::Buffer(Access::ReadWrite),
            value(Number::Whole),
            value(Number::Float),
            value(Number::Unknown),
        ];
        let accepted = kinds.into_iter().filter(|given| fits(parameter, *given));
        let accepts = accepted.fold(0, |bits, given| bits | bit(given));
        Self { offset: parameter.offset, bytes: parameter.bytes, accepts }
    }

    /// Where the argument goes, if it fits.
    #[inline(always)]
    pub(super) fn place(self, given: Given) -> Option<usize> {
        let size = match given {
            Given::Value { bytes, .. } => bytes == self.bytes as usize,
            Given::Buffer(_) => true,
        };
        (size && self.accepts & bit(given) != 0).then_some(self.offset as usize)
    }
}

/// The bit of a kind. Whether a written buffer is read, too, makes no difference to what fits.
#[inline(always)]
fn bit(given: Given) -> u8 {
    match given {
        Given::Buffer(access) if access.writes() => 2,
        Given::Buffer(_) => 1,
        Given::Value { number: Number::Whole, .. } => 4,
        Given::Value { number: Number::Float, .. } => 8,
        Given::Value { number: Number::Unknown, .. } => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::super::signature::{Effect, ParameterKind};
    use super::*;

    #[test]
    fn a_slot_says_what_the_rules_say() {
        let kinds = [
            ParameterKind::Value,
            ParameterKind::Unknown,
            ParameterKind::Pointer(Effect::Reads),
            ParameterKind::Pointer(Effect::ReadsAndWrites),
        ];
        let numbers = [Number::Whole, Number::Float, Number::Unknown];
        for kind in kinds {
            for number in numbers {
                let parameter = Parameter { name: None, offset: 24, bytes: 8, kind, number };
                let slot = Slot::of(&parameter);
                let buffers = [Access::Read, Access::Write, Access::ReadWrite].map(Given::Buffer);
                let values = numbers.map(|number| Given::Value { bytes: 8, number });
                let short = numbers.map(|number| Given::Value { bytes: 4, number });
                for given in buffers.into_iter().chain(values).chain(short) {
                    let expected = fits(&parameter, given).then_some(24);
                    assert_eq!(slot.place(given), expected, "{given} for {parameter:?}");
                }
            }
        }
    }
}
