//! Links: connections that pass through this process, which can hold back or delay what is sent over
//! them, in each direction by itself, and end them.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::AbortHandle,
    time::Instant,
};

/// Number of pieces that are under way at once in one direction.
const UNDER_WAY: usize = 256;

/// Size of a piece in bytes.
const PIECE: usize = 16 << 10;

/// The state of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Everything passes.
    Open,
    /// Nothing arrives. It is kept, as by a sender who sends again what got lost.
    Held,
    /// Everything arrives later.
    Delayed(Duration),
}

/// A port of this machine behind which another one is.
pub(crate) struct Link {
    pub(crate) port: u16,
    there: watch::Sender<Flow>,
    back: watch::Sender<Flow>,
    resets: watch::Sender<u64>,
    accepting: AbortHandle,
}

impl Link {
    /// Opens a link to a port of this machine.
    pub(crate) async fn open(target: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (there, back) = (
            watch::Sender::new(Flow::Open),
            watch::Sender::new(Flow::Open),
        );
        let resets = watch::Sender::new(0);
        let (flows, ends) = ((there.subscribe(), back.subscribe()), resets.subscribe());
        let accepting = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (flows, mut ends) = (flows.clone(), ends.clone());
                ends.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = carry(near, target, flows) => {}
                        _ = ends.changed() => {}
                    }
                });
            }
        });
        Ok(Self {
            port,
            there,
            back,
            resets,
            accepting: accepting.abort_handle(),
        })
    }

    /// Sets both directions.
    pub(crate) fn set(&self, there: Flow, back: Flow) {
        self.there.send_replace(there);
        self.back.send_replace(back);
    }

    /// Lets everything pass again.
    pub(crate) fn heal(&self) {
        self.set(Flow::Open, Flow::Open);
    }

    /// Ends all connections; what was under way is lost.
    pub(crate) fn reset(&self) {
        self.resets.send_modify(|count| *count += 1);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Flows = (watch::Receiver<Flow>, watch::Receiver<Flow>);

async fn carry(near: TcpStream, target: u16, (mut there, back): Flows) {
    // A connection is not made while nothing gets there.
    if there.wait_for(|flow| *flow != Flow::Held).await.is_err() {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pump(near_in, far_out, there) => {}
        () = pump(far_in, near_out, back) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut flow: watch::Receiver<Flow>) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let read = async move {
        let mut piece = vec![0; PIECE];
        loop {
            match from.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let sent = (Instant::now(), piece[..count].to_vec());
                    if sender.send(sent).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    let write = async move {
        while let Some((at, piece)) = pieces.recv().await {
            if !may_pass(at, &mut flow).await || to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = write => {}
        // What was read before the end still arrives.
        () = async {
            read.await;
            std::future::pending::<()>().await;
        } => {}
    }
}

/// Returns once a piece may pass; false if there is no link any more.
async fn may_pass(sent: Instant, flow: &mut watch::Receiver<Flow>) -> bool {
    loop {
        let now = *flow.borrow_and_update();
        match now {
            Flow::Open => return true,
            Flow::Held => {
                if flow.changed().await.is_err() {
                    return false;
                }
            }
            Flow::Delayed(by) => tokio::select! {
                () = tokio::time::sleep_until(sent + by) => return true,
                changed = flow.changed() => if changed.is_err() { return false },
            },
        }
    }
}
