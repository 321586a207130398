//! The model once more, in plain Rust and `f64`: no cache, no batches, no derivatives.

use crate::model::shape::Shape;
use crate::model::text::Batch;
use crate::model::weights::ranges;

/// The weights of a model, in the order of [`ranges`].
pub(crate) struct Reference {
    shape: Shape,
    parts: Vec<Vec<f64>>,
}

impl Reference {
    pub(crate) fn new(shape: Shape, weights: &[f64]) -> Self {
        Self { shape, parts: ranges(&shape).into_iter().map(|range| weights[range].to_vec()).collect() }
    }

    /// The mean of minus the logarithm of the probability of each target.
    pub(crate) fn loss(&self, batch: &Batch) -> f64 {
        let texts = batch.tokens.chunks(self.shape.context).zip(batch.targets.chunks(self.shape.context));
        let mut sum = 0.0;
        for (tokens, targets) in texts {
            for (logits, target) in self.logits(tokens).iter().zip(targets) {
                let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
                sum += total.ln() - logits[*target as usize];
            }
        }
        sum / batch.tokens.len() as f64
    }

    /// For each character of a text the logits of the next one.
    pub(crate) fn logits(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let width = self.shape.width;
        let [embedding, positions] = [&self.parts[0], &self.parts[1]];
        let embed = |(at, token): (usize, &u32)| -> Vec<f64> {
            (0..width).map(|i| embedding[*token as usize * width + i] + positions[at * width + i]).collect()
        };
        let mut rows: Vec<Vec<f64>> = tokens.iter().enumerate().map(embed).collect();
        for layer in self.parts[2..2 + 6 * self.shape.layers].chunks(6) {
            let mixed = self.attention(&rows, &layer[0], &layer[1]);
            for (row, mixed) in rows.iter_mut().zip(mixed) {
                add(row, &times(&mixed, &layer[2]));
                let up = times(&normed(row, &layer[3]), &layer[4]);
                add(row, &times(&up.into_iter().map(gelu).collect::<Vec<_>>(), &layer[5]));
            }
        }
        let [norm, head] = [&self.parts[self.parts.len() - 2], &self.parts[self.parts.len() - 1]];
        rows.iter().map(|row| times(&normed(row, norm), head)).collect()
    }

    /// What each row takes of the values of itself and of the rows before.
    fn attention(&self, rows: &[Vec<f64>], gain: &[f64], qkv: &[f64]) -> Vec<Vec<f64>> {
        let (width, head_width) = (self.shape.width, self.shape.width / self.shape.heads);
        let all: Vec<Vec<f64>> = rows.iter().map(|row| times(&normed(row, gain), qkv)).collect();
        let mix = |(at, own): (usize, &Vec<f64>)| -> Vec<f64> {
            let mut mixed = vec![0.0; width];
            for head in 0..self.shape.heads {
                let columns = head * head_width..(head + 1) * head_width;
                let score = |other: &Vec<f64>| {
                    let dot: f64 = columns.clone().map(|i| own[i] * other[width + i]).sum();
                    (dot / (head_width as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = all[..=at].iter().map(score).collect();
                let total: f64 = scores.iter().sum();
                for (score, other) in scores.iter().zip(&all) {
                    columns.clone().for_each(|i| mixed[i] += score / total * other[2 * width + i]);
                }
            }
            mixed
        };
        all.iter().enumerate().map(mix).collect()
    }
}

/// A row times a matrix.
fn times(row: &[f64], matrix: &[f64]) -> Vec<f64> {
    let columns = matrix.len() / row.len();
    let mut product = vec![0.0; columns];
    for (value, line) in row.iter().zip(matrix.chunks(columns)) {
        product.iter_mut().zip(line).for_each(|(sum, weight)| *sum += value * weight);
    }
    product
}

fn add(to: &mut [f64], other: &[f64]) {
    to.iter_mut().zip(other).for_each(|(to, other)| *to += other);
}

fn normed(row: &[f64], gain: &[f64]) -> Vec<f64> {
    let squares: f64 = row.iter().map(|value| value * value).sum();
    let length = (squares / row.len() as f64 + 1e-5).sqrt();
    row.iter().zip(gain).map(|(value, gain)| value / length * gain).collect()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
}
