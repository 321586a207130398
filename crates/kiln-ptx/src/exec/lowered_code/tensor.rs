//! Steps on tensors.

use super::*;
use crate::exec::tensor_form::{MapField, TensorAction};

/// `cp.async.bulk.tensor` and its relatives.
pub(crate) struct TensorCopy {
    pub(crate) action: TensorAction,
    pub(crate) im2col: bool,
    /// Whether there are a column and four rows among the coordinates.
    pub(crate) four_rows: bool,
    /// The generic address of the tensor map.
    pub(crate) map: Source,
    pub(crate) coordinates: Box<[Source]>,
    /// What is added to the place of each pixel of a column.
    pub(crate) offsets: Box<[Source]>,
    /// Where the box lies in shared memory; nowhere if it is prefetched.
    pub(crate) shared: Option<(Place, Address)>,
    /// The object that counts the bytes.
    pub(crate) barrier: Option<(Place, Address)>,
    /// The blocks of the cluster that get the box.
    pub(crate) blocks: Option<Source>,
}

/// `tensormap.replace` and `tensormap.cp_fenceproxy`.
pub(crate) struct TensorMapEdit {
    pub(crate) place: Place,
    pub(crate) address: Address,
    pub(crate) edit: MapEdit,
}

/// What is done to a tensor map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapEdit {
    /// A field gets a value; of a list of numbers the one with this index.
    Replace { field: MapField, index: usize, value: Source },
    /// All of it is copied from shared memory.
    Copy { from: Address },
}

impl TensorCopy {
    /// The operands it uses.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        let addresses =
            [self.shared, self.barrier].into_iter().flatten().filter_map(|(_, address)| address.source());
        let lists = self.coordinates.iter().chain(&self.offsets).copied();
        [self.map].into_iter().chain(addresses).chain(lists).chain(self.blocks)
    }
}

impl TensorMapEdit {
    /// The operands it uses.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        let second = match self.edit {
            MapEdit::Replace { value, .. } => Some(value),
            MapEdit::Copy { from } => from.source(),
        };
        self.address.source().into_iter().chain(second)
    }
}
