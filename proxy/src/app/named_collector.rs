//! Telemetry on its way to the collector that settings name.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use super::exports::transport;
use super::live::LiveSettings;
use super::settings::Settings;
use crate::telemetry::{ExportOutcome, OtlpMessage, Transport};

/// Way to the collector of traces that the settings in effect name.
pub(super) struct NamedCollector {
    live: LiveSettings,
    made: RefCell<Option<Made>>,
}

/// Way that was made by some settings; `None` if they name no collector.
struct Made {
    settings: Arc<Settings>,
    transport: Option<Rc<dyn Transport>>,
}

impl NamedCollector {
    /// Makes the way, on the thread of the exporter.
    pub(super) fn new(live: LiveSettings) -> Rc<Self> {
        let made = RefCell::default();
        Rc::new(Self { live, made })
    }

    /// Returns the way that the newest settings name.
    fn newest(&self) -> Option<Rc<dyn Transport>> {
        let settings = self.live.newest();
        let mut made = self.made.borrow_mut();
        match &*made {
            Some(made) if Arc::ptr_eq(&made.settings, &settings) => made.transport.clone(),
            _ => {
                let traces = settings.traces.as_ref();
                let collector = traces.and_then(|traces| traces.collector.clone());
                let transport = collector.map(|collector| transport(collector)());
                let newest = transport.clone();
                *made = Some(Made {
                    settings,
                    transport,
                });
                newest
            }
        }
    }
}

impl Transport for NamedCollector {
    fn export(
        self: Rc<Self>,
        message: OtlpMessage,
    ) -> Pin<Box<dyn Future<Output = ExportOutcome>>> {
        match self.newest() {
            Some(transport) => transport.export(message),
            None => {
                let outcome = ExportOutcome::unreached("no provider or collector is in effect");
                Box::pin(std::future::ready(outcome))
            }
        }
    }
}
