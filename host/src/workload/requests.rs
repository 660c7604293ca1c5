//! The requests of a load run, one after another, in constant memory.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::arrivals::Arrivals;
use super::lengths::Lengths;
use super::prompts::mix;
use super::text::SENTENCES;

/// Bytes of English text per token that prompts are sized by where there is no tokenizer.
const BYTES_PER_TOKEN: usize = 4;

/// What requests look like.
#[derive(Clone, Debug)]
pub struct LoadShape {
    /// Prompt tokens wanted.
    pub prompt: Lengths,
    /// Output tokens asked for.
    pub output: Lengths,
    /// Seed of lengths, texts and arrivals.
    pub seed: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    /// Number within the run.
    pub id: u64,
    /// When it is due, in nanoseconds from the start of the load; `None` in a closed loop, where it is due as soon as another
    /// has ended.
    pub due_ns: Option<u64>,
    /// English text of about the wanted number of tokens, with a nonce in front that defeats prefix caches.
    pub prompt: String,
    /// Output tokens asked for, at least 1.
    pub output_tokens: u32,
}

/// Requests numbered upwards. The same shape gives the same requests; those with different numbers share no prefix.
#[derive(Clone, Debug)]
pub struct LoadRequests {
    shape: LoadShape,
    arrivals: Option<Arrivals>,
    next: u64,
    end: u64,
}

impl LoadRequests {
    /// Requests `numbers` of a shape, due by `arrivals`, or whenever there is room where that is `None`.
    pub fn new(shape: LoadShape, arrivals: Option<Arrivals>, numbers: std::ops::Range<u64>) -> Self {
        Self {
            shape,
            arrivals,
            next: numbers.start,
            end: numbers.end,
        }
    }
}

impl Iterator for LoadRequests {
    type Item = LoadRequest;

    fn next(&mut self) -> Option<LoadRequest> {
        if self.next == self.end {
            return None;
        }
        let id = self.next;
        self.next += 1;
        let mut rng = Pcg64Mcg::seed_from_u64(mix(self.shape.seed, id));
        let prompt_tokens = self.shape.prompt.draw(&mut rng);
        let output_tokens = self.shape.output.draw(&mut rng);
        Some(LoadRequest {
            id,
            due_ns: self.arrivals.as_mut().and_then(Iterator::next),
            prompt: text(prompt_tokens as usize * BYTES_PER_TOKEN, &mut rng),
            output_tokens,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

/// A nonce and sentences in random order, cut at the end of a word to at most `bytes` bytes where the nonce allows.
fn text(bytes: usize, rng: &mut Pcg64Mcg) -> String {
    let mut text = format!("{:08}", rng.random_range(0..100_000_000_u32));
    let mut order: Vec<&str> = SENTENCES.to_vec();
    while text.len() < bytes {
        order.shuffle(rng);
        for sentence in &order {
            text.push(' ');
            text.push_str(sentence);
            if text.len() >= bytes {
                break;
            }
        }
    }
    if text.len() > bytes
        && let Some(end) = text[..text.floor_char_boundary(bytes)].rfind(' ')
    {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::RequestRate;

    fn requests(seed: u64, numbers: std::ops::Range<u64>) -> Vec<LoadRequest> {
        let shape = LoadShape {
            prompt: "uniform:1-500".parse().expect("lengths"),
            output: Lengths::fixed(16),
            seed,
        };
        let arrivals = Arrivals::new(RequestRate::PerSecond(10.0), f64::INFINITY, seed);
        LoadRequests::new(shape, Some(arrivals), numbers).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_none_twice() {
        let all = requests(1, 0..50);
        assert_eq!(all, requests(1, 0..50));
        let mut starts: Vec<&str> = all.iter().map(|request| &request.prompt[..8]).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 50);
        assert_ne!(all[0].prompt, requests(2, 0..1)[0].prompt);
        // A part of the numbers is the same part of the requests, but for the time.
        assert_eq!(requests(1, 30..31)[0].prompt, all[30].prompt);
    }

    #[test]
    fn prompts_have_about_the_length_that_was_drawn() {
        for request in requests(4, 0..200) {
            let bytes = request.prompt.len();
            assert!((8..=2_000).contains(&bytes), "{bytes}");
            assert!(!request.prompt.ends_with(' '));
        }
        assert_eq!(requests(4, 0..3)[2].due_ns, Some(200_000_000));
    }
}
