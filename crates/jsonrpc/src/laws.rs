//! Laws of what strangers send, each for any bytes: properties in tests, targets for a fuzzer.

pub use crate::{
    events::laws::{events_are_the_same_however_they_come, messages_that_are_written_are_read},
    line::laws::lines_are_those_that_were_sent,
};
