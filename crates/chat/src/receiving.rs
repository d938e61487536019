//! Reading a messenger. An update and everything that follows from it are one fact, and the position
//! moves behind an update no sooner, so a kill loses none of it and repeats none of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_runtime::ledger::LedgerError;

use crate::{
    conversation::follow_from,
    messenger::{MessengerError, MessengerUpdates},
    record::ChatChange,
    shared::AccountInner,
    words,
};

/// Shortest and longest time before a messenger that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AT_MOST: Duration = Duration::from_secs(60);

/// Time before a messenger is tried again that another program reads, or that refuses the account.
const AGAIN_SLOWLY: Duration = Duration::from_secs(30);

/// Reads a messenger for as long as the server lives.
pub(crate) async fn receive(shared: Arc<AccountInner>) {
    let mut trouble = Trouble::new(&shared);
    connect(&shared, &mut trouble).await;
    loop {
        let position = shared.with(|record| record.position.clone());
        let since = Instant::now();
        match shared.messenger.receive(position.as_deref()).await {
            Ok(received) => {
                trouble.is_over();
                match take(&shared, received).await {
                    Ok(ReceiveResult::Something) => {}
                    // A messenger that does not wait, or repeats itself, is not asked all the time.
                    Ok(ReceiveResult::Nothing) => {
                        tokio::time::sleep(AGAIN_AFTER.saturating_sub(since.elapsed())).await;
                    }
                    Err(error) => {
                        // Nothing was confirmed, so it comes again.
                        shared.failed(&error);
                        tokio::time::sleep(AGAIN_SLOWLY).await;
                    }
                }
            }
            Err(error) => trouble.wait_after(&error).await,
        }
    }
}

async fn connect(shared: &AccountInner, trouble: &mut Trouble<'_>) {
    let commands = words::commands();
    let surface = shared.messenger.surface();
    loop {
        match shared.messenger.connect(&commands).await {
            Ok(name) => {
                trouble.is_over();
                shared
                    .host
                    .say(&format!("chat {surface}: connected as {name}\n"));
                return;
            }
            Err(error) => trouble.wait_after(&error).await,
        }
    }
}

/// Whether an answer of a messenger contained anything new.
enum ReceiveResult {
    Something,
    Nothing,
}

/// Records updates, each with its consequences, and the last also with the position after all of
/// them.
async fn take(
    shared: &Arc<AccountInner>,
    received: MessengerUpdates,
) -> Result<ReceiveResult, LedgerError> {
    let mut taken = ReceiveResult::Nothing;
    if received.updates.is_empty() {
        let position = received.position.clone();
        shared
            .commit(|record, _| {
                let has_moved = record.position.as_ref() != Some(&position);
                let change = has_moved.then_some(ChatChange::Position { position });
                (Vec::from_iter(change), ())
            })
            .await?;
    }
    let mut updates = received.updates.into_iter().peekable();
    while let Some(update) = updates.next() {
        let position = updates.peek().is_none().then(|| received.position.clone());
        let is_new = shared
            .commit(|record, numbers| {
                let mut changes = Vec::new();
                let is_new = !record.has_seen(&update.key);
                if is_new {
                    changes.push(ChatChange::Seen { key: update.key });
                    changes.extend(follow_from(shared, record, numbers, update.event));
                }
                changes.extend(position.map(|position| ChatChange::Position { position }));
                (changes, is_new)
            })
            .await?;
        if is_new {
            taken = ReceiveResult::Something;
        }
    }
    Ok(taken)
}

/// A messenger that cannot be read: the person at the console is told once, and once it is over.
struct Trouble<'a> {
    shared: &'a AccountInner,
    said: Option<String>,
    wait: Duration,
}

impl<'a> Trouble<'a> {
    fn new(shared: &'a AccountInner) -> Self {
        Self {
            shared,
            said: None,
            wait: AGAIN_AFTER,
        }
    }

    fn is_over(&mut self) {
        self.wait = AGAIN_AFTER;
        if self.said.take().is_some() {
            let surface = self.shared.messenger.surface();
            self.shared
                .host
                .say(&format!("chat {surface}: it answers again\n"));
        }
    }

    async fn wait_after(&mut self, error: &MessengerError) {
        let surface = self.shared.messenger.surface();
        let (why, wait) = match error {
            MessengerError::Unauthorized { why } => {
                let hint = format!("give the right one: gyrus chat token {surface}");
                (
                    format!("the token is not accepted: {why}; {hint}"),
                    AGAIN_SLOWLY,
                )
            }
            MessengerError::Conflict { why } => (
                format!("another program reads the same account: {why}"),
                AGAIN_SLOWLY,
            ),
            MessengerError::TooFast { after } => (error.to_string(), *after),
            MessengerError::Later { .. }
            | MessengerError::Unknown { .. }
            | MessengerError::Refused { .. }
            | MessengerError::Moved { .. } => {
                let wait = self.wait;
                self.wait = (wait * 2).min(AGAIN_AT_MOST);
                (error.to_string(), wait)
            }
        };
        if self.said.as_ref() != Some(&why) {
            self.shared.host.say(&format!("chat {surface}: {why}\n"));
            self.said = Some(why);
        }
        tokio::time::sleep(wait).await;
    }
}
