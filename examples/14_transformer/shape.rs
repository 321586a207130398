//! The sizes of a model.

/// The sizes of a model and of the batches that it is trained with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Different characters.
    pub vocabulary: usize,
    /// Characters that the model sees at once.
    pub context: usize,
    /// Numbers that stand for one character.
    pub width: usize,
    /// Heads of the attention; they share the width.
    pub heads: usize,
    /// Layers of attention and perceptron.
    pub layers: usize,
    /// Texts in a batch.
    pub batch: usize,
}

impl Shape {
    /// A model that the simulated device trains in seconds.
    pub fn small(vocabulary: usize) -> Self {
        Self { vocabulary, context: 16, width: 16, heads: 2, layers: 2, batch: 2 }
    }

    /// A model for a GPU.
    pub fn large(vocabulary: usize) -> Self {
        Self { vocabulary, context: 64, width: 128, heads: 4, layers: 4, batch: 16 }
    }

    /// Width of one head.
    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// Rows of a batch: one for each character.
    pub fn rows(&self) -> usize {
        self.batch * self.context
    }

    /// What scores are multiplied with before the softmax.
    pub fn score_scale(&self) -> f32 {
        1.0 / (self.head_width() as f32).sqrt()
    }
}
