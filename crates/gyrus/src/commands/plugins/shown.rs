//! Descriptions of plugins, in words. All of it is the package's own words, and shown as such.

use gyrus_plugins::{Plugin, PluginAgent, PluginServer};
use gyrus_text::one_line;

pub(super) fn parts(plugin: &Plugin) -> Vec<String> {
    let skills = plugin
        .skills
        .iter()
        .map(|one| format!("skill {}", one.skill.name));
    let agents = plugin.agents.iter();
    let agents = agents.map(|agent| format!("agent {}:{}", plugin.name, agent.name));
    let servers = plugin
        .servers
        .iter()
        .map(|server| format!("server {}", server.name));
    skills.chain(agents).chain(servers).collect()
}

/// Returns the description of a plugin, without the texts of its skills.
pub(super) fn whole(plugin: &Plugin) -> String {
    let mut said = format!(
        "{} {}: {}\n",
        plugin.given_name,
        plugin.version.as_deref().unwrap_or("(without a version)"),
        plugin.description
    );
    for one in &plugin.skills {
        said.push_str(&format!(
            "skill {}: {}\n",
            one.skill.name, one.skill.description
        ));
    }
    for agent in &plugin.agents {
        said.push_str(&of_agent(&plugin.name, agent));
    }
    for server in &plugin.servers {
        said.push_str(&of_server(server));
    }
    for (name, line) in &plugin.scripts {
        said.push_str(&format!(
            "script {name}: `{}`; it is not run\n",
            one_line(line)
        ));
    }
    for left in &plugin.left_out {
        said.push_str(&format!("left out: {}\n", one_line(left)));
    }
    said
}

/// Returns the description of an agent, without its instructions.
pub(super) fn of_agent(plugin: &str, agent: &PluginAgent) -> String {
    let mut said = format!("agent {plugin}:{}: {}\n", agent.name, agent.description);
    let tools = match agent.tools.as_deref() {
        None => "it names no tools, so its runs have those of any run".to_owned(),
        Some([]) => "its runs have no tools but those that read, ask and finish".to_owned(),
        Some(tools) => format!(
            "its runs have no other tools than {}, and those that read, ask and finish",
            tools.join(", ")
        ),
    };
    said.push_str(&format!("  {tools}\n"));
    for asked in &agent.without_effect {
        said.push_str(&format!("  without effect: {}\n", one_line(asked)));
    }
    said
}

fn of_server(server: &PluginServer) -> String {
    let mut said = format!("server {}: {}\n", server.name, one_line(&server.shown()));
    for remark in server.remarks() {
        said.push_str(&format!("  {}\n", one_line(&remark)));
    }
    said.push_str(&format!("  its tools are called {}__…\n", server.name));
    said
}
