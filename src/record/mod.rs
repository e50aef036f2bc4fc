//! Writers over `impl Write`.
