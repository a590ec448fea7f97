//! Servers start, rest, fail and end, and so do we; nobody is left.

mod broken_servers;
mod death;
mod endings;
mod first_start;
mod full_disk;
mod held_locks;
mod hostile_scripts;
mod interrupted;
mod misbehaving_servers;
mod neighbours;
mod numbers;
mod starts_and_rests;
mod state_folder;
mod storm;
