//! Library operations on the CPU.
//!
//! A CPU implementation computes what a library computes on a GPU, through the same checked memory that kernels use, so that races, uses after free and reads
//! of what was never written are found in library calls, too. It gives the same bytes on every machine: loops run in a fixed order, sums are made in
//! `f64`, no function of the system's mathematical library is called, and each NaN that is written has the same bits.

mod arguments;
mod attention;
mod convolution;
mod dense_matrix;
mod dft;
mod elementary_functions;
mod factorization;
mod fourier;
mod jacobi;
mod matmul;
mod number;
pub(crate) mod small_float;
mod solver;
mod sparse;
mod triangular;
mod vector;

use std::sync::Arc;

use kiln_driver::Access;
use kiln_operation::{ARGUMENT_BYTES, OperandEffect, Operation};

use crate::code::kernel::{KernelFault, LaunchContext, SimKernel, SimParameter, SimSignature};
use arguments::OperationArguments;

/// The CPU implementation of one operation.
pub(crate) struct CpuOperation {
    operation: Operation,
    names: Vec<&'static str>,
    signature: SimSignature,
}

impl CpuOperation {
    /// The CPU implementation of an operation, which was checked when its text was parsed.
    pub(crate) fn new(operation: Operation) -> Arc<Self> {
        let operands = operation.operands();
        let workspace_bytes = workspace_bytes(&operation);
        let parameter = |effect| match effect {
            OperandEffect::Scalar => SimParameter::Value { bytes: ARGUMENT_BYTES, alignment: ARGUMENT_BYTES },
            OperandEffect::Reads => SimParameter::Pointer(Access::Read),
            OperandEffect::Overwrites | OperandEffect::Writes => SimParameter::Pointer(Access::Write),
            OperandEffect::ReadsAndWrites => SimParameter::Pointer(Access::ReadWrite),
        };
        let mut parameters: Vec<_> = operands.iter().map(|operand| parameter(operand.effect)).collect();
        let mut names: Vec<_> = operands.iter().map(|operand| operand.name).collect();
        if workspace_bytes > 0 {
            parameters.push(SimParameter::Pointer(Access::Write));
            names.push("workspace");
        }
        let signature =
            SimSignature { parameters, declares_accesses: true, workspace_bytes, ..SimSignature::default() };
        Arc::new(Self { operation, names, signature })
    }
}

/// Workspace that a CPU implementation asks for: a transform, a factorisation and an iteration ask for as much as their data, as libraries do, so that a program
/// meets the need before it meets a GPU. It is not used.
fn workspace_bytes(operation: &Operation) -> u64 {
    match operation {
        Operation::Fft(_)
        | Operation::Potrf(_)
        | Operation::Getrf(_)
        | Operation::Geqrf(_)
        | Operation::Ormqr(_)
        | Operation::Orgqr(_)
        | Operation::Syevd(_)
        | Operation::Gesvd(_) => operation.operands().iter().map(|operand| operand.bytes).max().unwrap_or(0),
        _ => 0,
    }
}

impl SimKernel for CpuOperation {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn parameter_name(&self, index: usize) -> Option<&str> {
        self.names.get(index).copied()
    }

    fn run(&self, launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
        let arguments = OperationArguments::new(launch);
        let work = match &self.operation {
            Operation::Matmul(operation) => matmul::run(&arguments, operation)?,
            Operation::Gemv(operation) => vector::gemv(&arguments, operation)?,
            Operation::Ger(operation) => vector::ger(&arguments, operation)?,
            Operation::Dot(operation) => vector::dot(&arguments, operation)?,
            Operation::Nrm2(operation) => vector::nrm2(&arguments, operation)?,
            Operation::Axpy(operation) => vector::axpy(&arguments, operation)?,
            Operation::Scal(operation) => vector::scal(&arguments, operation)?,
            Operation::VectorCopy(operation) => vector::copy(&arguments, operation)?,
            Operation::Swap(operation) => vector::swap(&arguments, operation)?,
            Operation::Asum(operation) => vector::asum(&arguments, operation)?,
            Operation::Iamax(operation) => vector::iamax(&arguments, operation)?,
            Operation::Syrk(operation) => triangular::syrk(&arguments, operation)?,
            Operation::Trsm(operation) => triangular::trsm(&arguments, operation)?,
            Operation::Geam(operation) => triangular::geam(&arguments, operation)?,
            Operation::Symm(operation) => triangular::symm(&arguments, operation)?,
            Operation::Trmm(operation) => triangular::trmm(&arguments, operation)?,
            Operation::Fft(operation) => fourier::run(&arguments, operation)?,
            Operation::Potrf(operation) => solver::potrf(&arguments, operation)?,
            Operation::Potrs(operation) => solver::potrs(&arguments, operation)?,
            Operation::Getrf(operation) => solver::getrf(&arguments, operation)?,
            Operation::Getrs(operation) => solver::getrs(&arguments, operation)?,
            Operation::Geqrf(operation) => solver::geqrf(&arguments, operation)?,
            Operation::Ormqr(operation) => solver::ormqr(&arguments, operation)?,
            Operation::Orgqr(operation) => solver::orgqr(&arguments, operation)?,
            Operation::Syevd(operation) => solver::syevd(&arguments, operation)?,
            Operation::Gesvd(operation) => solver::gesvd(&arguments, operation)?,
            Operation::Spmv(operation) => sparse::spmv(&arguments, operation)?,
            Operation::Spmm(operation) => sparse::spmm(&arguments, operation)?,
            Operation::SparseToDense(operation) => sparse::to_dense(&arguments, operation)?,
            Operation::Convolution(operation) => convolution::run(&arguments, operation)?,
            Operation::Attention(operation) => attention::run(&arguments, operation)?,
            other => {
                let detail = format!("no CPU implementation of {}", other.name());
                return Err(KernelFault::Stopped { code: kiln_driver::Code::NOT_SUPPORTED, detail });
            }
        };
        launch.spend_instructions(work / 32);
        Ok(())
    }
}
