//! Loaded operations, found by what they are.
//!
//! Each call looks its operation up, so that finding one takes no lock and counts no reference: entries are added and never removed, and live as long as
//! the table. It is a tree. An operation's hash says at which of four branches to go on, two bits at each entry, so that paths stay short however many
//! operations there are.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kiln_operation::{Matmul, Operation};

use crate::loaded_operation::LoadedOperation;
use crate::operation_hasher::OperationHasher;

const BRANCHES: usize = 4;
const BRANCH_BITS: u32 = BRANCHES.trailing_zeros();

/// The operations that are loaded.
#[derive(Default)]
pub(crate) struct OperationTable {
    first: Branch,
    len: AtomicUsize,
}

type Branch = OnceLock<Box<Entry>>;

// In this order: a call compares the operation, then reads what is loaded.
#[repr(C)]
struct Entry {
    operation: Operation,
    loaded: LoadedOperation,
    /// Whether a later entry stands for the operation.
    is_replaced: AtomicBool,
    branches: [Branch; BRANCHES],
}

impl OperationTable {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The entry of an operation.
    #[inline]
    pub(crate) fn find(&self, operation: &Operation) -> Option<&LoadedOperation> {
        let mut hash = hash(operation);
        let mut branch = &self.first;
        while let Some(entry) = branch.get() {
            if entry.is(operation) {
                return Some(&entry.loaded);
            }
            branch = entry.branch(&mut hash);
        }
        None
    }

    /// Adds an entry. If there is one for the same operation already, that one stays and is returned.
    pub(crate) fn add(&self, operation: &Operation, loaded: &LoadedOperation) -> &LoadedOperation {
        let mut hash = hash(operation);
        let mut branch = &self.first;
        loop {
            let entry = branch.get_or_init(|| {
                self.len.fetch_add(1, Ordering::Relaxed);
                Box::new(Entry::new(operation, loaded))
            });
            if entry.is(operation) {
                return &entry.loaded;
            }
            branch = entry.branch(&mut hash);
        }
    }

    /// The entry of an operation is not found any more. It lives on, for calls that found it before.
    pub(crate) fn retire(&self, operation: &Operation) {
        let mut hash = hash(operation);
        let mut branch = &self.first;
        while let Some(entry) = branch.get() {
            if entry.is(operation) {
                entry.is_replaced.store(true, Ordering::Release);
            }
            branch = entry.branch(&mut hash);
        }
    }
}

impl Entry {
    fn new(operation: &Operation, loaded: &LoadedOperation) -> Self {
        let (is_replaced, branches) = (AtomicBool::new(false), Default::default());
        Self { operation: *operation, loaded: loaded.clone(), is_replaced, branches }
    }

    #[inline]
    fn is(&self, operation: &Operation) -> bool {
        self.operation == *operation && !self.is_replaced.load(Ordering::Acquire)
    }

    /// Where to go on with a hash.
    #[inline]
    fn branch(&self, hash: &mut u64) -> &Branch {
        let [first, second, third, fourth] = &self.branches;
        let chosen = match *hash % BRANCHES as u64 {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        };
        *hash >>= BRANCH_BITS;
        chosen
    }
}

#[inline]
fn hash(operation: &Operation) -> u64 {
    match operation {
        Operation::Matmul(matmul) => hash_product(matmul),
        other => BuildHasherDefault::<OperationHasher>::default().hash_one(other),
    }
}

/// The sizes and what fits into a word of the rest; operations that differ elsewhere follow each other.
#[inline]
fn hash_product(matmul: &Matmul) -> u64 {
    let Matmul { m, n, k, batch, a, b, d, epilogue, .. } = matmul;
    let kinds = (a.element as u64) << 8
        | (d.element as u64) << 16
        | u64::from(a.transposed)
        | u64::from(b.transposed) << 1
        | u64::from(matmul.accumulate) << 2
        | u64::from(epilogue.bias) << 3
        | (epilogue.activation as u64) << 4;
    let distances = a.leading ^ b.leading.rotate_left(21) ^ d.leading.rotate_left(42);
    let mut hasher = OperationHasher::default();
    for word in [*m, *n, *k, *batch ^ matmul.alignment << 48, kinds, distances] {
        hasher.write_u64(word);
    }
    hasher.finish()
}
