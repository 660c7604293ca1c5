//! How much memory a run needs and how much there is, compared before anything is allocated.

use std::fs;

use thiserror::Error;

use super::config::ModelConfig;

const MIB: f64 = 1024.0 * 1024.0;

/// Bytes a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Weights as the engine keeps them.
    pub weights: u64,
    /// Keys and values of all sequences.
    pub kv_cache: u64,
    /// Largest intermediate results of one step.
    pub activations: u64,
}

impl MemoryNeed {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.weights
            .saturating_add(self.kv_cache)
            .saturating_add(self.activations)
    }

    /// Needs of `batch` sequences of at most `max_tokens` tokens, with weights of `weights` bytes and values of
    /// `value_bytes` bytes in cache and activations. A prefill keeps residual, normed input, query, key, value,
    /// attention output and two MLP rows per token.
    pub fn of_run(
        config: &ModelConfig,
        weights: u64,
        (batch, max_tokens): (usize, usize),
        value_bytes: u64,
    ) -> Self {
        let tokens = (batch as u64).saturating_mul(max_tokens as u64);
        let kv_per_token = Self::kv_bytes_per_token(config, value_bytes);
        let chosen = config.experts.map_or(1, |e| e.per_token as u64);
        let row = 4 * config.hidden as u64
            + 2 * config.q_width() as u64
            + 2 * config.kv_width() as u64
            + 3 * chosen * config.intermediate as u64;
        let logits = (batch as u64).saturating_mul(config.vocab as u64);
        let values = tokens.saturating_mul(row).saturating_add(logits);
        Self {
            weights,
            kv_cache: tokens.saturating_mul(kv_per_token),
            activations: values.saturating_mul(value_bytes),
        }
    }

    /// Key and value bytes one token leaves in the cache, over all layers.
    pub fn kv_bytes_per_token(config: &ModelConfig, value_bytes: u64) -> u64 {
        2 * config.layers as u64 * config.kv_width() as u64 * value_bytes
    }

    /// Fails if `available` does not suffice.
    pub fn check(&self, available: Available) -> Result<(), MemoryError> {
        if self.total() <= available.bytes {
            return Ok(());
        }
        let advice = if self.weights > available.bytes {
            "take a smaller or a quantised (GGUF) model, or a machine with more memory"
        } else {
            "lower the batch size or the sequence length, or take a smaller model"
        };
        Err(MemoryError {
            need: *self,
            available,
            advice,
        })
    }
}

/// Memory that can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Bytes.
    pub bytes: u64,
    /// What sets the limit.
    pub limit: &'static str,
}

/// A run that does not fit.
#[derive(Debug, Error)]
#[error(
    "not enough memory: {:.0} MiB needed (weights {:.0}, KV cache {:.0}, activations {:.0}), {:.0} MiB available ({}); {advice}",
    need.total() as f64 / MIB, need.weights as f64 / MIB, need.kv_cache as f64 / MIB,
    need.activations as f64 / MIB, available.bytes as f64 / MIB, available.limit
)]
pub struct MemoryError {
    /// What the run needs.
    pub need: MemoryNeed,
    /// What there is.
    pub available: Available,
    advice: &'static str,
}

/// Memory this process can still take: the system's estimate or what its control group leaves, whichever is less.
/// `None` where neither can be read.
pub fn available_memory() -> Option<Available> {
    let system = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| mem_available(&text))
        .map(|bytes| Available {
            bytes,
            limit: "MemAvailable",
        });
    let group = cgroup_left().map(|bytes| Available {
        bytes,
        limit: "control group limit",
    });
    system.into_iter().chain(group).min_by_key(|a| a.bytes)
}

/// `MemAvailable` of the text of /proc/meminfo, in bytes.
fn mem_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn cgroup_left() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let read = |path: &str| fs::read_to_string(path).ok();
    if let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::")) {
        // A container sees its own group at the root of the mount, a host process under its path.
        let folders = [
            format!("/sys/fs/cgroup{}", path.trim()),
            "/sys/fs/cgroup".to_owned(),
        ];
        let left = folders.iter().find_map(|f| {
            let max = read(&format!("{f}/memory.max"))?;
            left_in_group(&max, &read(&format!("{f}/memory.current"))?)
        });
        if left.is_some() {
            return left;
        }
    }
    let v1 = "/sys/fs/cgroup/memory";
    left_in_group(
        &read(&format!("{v1}/memory.limit_in_bytes"))?,
        &read(&format!("{v1}/memory.usage_in_bytes"))?,
    )
}

/// What a group's limit leaves above its use; `None` for a group without a limit.
fn left_in_group(limit: &str, usage: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let usage: u64 = usage.trim().parse().ok()?;
    Some(limit.saturating_sub(usage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preset;

    #[test]
    fn needs_of_llama_3_8b_follow_from_its_shape() {
        let config = preset("llama-3-8b").expect("preset");
        // 32 layers, 8 heads of 128, keys and values, two bytes each: 131,072 bytes a token.
        assert_eq!(MemoryNeed::kv_bytes_per_token(&config, 2), 131_072);
        let need = MemoryNeed::of_run(&config, 16_060_522_496, (32, 2048), 2);
        assert_eq!(need.kv_cache, 8_589_934_592);
    }

    #[test]
    fn too_little_memory_says_need_supply_and_remedy() {
        let need = MemoryNeed {
            weights: 3 << 30,
            kv_cache: 1 << 30,
            activations: 1 << 20,
        };
        let available = Available {
            bytes: 2 << 30,
            limit: "MemAvailable",
        };
        let text = need.check(available).expect_err("too much").to_string();
        assert_eq!(
            text,
            "not enough memory: 4097 MiB needed (weights 3072, KV cache 1024, activations 1), 2048 MiB available \
             (MemAvailable); take a smaller or a quantised (GGUF) model, or a machine with more memory"
        );
        let enough = Available {
            bytes: 5 << 30,
            limit: "MemAvailable",
        };
        assert!(need.check(enough).is_ok());
    }

    #[test]
    fn absurd_batches_saturate_instead_of_wrapping() {
        let config = preset("llama-3-8b").expect("preset");
        let need = MemoryNeed::of_run(&config, 1, (usize::MAX, usize::MAX), 4);
        assert_eq!(need.total(), u64::MAX);
    }

    #[test]
    fn system_files_are_read() {
        let text = "MemTotal:       24689764 kB\nMemAvailable:   21000000 kB\n";
        assert_eq!(mem_available(text), Some(21_504_000_000));
        assert_eq!(mem_available("MemTotal: 1 kB"), None);
        assert_eq!(left_in_group("1000\n", "400\n"), Some(600));
        assert_eq!(left_in_group("400", "1000"), Some(0));
        assert_eq!(left_in_group("max\n", "400\n"), None);
    }
}
