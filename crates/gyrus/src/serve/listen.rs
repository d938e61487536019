//! The sockets of the server: a port on loopback, and a socket in the state folder.

use std::{
    fs::{self, File, Permissions},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::PathBuf,
    time::SystemTime,
};

use gyrus::runtime::Home;
use gyrus_contract::Principal;
use gyrus_process::read_regular_text;
use gyrus_server::ServerListener;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::failure::Failure;

/// The name of the socket in the folder of the server, and of the file that holds its address.
const SOCKET: &str = "socket";
const ADDRESS: &str = "address";

/// Opens both sockets, and writes the address to its file. `owner` is the local one's principal.
pub(super) async fn listen(
    home: &Home,
    port: u16,
    owner: Principal,
) -> Result<(SocketAddr, Vec<ServerListener>), Failure> {
    gyrus_text::check_http_date(SystemTime::now())
        .map_err(|error| Failure::failed("nothing can be served").because(&error))?;
    let network = on_loopback(port).await?;
    let address = network.local_addr()?;
    let local = on_socket(home)?;
    fs::write(folder(home).join(ADDRESS), format!("http://{address}"))?;
    let listeners = vec![
        ServerListener::Network(network),
        ServerListener::Local(local, owner),
    ];
    Ok((address, listeners))
}

async fn on_loopback(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        .await
        .map_err(|error| {
            Failure::failed(format!("port {port} cannot be listened on"))
                .because(&error)
                .hint("take another: gyrus serve --port N; 0 picks a free one")
        })
}

fn folder(home: &Home) -> PathBuf {
    home.state.join("serve")
}

/// Returns a path of the socket that is short however long the path of the state folder is: a
/// socket's path has at most 107 bytes.
fn short_path(home: &Home) -> io::Result<(File, PathBuf)> {
    let folder = File::open(folder(home))?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
    Ok((folder, path))
}

/// Listens on the socket in the state folder. No other server can: this one holds the queue.
fn on_socket(home: &Home) -> Result<UnixListener, Failure> {
    let path = folder(home).join(SOCKET);
    let listen = || {
        fs::create_dir_all(folder(home))?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (_folder, short) = short_path(home)?;
        let listener = UnixListener::bind(short)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    listen().map_err(|error| {
        Failure::failed(format!("{} cannot be listened on", path.display())).because(&error)
    })
}

pub(super) fn address(home: &Home) -> Result<String, Failure> {
    Ok(read_regular_text(&folder(home).join(ADDRESS))?)
}

/// Removes the socket; one that cannot be removed leads nowhere.
pub(super) fn remove_socket(home: &Home) {
    let _ = fs::remove_file(folder(home).join(SOCKET));
}

pub(crate) async fn connect(home: &Home) -> io::Result<UnixStream> {
    let (_folder, path) = short_path(home)?;
    UnixStream::connect(path).await
}
