//! Everything that can be made to go wrong, by the name under which it is counted.

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    KillDaemon,
    /// Both at once: only the next daemon's sweep can end the servers.
    KillDaemonAndGuard,
    TerminateDaemon,
    /// `SIGHUP`: the configuration is reloaded.
    HangUpDaemon,
    PauseDaemon,
    KillServer,
    TerminateServer,
    PauseServer,
    KillFront,
    /// Its input ends while calls are under way.
    CloseFront,
    /// An HTTP client closes its connection in the middle of a call.
    LeaveCall,
    CancelCall,
    /// A tool that ends its server.
    CrashCall,
    /// A tool that never answers.
    HangCall,
    /// A tool that writes what is no message, then answers twice.
    GarbleCall,
    EditConfig,
    /// The file is no TOML for a while.
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
