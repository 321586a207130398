//! What the ranks of a job do, as words of the command say and as it follows from a seed.

use crate::Failure;

/// The most ranks on one GPU.
const MAX_RANKS: u64 = 8;

/// One job; the first of several.
#[derive(Clone, Copy)]
pub struct Plan {
    pub ranks: u32,
    pub jobs: u64,
    pub seed: u64,
    /// All-reduces that every rank queues.
    pub collectives: usize,
    /// Each rank has its device in a worker process.
    pub is_isolated: bool,
    /// This process is the replacement of a killed rank.
    pub is_replacement: bool,
}

impl Plan {
    /// Reads the words of the command.
    pub fn from_words(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut plan =
            Self { ranks: 2, jobs: 1, seed: 0, collectives: 1000, is_isolated: false, is_replacement: false };
        while let Some(word) = words.next() {
            let mut number = |least: u64, most: u64| -> Result<u64, Failure> {
                let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                Ok(number
                    .ok_or_else(|| format!("{word} takes a number from {least} to {most}, not `{text}`"))?)
            };
            match word.as_str() {
                "--ranks" => plan.ranks = u32::try_from(number(2, MAX_RANKS)?)?,
                "--jobs" => plan.jobs = number(1, 10_000)?,
                "--seed" => plan.seed = number(0, u64::from(u32::MAX))?,
                "--collectives" => plan.collectives = usize::try_from(number(10, 100_000)?)?,
                "--isolate" => plan.is_isolated = true,
                "--replacement" => plan.is_replacement = true,
                _ => {
                    return Err(
                        format!("there is no `{word}`; see the top of examples/killed_rank/main.rs").into()
                    );
                }
            }
        }
        Ok(plan)
    }

    /// The words that give a rank this plan.
    pub fn words(&self) -> Vec<String> {
        let mut words =
            vec!["--ranks".into(), self.ranks.to_string(), "--seed".into(), self.seed.to_string()];
        words.extend(["--collectives".into(), self.collectives.to_string()]);
        words.extend(self.is_isolated.then(|| "--isolate".into()));
        words.extend(self.is_replacement.then(|| "--replacement".into()));
        words
    }

    /// The rank that is killed. Rank 0 keeps what the ranks meet at, and stays.
    pub fn victim(&self) -> u32 {
        1 + (self.random(1) % u64::from(self.ranks - 1)) as u32
    }

    /// How many all-reduces the victim has done when it is killed: from a tenth to seven tenths of them.
    pub fn done_at_kill(&self) -> usize {
        let tenth = self.collectives / 10;
        tenth + (self.random(2) % (6 * tenth as u64)) as usize
    }

    /// Whether the killed rank is replaced.
    pub fn is_replaced(&self) -> bool {
        self.seed % 2 == 1
    }

    /// What a rank brings to an all-reduce.
    pub fn value(&self, rank: u32, collective: usize) -> u32 {
        (self.seed as u32 & 0xff) + (rank + 1) * 100_003 + collective as u32 * 7
    }

    /// The sum of what these ranks bring.
    pub fn sum(&self, ranks: impl IntoIterator<Item = u32>, collective: usize) -> u32 {
        ranks.into_iter().map(|rank| self.value(rank, collective)).sum()
    }

    /// A number that follows from the seed and a place.
    fn random(&self, place: u64) -> u64 {
        let mut bits = self.seed.wrapping_add(place << 32).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
