//! `gyrus mcp login` and `gyrus mcp logout`

use gyrus_mcp::{McpServer, ServerLogin, ServerWay};
use gyrus_surfaces::console::put;
use gyrus_text::visible;

use crate::{
    config::Config,
    drive,
    exit::Code,
    failure::Failure,
    keys::KeyLookup,
    mcp::{self, StartSurroundings, start},
};

/// Logs the person in at a server: shows the address to open, and waits for the answer.
pub(super) fn login(around: &StartSurroundings<'_>, name: &str) -> Result<Code, Failure> {
    let (url, login, setup) = server(around, name)?;
    let failed = |why: String| {
        Failure::failed(format!(
            "nobody is logged in at the server `{name}`: {}",
            visible(&why)
        ))
        .hint(format!("begin again: gyrus mcp login {name}"))
    };
    drive::runtime()?.block_on(async {
        let challenge = McpServer::challenge(&setup).await.map_err(|why| {
            Failure::usage(format!("the server `{name}`: {}", visible(&why)))
                .hint(format!("see the server's answer: gyrus mcp test {name}"))
        })?;
        let attempt = login.begin(&url, &challenge).await.map_err(failed)?;
        let host = attempt.address().host_str().unwrap_or_default();
        put(&format!(
            "The server `{name}` ({}) wants you to log in at {}. Open this address in your \
             browser on this machine, and allow it there:\n\n{}\n\n",
            visible(&url),
            visible(host),
            visible(attempt.address().as_str())
        ))?;
        attempt.finish().await.map_err(failed)?;
        put(&format!(
            "logged in; to see its tools: gyrus mcp test {name}\n"
        ))?;
        Ok(Code::Reached)
    })
}

pub(super) fn logout(around: &StartSurroundings<'_>, name: &str) -> Result<Code, Failure> {
    let (_, login, _) = server(around, name)?;
    let was_there = login.forget().map_err(|error| {
        let file = login.file.display();
        Failure::failed(format!("{file} cannot be deleted")).because(&error)
    })?;
    put(if was_there {
        "the tokens are deleted here; the server may take them until they expire\n"
    } else {
        "nobody was logged in there\n"
    })?;
    Ok(Code::Reached)
}

/// Returns the address of a server, the means to log in, and how it is reached.
fn server(
    around: &StartSurroundings<'_>,
    name: &str,
) -> Result<(String, ServerLogin, gyrus_mcp::ServerSetup), Failure> {
    let found = mcp::find(around)?;
    let Some(wanted) = found.wanted.iter().find(|server| server.name == name) else {
        return Err(mcp::no_such_server(name, &found.notes));
    };
    let Config { keys, .. } = around.config;
    let (setup, _folder) = start::setup(around, wanted, &KeyLookup::new(keys), &mut Vec::new())
        .map_err(|why| Failure::usage(format!("the server `{name}`: {}", visible(&why))))?;
    match &setup.way {
        ServerWay::Http {
            url,
            login: Some(login),
            ..
        } => Ok((url.clone(), login.clone(), setup.clone())),
        ServerWay::Http { login: None, .. } => Err(Failure::usage(format!(
            "the server `{name}` has its authorization in `headers`"
        ))
        .hint("remove `headers` from the server's section to log in instead")),
        ServerWay::Process { .. } => Err(Failure::usage(format!(
            "the server `{name}` is started here, and asks for no login"
        ))
        .hint("give the server its keys in `env`")),
    }
}
