//! Effects as spans: requests to models, tool calls, questions to a person, waits and child runs.

use gyrus_contract::{Decision, EffectId, StopReason};
use gyrus_journal::LogReader;
use gyrus_kernel::{
    ApprovalAsked, AttemptResult, CallEnd, ChildStarted, Entry, GateVerdict, ModelCall, ModelReply,
    ToolCalled, ToolResulted,
};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};

use crate::{
    attributes::{content, flag, gen_ai, number, one_of_list, text},
    content,
    ids::{child_span_id, first_span_id},
    metrics::{Instrument, Series},
    open_effects::EffectRole,
    projection::TelemetryProjection,
    spans::{add_event, event, fail, link},
};

impl TelemetryProjection {
    pub(crate) fn effect(&mut self, entry: Entry, seq: u64, now_ns: u64, reader: &LogReader) {
        match entry {
            Entry::ModelCall(call) => self.model_called(&call, seq, now_ns, reader),
            Entry::ModelReply(reply) => self.model_replied(&reply, now_ns, reader),
            Entry::ToolCalled(called) => self.tool_called(&called, seq, now_ns),
            Entry::GateVerdict(judged) => self.judged(&judged, now_ns),
            Entry::ApprovalAsked(asked) => self.asked(&asked, seq, now_ns),
            Entry::ApprovalAnswered(answered) => {
                if let Some(mut span) = self
                    .effects()
                    .remove(&answered.effect, EffectRole::Question)
                {
                    span.attributes
                        .push(flag("gyrus.approval.approved", answered.approved));
                    if let Some(by) = &answered.by {
                        span.attributes
                            .push(text("gyrus.approval.surface", &by.surface));
                    }
                    self.close(span, now_ns);
                }
            }
            Entry::ToolStarted(started) => {
                if let Some(span) = self.effects().get(&started.effect, EffectRole::Tool) {
                    let attempt = vec![number("gyrus.attempt", started.attempt)];
                    add_event(span, event("tool.started", now_ns, attempt));
                }
            }
            Entry::ToolResulted(result) => self.tool_resulted(&result, now_ns, reader),
            Entry::WaitStarted(wait) => {
                self.open(
                    wait.effect,
                    EffectRole::Wait,
                    "wait".to_owned(),
                    seq,
                    now_ns,
                );
            }
            Entry::WaitEnded(wait) => {
                if let Some(span) = self.effects().remove(&wait.effect, EffectRole::Wait) {
                    self.close(span, now_ns);
                }
            }
            Entry::ChildStarted(child) => self.child_started(&child, seq, now_ns),
            Entry::ChildEnded(ended) => {
                if let Some(mut span) = self.effects().remove(&ended.effect, EffectRole::Child) {
                    let state = content::tag(&ended.ending, "ending");
                    span.attributes.push(text("gyrus.run.state", state));
                    self.close(span, now_ns);
                }
            }
            other => self.note(other.kind(), now_ns, Vec::new()),
        }
    }

    fn open(
        &mut self,
        effect: EffectId,
        role: EffectRole,
        name: String,
        seq: u64,
        now_ns: u64,
    ) -> &mut Span {
        let mut span = self.span(name, "effect", seq, now_ns);
        let outer = self.effects().span(&effect);
        span.parent_span_id = outer.unwrap_or_else(|| self.innermost());
        span.attributes
            .push(text("gyrus.effect", effect.to_string()));
        self.effects().push(effect, role, span)
    }

    fn model_called(&mut self, call: &ModelCall, seq: u64, now_ns: u64, reader: &LogReader) {
        let provider = self.provider_of(&call.model);
        let with_content = self.options.content;
        let model = call
            .model
            .split_once('/')
            .map_or(&*call.model, |(_, name)| name);
        let name = format!("chat {model}");
        let span = self.open(call.effect.clone(), EffectRole::Model, name, seq, now_ns);
        span.kind = SpanKind::Client.into();
        span.attributes.extend([
            text(gen_ai::OPERATION, "chat"),
            text(gen_ai::PROVIDER, provider),
            text(gen_ai::REQUEST_MODEL, model),
            number(gen_ai::MAX_TOKENS, call.max_output_tokens),
            text("gyrus.purpose", content::tag(&call.purpose, "")),
            number("gyrus.attempt", call.attempt),
        ]);
        if with_content {
            // What earlier requests sent too is in their spans.
            let items = call.appended.items.iter();
            let new: Vec<_> = items
                .filter_map(|item| content::stored(item, reader))
                .collect();
            let messages = new.iter().map(|item| &*item.message).chain(&call.tail);
            let messages = content::messages(messages);
            span.attributes
                .push(content(gen_ai::INPUT_MESSAGES, messages));
        }
    }

    fn model_replied(&mut self, reply: &ModelReply, now_ns: u64, reader: &LogReader) {
        let Some(mut span) = self.effects().remove(&reply.effect, EffectRole::Model) else {
            return;
        };
        let requested = span.name.trim_start_matches("chat ").to_owned();
        let provider = string(&span, gen_ai::PROVIDER);
        let mut of: Series = vec![
            (gen_ai::OPERATION, "chat".to_owned()),
            (gen_ai::PROVIDER, provider),
            (gen_ai::REQUEST_MODEL, requested),
        ];
        match &reply.came {
            AttemptResult::Reply { reply } => {
                if let Some(reply) = content::stored(reply, reader) {
                    of.push((gen_ai::RESPONSE_MODEL, reply.model.clone()));
                    self.replied(&mut span, &reply, &of);
                }
            }
            AttemptResult::Error { error } => {
                let class = content::tag(error, "error");
                let words = error.to_string();
                fail(&mut span, &class, self.if_content(&words));
                of.push((crate::attributes::ERROR_TYPE, class));
            }
            AttemptResult::CutOff => {
                fail(&mut span, "cut_off", None);
                of.push((crate::attributes::ERROR_TYPE, "cut_off".to_owned()));
            }
        }
        if reply.estimated {
            span.attributes.push(flag("gyrus.usage.estimated", true));
        }
        let took_ms = reply.took_ms as f64 / 1e3;
        self.metrics
            .record(Instrument::OperationDuration, of, took_ms);
        self.close(span, now_ns);
    }

    fn replied(&mut self, span: &mut Span, reply: &gyrus_contract::Reply, of: &Series) {
        let finish = match reply.stop {
            StopReason::EndOfTurn => "stop",
            StopReason::ToolCalls => "tool_calls",
            StopReason::MaxTokens => "length",
        };
        span.attributes.extend([
            text(gen_ai::RESPONSE_MODEL, &reply.model),
            one_of_list(gen_ai::FINISH_REASONS, finish),
        ]);
        if let Some(usage) = reply.usage {
            span.attributes.extend([
                number(gen_ai::INPUT_TOKENS, usage.input_tokens),
                number(gen_ai::OUTPUT_TOKENS, usage.output_tokens),
                number(gen_ai::CACHE_READ, usage.cached_tokens),
                number(gen_ai::CACHE_WRITTEN, usage.cache_written_tokens),
            ]);
            for (kind, tokens) in [
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
            ] {
                let mut of = of.clone();
                of.push((gen_ai::TOKEN_TYPE, kind.to_owned()));
                self.metrics
                    .record(Instrument::TokenUsage, of, tokens as f64);
            }
        }
        if self.options.content {
            let said = content::reply(&reply.parts, finish);
            span.attributes.push(content(gen_ai::OUTPUT_MESSAGES, said));
        }
    }

    fn tool_called(&mut self, called: &ToolCalled, seq: u64, now_ns: u64) {
        let with_content = self.options.content;
        // A model may ask for a tool that there is not, by any name.
        let tool: String = called.call.tool.chars().take(100).collect();
        let name = format!("execute_tool {tool}");
        let span = self.open(called.effect.clone(), EffectRole::Tool, name, seq, now_ns);
        span.attributes.extend([
            text(gen_ai::OPERATION, "execute_tool"),
            text(gen_ai::TOOL, tool),
        ]);
        if !called.call.id.is_empty() {
            span.attributes
                .push(text(gen_ai::TOOL_CALL, &called.call.id));
        }
        if with_content {
            let arguments = called.call.arguments.to_string();
            span.attributes
                .push(content(gen_ai::TOOL_ARGUMENTS, arguments));
        }
    }

    fn judged(&mut self, judged: &GateVerdict, now_ns: u64) {
        let verdict = &judged.verdict;
        let mut attributes = vec![
            text("gyrus.gate.risk", content::tag(&verdict.risk, "")),
            text("gyrus.gate.decision", content::tag(&verdict.decision, "")),
        ];
        if self.options.content {
            let reasons = verdict.reasons.join("; ");
            attributes.push(content("gyrus.gate.reasons", reasons));
        }
        let denied = verdict.decision == Decision::Deny;
        if let Some(span) = self.effects().get(&judged.effect, EffectRole::Tool) {
            let name = if denied {
                "gate.denied"
            } else {
                "gate.verdict"
            };
            add_event(span, event(name, now_ns, attributes));
        }
    }

    fn asked(&mut self, asked: &ApprovalAsked, seq: u64, now_ns: u64) {
        let with_content = self.options.content;
        let name = "approval".to_owned();
        // An asking that nobody answered in time ends with the next.
        if let Some(expired) = self.effects().remove(&asked.effect, EffectRole::Question) {
            self.close(expired, now_ns);
        }
        let span = self.open(
            asked.effect.clone(),
            EffectRole::Question,
            name,
            seq,
            now_ns,
        );
        span.attributes
            .push(number("gyrus.approval.asking", asked.asking));
        if with_content {
            let sentence = asked.card.sentence.as_str();
            span.attributes
                .push(content("gyrus.approval.sentence", sentence));
        }
    }

    fn tool_resulted(&mut self, result: &ToolResulted, now_ns: u64, reader: &LogReader) {
        // A call that is settled asks nobody any more.
        if let Some(question) = self.effects().remove(&result.effect, EffectRole::Question) {
            self.close(question, now_ns);
        }
        let Some(mut span) = self.effects().remove(&result.effect, EffectRole::Tool) else {
            return;
        };
        let settled = content::tag(&result.settled, "");
        let tool = string(&span, gen_ai::TOOL);
        let of = vec![
            (gen_ai::TOOL, tool),
            ("gyrus.tool.settled", settled.clone()),
            ("gyrus.tool.is_error", result.is_error.to_string()),
        ];
        self.metrics.record(Instrument::ToolCalls, of, 1.0);
        span.attributes.extend([
            text("gyrus.tool.settled", &settled),
            text("gyrus.tool.verdict", content::tag(&result.verdict, "")),
            number("gyrus.tool.took_ms", result.took_ms),
        ]);
        if result.settled != CallEnd::Done || result.is_error {
            let class = match result.settled {
                CallEnd::Done => "tool_error",
                CallEnd::Refused | CallEnd::Interrupted | CallEnd::Cancelled => &settled,
            };
            fail(&mut span, class, None);
        }
        if self.options.content
            && let Some(said) = content::stored(&result.text, reader)
        {
            span.attributes.push(content(gen_ai::TOOL_RESULT, said));
        }
        self.close(span, now_ns);
    }

    fn child_started(&mut self, child: &ChildStarted, seq: u64, now_ns: u64) {
        let run = self.run;
        // The child is in this trace. It is linked too, for a reader who finds only one of them.
        let to = link(self.trace().to_vec(), first_span_id(child.child));
        let name = "delegate".to_owned();
        let span = self.open(child.effect.clone(), EffectRole::Child, name, seq, now_ns);
        span.span_id = child_span_id(run, &child.effect).to_vec();
        span.links.push(to);
        let id = child.child.to_string();
        span.attributes.push(text("gyrus.run.child", id));
    }
}

fn string(span: &Span, key: &str) -> String {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key == key);
    let value = found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        _ => String::new(),
    }
}
