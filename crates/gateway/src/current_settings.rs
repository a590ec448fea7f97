//! The current settings, shared by every part of the gateway.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::settings::Settings;

/// A handle to the settings; all clones see the same.
#[derive(Debug, Clone)]
pub(crate) struct CurrentSettings(Arc<SettingsState>);

#[derive(Debug)]
struct SettingsState {
    settings: ArcSwap<Settings>,
    mistakes: Mutex<Option<String>>,
}

impl CurrentSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(SettingsState {
            settings: ArcSwap::from_pointee(settings),
            mistakes: Mutex::default(),
        }))
    }

    pub(crate) fn load(&self) -> Arc<Settings> {
        self.0.settings.load_full()
    }

    pub(crate) fn store(&self, settings: Settings) {
        self.0.settings.store(Arc::new(settings));
    }

    /// The mistakes in the file since it was last applied.
    pub(crate) fn mistakes(&self) -> Option<String> {
        self.0.mistakes.lock().clone()
    }

    pub(crate) fn set_mistakes(&self, mistakes: Option<String>) {
        *self.0.mistakes.lock() = mistakes;
    }

    /// The mistakes that leave no server configured: every name is unknown because of them.
    pub(crate) fn mistakes_that_hide_servers(&self) -> Option<String> {
        let mistakes = self.mistakes()?;
        self.load().servers.is_empty().then_some(mistakes)
    }
}
