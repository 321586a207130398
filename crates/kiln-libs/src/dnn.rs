//! Operations of neural networks.
//!
//! | call | computes | on a GPU |
//! |---|---|---|
//! | [`Dnn::convolution`] | filters applied to images, with padding, stride, dilation and groups | cuDNN 9 |
//! | [`Dnn::convolution_backward_data`], [`Dnn::convolution_backward_filter`] | its gradients | cuDNN 9 |
//! | [`Dnn::attention`] | `softmax(scale q kᵀ) v`, causal (from the first or the last position) or not, with heads of keys that several heads of queries share | cuDNN 9 |
//! | [`Dnn::softmax`], [`Dnn::softmax_backward`] | softmax of rows or its logarithm; the gradient | kernels of this crate |
//! | [`Dnn::layer_norm`] | rows minus their mean, divided by their standard deviation, with weight and bias | kernels of this crate |
//! | [`Dnn::rms_norm`] | rows divided by their root mean square, with weight and bias | kernels of this crate |
//! | [`Dnn::layer_norm_backward`], [`Dnn::rms_norm_backward`] | the gradients, also of weight and bias | kernels of this crate |
//! | [`Dnn::max_pool`], [`Dnn::average_pool`] | the greatest or average number of windows | kernels of this crate |
//! | [`Dnn::max_pool_backward`], [`Dnn::average_pool_backward`] | the gradients | kernels of this crate |
//! | [`Dnn::cross_entropy`], [`Dnn::cross_entropy_backward`] | `log Σ exp(x) - x[label]` of rows; the gradient | kernels of this crate |
//! | [`Dnn::embedding`], [`Dnn::embedding_backward`] | rows of a table, chosen by indices; the gradient of the table | kernels of this crate |
//!
//! Elements are `f32`, `f16` or `bf16`; sums are made in `f32`. Attention takes `f16` and `bf16`. Math mode and determinism belong to each call:
//! products of `f32` are IEEE by default, and [`ConvolutionCall::math`] with [`Math::Tf32`] allows TF32.
//!
//! What kernels of this crate compute needs no library, is added in an order that depends on sizes alone, and so is the same in every run.
//!
//! # Not there
//!
//! - Attention: the gradient, log-sum-exp statistics, masks other than causal, bias, dropout, `f32`, ragged or paged sequences, windows.
//! - Convolutions: fused bias and activation, alpha and beta, one and three dimensions, asymmetric padding, `i8` and `f8`, `tune`.
//! - Batch, group and instance norm, softmax over channels, recurrent networks, graphs of cuDNN operations that a program defines.
//!
//! Types in reading order: [`Dnn`], [`Tensor`], [`ConvolutionCall`], [`AttentionTensor`], [`AttentionCall`], [`Softmax`], [`Norm`], [`Pool`], [`CrossEntropy`], [`Embedding`].

mod attention;
mod convolution;
mod cross_entropy;
#[doc(hidden)]
pub mod embedded_ptx;
mod embedding;
mod handle;
mod labels_and_tables;
mod layers;
mod norm;
mod norm_backward;
mod pool;
mod row_index;
mod row_launch_shape;
mod softmax;
mod tensor;

pub use attention::{AttentionCall, AttentionTensor};
pub use convolution::ConvolutionCall;
pub use cross_entropy::{CrossEntropy, CrossEntropyBackward};
pub use embedding::{Embedding, EmbeddingBackward};
pub use handle::Dnn;
pub use kiln_operation::{Determinism, Math};
pub use norm::Norm;
pub use norm_backward::NormBackward;
pub use pool::Pool;
pub use row_index::RowIndex;
pub use softmax::{Softmax, SoftmaxBackward};
pub use tensor::{NetworkElement, Tensor};
