//! Settings of tracing, by the side of the proxy.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};

use super::direction::Direction;
use super::provider::ServiceCluster;
use crate::telemetry::SpanFormat;
use traffic::filter::{Needs, Template, TemplateContext};
use traffic::provenance::Provenance;
use traffic::trace::TracingSettings;

/// Settings of tracing for both sides of the proxy; `None` for a side without tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracing {
    /// Settings of a gateway, and of the outbound side of a sidecar.
    pub client: Option<SideTracing>,
    /// Settings of the inbound side of a sidecar.
    pub server: Option<SideTracing>,
    /// Service that spans are sent to; `None` for the collector of the flags.
    pub collector: Option<Collector>,
}

/// Tracing of one side of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideTracing {
    /// The settings.
    pub settings: Arc<TracingSettings>,
    /// Resource that says which share of requests is sampled; `None` if flags do.
    pub sampled_by: Option<Provenance>,
    /// Provider that the spans are for; `None` for the collector of the flags.
    pub provider: Option<Arc<str>>,
    /// Custom tags with operators; `None` without any.
    pub formats: Option<Arc<TagFormats>>,
}

/// Custom tags with operators, which are printed when a request ends.
#[derive(Debug, PartialEq, Eq)]
pub struct TagFormats {
    /// One for each custom tag; `None` for tags without operators.
    templates: Vec<Option<Arc<Template>>>,
    needs: Needs,
}

impl TagFormats {
    /// Returns the formats of custom tags; `None` if no tag has one.
    pub fn new(templates: Vec<Option<Arc<Template>>>) -> Option<Arc<Self>> {
        let mut needs = Needs::default();
        let mut used = templates.iter().flatten().peekable();
        used.peek()?;
        used.for_each(|template| template.add_needs(&mut needs));
        Some(Arc::new(Self { templates, needs }))
    }

    /// Headers that the operators read.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Returns the values for a request, one for each custom tag.
    pub fn values(&self, context: &TemplateContext<'_>) -> Vec<Option<HeaderValue>> {
        let templates = self.templates.iter();
        let values = templates.map(|template| template.as_ref()?.value(context));
        values.collect()
    }
}

/// Service that spans are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// The service.
    pub service: ServiceCluster,
    /// Form of requests.
    pub format: SpanFormat,
    /// Path of requests.
    pub path: PathAndQuery,
    /// Time limit of a request.
    pub timeout: Duration,
    /// Headers of requests.
    pub headers: Vec<CollectorHeader>,
}

/// Header of requests to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorHeader {
    /// Name.
    pub name: HeaderName,
    /// Value, or the variable of the proxy that has it.
    pub value: Result<HeaderValue, Arc<str>>,
}

impl Tracing {
    /// Returns the settings for requests of listeners with this direction; `None` if they are not traced.
    pub fn of(&self, direction: Direction) -> Option<Traced<'_>> {
        Some(Traced {
            settings: &self.side(direction)?.settings,
            direction,
        })
    }

    /// Whether custom tags have operators.
    pub fn has_formats(&self) -> bool {
        let sides = [&self.client, &self.server].into_iter().flatten();
        sides.into_iter().any(|side| side.formats.is_some())
    }

    /// Returns the tracing of listeners with this direction.
    pub fn side(&self, direction: Direction) -> Option<&SideTracing> {
        let of_side = match direction {
            Direction::Inbound => &self.server,
            Direction::Gateway | Direction::Outbound => &self.client,
        };
        of_side.as_ref()
    }
}

/// Settings of tracing for a request.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'a> {
    /// The settings.
    pub settings: &'a Arc<TracingSettings>,
    /// Direction of the listener.
    pub direction: Direction,
}
