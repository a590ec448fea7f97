//! The limits of a helper: a process of our own program that works on untrusted input.

#[cfg(unix)]
pub(crate) mod unix;

/// The limits of a helper. All of them hold on every system; `docs/platforms.md` says which the kernel
/// enforces, and which a thread of the helper.
#[derive(Debug, Clone, Copy)]
pub struct HelperLimits {
    /// The pid of the process that started the helper; `None` to take the present parent.
    pub parent: Option<u32>,
    /// The memory that the helper may use. Linux limits the address space, macOS the memory in use, Windows
    /// the committed bytes that no other process shares.
    pub memory_bytes: u64,
    /// The processor time in seconds. Two seconds later the process is ended: by SIGXCPU, or at once on
    /// Windows.
    pub processor_s: u64,
    /// The size to which the helper may extend a file; `None` for no limit. Windows has no such limit; a
    /// helper writes no file.
    pub file_bytes: Option<u64>,
}
