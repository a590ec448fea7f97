//! Laws of what strangers send, each for any bytes: properties in tests, targets for a fuzzer.

pub use crate::line::laws::lines_are_those_that_were_sent;
