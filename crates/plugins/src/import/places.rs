//! The usual places of other agents.

/// Another agent program, with the places of its files.
#[derive(Debug)]
pub struct ImportSource {
    /// The word by which a person names it.
    pub name: &'static str,
    pub title: &'static str,
    pub(super) places: &'static [ImportPlace],
}

/// A file or folder of another agent.
#[derive(Debug)]
pub(super) struct ImportPlace {
    pub(super) root: PathRoot,
    pub(super) path: &'static str,
    pub(super) form: PlaceKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PathRoot {
    Home,
    Folder,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PlaceKind {
    Servers(ServerFileShape),
    /// A folder of skills, each in a folder.
    Skills,
    /// A folder of agents, each in a file.
    Agents,
    /// Guidelines for the folder, or a folder of them.
    Rules,
    /// Something that gyrus does not import, with the reason.
    Unknown(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFileShape {
    /// JSON with `mcpServers`.
    Common,
    /// JSON with `mcpServers`, and further ones under `projects`.
    ClaudeCode,
    /// JSON with `servers`.
    VsCode,
    /// JSON with `mcpServers`, where `url` means the older protocol and `httpUrl` the present one.
    Gemini,
    /// TOML with `mcp_servers`.
    Codex,
    /// JSON with `mcp`.
    OpenCode,
}

const fn home(path: &'static str, form: PlaceKind) -> ImportPlace {
    ImportPlace {
        root: PathRoot::Home,
        path,
        form,
    }
}

const fn folder(path: &'static str, form: PlaceKind) -> ImportPlace {
    ImportPlace {
        root: PathRoot::Folder,
        path,
        form,
    }
}

const COMMON: PlaceKind = PlaceKind::Servers(ServerFileShape::Common);
const CLAUDE_CODE: PlaceKind = PlaceKind::Servers(ServerFileShape::ClaudeCode);
const VS_CODE: PlaceKind = PlaceKind::Servers(ServerFileShape::VsCode);
const GEMINI: PlaceKind = PlaceKind::Servers(ServerFileShape::Gemini);
const CODEX: PlaceKind = PlaceKind::Servers(ServerFileShape::Codex);
const OPEN_CODE: PlaceKind = PlaceKind::Servers(ServerFileShape::OpenCode);

const COMMANDS: PlaceKind =
    PlaceKind::Unknown("copy the files to commands/ beside gyrus's config.toml: /NAME begins them");
const FOR_ALL: PlaceKind = PlaceKind::Unknown(
    "they count for all folders: copy them to AGENTS.md beside gyrus's config.toml",
);
const RIGHTS: PlaceKind =
    PlaceKind::Unknown("permissions, hooks and settings of another agent are never taken over");
const CONFIRMED: PlaceKind =
    PlaceKind::Unknown("gyrus reads it there itself, once you say: gyrus mcp allow");

/// All agents from which can be imported.
pub const SOURCES: &[ImportSource] = &[
    ImportSource {
        name: "claude-code",
        title: "Claude Code",
        places: &[
            home(".claude.json", CLAUDE_CODE),
            home(".claude/settings.json", RIGHTS),
            home(".claude/skills", PlaceKind::Skills),
            home(".claude/agents", PlaceKind::Agents),
            home(".claude/commands", COMMANDS),
            home(".claude/CLAUDE.md", FOR_ALL),
            folder(".claude/skills", PlaceKind::Skills),
            folder(".claude/agents", PlaceKind::Agents),
            folder(".mcp.json", CONFIRMED),
        ],
    },
    ImportSource {
        name: "claude-desktop",
        title: "Claude Desktop",
        places: &[
            home(".config/Claude/claude_desktop_config.json", COMMON),
            home(
                "Library/Application Support/Claude/claude_desktop_config.json",
                COMMON,
            ),
        ],
    },
    ImportSource {
        name: "codex",
        title: "Codex",
        places: &[
            home(".codex/config.toml", CODEX),
            home(".codex/skills", PlaceKind::Skills),
            home(".codex/prompts", COMMANDS),
            home(".codex/AGENTS.md", FOR_ALL),
            folder(".codex/config.toml", CODEX),
        ],
    },
    ImportSource {
        name: "gemini",
        title: "Gemini CLI",
        places: &[
            home(".gemini/settings.json", GEMINI),
            home(".gemini/commands", COMMANDS),
            home(".gemini/GEMINI.md", FOR_ALL),
            folder(".gemini/settings.json", GEMINI),
            folder("GEMINI.md", PlaceKind::Rules),
        ],
    },
    ImportSource {
        name: "cursor",
        title: "Cursor",
        places: &[
            home(".cursor/mcp.json", COMMON),
            folder(".cursor/mcp.json", COMMON),
            folder(".cursor/rules", PlaceKind::Rules),
            folder(".cursorrules", PlaceKind::Rules),
        ],
    },
    ImportSource {
        name: "vscode",
        title: "VS Code",
        places: &[
            home(".config/Code/User/mcp.json", VS_CODE),
            folder(".vscode/mcp.json", VS_CODE),
            folder(".github/copilot-instructions.md", PlaceKind::Rules),
        ],
    },
    ImportSource {
        name: "windsurf",
        title: "Windsurf",
        places: &[
            home(".codeium/windsurf/mcp_config.json", COMMON),
            folder(".windsurfrules", PlaceKind::Rules),
        ],
    },
    ImportSource {
        name: "cline",
        title: "Cline",
        places: &[
            home(
                ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                COMMON,
            ),
            folder(".clinerules", PlaceKind::Rules),
        ],
    },
    ImportSource {
        name: "opencode",
        title: "OpenCode",
        places: &[
            home(".config/opencode/opencode.json", OPEN_CODE),
            home(".config/opencode/AGENTS.md", FOR_ALL),
            folder("opencode.json", OPEN_CODE),
        ],
    },
];
