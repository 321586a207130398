//! The text that the model learns, and batches of it.

/// The text.
pub const TEXT: &str = "the clay is wet. the hand turns the clay. the clay becomes a cup. the cup is dry. the fire is hot. \
the cup goes into the fire. the fire burns all night. the cup is hard. the hand fills the cup. the tea is hot. ";

/// The characters of a text, each with a number.
pub struct Vocabulary {
    characters: Vec<char>,
}

impl Vocabulary {
    /// The characters that occur in a text.
    pub fn of(text: &str) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Self { characters }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.characters.len()
    }

    /// The numbers of a text; characters that are not in the vocabulary are left out.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        text.chars().filter_map(|one| self.characters.binary_search(&one).ok()).map(|at| at as u32).collect()
    }

    /// The text of some numbers.
    pub fn decode(&self, tokens: &[u32]) -> String {
        tokens.iter().filter_map(|token| self.characters.get(*token as usize)).collect()
    }
}

/// Pieces of a text, and for each character the one that follows it.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What the model sees.
    pub tokens: Vec<u32>,
    /// What it is to say.
    pub targets: Vec<u32>,
}

impl Batch {
    /// The batch of a step. Equal steps have equal batches, so that a step can be done again.
    pub fn of_step(text: &[u32], step: usize, batch: usize, context: usize) -> Self {
        let starts =
            (0..batch).map(|at| scattered((step * batch + at) as u64) as usize % (text.len() - context));
        let (mut tokens, mut targets) = (Vec::new(), Vec::new());
        for start in starts {
            tokens.extend_from_slice(&text[start..start + context]);
            targets.extend_from_slice(&text[start + 1..start + context + 1]);
        }
        Self { tokens, targets }
    }
}

/// A number without a pattern for each number.
fn scattered(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}
