//! Attributes of streams. But for the priority that is told they are about speed, so they are kept for the program and change nothing else.

use std::ffi::{c_int, c_uint};
use std::sync::PoisonError;

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::process_state::state;
use crate::calls::streams::{attributes_of, chosen};
use crate::handle_table::RawHandle;

/// The numbers of `CUlaunchAttributeID` that streams have.
const ACCESS_WINDOW: c_uint = 1;
const SYNCHRONIZATION: c_uint = 3;
const PRIORITY: c_uint = 8;
const DOMAIN_MAP: c_uint = 9;
const DOMAIN: c_uint = 10;
/// How the host may wait: as the library likes, without sleeping, yielding, asleep.
const POLICIES: std::ops::RangeInclusive<c_int> = 1..=4;
/// The bytes of the map as a program finds it: domain 0 and domain 1.
const FIRST_MAP: u32 = 1 << 8;

/// The union `CUlaunchAttributeValue`.
type Value = [u32; 16];

/// What a program set.
#[derive(Clone, Copy)]
pub(crate) struct StreamAttributes {
    /// The structure `CUaccessPolicyWindow`: address, bytes, ratio, two properties.
    window: [u32; 8],
    policy: c_int,
    pub(crate) priority: c_int,
    domain_map: u32,
    domain: u32,
}

impl StreamAttributes {
    pub(crate) fn new(priority: c_int) -> Self {
        Self { window: [0; 8], policy: -1, priority, domain_map: FIRST_MAP, domain: 0 }
    }

    fn get(&self, number: c_uint) -> Answer<Value> {
        let mut value = [0; 16];
        match number {
            ACCESS_WINDOW => value.iter_mut().zip(self.window).for_each(|(to, from)| *to = from),
            SYNCHRONIZATION => value[0] = self.policy as u32,
            PRIORITY => value[0] = self.priority as u32,
            DOMAIN_MAP => value[0] = self.domain_map,
            DOMAIN => value[0] = self.domain,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(value)
    }

    fn set(&mut self, number: c_uint, value: Value, priorities: std::ops::RangeInclusive<c_int>) -> Answer {
        let [first, _, _, _, ratio, ..] = value;
        match number {
            ACCESS_WINDOW => {
                if !(0.0..=1.0).contains(&f32::from_bits(ratio)) {
                    return Err(Code::INVALID_VALUE);
                }
                self.window.iter_mut().zip(value).for_each(|(to, from)| *to = from);
            }
            SYNCHRONIZATION if POLICIES.contains(&(first as c_int)) => self.policy = first as c_int,
            PRIORITY => self.priority = (first as c_int).clamp(*priorities.start(), *priorities.end()),
            DOMAIN_MAP => self.domain_map = first,
            DOMAIN => self.domain = first,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}

driver_api! {
    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz (stream: RawHandle, number: c_uint, out: Out<Value>) {
        let (context, choice) = chosen(state()?, stream)?;
        out.check()?;
        let attributes = attributes_of(&context, &choice).lock().unwrap_or_else(PoisonError::into_inner);
        out.set(attributes.get(number)?)
    }

    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz (stream: RawHandle, number: c_uint, value: In<Value>) {
        let (context, choice) = chosen(state()?, stream)?;
        let range = context.driver.info().limits.priorities;
        let value = value.get()?;
        let mut attributes = attributes_of(&context, &choice).lock().unwrap_or_else(PoisonError::into_inner);
        attributes.set(number, value, range.highest..=range.lowest)
    }

    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz (to: RawHandle, from: RawHandle) {
        let state = state()?;
        let ((to_context, to), (from_context, from)) = (chosen(state, to)?, chosen(state, from)?);
        let copied = *attributes_of(&from_context, &from).lock().unwrap_or_else(PoisonError::into_inner);
        let mut attributes = attributes_of(&to_context, &to).lock().unwrap_or_else(PoisonError::into_inner);
        // The priority is that of the stream itself.
        *attributes = StreamAttributes { priority: attributes.priority, ..copied };
        Ok(())
    }
}
