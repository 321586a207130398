//! A parameter as a launch compares with it: where its bytes go, and what may be given for it.
//!
//! Between two launches the driver has had the cache to itself, and every line that is looked at is fetched again. A [`Signature`] has
//! names and is read by people; what a launch asks of it is kept apart, eight bytes a parameter, with the rest of the kernel.
//!
//! [`Signature`]: super::Signature

use kiln_driver::Access;

use super::mismatch::{Given, fits};
use super::value_kind::Number;
use super::{Parameter, Signature};

/// Parameters that lie with the kernel, in one cache line; more are one step away.
const INLINE_SLOTS: usize = 8;
/// Bits of a word that say what fits; the others are a number of bytes.
const KIND_BITS: u32 = 8;

/// All parameters of a kernel.
// In this order: the number stands at the end of the line before, with what else a launch asks of a kernel.
#[repr(C)]
pub(crate) struct SlotList {
    /// How many there are; none if they are not known.
    len: Option<u32>,
    inline: [Slot; INLINE_SLOTS],
    /// All of them, if they are more than fit inline.
    spill: Vec<Slot>,
}

/// One parameter.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Slot {
    offset: u32,
    /// One bit for each kind of thing that fits, and above them how many bytes a value has.
    accepts: u32,
}

impl SlotList {
    /// The parameters of a signature, if there is one.
    pub(crate) fn of(signature: Option<&Signature>) -> Self {
        let mut list = Self { len: None, inline: [Slot::default(); INLINE_SLOTS], spill: Vec::new() };
        if let Some(signature) = signature {
            let slots = signature.parameters().iter().map(Slot::of);
            list.len = Some(slots.len() as u32);
            list.inline.iter_mut().zip(slots.clone()).for_each(|(place, slot)| *place = slot);
            if slots.len() > INLINE_SLOTS {
                list.spill = slots.collect();
            }
        }
        list
    }

    /// The parameters, if they are known.
    #[inline(always)]
    pub(crate) fn known(&self) -> Option<&[Slot]> {
        let inline = self.inline.get(..self.len? as usize);
        Some(inline.unwrap_or(&self.spill))
    }
}

impl Slot {
    /// What the rules say of a parameter, asked once.
    pub(crate) fn of(parameter: &Parameter) -> Self {
        let value = |number| Given::Value { bytes: parameter.bytes as usize, number };
        let kinds = [
            Given::Buffer(Access::Read),
            Given::Buffer(Access::ReadWrite),
            value(Number::Whole),
            value(Number::Float),
            value(Number::Unknown),
            Given::Null,
            Given::TensorMap(Access::Read),
            Given::TensorMap(Access::ReadWrite),
        ];
        // No device takes as many bytes as there is no room for here, so that none of those fits.
        let bytes = parameter.bytes.checked_mul(1 << KIND_BITS);
        let has_room = |given: &Given| bytes.is_some() || !matches!(given, Given::Value { .. });
        let accepted = kinds.into_iter().filter(|given| fits(parameter, *given) && has_room(given));
        let accepts = accepted.fold(0, |bits, given| bits | bit(given));
        Self { offset: parameter.offset, accepts: bytes.unwrap_or(0) | accepts }
    }

    /// Where the argument goes, if it fits.
    #[inline(always)]
    pub(crate) fn place(self, given: Given) -> Option<usize> {
        let size = match given {
            Given::Value { bytes, .. } => bytes == (self.accepts >> KIND_BITS) as usize,
            Given::Buffer(_) | Given::Null | Given::TensorMap(_) => true,
        };
        (size && self.accepts & bit(given) != 0).then_some(self.offset as usize)
    }
}

/// The bit of a kind. Whether a written buffer is read, too, makes no difference to what fits.
#[inline(always)]
fn bit(given: Given) -> u32 {
    match given {
        Given::Buffer(access) if access.writes() => 2,
        Given::Buffer(_) => 1,
        Given::Value { number: Number::Whole, .. } => 4,
        Given::Value { number: Number::Float, .. } => 8,
        Given::Value { number: Number::Unknown, .. } => 16,
        Given::Null => 32,
        Given::TensorMap(access) if access.writes() => 128,
        Given::TensorMap(_) => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effect, ParameterKind};
    use super::*;

    #[test]
    fn as_many_slots_as_parameters_are_known() {
        let parameter = |at: u32| Parameter {
            name: None,
            offset: 8 * at,
            bytes: 8,
            kind: ParameterKind::Value,
            number: Number::Whole,
        };
        assert!(SlotList::of(None).known().is_none());
        for count in [0, 1, 8, 9, 40] {
            let signature = Signature::new((0..count).map(parameter).collect());
            let list = SlotList::of(Some(&signature));
            let given = Given::Value { bytes: 8, number: Number::Whole };
            let places: Vec<_> = list.known().unwrap().iter().map(|slot| slot.place(given)).collect();
            assert_eq!(places, (0..count).map(|at| Some(8 * at as usize)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_value_of_more_bytes_than_any_device_takes_does_not_fit() {
        let (bytes, kind) = (1 << 24, ParameterKind::Value);
        let slot = Slot::of(&Parameter { name: None, offset: 0, bytes, kind, number: Number::Unknown });
        for bytes in [0, 8, 1 << 24] {
            assert_eq!(slot.place(Given::Value { bytes, number: Number::Unknown }), None);
        }
    }

    #[test]
    fn a_slot_says_what_the_rules_say() {
        let kinds = [
            ParameterKind::Value,
            ParameterKind::Unknown,
            ParameterKind::Pointer(Effect::Reads),
            ParameterKind::Pointer(Effect::ReadsAndWrites),
            ParameterKind::TensorMap(Effect::Reads),
            ParameterKind::TensorMap(Effect::Writes),
        ];
        let numbers = [Number::Whole, Number::Float, Number::Unknown];
        for (kind, bytes) in kinds.into_iter().flat_map(|kind| [(kind, 8), (kind, 128)]) {
            for number in numbers {
                let parameter = Parameter { name: None, offset: 24, bytes, kind, number };
                let slot = Slot::of(&parameter);
                let buffers = [Access::Read, Access::Write, Access::ReadWrite].map(Given::Buffer);
                let values = numbers.map(|number| Given::Value { bytes: 8, number });
                let short = numbers.map(|number| Given::Value { bytes: 4, number });
                let maps = [Access::Read, Access::Write, Access::ReadWrite].map(Given::TensorMap);
                let others = values.into_iter().chain(short).chain(maps).chain([Given::Null]);
                for given in buffers.into_iter().chain(others) {
                    let expected = fits(&parameter, given).then_some(24);
                    assert_eq!(slot.place(given), expected, "{given} for {parameter:?}");
                }
            }
        }
    }
}
