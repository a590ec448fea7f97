//! Properties that hold for any input bytes, checked by property tests and by a fuzzer.

pub use crate::{
    events::laws::{events_are_the_same_however_they_come, messages_that_are_written_are_read},
    line::laws::lines_are_those_that_were_sent,
};
