//! All faults, by the name under which they are counted.

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    KillDaemon,
    /// Kills both at once: only the sweep of the next daemon can stop the servers.
    KillDaemonAndGuard,
    TerminateDaemon,
    /// `SIGHUP`: the configuration is reloaded.
    HangUpDaemon,
    PauseDaemon,
    KillServer,
    TerminateServer,
    PauseServer,
    KillFront,
    /// The input of a client ends while calls are in progress.
    CloseFront,
    /// An HTTP client closes its connection in the middle of a call.
    LeaveCall,
    CancelCall,
    /// A call of a tool that exits its server.
    CrashCall,
    /// A call of a tool that never answers.
    HangCall,
    /// A call of a tool that writes an invalid message and then answers twice.
    GarbleCall,
    EditConfig,
    /// The file is invalid TOML for a while.
    BreakConfig,
    FullDisk,
}

impl Fault {
    pub(super) const ALL: [Self; 18] = [
        Self::KillDaemon,
        Self::KillDaemonAndGuard,
        Self::TerminateDaemon,
        Self::HangUpDaemon,
        Self::PauseDaemon,
        Self::KillServer,
        Self::TerminateServer,
        Self::PauseServer,
        Self::KillFront,
        Self::CloseFront,
        Self::LeaveCall,
        Self::CancelCall,
        Self::CrashCall,
        Self::HangCall,
        Self::GarbleCall,
        Self::EditConfig,
        Self::BreakConfig,
        Self::FullDisk,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::KillDaemon => "kill-daemon",
            Self::KillDaemonAndGuard => "kill-daemon-and-guard",
            Self::TerminateDaemon => "terminate-daemon",
            Self::HangUpDaemon => "hang-up-daemon",
            Self::PauseDaemon => "pause-daemon",
            Self::KillServer => "kill-server",
            Self::TerminateServer => "terminate-server",
            Self::PauseServer => "pause-server",
            Self::KillFront => "kill-front",
            Self::CloseFront => "close-front",
            Self::LeaveCall => "leave-call",
            Self::CancelCall => "cancel-call",
            Self::CrashCall => "crash-call",
            Self::HangCall => "hang-call",
            Self::GarbleCall => "garble-call",
            Self::EditConfig => "edit-config",
            Self::BreakConfig => "break-config",
            Self::FullDisk => "full-disk",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}
