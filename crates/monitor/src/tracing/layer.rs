//! Spans as calls, beside other layers.

use tracing_core::span::Id;
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::{self, Context};
use tracing_subscriber::registry::LookupSpan;

use super::sites;
use crate::probe::Probe;
use crate::unguarded::{self, Frame};

/// Layer that notes each entering of a span as a call.
///
/// It enables all spans, as a layer that disables one does so for all layers; give it a filter if
/// it stands alone.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let layers = tracing_subscriber::registry().with(hearth_monitor::tracing::Layer);
/// layers.init();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Layer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> layer::Layer<S> for Layer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(probe) = probe(id, &context) {
            unguarded::begin(probe, Frame::NONE);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(probe) = probe(id, &context) {
            unguarded::end(probe, Frame::NONE);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if let Some((_, probe)) = sites::site(event.metadata()) {
            unguarded::begin(probe, Frame::NONE);
            unguarded::end(probe, Frame::NONE);
        }
    }
}

fn probe<S>(id: &Id, context: &Context<'_, S>) -> Option<&'static Probe>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let metadata = context.metadata(id)?;
    sites::site(metadata).map(|(_, probe)| probe)
}
