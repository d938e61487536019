//! Doors on this machine's loopback to what processes of a run serve in networks of their own, for
//! the run's browser, which has the network of this machine.
//!
//! They are opened when the browser opens an address that a process serves, or when a sub-run begins
//! that may do so: all of them, as a page may use several servers. A door closes with its process.

use std::{
    net::{SocketAddr, TcpStream},
    sync::{Arc, Weak},
};

use tokio::net::{TcpListener, TcpSocket};

use super::processes::BackgroundProcess;
use crate::core::Core;

/// Opens the doors to all that processes of the run serve.
pub(super) async fn open(core: &Core) {
    let processes: Vec<_> = core.background.processes.lock().values().cloned().collect();
    for process in processes {
        let served = process.dialer.lock().as_mut().map(|it| it.served());
        let served = served.and_then(Result::ok).unwrap_or_default();
        for at in served.into_iter().filter(|at| at.ip().is_loopback()) {
            // Where there is a door, or somebody else listens, there is no place for another.
            if let Ok(listener) = TcpListener::bind(at).await {
                let process_there = Arc::downgrade(&process);
                process
                    .doors
                    .lock()
                    .spawn(lead(listener, at, process_there));
            }
        }
    }
}

/// Leads every connection to what a process serves at the same address, as long as it does.
async fn lead(listener: TcpListener, at: SocketAddr, process: Weak<BackgroundProcess>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let socket = process.upgrade();
        let socket = socket.and_then(|it| it.dialer.lock().as_mut()?.socket(at).ok());
        let Some(socket) = socket else { return };
        tokio::spawn(async move {
            let socket = TcpSocket::from_std_stream(TcpStream::from(socket));
            if let Ok(mut server) = socket.connect(at).await {
                // An end is seen at the other side.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
