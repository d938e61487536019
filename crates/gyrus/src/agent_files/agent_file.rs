//! An agent as its file describes it.

use std::{collections::BTreeMap, path::PathBuf};

use gyrus_contract::Text;
use gyrus_runtime::{
    agents::AgentConfig,
    request::{RunOptions, RunRequest},
    triggers::{DayBudget, HookSecret, TriggerConfig, TriggerSource},
};

/// Secrets of webhooks by their variables, or the reasons why they cannot be used.
pub(crate) type HookSecrets = BTreeMap<String, Result<HookSecret, String>>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileTrigger {
    /// The trigger; a webhook's secret is still missing.
    pub(crate) config: TriggerConfig,
    /// The variable with the secret of a webhook.
    pub(crate) secret: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentFile {
    /// The goal of each of the agent's runs.
    pub(crate) instructions: String,
    pub(crate) workdir: PathBuf,
    /// Options of `gyrus run`.
    pub(crate) options: RunOptions,
    /// Labels that a machine of the fleet must have to carry out the agent's runs.
    pub(crate) needs: Vec<String>,
    pub(crate) budget: DayBudget,
    pub(crate) triggers: Vec<FileTrigger>,
    /// Name, subscriptions and mailbox.
    pub(crate) config: AgentConfig,
}

impl AgentFile {
    pub(crate) fn request(&self, goal: Text) -> RunRequest {
        RunRequest {
            options: self.options.clone(),
            needs: self.needs.clone(),
            ..RunRequest::new(goal, self.workdir.clone())
        }
    }

    pub(crate) fn triggers(&self, secrets: &HookSecrets) -> Vec<TriggerConfig> {
        let with_secret = |trigger: &FileTrigger| {
            let mut config = trigger.config.clone();
            if let (Some(variable), TriggerSource::Webhook { secret }) =
                (&trigger.secret, &mut config.source)
            {
                *secret = secrets.get(variable).and_then(|secret| secret.clone().ok());
            }
            config
        };
        self.triggers.iter().map(with_secret).collect()
    }
}
