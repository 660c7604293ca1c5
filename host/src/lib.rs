pub mod clock;
pub mod events;
