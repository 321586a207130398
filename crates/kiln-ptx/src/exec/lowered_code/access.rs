//! Steps that reach memory.

use super::*;

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

/// What the offset of an address is added to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Value(Source),
    /// The frame of the function, in local memory.
    Frame,
    Zero,
}

impl Address {
    /// The value that it is computed from.
    pub(crate) fn source(self) -> Option<Source> {
        match self.base {
            Base::Value(source) => Some(source),
            Base::Frame | Base::Zero => None,
        }
    }
}

/// How an access takes part in synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Strength {
    /// Whether it may meet another such access without a race: volatile, relaxed and all below.
    pub(crate) strong: bool,
    /// Whether what follows sees what was released there.
    pub(crate) acquire: bool,
    /// Whether what came before is seen by a thread that acquires it.
    pub(crate) release: bool,
    /// Whether its scope reaches beyond the cluster.
    pub(crate) wide: bool,
    /// Whether its scope is the cluster.
    pub(crate) cluster: bool,
}

/// A load of one or more values of `bytes` each.
pub(crate) struct Load {
    pub(crate) place: Place,
    pub(crate) bytes: u32,
    /// Bytes of the register to extend the sign to; 0 for no sign.
    pub(crate) extend_to: u32,
    pub(crate) strength: Strength,
    /// Whether it reads memory that no thread of the launch may write: `ld.global.nc`, `ldu`.
    pub(crate) constant: bool,
    pub(crate) address: Address,
    pub(crate) to: Box<[Reg]>,
    /// The lanes that use what is read; the others drop it, whatever it is.
    pub(crate) used_where: PredSource,
}

impl Load {
    /// The parts that are used, by their place in the vector. What goes to the sink is not read.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, &Reg)> {
        (0u64..).zip(&self.to).filter(|(_, to)| to.0 != 0)
    }
}

/// A store of one or more values of `bytes` each.
pub(crate) struct Store {
    pub(crate) place: Place,
    pub(crate) bytes: u32,
    pub(crate) strength: Strength,
    pub(crate) address: Address,
    pub(crate) from: Box<[Source]>,
}

/// The new value from the old one and the operands.
pub(crate) type Update = fn(u64, u64, u64) -> u64;

/// `atom` and `red`.
pub(crate) struct Atomic {
    pub(crate) place: Place,
    pub(crate) bytes: u32,
    /// The alignment of the address: that of the whole vector, for its first element.
    pub(crate) align: u32,
    pub(crate) update: Update,
    /// What is done in global memory, where it differs.
    pub(crate) update_global: Update,
    pub(crate) address: Address,
    pub(crate) b: Source,
    pub(crate) c: Source,
    pub(crate) to: Option<Reg>,
    pub(crate) strength: Strength,
    /// Whether it writes only where the old value is `b`.
    pub(crate) compares: bool,
    /// Whether what it does depends on the old value: all but `exch`.
    pub(crate) reads: bool,
}

impl Atomic {
    /// Whether it updates the elements of a vector, this one first.
    pub(crate) fn is_vector(&self) -> bool {
        self.align != self.bytes
    }
}

/// `cp.async` of 4, 8 or 16 bytes.
pub(crate) struct CopyAsync {
    pub(crate) bytes: u32,
    pub(crate) to: Address,
    pub(crate) from: Address,
    /// Bytes actually read; the rest is zero.
    pub(crate) size: Option<Source>,
    /// Whether nothing is read.
    pub(crate) ignore: PredSource,
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`: between shared and global memory, or to the shared memory of a block of the cluster.
pub(crate) struct BulkCopy {
    pub(crate) to_place: Place,
    pub(crate) from_place: Place,
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: Source,
    /// What is done with the elements there, and the bytes of each; without it they are replaced.
    pub(crate) reduce: Option<(Update, u32)>,
    /// The object that counts the bytes; without it the copy belongs to a group.
    pub(crate) barrier: Option<(Place, Address)>,
    /// The blocks of the cluster that get the bytes.
    pub(crate) blocks: Option<Source>,
}

/// `fence` and `membar`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence {
    pub(crate) acquire: bool,
    pub(crate) release: bool,
    /// Whether its scope reaches beyond the cluster.
    pub(crate) wide: bool,
    /// Whether its scope is the cluster.
    pub(crate) cluster: bool,
    /// Whether it is one between accesses of threads to shared memory and those of the async proxy.
    pub(crate) proxy: bool,
}

impl Fence {
    /// Whether it orders accesses of threads.
    pub(crate) fn orders(&self) -> bool {
        self.acquire || self.release
    }
}
