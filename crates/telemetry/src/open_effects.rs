//! The effects that are open: their spans are not complete yet.

use gyrus_contract::EffectId;
use opentelemetry_proto::tonic::trace::v1::Span;

/// Kind of an open effect: one effect may ask a person while it calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffectRole {
    Model,
    Tool,
    Question,
    Wait,
    Child,
}

/// The spans of open effects, oldest first. The kernel bounds how many there are at once.
#[derive(Debug, Default)]
pub(crate) struct OpenEffects(Vec<(EffectId, EffectRole, Span)>);

impl OpenEffects {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn span(&self, effect: &EffectId) -> Option<Vec<u8>> {
        let around = self.0.iter();
        let around = around.filter(|(open, _, _)| open == effect || effect.is_within(open));
        // Of several spans of one effect the latest is the innermost.
        let innermost = around.max_by_key(|(open, _, _)| open.path().len());
        innermost.map(|(_, _, span)| span.span_id.clone())
    }

    pub(crate) fn push(&mut self, effect: EffectId, role: EffectRole, span: Span) -> &mut Span {
        self.0.push((effect, role, span));
        let (_, _, span) = self.0.last_mut().expect("it was pushed just now");
        span
    }

    pub(crate) fn get(&mut self, effect: &EffectId, role: EffectRole) -> Option<&mut Span> {
        let found =
            |(open, is, _): &&mut (EffectId, EffectRole, Span)| open == effect && *is == role;
        self.0.iter_mut().find(found).map(|(_, _, span)| span)
    }

    pub(crate) fn remove(&mut self, effect: &EffectId, role: EffectRole) -> Option<Span> {
        let at = self
            .0
            .iter()
            .position(|(open, is, _)| open == effect && *is == role)?;
        Some(self.0.remove(at).2)
    }

    /// Removes all spans, innermost first.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Span> + use<> {
        std::mem::take(&mut self.0)
            .into_iter()
            .rev()
            .map(|(_, _, span)| span)
    }
}
