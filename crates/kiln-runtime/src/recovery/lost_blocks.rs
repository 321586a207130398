//! Deciding which blocks were lost with a worker.

mod loss_analysis;

pub(super) use loss_analysis::LossAnalysis;
