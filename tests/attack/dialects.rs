//! Text that was written to keep the parser busy.
