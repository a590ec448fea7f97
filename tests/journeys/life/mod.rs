//! The life cycle of servers and of the proxy: start, idle stop, failure and end; no process is
//! left.

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
