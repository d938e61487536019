//! Proposals: a person's decision, and applying them to the files.

use gyrus_contract::{
    Action, ActionVerdict, ApplyChangesetCall, Arguments as _, ChangeEvent, Claim, Decision,
    Evidence, ExecutionResult, Observation, Origin, Proposal, Strength, Text, TypedCall as _,
};
use gyrus_kernel::{ApprovalCard, CognitiveLoop as _, EffectError, Foreseen, Run, Stop};
use gyrus_text::shorten;

use super::{CONFIGURATION, Changeset, NoChangesReason, ProposalOutcome, diff};
use crate::{
    Review,
    review::{ReviewResult, ReviewSubject, not_taken, review},
};

/// Maximum number of further proposals after one that could not be applied.
const MAX_RETRIES: u32 = 3;

/// Maximum characters stored of a report by the applying tool. Memory has the whole report.
const REPORT_CHARACTERS: usize = 4_000;

struct ProposalForPerson<'a> {
    proposal: &'a Proposal,
    verify: Option<&'a str>,
    /// The gate's reasons for asking when the proposal is applied.
    asks: Vec<String>,
}

impl ReviewSubject for ProposalForPerson<'_> {
    type Edited = Proposal;

    fn what(&self) -> &'static str {
        "proposal"
    }

    fn card(&self, wrong: &[String]) -> ApprovalCard {
        let Proposal { summary, changes } = self.proposal;
        let mut reasons: Vec<_> = not_taken(wrong).collect();
        reasons
            .push("all of it is applied, or nothing, and only to files as they are now".to_owned());
        reasons.push(match self.verify {
            Some(command) => {
                format!("then `{command}` runs; if it fails, every file is put back")
            }
            None => "no command says afterwards whether it works (--verify)".to_owned(),
        });
        if !self.asks.is_empty() {
            let why = self.asks.join("; ");
            reasons.push(format!("you are asked again before it is applied: {why}"));
        }
        // Each line is marked, so that none can look like a line of the diff.
        let lines: Vec<_> = summary.lines().map(|line| format!("# {line}")).collect();
        let whole = Text::new(lines.join("\n"), Origin::Model);
        let files = changes.iter();
        let files = files.map(|change| Text::new(change.to_string(), Origin::Model));
        ApprovalCard {
            sentence: format!("The agent wants to change {}", diff::counted(self.proposal)),
            reasons,
            details: [whole].into_iter().chain(files).collect(),
            edit: Some(self.proposal.to_string()),
            ..ApprovalCard::default()
        }
    }

    /// Checks a person's edit like a proposal of the model. It is applied as the person wrote it,
    /// to the files that they saw.
    async fn read(
        &self,
        run: &mut Run,
        edited: &str,
    ) -> Result<Proposal, EffectError<Vec<String>>> {
        let proposal = diff::read(edited).map_err(EffectError::Failed)?;
        let seen = run.call(&diff::check(&proposal).to_call()).await?;
        if !seen.is_error {
            Ok(proposal)
        } else {
            let wrong = seen.text.text.lines().map(str::to_owned).collect();
            Err(EffectError::Failed(wrong))
        }
    }
}

impl Changeset {
    /// Handles a proposal of the model.
    pub(super) async fn proposed(
        &mut self,
        run: &mut Run,
        mut result: ExecutionResult,
        proposal: Option<Proposal>,
    ) -> Result<ExecutionResult, Stop> {
        result.claim = None;
        let Some(proposal) = proposal else {
            self.acting
                .tell("The proposal cannot be shown to a person. Propose less at once.");
            return Ok(result);
        };
        // A person is not shown a proposal that cannot be applied.
        let asks = if self.config.reviews(Review::Proposal) {
            match self.foreseen(run, &proposal) {
                Ok(asks) => asks,
                Err(error) => {
                    result.error = self.refused(run, &error.handled()?)?;
                    return Ok(result);
                }
            }
        } else {
            Vec::new()
        };
        let told = format!("{}: {}", diff::counted(&proposal), proposal.summary);
        self.step(run, ChangeEvent::ProposalReady, &told, None)?;
        let Some(approved) = self.decide(run, proposal, asks, &mut result).await? else {
            return Ok(result);
        };
        self.apply(run, &approved, &mut result).await?;
        Ok(result)
    }

    /// Returns the gate's reasons for asking if the proposal were applied now.
    fn foreseen(
        &self,
        run: &mut Run,
        proposal: &Proposal,
    ) -> Result<Vec<String>, EffectError<String>> {
        let call = diff::apply(proposal, self.config.verify.as_deref()).to_call();
        match run.foresee(&[call])?.pop() {
            Some(Foreseen::Unresolvable(why)) => Err(EffectError::Failed(why)),
            Some(Foreseen::Judged(verdict)) => match verdict.decision {
                Decision::Allow => Ok(Vec::new()),
                Decision::Ask => Ok(verdict.reasons),
                Decision::Deny => Err(EffectError::Failed(verdict.reasons.join("; "))),
            },
            None => Ok(Vec::new()),
        }
    }

    /// Handles a proposal that the gate would deny. Returns the reason if the run ends.
    fn refused(&mut self, run: &mut Run, why: &str) -> Result<Option<String>, Stop> {
        self.state.failures += 1;
        if self.state.failures > MAX_RETRIES {
            let why = format!("no changeset could be proposed that is allowed; the last: {why}");
            return Ok(self.abort(run, NoChangesReason { why, by: None })?.error);
        }
        self.acting.tell(format!(
            "The proposal would not be allowed, so nobody was shown it: {why}. Propose another, or \
             call `finish` with `reached` false."
        ));
        Ok(None)
    }

    /// Returns the approved proposal; otherwise `result` says how the cycle ends.
    async fn decide(
        &mut self,
        run: &mut Run,
        proposal: Proposal,
        asks: Vec<String>,
        result: &mut ExecutionResult,
    ) -> Result<Option<Proposal>, Stop> {
        if !self.config.reviews(Review::Proposal) {
            let by = Some(CONFIGURATION);
            self.step(
                run,
                ChangeEvent::ApproveProposal,
                "nobody is asked about it",
                by,
            )?;
            return Ok(Some(proposal));
        }
        let shown = ProposalForPerson {
            proposal: &proposal,
            verify: self.config.verify.as_deref(),
            asks,
        };
        match review(run, &shown).await? {
            ReviewResult::AsShown { by } => {
                self.step(
                    run,
                    ChangeEvent::ApproveProposal,
                    "as it was proposed",
                    Some(&by),
                )?;
                Ok(Some(proposal))
            }
            ReviewResult::Edited { edited, by } => {
                let told = format!("as the person changed it: {}", diff::counted(&edited));
                self.step(run, ChangeEvent::ApproveProposal, &told, Some(&by))?;
                self.acting.tell(format!(
                    "The person changed your proposal before they approved it; what is applied of \
                     it is: {}",
                    diff::counted(&edited)
                ));
                Ok(Some(edited))
            }
            ReviewResult::Rejected { words, by } => {
                self.state.outcome = Some(ProposalOutcome::Rejected);
                self.step(run, ChangeEvent::RejectProposal, &words, Some(&by))?;
                self.acting.tell(format!(
                    "A person rejected that proposal, and nothing was changed. They say: {words}"
                ));
                Ok(None)
            }
            ReviewResult::Ended { why, by } => {
                self.state.outcome = Some(ProposalOutcome::Rejected);
                *result = ExecutionResult {
                    actions: std::mem::take(&mut result.actions),
                    ..self.abort(run, NoChangesReason { why, by })?
                };
                Ok(None)
            }
        }
    }

    /// Applies all changes of files, or none.
    async fn apply(
        &mut self,
        run: &mut Run,
        approved: &Proposal,
        result: &mut ExecutionResult,
    ) -> Result<(), Stop> {
        let call = diff::apply(approved, self.config.verify.as_deref()).to_call();
        let mut observation = run.call(&call).await?;
        // It failed, and the files are neither as before nor as approved: the run must not continue
        // before they are. Another call begins with restoring them.
        while observation.is_error && observation.verdict == ActionVerdict::Changed {
            run.stuck(format!(
                "the files are left half changed: {}",
                shorten(&observation.text.text, REPORT_CHARACTERS).into_owned()
            ))?;
            observation = run.call(&call).await?;
        }
        let said = &observation.text.text;
        self.acting
            .memory_buffer_mut()
            .add_observation(ApplyChangesetCall::TOOL, said);
        if observation.is_error {
            let report = shorten(said, REPORT_CHARACTERS).into_owned();
            result.error = self.could_not(run, &report)?;
        } else {
            let first = ApplyChangesetCall::value_of(&observation);
            let first = first.map(|applied| applied.text).unwrap_or_default();
            self.state.outcome = Some(ProposalOutcome::Applied);
            self.state.last_error = None;
            self.step(run, ChangeEvent::Applied, &first, None)?;
            result.claim = Some(self.claim(approved, &first, &observation));
            result.strength = match self.config.verify.as_deref() {
                Some(_) => Strength::Checked,
                None => Strength::default(),
            };
        }
        result.actions.push(Action { call, observation });
        Ok(())
    }

    /// Handles a proposal not applied for this reason. Returns the reason if the run ends.
    fn could_not(&mut self, run: &mut Run, report: &str) -> Result<Option<String>, Stop> {
        self.state.outcome = Some(ProposalOutcome::Failed);
        self.state.failures += 1;
        self.state.last_error = Some(report.to_owned());
        self.step(run, ChangeEvent::Failed, "it could not be applied", None)?;
        if self.state.failures > MAX_RETRIES {
            let times = self.state.failures;
            return Ok(Some(format!(
                "{times} changesets could not be applied; the last one because: {report}"
            )));
        }
        self.acting.tell(
            "The changeset was approved and could not be applied. Find out why, and propose all of \
             it anew, for the files as they are now.",
        );
        Ok(None)
    }

    fn claim(&self, approved: &Proposal, first: &str, seen: &Observation) -> Claim {
        let at = seen.effect.to_string();
        let applied = Evidence {
            what: first.to_owned(),
            at: at.clone(),
        };
        let verified = self.config.verify.as_deref().map(|command| Evidence {
            what: format!("`{command}` succeeded afterwards"),
            at,
        });
        Claim {
            reached: true,
            answer: format!("{}\n\n{first}", approved.summary).trim().to_owned(),
            evidence: [applied].into_iter().chain(verified).collect(),
            shortfalls: Vec::new(),
        }
    }
}
