//! What holds between the columns of a row. Values from the table alone would contradict one another in kinds whose
//! columns have to add up; a kind without an entry here is covered all the same.

use lm_bench_plugin::KindDef;

use super::values::{Dice, Number};

/// A row, one list of values per column; scalars have one.
pub(super) struct Row<'a> {
    /// The kind.
    pub(super) kind: &'a KindDef,
    /// Its values.
    pub(super) cells: &'a mut [Vec<Number>],
    /// Its number among all rows of the kind.
    pub(super) number: u64,
}

impl Row<'_> {
    fn at(&self, column: &str) -> Option<usize> {
        self.kind.columns.iter().position(|have| have.name == column)
    }

    fn get(&self, column: &str) -> u64 {
        match self.at(column).and_then(|at| self.cells[at].first()) {
            Some(Number::Int(value)) => *value,
            _ => 0,
        }
    }

    fn float(&self, column: &str) -> f64 {
        let first = self.at(column).and_then(|at| self.cells[at].first());
        first.map_or(0.0, |value| value.float())
    }

    fn set(&mut self, column: &str, values: impl IntoIterator<Item = Number>) {
        if let Some(at) = self.at(column) {
            self.cells[at] = values.into_iter().collect();
        }
    }

    fn int(&mut self, column: &str, value: u64) {
        self.set(column, [Number::Int(value)]);
    }

    fn width(&self, column: &str) -> u64 {
        self.at(column).map_or(1, |at| self.cells[at].len() as u64)
    }
}

/// Makes the values of a row agree with one another.
pub(super) fn agree(row: &mut Row<'_>, dice: &mut Dice) {
    match row.kind.name.as_ref() {
        "request" => request(row),
        "token" => token(row),
        "span" => {
            let from = row.get("t_ns").saturating_sub(row.get("dur_ns"));
            row.int("start_ns", from);
        }
        "kv_cache" => kv_cache(row, dice),
        "memory" => memory(row),
        "attention" => {
            let keys = row.get("q_len") + row.get("kv_len");
            row.int("kv_len", keys);
        }
        "moe_route" => moe_route(row, dice),
        "moe_assign" => moe_assign(row, dice),
        "quant" => quant(row, dice),
        _ => {}
    }
}

/// Requests one after the other, each through its phases: of three, one ends well, one fails, one is given up.
fn request(row: &mut Row<'_>) {
    const PHASES: u64 = 6;
    let (id, phase) = (row.number / PHASES, row.number % PHASES);
    row.int("id", id);
    let last = phase == PHASES - 1;
    row.int("phase", if last { phase + id % 3 } else { phase });
    row.int("output_tokens", [0, 0, 0, 1, 12, 12][phase as usize]);
    if !(last && id % 3 == 1) {
        row.int("error", 0);
    }
}

/// Three requests with chunks in turn.
fn token(row: &mut Row<'_>) {
    let (request, chunk) = (row.number % 3, row.number / 3);
    row.int("request", request);
    row.int("chunk", chunk);
    row.int("index", chunk);
    row.int("tokens_in_chunk", 1);
}

fn kv_cache(row: &mut Row<'_>, dice: &mut Dice) {
    const BLOCKS: u64 = 1_000;
    const SLOTS: u64 = 16;
    let used = dice.below(BLOCKS + 1);
    row.int("blocks_total", BLOCKS);
    row.int("blocks_used", used);
    row.int("block_tokens", SLOTS);
    row.int("tokens_stored", dice.below(used * SLOTS + 1));
    let hits = row.get("hits").min(row.get("queries"));
    row.int("hits", hits);
}

fn memory(row: &mut Row<'_>) {
    let used = row.get("device_used");
    let reserved = used + row.get("device_largest_free");
    row.int("device_reserved", reserved);
    // The highest value so far, as the others have an upper end.
    row.int("device_peak", 1 << 30);
    let pss = row.get("pss").min(row.get("rss"));
    row.int("pss", pss);
}

/// Each token goes to `top_k` different experts.
fn moe_route(row: &mut Row<'_>, dice: &mut Dice) {
    let experts = row.width("counts");
    let (tokens, top_k) = (row.get("tokens"), 2.min(experts));
    let mut counts = vec![0_u64; experts as usize];
    for _ in 0..tokens {
        let first = dice.below(experts);
        for pick in 0..top_k {
            counts[((first + pick) % experts) as usize] += 1;
        }
    }
    row.int("experts", experts);
    row.int("top_k", top_k);
    row.int("dropped", 0);
    row.set("counts", counts.iter().copied().map(Number::Int));
    let share = |count: &u64| Number::Float(*count as f64 / top_k as f64);
    row.set("prob_sum", counts.iter().map(share));
}

/// Different experts, gates that add up to 1.
fn moe_assign(row: &mut Row<'_>, dice: &mut Dice) {
    let width = row.width("expert");
    let first = dice.below(width);
    row.set("expert", (0..width).map(|at| Number::Int((first + at) % width)));
    row.set("gate", (0..width).map(|_| Number::Float(1.0 / width as f64)));
}

fn quant(row: &mut Row<'_>, dice: &mut Dice) {
    const VALUES: u64 = 4_096;
    row.int("n", VALUES);
    for part in ["saturated", "underflow", "nonfinite"] {
        row.int(part, dice.below(10));
    }
    let error = 1e-3 * row.float("sum_sq_ref");
    row.set("sum_sq_err", [Number::Float(error)]);
}
