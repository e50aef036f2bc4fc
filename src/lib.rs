pub mod base;
pub mod engine;
pub mod io;
pub mod netns;
pub mod wire;
