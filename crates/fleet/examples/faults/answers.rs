//! Whoever answers what parked runs ask: twice each time, as two people who do not know of each other.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use gyrus_contract::{
    Answer, ApprovalScope, MessageBody, Principal, SurfaceMessage, time_ordered_uuid,
};
use gyrus_fleet::{FleetCopy, FleetMessage, Machine, OsMachine, SharedLog, send_message};
use gyrus_journal::Store;
use gyrus_kernel::approvals;
use gyrus_runtime::queue::Gateway;

/// Interval between two looks at the parked runs.
const LOOK: Duration = Duration::from_millis(500);

/// Time in which a message is sent.
const SENT: Duration = Duration::from_secs(60);

/// Answers until this is dropped. `store` gets copies of the runs that ask.
pub(crate) async fn answer(gateway: Gateway, log: Arc<dyn SharedLog>, store: Store) {
    let machine: Arc<dyn Machine> = Arc::new(OsMachine);
    let mut answered = BTreeSet::new();
    loop {
        for (command, _) in gateway.parked() {
            let copy = FleetCopy {
                log: Arc::clone(&log),
                machine: Arc::clone(&machine),
                store: store.clone(),
                root: command.run,
            };
            // What cannot be read now is read at the next look.
            if copy.refresh().await.is_err() {
                continue;
            }
            for open in approvals::open(&store, command.run).unwrap_or_default() {
                if answered.contains(&(command.run, open.digest)) {
                    continue;
                }
                let mut sent = true;
                for person in ["one", "two"] {
                    let message = SurfaceMessage {
                        id: time_ordered_uuid().to_string(),
                        from: Principal {
                            id: person.to_owned(),
                            surface: "test".to_owned(),
                        },
                        body: MessageBody::Answer {
                            effect: open.id.effect.clone(),
                            digest: open.digest,
                            answer: Answer::yes(ApprovalScope::Once),
                        },
                    };
                    let Ok(body) = serde_json::to_string(&message) else {
                        return;
                    };
                    let message = FleetMessage {
                        run: command.run,
                        id: message.id,
                        body,
                    };
                    let until = machine.now() + SENT;
                    let root = command.run;
                    sent &= send_message(&log, &machine, root, &message, until)
                        .await
                        .is_ok();
                }
                if sent {
                    answered.insert((command.run, open.digest));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
