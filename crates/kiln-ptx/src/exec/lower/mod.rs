//! Lowering: from a parsed module to the steps the executor runs.
//!
//! An entry is lowered together with every function it can reach, once, when it is first launched. Lowering never
//! fails: an instruction the executor cannot run becomes a step that says so when a thread reaches it.

mod atomics;
mod barrier_decisions;
mod behind_barrier;
mod bits;
mod bulk_copy;
mod cluster;
mod control;
mod conversion;
mod dispatch;
mod dropped_values;
mod float;
mod function;
mod integer;
mod matrix;
mod mbarrier;
mod memory;
mod movement;
mod operand;
mod post_dominators;
mod reachable_code;
mod reconvergence;
mod register_uses;
mod shared_layout;
mod tensor;
mod texture;
mod unassigned;
mod video;
mod warp_matrix;
mod warp_primitives;
mod warpgroup;

pub(super) use atomics::bulk_update;

use std::collections::HashMap;
use std::sync::Arc;

use super::lowered_code::{Code, Constant, Origin, QuickStep, Source, Step};
use super::variables::Variables;
use crate::{PtxFunctionId, PtxModule};

pub(crate) use barrier_decisions::BarrierDecisions;

/// Lowers an entry and all it can reach.
pub(crate) fn lower(module: &Arc<PtxModule>, variables: &Variables, entry: PtxFunctionId) -> Code {
    let reached = reachable_code::reach(module, entry);
    let layout = shared_layout::SharedLayout::new(
        module,
        &reachable_code::shared_variables(module, &reached),
        reachable_code::uses_reserved_memory(module, &reached),
    );
    let places: HashMap<u32, u32> = reached.iter().zip(0..).map(|(id, at)| (id.0, at)).collect();
    let context = Context { module, variables, layout: &layout, places: &places };
    let mut builder = Builder::default();
    let mut functions = Vec::new();
    for id in &reached {
        if let Some(code) = function::lower(&context, &mut builder, *id) {
            functions.push(code);
        }
    }
    let starts: Vec<u32> = functions.iter().map(|f| f.start).collect();
    let ranks = reconvergence::ranks(&builder.steps, starts.into_iter());
    let mut code = Code {
        module: Arc::clone(module),
        ranks,
        steps: builder.steps,
        quick: Vec::new(),
        origins: builder.origins,
        functions,
        constants: builder.constants,
        shared_bytes: layout.bytes,
        static_shared_bytes: layout.static_bytes,
        shared: layout.map,
        barrier_decisions: None,
        mbarrier_spins: Vec::new(),
        lock_spins: Vec::new(),
    };
    barrier_decisions::mark(&mut code);
    code.mbarrier_spins = code.find_mbarrier_spins();
    code.lock_spins = code.find_lock_spins();
    code.quick = (0..).zip(&code.steps).map(|(at, step)| QuickStep::of(at, step)).collect();
    code
}

/// What all functions of an entry share while they are lowered.
pub(super) struct Context<'a> {
    module: &'a PtxModule,
    variables: &'a Variables,
    layout: &'a shared_layout::SharedLayout,
    /// The place of each reached function in the lowered code, by its number in the module.
    places: &'a HashMap<u32, u32>,
}

/// The code as it grows.
#[derive(Default)]
pub(super) struct Builder {
    steps: Vec<Step>,
    origins: Vec<Origin>,
    constants: Vec<Constant>,
    known: HashMap<Constant, u32>,
}

impl Builder {
    /// The column of a constant.
    fn constant(&mut self, constant: Constant) -> Source {
        let next = self.constants.len() as u32;
        let index = *self.known.entry(constant).or_insert(next);
        if index == next {
            self.constants.push(constant);
        }
        Source::constant(index)
    }
}
