//! The model of the example `14_transformer`, as the example has it.

#![allow(dead_code, unreachable_pub, reason = "the files are those of the example, which uses all of them")]

#[path = "../../../../examples/14_transformer/backward.rs"]
mod backward;
#[path = "../../../../examples/14_transformer/forward.rs"]
mod forward;
#[path = "../../../../examples/14_transformer/generator.rs"]
pub mod generator;
#[path = "../../../../examples/14_transformer/kernels.rs"]
mod kernels;
#[path = "../../../../examples/14_transformer/queue.rs"]
pub mod queue;
#[path = "../../../../examples/14_transformer/shape.rs"]
pub mod shape;
#[path = "../../../../examples/14_transformer/survive.rs"]
pub mod survive;
#[path = "../../../../examples/14_transformer/text.rs"]
pub mod text;
#[path = "../../../../examples/14_transformer/trainer.rs"]
pub mod trainer;
#[path = "../../../../examples/14_transformer/weights.rs"]
pub mod weights;
