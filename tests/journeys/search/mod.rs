//! Finding the tool that fits.

mod learning;
mod meaning;
mod scenes;
