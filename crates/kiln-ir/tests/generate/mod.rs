//! Random programs whose result does not depend on the order of threads.
//!
//! Every thread writes only its own element of an output, atomics of one buffer are all of one kind and their results
//! are not used, and shared memory is written and read with barriers between, as is the board on which all blocks write. Everything
//! else is free: every operation on every type, indices out of range, loops, early returns.

#![allow(dead_code, reason = "every test uses a part of it")]

mod adjacent;
pub(crate) mod examine;
mod expression;
mod guard;
pub(crate) mod inventory;
mod meet;
mod random;
mod statement;
mod tile;

use kiln_ir::{
    AtomicOp, Buffer, BufferId, Draft, Extent, Literal, Program, Role, ScalarParameter, Shared, Type, Value,
    ValueId, VariableId,
};
pub(crate) use random::Random;

use crate::rig::Launch;

/// Types with an atomic that does not care for the order.
const ATOMIC_TYPES: [Type; 4] = [Type::U32, Type::I32, Type::U64, Type::I64];
const ATOMIC_OPS: [AtomicOp; 6] =
    [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];

/// A program that is being made.
pub(crate) struct Generator {
    random: Random,
    draft: Draft,
    /// Values in scope.
    scope: Vec<(ValueId, Type)>,
    variables: Vec<(VariableId, Type)>,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    atomics: Vec<(BufferId, AtomicOp)>,
    /// Where every result is mixed in, so that all of them are seen at the end.
    digest: VariableId,
    digests: BufferId,
    /// Several elements for each thread.
    wide: BufferId,
    /// What all blocks write and read around barriers of the grid, if there are any.
    board: Option<BufferId>,
    /// The tile and its buffers, if there is one.
    tiled: Option<tile::Tiled>,
    /// Barriers of the grid so far, in pairs.
    meetings: u64,
    /// Whether all threads of the grid come here: nothing here decides by what only the threads of a block agree on.
    uniform: bool,
    /// Loops around, those whose rounds all threads make together and the others.
    uniform_loops: usize,
    other_loops: usize,
    /// Returns so far.
    returns: u32,
    /// Operations that may still be added.
    fuel: u32,
}

/// A random program and a launch of it.
pub(crate) fn generate(seed: u64) -> (Program, Launch) {
    let mut generator = Generator {
        random: Random::new(seed),
        draft: Draft::new("random"),
        scope: Vec::new(),
        variables: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        atomics: Vec::new(),
        digest: VariableId(0),
        digests: BufferId(0),
        wide: BufferId(0),
        board: None,
        tiled: None,
        meetings: 0,
        uniform: true,
        uniform_loops: 0,
        other_loops: 0,
        returns: 0,
        fuel: 0,
    };
    let launch = generator.declare();
    generator.fuel = generator.random.below(24) as u32 + 2;
    let body = generator.body();
    generator.draft.body = body;
    let draft = generator.draft;
    let text = draft.to_string();
    (Program::new(draft).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}")), launch)
}

impl Generator {
    fn declare(&mut self) -> Launch {
        self.draft.block = match self.random.below(8) {
            0 => [4, 3, 1],
            1 => [5, 2, 2],
            2 => [40, 1, 1],
            3 => [32, 1, 1],
            _ => [self.random.below(10) as u32 + 1, 1, 1],
        };
        self.draft.flush = self.random.below(8) == 0;
        let grid = [self.random.below(3) as u32 + 1, 1, 1];
        let threads = u64::from(self.draft.block.iter().product::<u32>() * grid[0]);
        let mut buffers = Vec::new();
        for at in 0..1 + self.random.below(3) {
            let (ty, count) = (self.any_type(), self.random.below(14) as u64);
            let id = self.add_buffer(&format!("in{at}"), ty, Role::Input);
            self.inputs.push(id);
            buffers.push(self.elements(ty, count));
        }
        for at in 0..1 + self.random.below(3) {
            let ty = self.any_type();
            let role = if self.random.below(4) == 0 { Role::Persistent } else { Role::InOut };
            let id = self.add_buffer(&format!("out{at}"), ty, role);
            self.outputs.push(id);
            // Sometimes shorter than the grid, so that some threads store out of range.
            let count = threads.saturating_sub(self.random.below(4) as u64 * 2);
            buffers.push(self.elements(ty, count));
        }
        self.digests = self.add_buffer("digests", Type::U64, Role::InOut);
        buffers.push(vec![0; threads as usize * 8]);
        let ty = self.any_type();
        self.wide = self.add_buffer("wide", ty, Role::InOut);
        let count = (threads * adjacent::OWN_ELEMENTS).saturating_sub(self.random.below(7) as u64);
        buffers.push(self.elements(ty, count));
        if self.random.below(2) == 0 {
            let ty = ATOMIC_TYPES[self.random.below(4)];
            let id = self.add_buffer("atomic", ty, Role::InOut);
            self.atomics.push((id, ATOMIC_OPS[self.random.below(6)]));
            let count = self.random.below(4) as u64 + 1;
            buffers.push(self.elements(ty, count));
        }
        if self.random.below(3) == 0 {
            self.board = Some(self.add_buffer("board", Type::U64, Role::InOut));
            buffers.push(vec![0; threads as usize * 8]);
        }
        buffers.extend(self.declare_tile(grid[0]));
        let scalars = self.scalars();
        let dynamic_shared_bytes = self.shared();
        Launch { grid, dynamic_shared_bytes, scalars, buffers }
    }

    fn add_buffer(&mut self, name: &str, element: Type, role: Role) -> BufferId {
        let name = name.to_owned();
        self.draft.buffers.push(Buffer { name, element, role, extent: Extent::Dynamic, unchecked: false });
        BufferId(self.draft.buffers.len() as u32 - 1)
    }

    fn scalars(&mut self) -> Vec<Literal> {
        let types: Vec<Type> = (0..self.random.below(3)).map(|_| self.any_type()).collect();
        for (at, ty) in types.iter().enumerate() {
            self.draft.scalars.push(ScalarParameter { name: format!("scalar{at}"), ty: *ty });
        }
        types.into_iter().map(|ty| self.literal(ty)).collect()
    }

    /// Shared memory, an element for each thread or a few; how many dynamic bytes there are.
    fn shared(&mut self) -> u32 {
        let threads = u64::from(self.draft.block.iter().product::<u32>());
        if self.random.below(2) == 0 {
            return 0;
        }
        let element = self.any_type();
        let dynamic = self.random.below(3) == 0;
        let count = threads.saturating_sub(self.random.below(3) as u64).max(1);
        let shared =
            Shared { name: "tile".to_owned(), element, count: (!dynamic).then_some(count), raw: false };
        self.draft.shared.push(shared);
        if dynamic { (count * element.bytes() + self.random.below(3) as u64) as u32 } else { 0 }
    }

    fn elements(&mut self, ty: Type, count: u64) -> Vec<u8> {
        let size = ty.bytes() as usize;
        (0..count).flat_map(|_| self.literal(ty).bits().to_le_bytes()[..size].to_vec()).collect()
    }

    fn any_type(&mut self) -> Type {
        Type::ALL[self.random.below(Type::ALL.len())]
    }

    /// A new value of a type, in scope.
    fn add_value(&mut self, ty: Type) -> ValueId {
        self.draft.values.push(Value { name: None, ty });
        let id = ValueId(self.draft.values.len() as u32 - 1);
        self.scope.push((id, ty));
        id
    }
}
