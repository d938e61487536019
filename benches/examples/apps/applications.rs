//! The applications and the states that each is brought to.

/// Something done to a page.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// A click of the mouse on what a selector finds first.
    Click(&'static str),
    /// The same with the other button.
    Menu(&'static str),
    /// A key by its name and code, with modifiers as the protocol counts them.
    Key(&'static str, u32, u32),
    /// A script.
    Run(&'static str),
    /// Until a script says yes.
    Until(&'static str),
}

/// A state to be looked at: what it is called, where it begins, what leads to it.
pub(crate) type State = (&'static str, &'static str, &'static [Step]);

/// Server of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Django,
    Jupyter,
    Datasette,
    Streamlit,
    Gradio,
    Wagtail,
    NodeRed,
    TiddlyWiki,
    Etherpad,
    NiceGui,
    /// Files of the packages, and small pages of ours around them.
    Files,
}

impl Server {
    /// Returns the server that a file of tasks names.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Django,
            Self::Jupyter,
            Self::Streamlit,
            Self::Gradio,
            Self::Wagtail,
            Self::NodeRed,
            Self::TiddlyWiki,
            Self::Etherpad,
            Self::NiceGui,
            Self::Files,
        ];
        all.into_iter().find(|one| format!("{one:?}") == name)
    }
}

pub(crate) struct Application {
    pub(crate) name: &'static str,
    pub(crate) server: Server,
    pub(crate) states: &'static [State],
}

use Step::{Click, Key, Menu, Run, Until};

const LOG_IN: Step = Run(
    "if (document.querySelector('#login-form')) { document.querySelector('#id_username').value = 'admin'; \
     document.querySelector('#id_password').value = 'admin'; document.querySelector('#login-form').submit(); }",
);
const LOGGED_IN: Step =
    Until("!document.querySelector('#login-form') && document.readyState === 'complete'");

const JUPYTER_IS_UP: Step = Until(
    "document.querySelector('.jp-Launcher, .jp-Notebook .jp-Cell, .cm-content') && !document.querySelector('#galata-loading, .jp-LabShell-splash, #jupyterlab-splash')",
);

pub(crate) const APPLICATIONS: &[Application] = &[
    Application {
        name: "Django admin",
        server: Server::Django,
        states: &[
            ("index", "/admin/", &[LOG_IN, LOGGED_IN]),
            ("list", "/admin/auth/user/", &[LOG_IN, LOGGED_IN]),
            (
                "form",
                "/admin/auth/user/1/change/",
                &[
                    LOG_IN,
                    LOGGED_IN,
                    Until("document.querySelector('.selector-available')"),
                ],
            ),
            (
                "calendar",
                "/admin/auth/user/1/change/",
                &[
                    LOG_IN,
                    LOGGED_IN,
                    Until("document.querySelector('#calendarlink0')"),
                    Run("DateTimeShortcuts.openCalendar(0)"),
                    Until("document.querySelector('.calendarbox')?.offsetHeight"),
                ],
            ),
            (
                "permissions",
                "/admin/auth/group/add/",
                &[
                    LOG_IN,
                    LOGGED_IN,
                    Until("document.querySelector('.selector-available')"),
                ],
            ),
            ("delete", "/admin/auth/user/2/delete/", &[LOG_IN, LOGGED_IN]),
        ],
    },
    Application {
        name: "JupyterLab",
        server: Server::Jupyter,
        states: &[
            (
                "launcher",
                "/lab?reset",
                &[
                    JUPYTER_IS_UP,
                    Until("document.querySelector('.jp-toast-button')"),
                ],
            ),
            (
                "notebook",
                "/lab/tree/demo.ipynb?reset",
                &[
                    JUPYTER_IS_UP,
                    Until("document.querySelectorAll('.jp-Notebook .jp-Cell').length > 3"),
                ],
            ),
            (
                "menu",
                "/lab?reset",
                &[
                    JUPYTER_IS_UP,
                    Click(".lm-MenuBar-item"),
                    Until("document.querySelector('.lm-Menu')"),
                ],
            ),
            (
                "commands",
                "/lab?reset",
                &[
                    JUPYTER_IS_UP,
                    Key("C", 67, 10),
                    Until("document.querySelector('.lm-CommandPalette-item')"),
                ],
            ),
            (
                "context menu",
                "/lab?reset",
                &[
                    JUPYTER_IS_UP,
                    Until("document.querySelector('.jp-DirListing-item')"),
                    Menu(".jp-DirListing-item"),
                    Until("document.querySelector('.lm-Menu')"),
                ],
            ),
            (
                "dialog",
                "/lab?reset",
                &[
                    JUPYTER_IS_UP,
                    Until("document.querySelector('.jp-DirListing-item')"),
                    Click(".jp-DirListing-item"),
                    Key("Delete", 46, 0),
                    Until("document.querySelector('.jp-Dialog')"),
                ],
            ),
        ],
    },
    Application {
        name: "Datasette",
        server: Server::Datasette,
        states: &[
            ("index", "/", &[]),
            ("database", "/shop", &[]),
            ("table", "/shop/orders", &[]),
            (
                "column menu",
                "/shop/orders",
                &[
                    Until("document.querySelector('.dropdown-menu-icon')"),
                    Click(".dropdown-menu-icon"),
                    Until("document.querySelector('.dropdown-menu')?.offsetHeight"),
                ],
            ),
            ("query", "/shop?sql=select+*+from+orders+limit+5", &[]),
        ],
    },
    Application {
        name: "Monaco",
        server: Server::Files,
        states: &[
            ("editor", "/pages/monaco.html", &[MONACO]),
            (
                "find",
                "/pages/monaco.html",
                &[
                    MONACO,
                    Run("editor.trigger('', 'editor.action.startFindReplaceAction')"),
                    Until("document.querySelector('.find-widget.visible')"),
                ],
            ),
            (
                "commands",
                "/pages/monaco.html",
                &[
                    MONACO,
                    Run("editor.trigger('', 'editor.action.quickCommand')"),
                    Until("document.querySelector('.quick-input-list .monaco-list-row')"),
                ],
            ),
            (
                "context menu",
                "/pages/monaco.html",
                &[
                    MONACO,
                    Menu(".view-line:nth-child(5)"),
                    Until(
                        "document.querySelector('.context-view')?.shadowRoot || document.querySelector('.monaco-menu, .shadow-root-host')",
                    ),
                ],
            ),
        ],
    },
    Application {
        name: "Excalidraw",
        server: Server::Files,
        states: &[
            ("canvas", "/pages/excalidraw.html", &[EXCALIDRAW]),
            (
                "menu",
                "/pages/excalidraw.html",
                &[
                    EXCALIDRAW,
                    Click(".main-menu-trigger"),
                    Until("document.querySelector('.dropdown-menu')"),
                ],
            ),
            (
                "tool",
                "/pages/excalidraw.html",
                &[
                    EXCALIDRAW,
                    Run("document.querySelector('[data-testid=toolbar-rectangle]').click()"),
                    Until(
                        "document.querySelector('.selected-shape-actions, .App-menu__left .Island')",
                    ),
                ],
            ),
            (
                "help",
                "/pages/excalidraw.html",
                &[
                    EXCALIDRAW,
                    Click(".help-icon"),
                    Until("document.querySelector('.HelpDialog')"),
                ],
            ),
        ],
    },
    Application {
        name: "Material UI",
        server: Server::Files,
        states: &[
            ("page", "/pages/mui.html", &[MUI]),
            (
                "menu",
                "/pages/mui.html",
                &[
                    MUI,
                    Click("#menu"),
                    Until("document.querySelector('.MuiMenuItem-root')"),
                ],
            ),
            (
                "dialog",
                "/pages/mui.html",
                &[
                    MUI,
                    Click("#new"),
                    Until("document.querySelector('.MuiDialog-paper')"),
                ],
            ),
            (
                "select",
                "/pages/mui.html",
                &[
                    MUI,
                    Click(".MuiSelect-select"),
                    Until("document.querySelector('.MuiMenuItem-root')"),
                ],
            ),
            (
                "autocomplete",
                "/pages/mui.html",
                &[
                    MUI,
                    Click(".MuiAutocomplete-input"),
                    Until("document.querySelector('.MuiAutocomplete-option')"),
                ],
            ),
        ],
    },
    Application {
        name: "Swagger UI",
        server: Server::Files,
        states: &[
            ("list", "/pages/swagger.html", &[SWAGGER]),
            (
                "operation",
                "/pages/swagger.html",
                &[
                    SWAGGER,
                    Click(".opblock-post .opblock-summary-control"),
                    Until("document.querySelector('.try-out__btn')"),
                    Click(".try-out__btn"),
                    Until("document.querySelector('.body-param__text')"),
                ],
            ),
            (
                "authorise",
                "/pages/swagger.html",
                &[
                    SWAGGER,
                    Click(".btn.authorize"),
                    Until("document.querySelector('.modal-ux')"),
                ],
            ),
        ],
    },
    Application {
        name: "Redoc",
        server: Server::Files,
        states: &[(
            "page",
            "/pages/redoc.html",
            &[Until(
                "document.querySelector('[data-section-id]') && document.querySelector('[role=menuitem]')",
            )],
        )],
    },
    Application {
        name: "AG Grid",
        server: Server::Files,
        states: &[
            ("grid", "/pages/grid.html", &[GRID]),
            (
                "filter",
                "/pages/grid.html",
                &[
                    GRID,
                    Click(".ag-header-cell-filter-button"),
                    Until("document.querySelector('.ag-filter')"),
                ],
            ),
            (
                "editing",
                "/pages/grid.html",
                &[
                    GRID,
                    Click("[row-index='2'] [col-id=city]"),
                    Key("Enter", 13, 0),
                    Until("document.querySelector('.ag-cell-editor')"),
                ],
            ),
        ],
    },
    Application {
        name: "Quill",
        server: Server::Files,
        states: &[
            (
                "editor",
                "/pages/quill.html",
                &[Until("document.querySelector('.ql-editor')")],
            ),
            (
                "list",
                "/pages/quill.html",
                &[
                    Until("document.querySelector('.ql-editor')"),
                    Click(".ql-header .ql-picker-label"),
                    Until("document.querySelector('.ql-header.ql-expanded')"),
                ],
            ),
            (
                "colours",
                "/pages/quill.html",
                &[
                    Until("document.querySelector('.ql-editor')"),
                    Click(".ql-color .ql-picker-label"),
                    Until("document.querySelector('.ql-color.ql-expanded')"),
                ],
            ),
        ],
    },
    Application {
        name: "Leaflet",
        server: Server::Files,
        states: &[
            ("map", "/pages/map.html", &[MAP]),
            (
                "pop-up",
                "/pages/map.html",
                &[
                    MAP,
                    Run("document.querySelector('.leaflet-marker-icon').click()"),
                    Until("document.querySelector('.leaflet-popup a')"),
                ],
            ),
        ],
    },
    Application {
        name: "Bootstrap",
        server: Server::Files,
        states: &[
            ("page", "/pages/bootstrap.html", &[]),
            (
                "menu",
                "/pages/bootstrap.html",
                &[
                    Click("#drop"),
                    Until("document.querySelector('.dropdown-menu.show')"),
                ],
            ),
            (
                "dialog",
                "/pages/bootstrap.html",
                &[
                    Click("#ask"),
                    Until("document.querySelector('.modal.show')"),
                ],
            ),
        ],
    },
    Application {
        name: "Streamlit",
        server: Server::Streamlit,
        states: &[
            ("widgets", "/", &[WIDGETS]),
            (
                "list",
                "/",
                &[
                    WIDGETS,
                    Run("document.querySelector('main .stSelectbox input').focus()"),
                    Key("ArrowDown", 40, 0),
                    Until("document.querySelector('[role=option]')"),
                ],
            ),
            (
                "dialog",
                "/",
                &[
                    WIDGETS,
                    Click(".st-key-ask button"),
                    Until("document.querySelector('[role=dialog] button')"),
                ],
            ),
        ],
    },
    Application {
        name: "Gradio",
        server: Server::Gradio,
        states: &[
            ("form", "/", &[BLOCKS]),
            (
                "table",
                "/",
                &[
                    BLOCKS,
                    Click("[role=tab]:nth-of-type(2)"),
                    Until("document.querySelector('[role=gridcell]')?.offsetHeight"),
                ],
            ),
            (
                "files",
                "/",
                &[
                    BLOCKS,
                    Click("[role=tab]:nth-of-type(3)"),
                    Until("document.querySelector('.upload-container, [aria-label*=upload]')"),
                ],
            ),
        ],
    },
    Application {
        name: "Node-RED",
        server: Server::NodeRed,
        states: &[
            ("flow", "/", &[FLOW]),
            (
                "edit",
                "/",
                &[
                    FLOW,
                    Run("RED.editor.edit(RED.nodes.node('debug1'))"),
                    Until("document.querySelector('#node-input-name')?.offsetHeight"),
                ],
            ),
            (
                "menu",
                "/",
                &[
                    FLOW,
                    Click("#red-ui-header-button-sidemenu"),
                    Until("document.querySelector('#menu-item-import')?.offsetHeight"),
                ],
            ),
        ],
    },
    Application {
        name: "TiddlyWiki",
        server: Server::TiddlyWiki,
        states: &[
            ("story", "/", &[WIKI]),
            (
                "editor",
                "/",
                &[
                    WIKI,
                    Click(".tc-page-controls button[aria-label='new tiddler']"),
                    Until("document.querySelector('.tc-edit-texteditor')"),
                ],
            ),
        ],
    },
    Application {
        name: "Wagtail",
        server: Server::Wagtail,
        states: &[
            ("dashboard", "/admin/", &[SIGN_IN, SIGNED_IN]),
            ("pages", "/admin/pages/3/", &[SIGN_IN, SIGNED_IN]),
            (
                "editor",
                "/admin/pages/3/edit/",
                &[
                    SIGN_IN,
                    SIGNED_IN,
                    Until("document.querySelector('#id_title')"),
                ],
            ),
            ("upload", "/admin/images/add/", &[SIGN_IN, SIGNED_IN]),
        ],
    },
    Application {
        name: "Etherpad",
        server: Server::Etherpad,
        states: &[(
            "pad",
            "/p/notes",
            &[Until(
                "document.querySelector('iframe')?.contentDocument?.querySelector('iframe')",
            )],
        )],
    },
    Application {
        name: "NiceGUI",
        server: Server::NiceGui,
        states: &[
            ("table", "/enter", &[ORDERS]),
            (
                "files",
                "/enter",
                &[
                    ORDERS,
                    Click(".q-tab:nth-child(2)"),
                    Until("document.querySelector('.q-uploader')"),
                ],
            ),
            (
                "live",
                "/enter",
                &[
                    ORDERS,
                    Click(".q-tab:nth-child(3)"),
                    Until("document.querySelector('.q-slider')"),
                ],
            ),
        ],
    },
    Application {
        name: "FullCalendar",
        server: Server::Files,
        states: &[
            ("month", "/pages/calendar.html", &[CALENDAR]),
            (
                "week",
                "/pages/calendar.html",
                &[
                    CALENDAR,
                    Click(".fc-timeGridWeek-button"),
                    Until("document.querySelector('.fc-timeGridWeek-view')"),
                ],
            ),
        ],
    },
    Application {
        name: "SortableJS",
        server: Server::Files,
        states: &[("lists", "/pages/sortable.html", &[])],
    },
];

const ORDERS: Step = Until("document.querySelector('tbody td')");
const CALENDAR: Step = Until("document.querySelector('.fc-event')");
const MONACO: Step =
    Until("globalThis.editor && document.querySelectorAll('.view-line').length > 20");
const EXCALIDRAW: Step =
    Until("document.querySelector('.App-toolbar') && document.querySelector('.main-menu-trigger')");
const MUI: Step = Until("document.querySelector('.MuiPagination-root')");
const SWAGGER: Step = Until("document.querySelectorAll('.opblock').length > 10");
const GRID: Step = Until("document.querySelectorAll('.ag-row').length > 10");
const MAP: Step = Until("document.querySelectorAll('.leaflet-marker-icon').length > 5");
const WIDGETS: Step = Until("document.querySelectorAll('input[type=range]').length > 3");
const BLOCKS: Step = Until("document.querySelectorAll('input[type=radio]').length > 2");
const FLOW: Step = Until("document.querySelectorAll('g.red-ui-flow-node-group').length > 1");
const WIKI: Step = Until("document.querySelector('.tc-tiddler-frame')");
pub(crate) const SIGN_IN: Step = Run(
    "if (document.querySelector('#id_password')) { document.querySelector('#id_username').value = 'admin'; \
     document.querySelector('#id_password').value = 'admin'; document.querySelector('form.login-form, form').submit(); }",
);
pub(crate) const SIGNED_IN: Step =
    Until("!document.querySelector('#id_password') && document.readyState === 'complete'");
