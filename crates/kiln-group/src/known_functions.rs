//! The functions of a communicator that were looked up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kiln_operation::{ARGUMENT_BYTES, Collective, CollectiveGroup, OperandEffect};
use kiln_runtime::{Effect, Kernel, Module, Number, Parameter, ParameterKind, Signature};

use crate::collective_part::Part;
use crate::error::{GroupError, Result};

/// A function of a communicator, ready to be launched.
pub(crate) struct KnownFunction {
    pub(crate) kernel: Kernel,
    /// What is done to the buffers, in their order.
    pub(crate) effects: Vec<OperandEffect>,
}

/// Those of one rank.
#[derive(Default)]
pub(crate) struct KnownFunctions {
    /// A program calls few different collectives, so that looking at each is faster than a hash.
    single: Vec<(Collective, KnownFunction)>,
    groups: HashMap<CollectiveGroup, KnownFunction>,
}

impl KnownFunctions {
    /// The function of these parts on a rank of so many, which is looked up once.
    pub(crate) fn get(
        &mut self,
        (rank, size): (u32, u32),
        module: Option<&Module>,
        parts: &[Part],
    ) -> Result<&KnownFunction> {
        let look_up = |group: &CollectiveGroup| {
            let failed = |source| GroupError::Rank { rank, source };
            let Some(module) = module else {
                let what = "a communicator of one rank has no functions".to_owned();
                return Err(GroupError::Collective { what, next: "submit its collectives as they are" });
            };
            group.check(rank, size).map_err(GroupError::collective)?;
            let signature = signature(group, rank, size);
            let kernel = module.kernel(&group.to_string(), Some(signature)).map_err(failed)?;
            let effects = group.operands(rank, size).into_iter().flatten().map(|operand| operand.effect);
            Ok(KnownFunction { kernel, effects: effects.collect() })
        };
        if let [part] = parts {
            let known = self.single.iter().position(|(collective, _)| *collective == part.collective);
            let at = match known {
                Some(at) => at,
                None => {
                    self.single.push((part.collective, look_up(&part.collective.into())?));
                    self.single.len() - 1
                }
            };
            return Ok(&self.single[at].1);
        }
        let collectives = parts.iter().map(|part| part.collective).collect();
        let group = CollectiveGroup::new(collectives).map_err(GroupError::collective)?;
        match self.groups.entry(group) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let function = look_up(place.key())?;
                Ok(place.insert(function))
            }
        }
    }
}

/// The parameters of a group, as launches are compared with them.
fn signature(group: &CollectiveGroup, rank: u32, size: u32) -> Signature {
    let operands = group.operands(rank, size).into_iter();
    let names = operands.flat_map(|operands| {
        let buffers = operands.into_iter().map(|operand| (operand.name, operand.effect));
        buffers.chain([("count", OperandEffect::Scalar)])
    });
    let parameter = |(at, (name, effect)): (u32, (&str, OperandEffect))| Parameter {
        name: Some(name.to_owned()),
        offset: at * ARGUMENT_BYTES,
        bytes: ARGUMENT_BYTES,
        kind: match effect {
            OperandEffect::Scalar => ParameterKind::Value,
            OperandEffect::Reads => ParameterKind::Pointer(Effect::Reads),
            OperandEffect::Overwrites | OperandEffect::Writes => ParameterKind::Pointer(Effect::Writes),
            OperandEffect::ReadsAndWrites => ParameterKind::Pointer(Effect::ReadsAndWrites),
        },
        number: Number::Unknown,
    };
    Signature::new((0..).zip(names).map(parameter).collect())
}
