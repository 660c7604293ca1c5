//! Why a run ends without a result.

use crate::engine::EngineError;
use crate::events::{CollectionError, RecordingError};
use crate::model::{OpenError, TokenizerError};
use crate::plugin::PluginError;
use crate::workload::PromptError;

/// Why a run ends without a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model cannot be opened.
    #[error(transparent)]
    Model(#[from] OpenError),
    /// The model's tokenizer cannot be used.
    #[error("{0}; use --prompt-source random")]
    Tokenizer(#[from] TokenizerError),
    /// The engine cannot do what the plan asks for.
    #[error("{0}")]
    Unsupported(String),
    /// The engine cannot load the model.
    #[error(transparent)]
    Load(EngineError),
    /// The user ended the run before there was anything to report.
    #[error("interrupted before anything was measured, so there is no result")]
    Interrupted,
    /// The engine failed while it ran.
    #[error("the engine failed: {0}")]
    Engine(#[from] EngineError),
    /// No prompt could be made.
    #[error(transparent)]
    Prompts(#[from] PromptError),
    /// A plugin cannot be used as the plan asks.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A recording cannot be read or written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The events could not be written to the recording.
    #[error("the recording failed: {0}")]
    RecordingFailed(String),
    /// A recording holds facts about its run that this version does not understand.
    #[error("{}: the facts about the recorded run cannot be read: {error}", path.display())]
    RecordedFacts {
        /// The recording.
        path: std::path::PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The load client cannot work on this machine.
    #[error("the load client cannot start: {0}")]
    Client(String),
    /// The events could not be collected.
    #[error(transparent)]
    Collection(#[from] CollectionError),
}

impl RunError {
    /// Whether the user's input is at fault, rather than the run.
    pub fn is_unusable_input(&self) -> bool {
        !matches!(
            self,
            Self::Engine(_) | Self::Collection(_) | Self::RecordingFailed(_) | Self::Interrupted
        )
    }
}
