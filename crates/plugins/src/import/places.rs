//! The usual places of other agents.

/// Another agent.
#[derive(Debug)]
pub struct ImportSource {
    /// The word by which a person names it.
    pub name: &'static str,
    pub title: &'static str,
    pub(super) places: &'static [Place],
}

/// A file or folder of another agent.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: Root,
    pub(super) path: &'static str,
    pub(super) form: Form,
}

/// Folders in which paths begin.
#[derive(Debug, Clone, Copy)]
pub(super) enum Root {
    Home,
    Folder,
}

/// Kinds of things that lie at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Servers, in a file of this shape.
    Servers(Shape),
    /// A folder of skills, each in a folder.
    Skills,
    /// A folder of agents, each in a file.
    Agents,
    /// Guidelines for the folder, or a folder of them.
    Rules,
    /// Something that gyrus does not take, and why.
    Unknown(&'static str),
}

/// Shapes of files that name servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// JSON with `mcpServers`.
    Common,
    /// JSON with `mcpServers`, and more of them under `projects`.
    ClaudeCode,
    /// JSON with `servers`.
    VsCode,
    /// JSON with `mcpServers`, where `url` is the older protocol and `httpUrl` this one.
    Gemini,
    /// TOML with `mcp_servers`.
    Codex,
    /// JSON with `mcp`.
    OpenCode,
}

const fn home(path: &'static str, form: Form) -> Place {
    Place {
        root: Root::Home,
        path,
        form,
    }
}

const fn folder(path: &'static str, form: Form) -> Place {
    Place {
        root: Root::Folder,
        path,
        form,
    }
}

const COMMANDS: Form = Form::Unknown("gyrus has no commands; write it as a skill");
const FOR_ALL: Form =
    Form::Unknown("they count for all folders: copy them to AGENTS.md beside gyrus's config.toml");
const RIGHTS: Form =
    Form::Unknown("permissions, hooks and settings of another agent are never taken over");
const CONFIRMED: Form = Form::Unknown("gyrus reads it there itself, once you say: gyrus mcp allow");

/// All of them.
pub const SOURCES: &[ImportSource] = &[
    ImportSource {
        name: "claude-code",
        title: "Claude Code",
        places: &[
            home(".claude.json", Form::Servers(Shape::ClaudeCode)),
            home(".claude/settings.json", RIGHTS),
            home(".claude/skills", Form::Skills),
            home(".claude/agents", Form::Agents),
            home(".claude/commands", COMMANDS),
            home(".claude/CLAUDE.md", FOR_ALL),
            folder(".claude/skills", Form::Skills),
            folder(".claude/agents", Form::Agents),
            folder(".mcp.json", CONFIRMED),
        ],
    },
    ImportSource {
        name: "claude-desktop",
        title: "Claude Desktop",
        places: &[
            home(
                ".config/Claude/claude_desktop_config.json",
                Form::Servers(Shape::Common),
            ),
            home(
                "Library/Application Support/Claude/claude_desktop_config.json",
                Form::Servers(Shape::Common),
            ),
        ],
    },
    ImportSource {
        name: "codex",
        title: "Codex",
        places: &[
            home(".codex/config.toml", Form::Servers(Shape::Codex)),
            home(".codex/skills", Form::Skills),
            home(".codex/prompts", COMMANDS),
            home(".codex/AGENTS.md", FOR_ALL),
            folder(".codex/config.toml", Form::Servers(Shape::Codex)),
        ],
    },
    ImportSource {
        name: "gemini",
        title: "Gemini CLI",
        places: &[
            home(".gemini/settings.json", Form::Servers(Shape::Gemini)),
            home(".gemini/commands", COMMANDS),
            home(".gemini/GEMINI.md", FOR_ALL),
            folder(".gemini/settings.json", Form::Servers(Shape::Gemini)),
            folder("GEMINI.md", Form::Rules),
        ],
    },
    ImportSource {
        name: "cursor",
        title: "Cursor",
        places: &[
            home(".cursor/mcp.json", Form::Servers(Shape::Common)),
            folder(".cursor/mcp.json", Form::Servers(Shape::Common)),
            folder(".cursor/rules", Form::Rules),
            folder(".cursorrules", Form::Rules),
        ],
    },
    ImportSource {
        name: "vscode",
        title: "VS Code",
        places: &[
            home(".config/Code/User/mcp.json", Form::Servers(Shape::VsCode)),
            folder(".vscode/mcp.json", Form::Servers(Shape::VsCode)),
            folder(".github/copilot-instructions.md", Form::Rules),
        ],
    },
    ImportSource {
        name: "windsurf",
        title: "Windsurf",
        places: &[
            home(
                ".codeium/windsurf/mcp_config.json",
                Form::Servers(Shape::Common),
            ),
            folder(".windsurfrules", Form::Rules),
        ],
    },
    ImportSource {
        name: "cline",
        title: "Cline",
        places: &[
            home(
                ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                Form::Servers(Shape::Common),
            ),
            folder(".clinerules", Form::Rules),
        ],
    },
    ImportSource {
        name: "opencode",
        title: "OpenCode",
        places: &[
            home(
                ".config/opencode/opencode.json",
                Form::Servers(Shape::OpenCode),
            ),
            home(".config/opencode/AGENTS.md", FOR_ALL),
            folder("opencode.json", Form::Servers(Shape::OpenCode)),
        ],
    },
];
