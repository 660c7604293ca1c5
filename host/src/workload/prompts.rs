//! Prompts of an exact length, no two of a run alike.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::text::SENTENCES;
use crate::model::Tokenizer;

/// Turns text into token ids; implemented by tokenizers.
pub trait TextEncoder {
    /// Token ids of a text, without special tokens.
    ///
    /// # Errors
    /// The tokenizer's own message.
    fn encode(&self, text: &str) -> Result<Vec<u32>, String>;
}

impl TextEncoder for Tokenizer {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Tokenizer::encode(self, text).map_err(|error| error.to_string())
    }
}

/// What prompts are made of.
pub enum PromptTokens<'a> {
    /// Sentences through the model's tokenizer.
    Text(&'a dyn TextEncoder),
    /// Token ids drawn uniformly from `0..vocab`.
    Random {
        /// Entries of the vocabulary, at least 1.
        vocab: u32,
    },
}

/// Why no prompt could be made.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The tokenizer failed on built-in text.
    #[error("the model's tokenizer cannot encode the built-in text: {0}")]
    Encode(String),
    /// The tokenizer returns nothing for text.
    #[error("the model's tokenizer gives no token for the built-in text; use --prompt-source random")]
    NoTokens,
}

/// Makes the prompts of a run. The same seed gives the same prompts; each batch and each sequence gets
/// its own, so that nothing is answered from a prefix cache.
pub struct Prompts<'a> {
    source: PromptTokens<'a>,
    seed: u64,
    length: usize,
}

impl<'a> Prompts<'a> {
    /// Prompts of `length` tokens each.
    pub fn new(source: PromptTokens<'a>, seed: u64, length: usize) -> Self {
        Self { source, seed, length }
    }

    /// The prompts of one batch. `batch` numbers all batches of the run, warm-up first.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn batch(&self, batch: u64, sequences: usize) -> Result<Vec<Vec<u32>>, PromptError> {
        (0..sequences)
            .map(|sequence| self.prompt(batch, sequence as u64))
            .collect()
    }

    fn prompt(&self, batch: u64, sequence: u64) -> Result<Vec<u32>, PromptError> {
        let mut rng = Pcg64Mcg::seed_from_u64(mix(self.seed, mix(batch, sequence)));
        match self.source {
            PromptTokens::Random { vocab } => Ok((0..self.length)
                .map(|_| rng.random_range(0..vocab.max(1)))
                .collect()),
            PromptTokens::Text(encoder) => self.text_prompt(encoder, &mut rng),
        }
    }

    /// A nonce, then sentences in random order until the prompt is long enough, cut to length.
    fn text_prompt(&self, encoder: &dyn TextEncoder, rng: &mut Pcg64Mcg) -> Result<Vec<u32>, PromptError> {
        let encode = |text: &str| encoder.encode(text).map_err(PromptError::Encode);
        let mut tokens = encode(&format!("Note {:08}.", rng.random_range(0..100_000_000_u32)))?;
        let mut order: Vec<&str> = SENTENCES.to_vec();
        while tokens.len() < self.length {
            let before = tokens.len();
            order.shuffle(rng);
            for sentence in &order {
                tokens.extend(encode(&format!(" {sentence}"))?);
                if tokens.len() >= self.length {
                    break;
                }
            }
            if tokens.len() == before {
                return Err(PromptError::NoTokens);
            }
        }
        tokens.truncate(self.length);
        Ok(tokens)
    }
}

/// Combines two numbers into a seed (finaliser of SplitMix64).
pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(b)
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Words;

    impl TextEncoder for Words {
        fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
            Ok(text
                .split_whitespace()
                .map(|word| word.bytes().map(u32::from).sum())
                .collect())
        }
    }

    struct Nothing;

    impl TextEncoder for Nothing {
        fn encode(&self, _: &str) -> Result<Vec<u32>, String> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn prompts_have_the_asked_length_and_differ() {
        for source in [PromptTokens::Random { vocab: 1000 }, PromptTokens::Text(&Words)] {
            let prompts = Prompts::new(source, 1, 700);
            let all: Vec<_> = (0..4)
                .flat_map(|batch| prompts.batch(batch, 3).expect("prompts"))
                .collect();
            assert!(all.iter().all(|prompt| prompt.len() == 700));
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        }
    }

    #[test]
    fn the_seed_decides() {
        let batch = |seed| {
            Prompts::new(PromptTokens::Random { vocab: 50_000 }, seed, 64)
                .batch(3, 2)
                .expect("prompts")
        };
        assert_eq!(batch(7), batch(7));
        assert_ne!(batch(7), batch(8));
    }

    #[test]
    fn a_tokenizer_without_output_ends_in_an_error() {
        let prompts = Prompts::new(PromptTokens::Text(&Nothing), 0, 8);
        assert!(matches!(prompts.batch(0, 1), Err(PromptError::NoTokens)));
    }
}
