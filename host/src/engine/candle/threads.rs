//! The threads a step runs on.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::engine::EngineError;
use crate::model::Model;

/// More threads than any machine's cores are a mistake.
const MOST: usize = 1024;

/// A pool of as many threads as were asked for, else of one per physical core. Whole steps run inside it, so that
/// no product pays for handing work over from outside.
pub(super) fn pool(requested: Option<usize>, model: &Model) -> Result<Arc<ThreadPool>, EngineError> {
    let default = candle_core::utils::get_num_threads();
    let count = requested.unwrap_or(default);
    if count == 0 {
        return Err(EngineError::Zero("thread count"));
    }
    if count > MOST {
        return Err(unsupported(format!("{count} threads"), format!("1 to {MOST}")));
    }
    if count != default && uses_candle_threads(model) {
        let storage = model.config.storage.name();
        return Err(unsupported(
            format!("{count} threads for {storage} blocks, whose kernels have candle's own threads"),
            format!("{default}, or what CANDLE_NUM_THREADS and RAYON_NUM_THREADS say"),
        ));
    }
    let pool = ThreadPoolBuilder::new().num_threads(count).build();
    pool.map(Arc::new).map_err(|e| EngineError::Compute {
        operation: "starting threads",
        message: e.to_string(),
    })
}

fn uses_candle_threads(model: &Model) -> bool {
    model
        .weights
        .iter()
        .any(|t| t.shape.len() > 1 && super::kernels::is_candle_block(t.storage))
}

fn unsupported(what: String, supported: String) -> EngineError {
    EngineError::Unsupported {
        engine: "candle",
        what,
        supported,
    }
}
