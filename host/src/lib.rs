pub mod clock;
pub mod events;
pub mod plugin;
